"""What the scheduler observes: its own process and loop, what waits for workers, and what tasks' deep profiles hold.

Compiled code makes no frames: the brain's calls are regions of the profile, by ``slot_of``.

Contents: Watching, slot_of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from gnomon.profiler.marks import regions
from gnomon.runtime.config import InstrumentSettings
from gnomon.runtime.core import Model
from gnomon.runtime.instruments.attached import Attached
from gnomon.runtime.instruments.demand import ASSIGNED, QUEUED
from gnomon.runtime.instruments.lines import LogLines
from gnomon.runtime.messages import DemandChanged
from gnomon.runtime.scheduler.budget import Budget
from gnomon.runtime.scheduler.deep_profiles import DeepProfiles
from gnomon.runtime.scheduler.streams import WorkerStream
from gnomon.runtime.scheduler.telemetry import Telemetry

__all__ = ["Watching", "slot_of"]

#: Seconds between two rows of measurements.
_INTERVAL = 1.0

_MONITORS = regions.region("monitors")


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
        self._lines = LogLines(telemetry.append_log)
        self.budget = Budget(self.instruments.loop_time)
        self._timer: asyncio.TimerHandle | None = None
        self.deep_profiles = DeepProfiles(settings.profiles)

    def start(self) -> None:
        """Begin; on the scheduler's loop."""
        self._lines.start()
        if self._enabled:
            self.instruments.start()
            self.budget.start()
            self._timer = asyncio.get_running_loop().call_later(_INTERVAL, self._report)

    def stop(self) -> None:
        """End. Idempotent."""
        self._lines.stop()
        if self._timer is not None:
            self._timer.cancel()
        self.budget.stop()
        self.instruments.stop()

    def _report(self) -> None:
        with _MONITORS:
            report = self.instruments.report(self._model.queue.live)
            self._telemetry.append_report(0, report)
            self.budget.advance()
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
        """Keep the deep profile of a task for who asks."""
        task = self._model.by_id.get(task_id)
        if task is not None:
            self.deep_profiles.keep(task.key, task.group.prefix.name, profile)
