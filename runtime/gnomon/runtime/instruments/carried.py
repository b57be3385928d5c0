"""What one scheduler, agent or executor carries: it starts and stops the process's monitors, and sums them up.

Contents: Instruments, Report.
"""

from __future__ import annotations

import zlib
from array import array
from math import nan
from typing import TYPE_CHECKING, Any, TypeAlias

import msgpack

from gnomon.profiler.histogram import Histogram
from gnomon.runtime.clock import now
from gnomon.runtime.instruments import shared
from gnomon.runtime.instruments.looptime import LoopTime
from gnomon.runtime.instruments.series import COLUMNS

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Collection

    from gnomon.profiler.sessions.session import Session
    from gnomon.runtime.config import InstrumentSettings

__all__ = ["Instruments", "Report"]

#: Plain values for a heartbeat: ``series`` maps the kind of a process to a pair of time and row (see ``series``),
#: ``stalls`` to stalls as dicts. Both may lack.
Report: TypeAlias = "dict[str, Any]"

_PLACE = {name: index for index, name in enumerate(COLUMNS)}


class Instruments:
    """See the module. Not safe for several threads at a time.

    ``process``: "scheduler", "agent" or "executor"; ``children``: count the processes that this one started as well;
    ``host``: measure the machine.
    """

    def __init__(
        self, process: str, settings: InstrumentSettings, *, children: bool = False, host: bool = True
    ) -> None:
        self.process = process
        self._children = children
        self._host = host
        self._settings = settings
        self._shared: shared.Shared | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lags = Histogram()
        self._waits = Histogram()
        self._before: dict[str, float] = {}
        self._time = 0.0
        self._resting = False

    def start(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Begin; on the loop that is to be watched, if one is given."""
        if not self._settings.enabled or self._shared is not None:
            return
        self._shared = shared.acquire(self, self._settings, host=self._host, children=self._children)
        self._time = now()
        if loop is not None:
            self._loop = loop
            self._shared.watch_loop(loop)

    def stop(self) -> None:
        """End. Idempotent."""
        if self._shared is None:
            return
        if self._loop is not None:
            self._shared.forget_loop(self._loop)
        self._shared = None
        shared.release(self)

    def watch_thread(self, ident: int, name: str) -> None:
        """Sample a thread."""
        if self._shared is not None and self._shared.sampler is not None:
            self._shared.sampler.watch_thread(ident, name)

    def forget_thread(self, ident: int) -> None:
        """Sample a thread no longer."""
        if self._shared is not None and self._shared.sampler is not None:
            self._shared.sampler.forget_thread(ident)

    def rest(self) -> None:
        """The owner has nothing to do for now."""
        if self._shared is not None and not self._resting:
            self._resting = True
            self._shared.rest(self)

    def wake(self) -> None:
        """It has again. Costs next to nothing if it had all the time; any thread may say so."""
        if self._resting:
            self._resting = False
            if self._shared is not None:
                self._shared.wake(self)

    def report(self, tasks: float = nan) -> Report:
        """What was measured since the last time; empty where nothing is, or somebody else in this process tells of it.

        ``tasks``: the column of that name.
        """
        monitors = self._shared
        if monitors is None or monitors.teller() is not self:
            return {}
        row = array("d", [nan]) * len(COLUMNS)
        time = now()
        row[_PLACE["seconds"]], self._time = time - self._time, time
        row[_PLACE["tasks"]] = tasks
        self._add_system(monitors, row)
        self._add_loop(monitors, row)
        self._add_interpreter(monitors, row)
        self._add_costs(monitors, row)
        report: Report = {"series": {self.process: (time, row.tolist())}}
        stalls = []
        while monitors.stalls:
            stalls.append(monitors.stalls.popleft().as_dict())
        if stalls:
            report["stalls"] = {self.process: stalls}
        return report

    def loop_time(self) -> LoopTime | None:
        """What is known of the loop's work since its monitor was last started; None if it has none."""
        monitors = self._shared
        monitor = None if monitors is None else monitors.monitor_of(self._loop)
        if monitors is None or monitor is None or monitors.resting:
            return None
        watched, worked = monitor.totals()
        looks = 0
        if monitor.exact:
            looks = monitor.statistics()["turns"]
        elif monitors.gil is not None:
            looks = monitors.gil.lateness.number
        return LoopTime(watched, worked, monitor.exact, looks)

    def session(
        self,
        start: float | None = None,
        stop: float | None = None,
        *,
        threads: Collection[int] | None = None,
        prefix: str = "",
    ) -> Session | None:
        """Samples between two times: of tasks on these threads whose prefix begins so, or else of all but tasks.

        None if nobody samples, or another owner of this kind answers for the process.
        """
        monitors = self._shared
        if monitors is None or monitors.sampler is None:
            return None
        if threads is None and monitors.first_of(self.process) is not self:
            return None
        from gnomon.profiler.sessions.processors import (  # slow to import, seldom asked for
            below,
            keep_labels,
            keep_threads,
        )

        session = monitors.sampler.session(start, stop)
        labels = [""]
        if threads is not None:
            session = keep_threads(session, threads)
            labels = [label for label in session.labels if label and label.startswith(prefix)]
        return below(keep_labels(session, labels), lambda function: function.name in _ROOTS)

    def profile(
        self,
        start: float | None = None,
        stop: float | None = None,
        *,
        threads: Collection[int] | None = None,
        prefix: str = "",
    ) -> bytes:
        """The packed plain form of ``session``; empty if there is none. Slow: not for a loop."""
        session = self.session(start, stop, threads=threads, prefix=prefix)
        return b"" if session is None else zlib.compress(msgpack.packb(session.to_plain()), 1)

    def _add_system(self, monitors: shared.Shared, row: array[float]) -> None:
        if monitors.system is None:
            return
        measured = monitors.system.sample()
        for name in _SYSTEM:
            row[_PLACE[name]] = measured[name]

    def _add_loop(self, monitors: shared.Shared, row: array[float]) -> None:
        monitor = monitors.monitor_of(self._loop)
        if monitor is None:
            return
        lags = monitor.lag.copy()
        new, self._lags = lags.since(self._lags), lags
        row[_PLACE["lag_p50"]], row[_PLACE["lag_p99"]] = new.quantile(0.5), new.quantile(0.99)
        row[_PLACE["lag_max"]] = new.largest
        wall, worked = monitor.totals()
        if wall < self._before.get("loop wall", 0.0):  # it was started anew
            self._before["loop wall"] = self._before["loop worked"] = 0.0
        wall, worked = self._difference("loop wall", wall), self._difference("loop worked", worked)
        row[_PLACE["busy"]] = 100.0 * worked / wall if wall > 0 else nan
        if self._resting:
            # Nobody watches the loop; what it does is no more than what the process uses.
            row[_PLACE["busy"]] = min(row[_PLACE["cpu"]], 100.0)

    def _add_interpreter(self, monitors: shared.Shared, row: array[float]) -> None:
        if monitors.gc is not None:
            seconds = sum(each.total for each in monitors.gc.histograms)
            row[_PLACE["gc_seconds"]] = self._difference("gc", seconds)
            recent = monitors.gc.pauses(self._time - row[_PLACE["seconds"]])
            row[_PLACE["gc_max"]] = max([pause.duration for pause in recent], default=0.0)
        if monitors.gil is not None:
            waits, ticks = monitors.gil.waits.copy(), self._difference("ticks", monitors.gil.lateness.number)
            new, self._waits = waits.since(self._waits), waits
            row[_PLACE["gil_contended"]] = 100.0 * new.number / ticks if ticks else nan
            row[_PLACE["gil_wait_max"]] = new.largest
        if monitors.sampler is not None:
            statistics = monitors.sampler.statistics()
            row[_PLACE["samples"]] = self._difference("samples", statistics.samples)
            row[_PLACE["samples_missed"]] = self._difference("missed", statistics.missed)

    def _add_costs(self, monitors: shared.Shared, row: array[float]) -> None:
        """What each instrument cost; the GIL's monitor is taken out of the sampler's time, on whose ticks it rides."""
        monitor = monitors.monitor_of(self._loop)
        costs = {
            name: each.cost().cpu
            for name, each in (
                ("gc", monitors.gc),
                ("gil", monitors.gil),
                ("system", monitors.system),
                ("loop", monitor),
            )
            if each is not None
        }
        if monitors.sampler is not None:
            costs["sampler"] = max(0.0, monitors.sampler.statistics().cpu - costs.get("gil", 0.0))
        row[_PLACE["own_cpu"]] = 0.0
        for name, cost in costs.items():
            used = self._difference(f"cost of {name}", cost)
            row[_PLACE[f"own_{name}"]] = used
            row[_PLACE["own_cpu"]] += used

    def _difference(self, name: str, value: float) -> float:
        """What a total grew by since the last time."""
        before, self._before[name] = self._before.get(name, 0.0), value
        return value - before


#: Functions whose callers tell nothing: they run every task, and every loop.
_ROOTS = {"TaskRunner.run", "Runner.run"}

#: Columns that are taken from the system's monitor as they are.
_SYSTEM = (
    "cpu",
    "memory",
    "threads",
    "fds",
    "host_received",
    "host_sent",
    "host_loopback",
    "host_disk_read",
    "host_disk_written",
    "host_cpu",
)
