# cython: cdivision=True
"""What a program loses when a thread that ticks takes the GIL from it, beside the CPU that the tick uses.

Whoever wants the GIL of a busy program sleeps for a switch interval, wakes to ask for it, and wakes again when it is
let go; the holder sleeps meanwhile, and wakes twice to get it back. These wake-ups are dearer than the tick itself.
The holder's can't be measured from here, but they are as many as the ticking thread's, and of the same kind: and those
are what its wait leaves when the switch intervals are taken off. Not every time, for others may have waited as well;
so the price is that of the cheapest quarter.

It reads no clock: times come in as arguments.
"""

from __future__ import annotations

__all__ = ["Handover"]

#: Seconds: where the estimate begins, and what it never exceeds (a machine without a free processor is not our doing).
_FIRST = 100e-6
_DEAREST = 300e-6

#: How fast the estimate follows, and how much faster downwards: a quarter of all ticks lies below it.
_STEP = 0.02
_DOWN = 3.0


class Handover:
    """Adds up what ticks cost others. ``price``: of one hand-over, seconds."""

    __slots__ = ("number", "price", "seconds")

    def __init__(self) -> None:
        self.price = _FIRST
        self.number = 0
        self.seconds = 0.0

    def tick(self, waited: float, switch_interval: float) -> float:
        """A tick waited so long for the GIL; the seconds that others lost by it: 0 if it had not to ask for it."""
        if waited < switch_interval:
            return 0.0
        if waited % switch_interval < self.price:
            self.price *= 1.0 - _DOWN * _STEP
        else:
            self.price = min(self.price * (1.0 + _STEP), _DEAREST)
        self.number += 1
        self.seconds += self.price
        return self.price
