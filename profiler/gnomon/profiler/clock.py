"""The clocks of the instruments: wall time that never steps back, and the CPU time of a thread.

``native_clock.pxd`` is the same for compiled code.
"""

from __future__ import annotations

import time

__all__ = ["OFFSET", "now", "perf_counter", "process_cpu", "thread_cpu"]

#: From ``perf_counter`` to wall clock. Set once: steps of the system's clock would tear a profile apart.
OFFSET = time.time() - time.perf_counter()

perf_counter = time.perf_counter


def now() -> float:
    """Wall clock in seconds since 1970, monotonic within a process."""
    return time.perf_counter() + OFFSET


def process_cpu() -> float:
    """Seconds of CPU that all threads of the process have used."""
    return time.process_time()


def thread_cpu() -> float:
    """Seconds of CPU that the calling thread has used."""
    return time.thread_time()
