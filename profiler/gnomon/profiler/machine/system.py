"""Processor time, memory, descriptors and threads of this process and its children, and the load of the machine.

``sample()`` reads everything once and adds a row; call it twice a second or so, or let ``start()`` do that on a thread.
Children are counted with their processor time and memory; which there are is looked up more rarely than they are
read. What can't be measured here (no psutil, no Linux) is NaN, and ``measured`` says so.
"""

from __future__ import annotations

import os
import threading
from math import isnan, nan
from typing import Any

from gnomon.profiler.clock import now
from gnomon.profiler.cost import Cost, CostMeter
from gnomon.profiler.machine.cgroup import limits
from gnomon.profiler.machine.descendants import descendants
from gnomon.profiler.machine.host import HostWatch
from gnomon.profiler.machine.process import Counters, PlainReader, PsutilReader, Reader
from gnomon.profiler.series import Rows, Series

try:
    import psutil as _psutil
except ImportError:
    _psutil = None  # type: ignore[assignment]

__all__ = ["COLUMNS", "SystemMonitor"]

#: Columns of the series beside the time. CPU in percent of one processor (of all, for the host), memory in bytes, all
#: rates per second. "cpu" and "memory" are this process and its children together.
COLUMNS = (
    "cpu",
    "cpu_children",
    "memory",
    "memory_children",
    "children",
    "threads",
    "fds",
    "voluntary_switches",
    "involuntary_switches",
    "host_received",
    "host_sent",
    "host_loopback",
    "host_disk_read",
    "host_disk_written",
    "host_cpu",
)


