"""How long an event loop worked and waited, as far as its monitor knows.

Contents: LoopTime.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LoopTime"]


class LoopTime(NamedTuple):
    """Since the monitor was last started.

    Fields:
        watched: seconds. worked: seconds of these in which the loop did not wait for events.
        exact: whether this was timed; else it is from ``looks`` of a sampler and the thread's processor time.
        looks: turns of the loop that were timed, or looks since the process's monitors began.
    """

    watched: float
    worked: float
    exact: bool
    looks: int
