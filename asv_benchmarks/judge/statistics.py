"""How much slower, and how sure: the interval of a ratio of times measured in interleaved rounds.

Whatever else goes on in a machine makes work slower, never faster: on a shared one, every third process may take twice
as long from its beginning to its end. So a side is judged by the best two fifths of its rounds, and a round by its best
sample. A round measures both sides shortly after each other, so that what drifts over minutes drifts for both; the
round, not the sample, is the unit that is resampled, because samples of one process share that process's luck. All
functions work on logarithms: slow-downs and speed-ups are treated alike. Everything here is deterministic: the
resampling uses a fixed seed.

Simulated, with 2 % of scatter and three in ten rounds slower by 30 to 110 %, intervals at 95 % by the middle third of
the rounds' ratios were +-19 % wide after nine rounds and +-13 % after sixteen; by the best two fifths, 6 and 3 %.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["LEAST_ROUNDS", "Interval", "Logs", "log_rounds", "noise_floor", "ratio_interval", "student_quantile"]

RESAMPLES = 1000
BEST = 0.4  # share of a side's rounds that it is judged by
TAIL = 0.16  # the bootstrap is read at about one standard error, where a few bad rounds don't reach, and then stretched
LEAST_ROUNDS = 4


class Interval(NamedTuple):
    """An estimate of a ratio (1.0: no change) and the bounds it lies within."""

    ratio: float
    low: float
    high: float


@functools.lru_cache(maxsize=256)
def student_quantile(p: float, degrees: int) -> float:
    """The p-quantile (0.5 < p < 1) of Student's t with a whole number of degrees of freedom."""
    low, high = 0.0, 1.0
    while _student_cdf(high, degrees) < p:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        if _student_cdf(middle, degrees) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _student_cdf(t: float, degrees: int) -> float:
    """P(T <= t) for t >= 0, by the finite series that exists for whole degrees of freedom."""
    angle = math.atan(t / math.sqrt(degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = degrees % 2
    term, total = (cosine if odd else 1.0), 0.0
    for k in range(1 + odd, degrees, 2):
        total += term
        term *= cosine * cosine * k / (k + 1)
    central = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return 0.5 + central / 2


class Logs(NamedTuple):
    """Per round, the logarithm of each side's best sample."""

    base: tuple[float, ...]
    head: tuple[float, ...]

    def and_also(self, other: Logs) -> Logs:
        """These rounds and others."""
        return Logs(self.base + other.base, self.head + other.head)


def log_rounds(base: Sequence[Sequence[float]], head: Sequence[Sequence[float]]) -> Logs:
    """The rounds of both sides.

    Raises ValueError if the rounds don't pair up, one is empty, or a sample is not positive.
    """
    if len(base) != len(head):
        raise ValueError(f"{len(base)} rounds of the base but {len(head)} of the head")
    if not all(samples and min(samples) > 0 for samples in (*base, *head)):
        raise ValueError("a round without samples, or with samples that are not positive")
    return Logs(_logs(base), _logs(head))


def _logs(side: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(math.log(min(samples)) for samples in side)


@functools.lru_cache(maxsize=64)
def _draws(rounds: int) -> npt.NDArray[np.intp]:
    """Which rounds each resample is made of; the same for every benchmark."""
    return np.random.default_rng(20_260_000 + rounds).integers(0, rounds, size=(RESAMPLES, rounds))


def _best(rounds: int) -> int:
    """How many of so many rounds a side is judged by."""
    return math.ceil(rounds * BEST)


def _location(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The mean of the best of each row."""
    best: npt.NDArray[np.float64] = np.sort(rows, axis=1)[:, : _best(rows.shape[1])].mean(axis=1)
    return best


@functools.lru_cache(maxsize=4096)
def _one_error(logs: Logs) -> tuple[float, float, float]:
    """The estimate, and how far the bootstrap's distribution reaches below and above it at TAIL."""
    base, head = (np.asarray(side, dtype=np.float64) for side in logs)
    draws = _draws(len(base))
    estimate = float(_location(head[None, :])[0] - _location(base[None, :])[0])
    low, high = np.quantile(_location(head[draws]) - _location(base[draws]), (TAIL, 1 - TAIL))
    return estimate, max(0.0, estimate - float(low)), max(0.0, float(high) - estimate)


def ratio_interval(logs: Logs, level: float) -> Interval:
    """The interval that misses the true ratio of head to base with probability ``level`` (both sides together).

    A bootstrap over rounds gives the shape. With a handful of rounds its far quantiles are too narrow and are ruled by
    the worst rounds, so it is read at one standard error and stretched by Student's quantile over the normal one, with
    the degrees of freedom of the rounds that the estimate rests on, and by sqrt(n / (n - 1)). Raises ValueError with
    fewer than four rounds.
    """
    rounds = len(logs.base)
    if rounds < LEAST_ROUNDS:
        raise ValueError(f"{rounds} rounds; an interval needs at least {LEAST_ROUNDS}")
    estimate, below, above = _one_error(logs)
    stretch = student_quantile(1 - level / 2, _best(rounds) - 1) / NormalDist().inv_cdf(1 - TAIL)
    stretch *= math.sqrt(rounds / (rounds - 1))
    return Interval(math.exp(estimate), math.exp(estimate - stretch * below), math.exp(estimate + stretch * above))


def noise_floor(base: Sequence[Sequence[float]], null: Sequence[Sequence[float]] | None = None) -> float:
    """The ratio (>= 1) that comparing the base with itself can show by chance.

    With a null run (the base measured again in every round) it is the far end of that comparison's 95 % interval.
    Without, two standard errors of a ratio of two such sides.
    """
    if null is not None:
        interval = ratio_interval(log_rounds(base, null), 0.05)
        return max(interval.high, 1 / interval.low)
    own = np.asarray(_logs(base), dtype=np.float64)
    low, high = np.quantile(_location(own[_draws(len(own))]), (TAIL, 1 - TAIL))  # two standard errors of one side
    return math.exp(math.sqrt(2) * float(high - low))
