# cython: cdivision=True
"""When to take the next sample: a mean interval that keeps to a budget, chance in each step, and how late each was.

No clock and no thread: times come in as arguments. What was late and what fell out is counted here and read by others
(a sampler that is late beside a busy program has waited for the GIL).

On average ticks are ``base`` seconds apart, which is a *point*. Where one costs too much, or nothing happens that is
worth looking at, a step is several points long. A tick counts for the points of its step, and of those that fell out
with it: so each count stands for ``base`` seconds, whatever the interval was.

A program that does its rounds in the ticks' own time would be seen at one and the same place of each, and a tick makes
rounds longer, so that a rate that fits none at first may fit after all. So each step is longer or shorter than its
mean by chance. That makes ticks a renewal process, and its spectrum (Bartlett, "The Spectral Analysis of Point
Processes", J. R. Stat. Soc. B 25, 1963) says how far off shares are. With lengths that are uniform between 0.58 and
1.42 of their mean, the standard error of a share of a half after 20 s of 10.1 ms is 1.1 points for rounds that are
much shorter than a step, which is chance alone; 1.4 at the most, for rounds of 1.06 steps; and 0.4 for rounds of ten.

No step is so short that a tick which waits 5 ms for the GIL of a busy program runs into the next one. The one that
stands for both would be at a place that depends on theirs: shares of rounds of one step were off by 8 points then.
What steps add up to is pulled back to their mean slowly, so that counts add up to the time.
"""

from __future__ import annotations

import random

__all__ = ["WIDEST", "Cadence"]

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

#: By how much of its mean a step is longer or shorter at most, and the part of the drift that each takes back.
_SPREAD = 0.42
_PULL = 0.05

#: To a number between 0 and 2 from one of 53 bits.
_TO_TWO = 2.0**-52
_ALL_BITS = (1 << 64) - 1


class Cadence:
    """Deadlines ``base`` seconds apart on average, or further where a tick costs more than ``budget`` of what the
    program uses of a processor meanwhile, or all is calm.

    ``spread``: by how much of its mean a step may be longer or shorter; see the head. ``seed``: of the chance in it.
    """

    __slots__ = (
        "_ahead",
        "_calm",
        "_chance",
        "_cost",
        "_mean",
        "_spread",
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

    def __init__(
        self, interval: float, budget: float, now: float, *, spread: float = _SPREAD, seed: int | None = None
    ) -> None:
        if not 0 < interval <= WIDEST:
            raise ValueError(f"an interval of {interval!r} s is not between 0 and {WIDEST} s")
        if not 0 < budget <= 1:
            raise ValueError(f"a budget of {budget!r} of the CPU is not between 0 and 1")
        self.base = interval
        self.budget = budget
        self.widest = WIDEST  #: seconds between two ticks at the most, on average
        self.stretch = 1.0  #: mean points from tick to tick, at present
        self.deadline = 0.0
        self.late = 0.0  #: of the last tick, seconds
        self.late_sum = 0.0
        self.late_max = 0.0
        self.ticks = 0
        self.missed = 0
        self._cost = 0.0
        self._use = 1.0
        self._calm = 0
        self._mean = now  # where the deadline would be if all steps had their mean length
        self._stretch = 1  # points in the step that it ends
        self._ahead = 0.0  # fractions of points that are still to be left out
        self._spread = spread
        self._chance = random.Random(seed).getrandbits(64)
        self.restart(now)

    @property
    def interval(self) -> float:
        """Mean seconds from tick to tick, at present."""
        return self.base * self.stretch

    def restart(self, now: float) -> None:
        """Go on after a pause: the time in between was nobody's lateness."""
        self._mean = self.deadline = now
        self._plan()

    def delay(self, now: float) -> float:
        """Seconds until the next tick is due; zero or less if it is."""
        return self.deadline - now

    def tick(self, now: float) -> int:
        """A tick begins: how late is it, and which is next.

        Returns how many points it counts for: those of its step, and of steps that fell out with it.
        (Whatever kept the sampler from the GIL is still in the stacks that it sees now.)
        """
        late = now - self.deadline
        self.late = late if late > 0.0 else 0.0
        self.late_sum += self.late
        if self.late > self.late_max:
            self.late_max = self.late
        self.ticks += 1
        points = self._stretch
        if late >= self.base:
            skipped = int(late / self.base)
            self.missed += max(1, int(skipped / self.stretch))
            points += skipped
            self._mean += skipped * self.base
            self.deadline += skipped * self.base
        self._plan()
        while self.deadline <= now:  # so late that the next one is due as well: this one stands for both
            self.missed += 1
            points += self._stretch
            self._plan()
        return points

    def _plan(self) -> None:
        """Choose the length of the step that begins at the deadline, and with it the next one."""
        self._ahead += self.stretch
        self._stretch = int(self._ahead)
        self._ahead -= self._stretch
        length = self._stretch * self.base
        # All of the spread where there is room for that below the widest distance of two ticks.
        room = min(length, max(self.base, self.widest + self.base - length))
        # What longer steps than this left over is taken back bit by bit: no step may end before it begins.
        drift = max(-2.0 * length, min(2.0 * length, self.deadline - self._mean))
        # A linear congruential generator (Knuth's for MMIX, TAOCP 2, 3.3.4, table 1): a dearer one would show in the
        # cost of a tick. Its upper bits are as random as this needs.
        self._chance = (self._chance * 6364136223846793005 + 1442695040888963407) & _ALL_BITS
        self.deadline += length + ((self._chance >> 11) * _TO_TWO - 1.0) * self._spread * room - _PULL * drift
        self._mean += length

    def spent(self, seconds: float, idle: bool, share: float) -> None:
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
