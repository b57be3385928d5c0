"""What an instrument itself costs: CPU seconds of the thread that works for it, and how often it was called.

Reading the thread's CPU clock twice takes about a microsecond, so it is for work of several; what is cheaper is
counted and priced by the caller.
"""

from __future__ import annotations

from typing import NamedTuple

from gnomon.profiler.clock import thread_cpu

__all__ = ["Cost", "CostMeter"]


class Cost(NamedTuple):
    """CPU seconds used and calls made so far."""

    cpu: float
    calls: int

    def __add__(self, other: tuple[object, ...]) -> Cost:
        """Both together."""
        if not isinstance(other, Cost):
            return NotImplemented
        return Cost(self.cpu + other.cpu, self.calls + other.calls)


class CostMeter:
    """Adds up the CPU time between ``begin`` and ``end``, both called on the same thread."""

    __slots__ = ("calls", "cpu")

    def __init__(self) -> None:
        self.cpu = 0.0
        self.calls = 0

    @staticmethod
    def begin() -> float:
        """A mark to give to ``end``."""
        return thread_cpu()

    def end(self, mark: float) -> None:
        """Count one call that began at the mark."""
        self.cpu += thread_cpu() - mark
        self.calls += 1

    def cost(self) -> Cost:
        """What was counted so far."""
        return Cost(self.cpu, self.calls)