class SystemMonitor:
    """Measures this process, its children and the machine.

    ``children``, ``network``, ``disk``, ``host_cpu``: switches. ``children_every``, ``host_every``: seconds between
    two looks for new children, and at the machine's counters. ``keep``: rows kept (default: 2 hours at 2 a second).
    """

    def __init__(
        self,
        *,
        children: bool = True,
        network: bool = True,
        disk: bool = True,
        host_cpu: bool = True,
        children_every: float = 2.0,
        host_every: float = 1.0,
        keep: int = 14_400,
    ) -> None:
        self._reader: Reader = PlainReader() if _psutil is None else PsutilReader(_psutil, os.getpid(), full=True)
        self._host = HostWatch(_psutil, network=network, disk=disk, cpu=host_cpu)
        self._host_every = host_every
        self._with_children = children and _psutil is not None
        self._children: dict[int, PsutilReader] = {}
        self._children_every = children_every
        self._listed = -float("inf")
        self._before: Counters | None = None
        self._children_cpu = 0.0
        self._time = 0.0
        self._lock = threading.Lock()
        self._meter = CostMeter()
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self.series = Series(COLUMNS, keep)
        #: Bytes that this process may use: the control group's limit or the machine's memory; None if unknown.
        self.memory_limit = memory_limit()
        #: Processors that this process may use: the control group's quota or those it may run on.
        self.processors = _processors()
        self.sample()  # rates need a first reading
        self.series = Series(COLUMNS, keep)

    def start(self, interval: float = 0.5) -> None:
        """Sample every ``interval`` seconds on a daemon thread; no effect if one does already."""
        with self._lock:
            if self._thread is None:
                self._stopping = threading.Event()
                self._thread = threading.Thread(
                    target=self._run, args=(interval, self._stopping), name="gnomon-system", daemon=True
                )
                self._thread.start()

    def stop(self) -> None:
        """End the thread that ``start`` began; what was recorded stays."""
        with self._lock:
            thread, self._thread = self._thread, None
            self._stopping.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def sample(self) -> dict[str, float]:
        """Measure once: adds a row to the series and gives it. May be called on any thread."""
        with self._lock:
            mark = self._meter.begin()
            time = now()
            row = self._measure(time, max(time - self._time, 1e-6))
            self._time = time
            self.series.append(time, *row)
            self._meter.end(mark)
        return dict(zip(self.series.columns, (time, *row), strict=True))

    @property
    def measured(self) -> dict[str, bool]:
        """For each column, whether the last sample had a value for it."""
        last = self.series.last()
        return {name: name in last and not isnan(last[name]) for name in COLUMNS}

    def window(self, start: float | None = None, stop: float | None = None) -> dict[str, list[float]]:
        """The rows between two times of the wall clock, as plain columns."""
        return self.series.window(start, stop)

    def since(self, number: int = 0) -> Rows:
        """The rows from a number on, and how many of them are no longer kept."""
        return self.series.since(number)

    def cost(self) -> Cost:
        """CPU seconds that measuring took, and samples."""
        return self._meter.cost()

    def statistics(self) -> dict[str, Any]:
        """Plain values: the last row, the limits, what is measured, and the cost."""
        cost = self.cost()
        return {
            "last": self.series.last(),
            "memory_limit": self.memory_limit,
            "processors": self.processors,
            "measured": self.measured,
            "psutil": _psutil is not None,
            "cost": {"cpu": cost.cpu, "calls": cost.calls},
        }

    def _run(self, interval: float, stopping: threading.Event) -> None:
        while not stopping.wait(interval):
            self.sample()

    def _measure(self, time: float, seconds: float) -> tuple[float, ...]:
        own = self._reader.read()
        if own is None:
            return (nan,) * len(COLUMNS)
        cpu, memory, count = self._read_children(time, seconds)
        before = self._before or own
        # Processor time moves from the living children to the reaped ones when one ends: the sum goes on.
        total = 0.0 if isnan(own.cpu_reaped) else own.cpu_reaped - before.cpu_reaped
        cpu_children = max(total + cpu - self._children_cpu, 0.0) if self._with_children else nan
        cpu_own = max(own.cpu - before.cpu, 0.0)
        self._before, self._children_cpu = own, cpu
        host = self._host.rates(self._host_every)
        return (
            100.0 * (cpu_own + (cpu_children if self._with_children else 0.0)) / seconds,
            100.0 * cpu_children / seconds,
            own.rss + (memory if self._with_children else 0.0),
            memory if self._with_children else nan,
            count if self._with_children else nan,
            own.threads,
            own.fds,
            (own.voluntary - before.voluntary) / seconds,
            (own.involuntary - before.involuntary) / seconds,
            *host,
        )

    def _read_children(self, time: float, seconds: float) -> tuple[float, float, int]:
        """CPU seconds so far and memory of all living children, and how many there are."""
        if not self._with_children:
            return 0.0, 0.0, 0
        if time - self._listed >= self._children_every:
            self._listed = time
            self._list_children(time, seconds)
        cpu = memory = 0.0
        for pid, reader in list(self._children.items()):
            counters = reader.read()
            if counters is None:
                del self._children[pid]
                continue
            cpu += counters.cpu + counters.cpu_reaped
            memory += counters.rss
        return cpu, memory, len(self._children)

    def _list_children(self, time: float, seconds: float) -> None:
        found: dict[int, PsutilReader] = {}
        for pid in descendants(os.getpid(), _psutil):
            reader = self._children.get(pid)
            if reader is None:
                try:
                    reader = PsutilReader(_psutil, pid, full=False)
                except _psutil.Error:
                    continue
                counters = reader.read()
                age = time - reader.began
                if counters is not None and age > seconds:
                    # All that it used since it began would make a peak of this one row.
                    self._children_cpu += (counters.cpu + counters.cpu_reaped) * (1 - seconds / age)
            found[pid] = reader
        self._children = found


def memory_limit() -> int | None:
    """Bytes of memory that this process may use: the smaller of its control group's limit and the machine's memory."""
    known = [value for value in (limits().memory, _physical()) if value]
    return min(known, default=None)


def _physical() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return int(_psutil.virtual_memory().total) if _psutil is not None else None


def _processors() -> float:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = limits().processors
    return min(float(usable), quota) if quota else float(usable)
