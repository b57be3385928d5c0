"""When to take the next sample: a grid of deadlines, how late each was, and an interval that keeps to a budget.

No clock and no thread: times come in as arguments. What was late and what fell out is counted here and read by others
(a sampler that is late beside a busy program has waited for the GIL).

All deadlines lie on one grid, ``base`` seconds apart. Where a tick costs too much, or nothing happens that is worth
looking at, points of the grid are left out. A tick counts for all points since the one before it: so every count stands
for ``base`` seconds, whatever the interval was.
"""

from __future__ import annotations

__all__ = ["WIDEST", "Cadence"]

#: However dear a tick is, one is taken after this many seconds: bursts would go unseen otherwise.
WIDEST = 1.0

#: Weight of the last tick in the running mean of their cost.
_SMOOTHING = 0.05

#: Ticks that find nothing going on before they come more seldom; how much more seldom at the most; and how fast.
_CALM_AFTER = 10
_CALMEST = 5.0
_CALMING = 1.2


class Cadence:
    """Deadlines ``base`` seconds apart, or further where a tick costs more than ``budget`` of that or all is calm."""

    __slots__ = (
        "_ahead",
        "_calm",
        "_cost",
        "_stretch",
        "base",
        "budget",
        "deadline",
        "late",
        "late_max",
        "late_sum",
        "missed",
        "stretch",
        "ticks",
        "widest",
    )

    def __init__(self, interval: float, budget: float, now: float) -> None:
        if not 0 < interval <= WIDEST:
            raise ValueError(f"an interval of {interval!r} s is not between 0 and {WIDEST} s")
        if not 0 < budget <= 1:
            raise ValueError(f"a budget of {budget!r} of the CPU is not between 0 and 1")
        self.base = interval
        self.budget = budget
        self.widest = WIDEST  #: seconds between two ticks at the most, on average
        self.stretch = 1.0  #: mean points of the grid from tick to tick, at present
        self.deadline = now + interval
        self.late = 0.0  #: of the last tick, seconds
        self.late_sum = 0.0
        self.late_max = 0.0
        self.ticks = 0
        self.missed = 0
        self._cost = 0.0
        self._calm = 0
        self._stretch = 1  # points up to the deadline
        self._ahead = 0.0  # fractions of points that are still to be left out

    @property
    def interval(self) -> float:
        """Mean seconds from tick to tick, at present."""
        return self.base * self.stretch

    def restart(self, now: float) -> None:
        """Go on after a pause: the time in between was nobody's lateness."""
        self.deadline = now + self.base
        self._stretch = 1

    def delay(self, now: float) -> float:
        """Seconds until the next tick is due; zero or less if it is."""
        return self.deadline - now

    def tick(self, now: float) -> int:
        """A tick begins: how late is it, and which is next.

        Returns how many points of the grid it counts for: its own, and those that were left out or fell out before it.
        (Whatever kept the sampler from the GIL is still in the stacks that it sees now.)
        """
        late = now - self.deadline
        self.late = late if late > 0.0 else 0.0
        self.late_sum += self.late
        if self.late > self.late_max:
            self.late_max = self.late
        self.ticks += 1
        points = self._stretch
        if self.late >= self.base:
            skipped = int(self.late / self.base)
            self.missed += int(skipped / self.stretch)
            self.deadline += skipped * self.base
            points += skipped
            if self.deadline + self.base <= now:  # by a rounding error
                self.deadline += self.base
                points += 1
        self._ahead += self.stretch
        self._stretch = int(self._ahead)
        self._ahead -= self._stretch
        self.deadline += self._stretch * self.base
        return points

    def spent(self, seconds: float, idle: bool) -> None:
        """What the last tick cost the program in seconds, and whether nothing went on since the one before."""
        self._cost += (seconds - self._cost) * _SMOOTHING
        self._calm = self._calm + 1 if idle else 0
        calm = min(_CALMEST, _CALMING ** min(self._calm - _CALM_AFTER, 100)) if self._calm > _CALM_AFTER else 1.0
        self.stretch = max(1.0, min(self.widest / self.base, max(calm, self._cost / self.budget / self.base)))
