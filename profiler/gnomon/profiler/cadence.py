"""When to take the next sample: a grid of deadlines, how late each was, and an interval that keeps to a budget.

No clock and no thread: times come in as arguments. What was late and what fell out is counted here and read by others
(a sampler that is late beside a busy program has waited for the GIL).
"""

from __future__ import annotations

__all__ = ["Cadence"]

#: Weight of the last tick in the running mean of their cost.
_SMOOTHING = 0.05

#: However dear a tick is, one is taken after this many seconds: bursts would go unseen otherwise.
WIDEST = 1.0


class Cadence:
    """Deadlines ``interval`` seconds apart, or further where a tick costs more than ``budget`` of that."""

    __slots__ = ("_cost", "base", "budget", "deadline", "interval", "late", "late_max", "late_sum", "missed", "ticks")

    def __init__(self, interval: float, budget: float, now: float) -> None:
        if not 0 < interval <= WIDEST:
            raise ValueError(f"an interval of {interval!r} s is not between 0 and {WIDEST} s")
        if not 0 < budget <= 1:
            raise ValueError(f"a budget of {budget!r} of the CPU is not between 0 and 1")
        self.base = interval
        self.budget = budget
        self.interval = interval
        self.deadline = now + interval
        self.late = 0.0  #: of the last tick, seconds
        self.late_sum = 0.0
        self.late_max = 0.0
        self.ticks = 0
        self.missed = 0
        self._cost = 0.0

    def restart(self, now: float) -> None:
        """Go on after a pause: the time in between was nobody's lateness."""
        self.deadline = now + self.interval

    def delay(self, now: float) -> float:
        """Seconds until the next tick is due; zero or less if it is."""
        return self.deadline - now

    def tick(self, now: float) -> int:
        """A tick begins: how late is it, and which is next.

        Returns how many ticks it stands for: itself, and those that fell out before it. Whatever kept the sampler from
        the GIL is still in the stacks that it sees now, so they count for the whole time.
        """
        late = now - self.deadline
        self.late = late if late > 0.0 else 0.0
        self.late_sum += self.late
        if self.late > self.late_max:
            self.late_max = self.late
        self.ticks += 1
        self.deadline += self.interval
        if self.deadline > now:
            return 1
        skipped = int((now - self.deadline) / self.interval) + 1
        self.missed += skipped
        self.deadline += skipped * self.interval
        return 1 + skipped

    def spent(self, cpu: float) -> None:
        """What the last tick cost in seconds of CPU, all that goes with it included. Adapts the interval."""
        self._cost += (cpu - self._cost) * _SMOOTHING
        self.interval = min(WIDEST, max(self.base, self._cost / self.budget))
