"""When to take the next sample: one in each step of a grid, how late each was, and an interval that keeps to a budget.

No clock and no thread: times come in as arguments. What was late and what fell out is counted here and read by others
(a sampler that is late beside a busy program has waited for the GIL).

The grid's points are ``base`` seconds apart. Where a tick costs too much, or nothing happens that is worth looking at,
a step is several of these long. A tick counts for the points of its step, and of those that fell out with it: so each
count stands for ``base`` seconds, whatever the interval was.

A program that does its rounds in the grid's own time would be seen at one and the same place of each, and a tick makes
rounds longer, so that a rate that fits none at first may fit after all. So a deadline lies not on a point but somewhere
between it and the next, each place being as likely as any other: then shares are right on average, whatever the program
does. From tick to tick the place moves on by the golden section, give or take a fifth of a step. The section spreads
places evenly over a step (an additive recurrence: Niederreiter, "Random Number Generation and Quasi-Monte Carlo
Methods", 1992, section 3.1), which halves the error for rounds of about one step; the chance keeps rounds of 0.618 or
1.618 steps from being in tune with that. In a simulation of 2,000 ticks the standard error of a share of one half was
0.5 points for rounds of one step and 1.6 for the worst of 110 lengths; by chance alone 1.3 and 1.4; on a plain grid 50.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

__all__ = ["WIDEST", "Cadence", "places"]

#: However dear a tick is, one is taken after this many seconds: bursts would go unseen otherwise.
WIDEST = 1.0

#: Weight of the last tick in the running means of their cost and of the program's use of the processor.
_SMOOTHING = 0.05

#: Share of a processor that a program is taken to use at least: of one that does little, something is to be seen.
_LEAST_USE = 0.2

#: Ticks that find nothing going on before they come more seldom; how much more seldom at the most; and how fast.
_CALM_AFTER = 10
_CALMEST = 5.0
_CALMING = 1.2

#: What the place of a deadline within its step moves on by from tick to tick: the golden section, and chance.
_GOLDEN = 0.6180339887498949
_CHANCE = 0.2


def places(seed: int | None = None) -> Iterator[float]:
    """Where deadlines lie in their steps, as fractions; see the head. ``seed``: of the chance in it."""
    chance = random.Random(seed)
    place = chance.random()
    while True:
        yield place
        place = (place + _GOLDEN + chance.uniform(-_CHANCE, _CHANCE)) % 1.0


class Cadence:
    """Deadlines ``base`` seconds apart on average, or further where a tick costs more than ``budget`` of what the
    program uses of a processor meanwhile, or all is calm. ``at``: where they lie in their steps; ``places()`` if None.
    """

    __slots__ = (
        "_ahead",
        "_calm",
        "_cost",
        "_places",
        "_point",
        "_stretch",
        "_use",
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

    def __init__(self, interval: float, budget: float, now: float, *, at: Iterator[float] | None = None) -> None:
        if not 0 < interval <= WIDEST:
            raise ValueError(f"an interval of {interval!r} s is not between 0 and {WIDEST} s")
        if not 0 < budget <= 1:
            raise ValueError(f"a budget of {budget!r} of the CPU is not between 0 and 1")
        self.base = interval
        self.budget = budget
        self.widest = WIDEST  #: seconds between two ticks at the most, on average
        self.stretch = 1.0  #: mean points of the grid from tick to tick, at present
        self.deadline = 0.0
        self.late = 0.0  #: of the last tick, seconds
        self.late_sum = 0.0
        self.late_max = 0.0
        self.ticks = 0
        self.missed = 0
        self._cost = 0.0
        self._use = 1.0
        self._calm = 0
        self._point = now  # where the deadline's step begins
        self._stretch = 1  # and how many points are in it
        self._ahead = 0.0  # fractions of points that are still to be left out
        self._places = places() if at is None else at
        self.restart(now)

    @property
    def interval(self) -> float:
        """Mean seconds from tick to tick, at present."""
        return self.base * self.stretch

    def restart(self, now: float) -> None:
        """Go on after a pause: the time in between was nobody's lateness."""
        self._point = now
        self._plan()

    def delay(self, now: float) -> float:
        """Seconds until the next tick is due; zero or less if it is."""
        return self.deadline - now

    def tick(self, now: float) -> int:
        """A tick begins: how late is it, and which is next.

        Returns how many points of the grid it counts for: those of its step, and of steps that fell out with it.
        (Whatever kept the sampler from the GIL is still in the stacks that it sees now.)
        """
        late = now - self.deadline
        self.late = late if late > 0.0 else 0.0
        self.late_sum += self.late
        if self.late > self.late_max:
            self.late_max = self.late
        self.ticks += 1
        points = self._stretch
        self._point += points * self.base
        if now >= self._point + self.base:
            skipped = int((now - self._point) / self.base)
            self.missed += max(1, int(skipped / self.stretch))
            points += skipped
            self._point += skipped * self.base
        self._plan()
        while self.deadline <= now:  # so late that the next one is due as well: this one stands for both
            self.missed += 1
            points += self._stretch
            self._point += self._stretch * self.base
            self._plan()
        return points

    def _plan(self) -> None:
        """Choose the length of the step that begins now, and the deadline's place in it."""
        self._ahead += self.stretch
        self._stretch = int(self._ahead)
        self._ahead -= self._stretch
        length = self._stretch * self.base
        # All of the step where there is room for that below the widest distance of two ticks.
        self.deadline = self._point + next(self._places) * min(length, max(self.base, self.widest + self.base - length))

    def spent(self, seconds: float, idle: bool, share: float = 1.0) -> None:
        """What the last tick cost the program in seconds, and whether nothing went on since the one before.

        ``share``: of a processor, that the program itself used meanwhile. A process that has a third of a processor can
        spare a third of what a busy one can: several on one machine would cost it several budgets.
        """
        self._cost += (seconds - self._cost) * _SMOOTHING
        self._use += (min(max(share, _LEAST_USE), 1.0) - self._use) * _SMOOTHING
        self._calm = self._calm + 1 if idle else 0
        calm = min(_CALMEST, _CALMING ** min(self._calm - _CALM_AFTER, 100)) if self._calm > _CALM_AFTER else 1.0
        afforded = self._cost / (self.budget * self._use * self.base)
        self.stretch = max(1.0, min(self.widest / self.base, max(calm, afforded)))
