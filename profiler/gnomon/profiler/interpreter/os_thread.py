"""What the operating system knows about one thread: processor time, waiting, faults, and where it waits.

Linux tells all of it: a thread about itself for half a microsecond (``own_usage``), others by /proc for a few.
Elsewhere the parts that are missing are None or 0, and ``measured()`` says which; nobody here raises for that.
The identity used is the native id (``threading.get_native_id()``), which is safe to ask for after the thread's end.
"""

from __future__ import annotations

import os
import sys
import time
from threading import get_native_id
from typing import NamedTuple

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

__all__ = ["Schedule", "ScheduleFile", "Usage", "cpu_clock", "measured", "own_usage", "waiting_in"]

_LINUX = sys.platform.startswith("linux")
_RUSAGE_THREAD: int | None = getattr(resource, "RUSAGE_THREAD", None)


class Schedule(NamedTuple):
    """How the kernel's scheduler treated a thread since its start."""

    ran: float  # seconds on a processor
    waited: float  # seconds runnable, but without a processor
    turns: int  # times put on a processor


class Usage(NamedTuple):
    """What a thread used since its start. Seconds and counts."""

    user: float
    system: float
    minor_faults: int
    major_faults: int
    voluntary: int  # switches because it had to wait for something
    involuntary: int


_NO_USAGE = Usage(0.0, 0.0, 0, 0, 0, 0)


def own_usage() -> Usage:
    """The calling thread's usage; where only the processor time is known, the rest is 0."""
    if _RUSAGE_THREAD is None:
        return _NO_USAGE._replace(user=time.thread_time())
    seen = resource.getrusage(_RUSAGE_THREAD)
    return Usage(seen.ru_utime, seen.ru_stime, seen.ru_minflt, seen.ru_majflt, seen.ru_nvcsw, seen.ru_nivcsw)


class ScheduleFile:
    """What the scheduler does with one thread of this process, asked again and again for a microsecond each.

    Keeps one descriptor open until ``close``: to open it each time would cost five times as much.
    """

    def __init__(self, native_id: int) -> None:
        self._descriptor = -1
        if _LINUX:
            try:
                self._descriptor = os.open(f"/proc/self/task/{native_id}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                pass

    def read(self) -> Schedule | None:
        """The figures now; None if the thread has ended, the system doesn't say, or this was closed."""
        if self._descriptor < 0:
            return None
        try:
            fields = os.pread(self._descriptor, 128, 0).split()
            return Schedule(int(fields[0]) / 1e9, int(fields[1]) / 1e9, int(fields[2]))
        except (OSError, IndexError, ValueError):
            return None

    def close(self) -> None:
        """Give the descriptor back; no effect the second time."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


def waiting_in(native_id: int) -> str:
    """The kernel's function that a thread sleeps in, as "hrtimer_nanosleep"; "" if it runs or can't be told."""
    text = _read(f"/proc/self/task/{native_id}/wchan") if _LINUX else b""
    return "" if text in {b"", b"0"} else text.decode("ascii", "replace")


def cpu_clock(native_id: int) -> float | None:
    """Seconds on a processor of a thread of this process; None if it has ended or the system can't say.

    Linux names the clock of a thread by its id: the complement shifted by three, with the bits for "of one thread" and
    "scheduler's precision". Unlike ``time.pthread_getcpuclockid`` this is safe when the thread is gone.
    """
    if not _LINUX:
        return None
    try:
        return time.clock_gettime((~native_id << 3) | 6)
    except OSError:
        return None


def measured() -> dict[str, bool]:
    """Which facts this system gives: "usage", "schedule", "waiting", "clock"."""
    here = get_native_id()
    schedule = ScheduleFile(here)
    known = schedule.read() is not None
    schedule.close()
    return {
        "usage": _RUSAGE_THREAD is not None,
        "schedule": known,
        "waiting": _LINUX and bool(_read(f"/proc/self/task/{here}/wchan")),
        "clock": cpu_clock(here) is not None,
    }


def _read(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 256)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
