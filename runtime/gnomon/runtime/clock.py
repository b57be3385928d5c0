"""The time that stamps everything: the wall clock as it stood when this process began, carried on monotonically.

Readings of one process never go back and never jump when somebody sets the system's clock. Two processes differ by
what their wall clocks differed when each began; across machines the scheduler estimates that from heartbeats.
"""

from __future__ import annotations

import time
from time import monotonic

__all__ = ["now"]


def _wall_minus_monotonic() -> float:
    """Seconds between the two clocks: the reading that took the shortest, for a preemption in between would count."""
    best_span = float("inf")
    offset = 0.0
    for _ in range(5):
        before = monotonic()
        wall = time.time()
        after = monotonic()
        if after - before < best_span:
            best_span = after - before
            offset = wall - (before + after) / 2
    return offset


_OFFSET = _wall_minus_monotonic()


def now() -> float:
    """Seconds since the epoch; never goes back within a process."""
    return monotonic() + _OFFSET
