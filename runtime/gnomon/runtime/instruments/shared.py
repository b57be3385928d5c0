"""The monitors of one process, shared by all that carry instruments in it.

Scheduler, agents and the executor's threads may live in one process, even on one loop. There is one sampler then, one
monitor of each loop, one of the collector; they run from the first ``acquire`` until the last ``release``. In a forked
child nothing runs, and nothing is left of what the parent had.

A sampler's wake-ups cost more than what it does in them. While no owner has anything to do they all rest: there is
nothing to see, and an idle process stays idle.

Contents: Shared, Owner, acquire, release.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from typing import TYPE_CHECKING, Protocol

from gnomon.profiler.interpreter.gc_monitor import GcMonitor
from gnomon.profiler.interpreter.gil import GilMonitor
from gnomon.profiler.machine.system import SystemMonitor
from gnomon.profiler.reading.ticker import Ticker, tick_source
from gnomon.profiler.sampling.sampler import Sampler

if TYPE_CHECKING:
    import asyncio

    from gnomon.profiler.loops.monitor import LoopMonitor
    from gnomon.profiler.loops.stalls import Stall
    from gnomon.runtime.config import InstrumentSettings

__all__ = ["Owner", "Shared", "acquire", "release"]

logger = logging.getLogger("gnomon.instruments")

#: Seconds between two looks of the monitors, where no sampler shows them its own.
_TICK = 0.0397

#: Stalls of a process that wait to be told; more in one heartbeat are dropped, the oldest first.
_STALLS = 50


class Owner(Protocol):
    """Who carries instruments. ``process``: "scheduler", "agent" or "executor"."""

    process: str


_RANKS = {"scheduler": 0, "agent": 1, "executor": 2}


class Shared:
    """The monitors that run in this process. ``owners``: who carries them, in the order they came.

    ``name``: of the process in profiles; ``host``: measure the machine; ``children``: and the processes that this one
    started.
    """

    def __init__(self, settings: InstrumentSettings, *, name: str, host: bool, children: bool) -> None:
        self.settings = settings
        self.owners: list[Owner] = []
        self._idle: set[int] = set()  # ids of owners that have nothing to do
        self._resting = False
        self._changing = threading.Lock()
        self.stalls: deque[Stall] = deque(maxlen=_STALLS)
        self.sampler: Sampler | None = None
        if settings.sampler:
            self.sampler = Sampler(
                interval=settings.sampling_interval, budget=settings.sampling_budget, process=f"{name} {os.getpid()}"
            )
        self.gc = GcMonitor() if settings.gc else None
        self.gil: GilMonitor | None = None
        if settings.gil:
            # One thread for all: each wake-up takes the GIL from who computes.
            self.gil = GilMonitor(Ticker(_TICK) if self.sampler is None else self.sampler)
        self.system: SystemMonitor | None = None
        if settings.system:
            self.system = SystemMonitor(children=children, network=host, disk=host, host_cpu=host)
        self._loops: dict[asyncio.AbstractEventLoop, tuple[LoopMonitor, int]] = {}

    def teller(self) -> Owner:
        """The owner that reports of this process: a scheduler before agents, an agent before executors."""
        return min(self.owners, key=lambda owner: _RANKS[owner.process])

    def first_of(self, process: str) -> Owner | None:
        """The first owner of a kind."""
        return next((owner for owner in self.owners if owner.process == process), None)

    def start(self) -> None:
        """Begin."""
        for monitor in (self.gc, self.gil, self.sampler):
            if monitor is not None:
                monitor.start()

    def stop(self) -> None:
        """End; what was recorded stays."""
        for monitor in (self.sampler, self.gil, self.gc):
            if monitor is not None:
                monitor.stop()

    def rest(self, owner: Owner) -> None:
        """``owner`` has nothing to do; when none has, sampling pauses."""
        with self._changing:
            self._idle.add(id(owner))
            if self._resting or not all(id(each) in self._idle for each in self.owners):
                return
            self._resting = True
            for monitor in (*[monitor for monitor, _ in self._loops.values()], self.sampler, self.gil):
                if monitor is not None:
                    monitor.stop()

    def wake(self, owner: Owner) -> None:
        """``owner`` has something to do."""
        with self._changing:
            self._idle.discard(id(owner))
            if not self._resting:
                return
            self._resting = False
            for monitor in (self.gil, self.sampler, *[monitor for monitor, _ in self._loops.values()]):
                if monitor is not None:
                    monitor.start()

    @property
    def resting(self) -> bool:
        """Whether nobody has anything to do, and nothing is watched."""
        return self._resting

    def watch_loop(self, loop: asyncio.AbstractEventLoop) -> LoopMonitor | None:
        """The monitor of a loop; called on it, and once per ``forget_loop``."""
        if not self.settings.loop:
            return None
        with self._changing:
            return self._watch_loop(loop)

    def _watch_loop(self, loop: asyncio.AbstractEventLoop) -> LoopMonitor:
        monitor, users = self._loops.get(loop, (None, 0))
        if monitor is None:
            from gnomon.profiler.loops.monitor import LoopMonitor  # with asyncio, which executors do without

            if self.sampler is not None:
                tick_source(self.sampler, self.settings.stall_threshold)  # often enough to look into each stall
            monitor = LoopMonitor(
                loop,
                sampler=self.sampler,
                gc=self.gc,
                gil=self.gil,
                threshold=self.settings.stall_threshold,
                log_every=None,
            )
            monitor.on_stall.append(self._on_stall)
            monitor.start()
        self._loops[loop] = (monitor, users + 1)
        return monitor

    def _on_stall(self, stall: Stall) -> None:
        self.stalls.append(stall)
        if stall.duration >= self.settings.stall_warning:
            logger.warning("%s", stall.sentence())

    def monitor_of(self, loop: asyncio.AbstractEventLoop | None) -> LoopMonitor | None:
        """The monitor of a loop, if it is watched."""
        return self._loops[loop][0] if loop is not None and loop in self._loops else None

    def forget_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """The end of what ``watch_loop`` began."""
        with self._changing:
            monitor, users = self._loops.get(loop, (None, 0))
            if monitor is None:
                return
            if users > 1:
                self._loops[loop] = (monitor, users - 1)
            else:
                del self._loops[loop]
                monitor.stop()


_lock = threading.Lock()
_here: Shared | None = None


def acquire(owner: Owner, settings: InstrumentSettings, *, host: bool, children: bool) -> Shared:
    """The monitors of this process, started if ``owner`` is the first; its settings hold then."""
    global _here
    with _lock:
        shared = _here
        if shared is None:
            shared = _here = Shared(settings, name=owner.process, host=host, children=children)
            shared.start()
        shared.owners.append(owner)
    shared.wake(owner)
    return shared


def release(owner: Owner) -> None:
    """``owner`` needs them no more; with the last they end."""
    global _here
    with _lock:
        shared = _here
        if shared is None or owner not in shared.owners:
            return
        shared.owners.remove(owner)
        if not shared.owners:
            _here = None
            shared.stop()


def _forked() -> None:
    global _here, _lock
    _here = None
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
