"""How much slower, and how sure: the interval of a ratio of times measured in paired rounds.

A round measures both sides shortly after each other, so that what drifts over minutes cancels in its ratio; the round,
not the sample, is the unit that is resampled, because samples of one process share that process's luck. All functions
work on logarithms of ratios: 0 is "no change", and slow-downs and speed-ups are treated alike. Everything here is
deterministic: the resampling uses a fixed seed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from statistics import NormalDist, median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["LEAST_ROUNDS", "Interval", "log_ratios", "noise_floor", "ratio_interval", "student_quantile"]

RESAMPLES = 1000
TRIM = 0.34  # share of the rounds dropped at each end: rounds hit by a burst of other work
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


def log_ratios(base: Sequence[Sequence[float]], head: Sequence[Sequence[float]]) -> list[float]:
    """Per round, the logarithm of head's median sample over base's.

    Raises ValueError if the rounds don't pair up, one is empty, or a sample is not positive.
    """
    if len(base) != len(head):
        raise ValueError(f"{len(base)} rounds of the base but {len(head)} of the head")
    ratios = []
    for ours, theirs in zip(base, head, strict=True):
        if not ours or not theirs or min(ours) <= 0 or min(theirs) <= 0:
            raise ValueError("a round without samples, or with samples that are not positive")
        ratios.append(math.log(median(theirs) / median(ours)))
    return ratios


@functools.lru_cache(maxsize=64)
def _draws(rounds: int) -> npt.NDArray[np.intp]:
    """Which rounds each resample is made of; the same for every benchmark."""
    return np.random.default_rng(20_260_000 + rounds).integers(0, rounds, size=(RESAMPLES, rounds))


def _location(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The mean of each row's middle third or so."""
    rounds = rows.shape[1]
    dropped = int(rounds * TRIM)
    middle: npt.NDArray[np.float64] = np.sort(rows, axis=1)[:, dropped : rounds - dropped].mean(axis=1)
    return middle


@functools.lru_cache(maxsize=4096)
def _one_error(ratios: tuple[float, ...]) -> tuple[float, float, float]:
    """The estimate, and how far the bootstrap's distribution reaches below and above it at TAIL."""
    values = np.asarray(ratios, dtype=np.float64)
    estimate = float(_location(values[None, :])[0])
    low, high = np.quantile(_location(values[_draws(len(ratios))]), (TAIL, 1 - TAIL))
    return estimate, max(0.0, estimate - float(low)), max(0.0, float(high) - estimate)


def ratio_interval(ratios: Sequence[float], level: float) -> Interval:
    """The interval that misses the true ratio with probability ``level`` (both sides together).

    A bootstrap over rounds gives the shape. With a handful of rounds its far quantiles are too narrow and are ruled by
    the worst rounds, so it is read at one standard error and stretched by Student's quantile over the normal one and
    by sqrt(n / (n - 1)). Raises ValueError with fewer than four rounds.
    """
    rounds = len(ratios)
    if rounds < LEAST_ROUNDS:
        raise ValueError(f"{rounds} rounds; an interval needs at least {LEAST_ROUNDS}")
    estimate, below, above = _one_error(tuple(ratios))
    stretch = student_quantile(1 - level / 2, rounds - 1) / NormalDist().inv_cdf(1 - TAIL)
    stretch *= math.sqrt(rounds / (rounds - 1))
    return Interval(math.exp(estimate), math.exp(estimate - stretch * below), math.exp(estimate + stretch * above))


def noise_floor(base: Sequence[Sequence[float]], null: Sequence[Sequence[float]] | None = None) -> float:
    """The ratio (>= 1) that comparing the base with itself can show by chance.

    With a null run (the base measured again in every round) it is the far end of that comparison's 95 % interval.
    Without, each round of the base is compared with its next one.
    """
    if null is not None:
        interval = ratio_interval(log_ratios(base, null), 0.05)
        return max(interval.high, 1 / interval.low)
    steps = log_ratios(base[:-1], base[1:])
    # The steps share rounds with their neighbours and sum to the drift, so only their robust size is used.
    size = 1.4826 * median(abs(step) for step in steps)
    return math.exp(2 * size / math.sqrt(len(base)))
