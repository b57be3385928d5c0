"""The counters of one process, read in one go: by psutil's ``oneshot`` where it is installed, by /proc and rusage else.

What can't be read is NaN, and ``Counters`` says nothing false instead.
"""

from __future__ import annotations

import os
import time
from math import nan
from typing import Any, NamedTuple, Protocol

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

__all__ = ["Counters", "PlainReader", "PsutilReader", "Reader"]


class Counters(NamedTuple):
    """Since the process began, or as of now. CPU in seconds, memory in bytes; NaN is "not measured"."""

    cpu: float
    cpu_reaped: float  # of children that have ended and were waited for
    rss: float
    threads: float
    fds: float
    voluntary: float  # context switches
    involuntary: float


class Reader(Protocol):
    """Reads the counters of one process again and again."""

    def read(self) -> Counters | None:
        """The counters now; None if the process is gone or not ours to look at."""


class PsutilReader:
    """Reads any process. ``full``: descriptors and switches too, which cost as much again."""

    def __init__(self, psutil: Any, pid: int, *, full: bool) -> None:
        """Raises psutil.NoSuchProcess when there is none."""
        self._psutil = psutil
        self._process = psutil.Process(pid)
        self._full = full
        self._own = pid == os.getpid()
        #: Wall clock when the process began.
        self.began = float(self._process.create_time())

    def read(self) -> Counters | None:
        """The counters now; None if the process is gone or not ours to look at."""
        process = self._process
        try:
            with process.oneshot():
                times = process.cpu_times()
                rss = process.memory_info().rss
                threads: float = process.num_threads()
                fds = voluntary = involuntary = nan
                if self._full:
                    fds = process.num_fds() if hasattr(process, "num_fds") else process.num_handles()
                    switches = process.num_ctx_switches()
                    voluntary, involuntary = switches.voluntary, switches.involuntary
        except self._psutil.Error:
            return None
        reaped = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
        # The kernel's count is in hundredths of a second; of ourselves we can know better.
        cpu = time.process_time() if self._own else times.user + times.system
        return Counters(cpu, reaped, rss, threads, fds, voluntary, involuntary)


class PlainReader:
    """Reads this process alone, without psutil."""

    def read(self) -> Counters:
        """The counters now, as far as the system tells."""
        cpu = time.process_time()
        reaped = voluntary = involuntary = nan
        if resource is not None:
            own, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
            voluntary, involuntary = own.ru_nvcsw, own.ru_nivcsw
            reaped = ended.ru_utime + ended.ru_stime
        return Counters(cpu, reaped, _rss(), _count("/proc/self/task"), _count("/proc/self/fd"), voluntary, involuntary)


def _rss() -> float:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return nan


def _count(folder: str) -> float:
    try:
        return len(os.listdir(folder))
    except OSError:
        return nan
