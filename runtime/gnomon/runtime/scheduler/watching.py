"""What the scheduler observes: its own process and loop, what waits for workers, and what tasks' deep profiles hold.

Compiled code makes no frames: the brain's calls are regions of the profile, by ``slot_of``.

Contents: Watching, slot_of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from gnomon.profiler import regions
from gnomon.runtime.config import InstrumentSettings
from gnomon.runtime.core import Model
from gnomon.runtime.instruments.attached import Attached
from gnomon.runtime.instruments.demand import ASSIGNED, QUEUED
from gnomon.runtime.messages import DemandChanged, Key
from gnomon.runtime.scheduler.streams import WorkerStream
from gnomon.runtime.scheduler.telemetry import Telemetry

__all__ = ["Watching", "slot_of"]

#: Seconds between two rows of measurements.
_INTERVAL = 1.0


def slot_of(function: Callable[..., Any]) -> int:
    """The region of a function of the brain: its module's last name and its own."""
    return regions.slot(f"{function.__module__.rpartition('.')[2]}.{function.__name__}")


class Watching:
    """Of one scheduler."""

    def __init__(self, settings: InstrumentSettings, model: Model, telemetry: Telemetry) -> None:
        self.instruments = Attached("scheduler", settings)
        self._enabled = settings.enabled
        #: Whether something but heartbeats went on since the last row of measurements.
        self.active = True
        self._model = model
        self._telemetry = telemetry
        self._queued = False
        self._timer: asyncio.TimerHandle | None = None
        self._profiles: dict[Key, bytes] = {}
        self._profile_bytes = 0
        self._profile_limit = settings.profiles

    def start(self) -> None:
        """Begin; on the scheduler's loop."""
        if self._enabled:
            self.instruments.start()
            self._timer = asyncio.get_running_loop().call_later(_INTERVAL, self._report)

    def stop(self) -> None:
        """End. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
        self.instruments.stop()

    def _report(self) -> None:
        report = self.instruments.report(self._model.queue.live)
        self._telemetry.append_report(0, report)
        if not self.active:
            self.instruments.rest()
        self.active = False
        self._timer = asyncio.get_running_loop().call_later(_INTERVAL, self._report)

    # Demand

    def on_turn_end(self, touched: list[WorkerStream], now: float) -> None:
        """A loop turn has placed what it could; ``touched`` workers were sent tasks, or reported some."""
        if not self._enabled:
            return
        if self.active:
            self.instruments.wake()
        queued = self._model.queue.live > 0
        if queued != self._queued:
            self._queued = queued
            self._telemetry.append_demand(0, DemandChanged((QUEUED,), (queued,), (now,)))
        for worker in touched:
            state = self._model.workers.get(worker.id)
            assigned = state is not None and len(state.processing) > 0
            if assigned != worker.assigned:
                worker.assigned = assigned
                self._telemetry.append_demand(worker.id, DemandChanged((ASSIGNED,), (assigned,), (now,)))

    # Deep profiles

    def keep_profile(self, task_id: int, profile: bytes) -> None:
        """Keep the deep profile of a task for who asks; the oldest go when there are too many bytes."""
        task = self._model.by_id.get(task_id)
        if task is None or len(profile) > self._profile_limit:
            return
        self._profile_bytes += len(profile) - len(self._profiles.pop(task.key, b""))
        self._profiles[task.key] = profile
        while self._profile_bytes > self._profile_limit:
            oldest = next(iter(self._profiles))
            self._profile_bytes -= len(self._profiles.pop(oldest))

    def profile_of(self, key: Key) -> bytes | None:
        """The deep profile of a key's last run; None if none was made, or it is gone."""
        return self._profiles.get(key)
