"""The arithmetic of comparing durations on machines that are never quite quiet.

A task that is preempted, or shares its core, takes longer; nothing makes it shorter. Where neighbours disturb half of
the runs, their mean moves by tens of percent and their median with it, while the low quantiles stay. The **levels** of
a prefix are therefore the lower twentieth of its durations, which is the steadiest, and the lower quartile, for where
the twentieth are runs that had nothing to do. Where it was measured and tasks hardly wait, the lower quartile of their
time on the processor is steadier still. Their mean is the last, which only several recordings can judge. Levels are
natural logarithms, so that ratios are differences.

What moves every prefix alike (a slower machine, a throttled core) is the **common factor**, the median of the changes.
Each prefix is judged against it, and absolutely.

How far a level may move by chance comes from two sources. Within a recording: the quantile is computed again without
each of ten stretches of time (a jackknife over blocks, which keeps bursts of load together). Between recordings, where
a side has several: the variance of a prefix's level over them, drawn towards the typical variance of all prefixes, for
three or four recordings alone say little about a variance. The intervals are Student's t; resampling or permuting so
few recordings could not reach the confidence that is asked for.

Contents: KINDS, Level, levels_of, quantile, Estimate, Judged, judge, ratio_of_means, student.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import NormalDist, fmean, median, variance
from typing import NamedTuple

__all__ = ["KINDS", "Estimate", "Judged", "Level", "judge", "levels_of", "quantile", "ratio_of_means", "student"]

#: The levels of a prefix, in the order in which they are believed.
KINDS = ("processor", "twentieth", "quartile", "mean")
_SHARES = {"twentieth": 0.05, "quartile": 0.25}

#: Tasks whose undisturbed time is on the processor to at least this share are judged by it.
_COMPUTING = 0.7

#: What recordings of the same code differ by beyond what either shows inside, as a standard deviation of a logarithm:
#: after the common factor is taken out, and with it (two runs on a shared machine easily differ by a tenth).
_HIDDEN = 0.025
_HIDDEN_ABSOLUTE = 0.08

#: Degrees of freedom that the prior variance of a level counts as.
_PRIOR = 12

#: Stretches of time that a recording's runs of a prefix are cut into, and the fewest runs for which that is done.
_BLOCKS = 10
_FEWEST = 8

#: Values of a stretch that stand for all of it, evenly from the least to the greatest.
_PER_BLOCK = 400

#: Clock readings resolve a tick; a duration of few ticks can't be known better.
_READING = 2.0


class Level(NamedTuple):
    """Where a prefix's durations lie, as the logarithm of ticks, and its standard error (None: not to be told)."""

    value: float
    error: float | None


class Estimate(NamedTuple):
    """A ratio B / A with the interval that it lies in."""

    ratio: float
    low: float
    high: float


@dataclass(slots=True)
class Judged:
    """What became of the levels: the common factor, and by prefix the ratios absolute and relative to it.

    A prefix that can't be judged is in neither; ``relative`` is empty if there is only one prefix, for which machine
    and code can't be told apart.
    """

    common: Estimate | None = None
    absolute: dict[str, Estimate] = field(default_factory=dict)
    relative: dict[str, Estimate] = field(default_factory=dict)


def quantile(ordered: Sequence[int], share: float) -> int:
    """The value below which ``share`` of the ascending values lie."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def levels_of(durations: Sequence[int], processor: Sequence[int] = ()) -> dict[str, Level]:
    """The levels by kind of durations in ticks, which are in the order of time. There must be at least one.

    ``processor`` has the ticks on the processor of the same runs; it is empty if they were not measured for all.
    """
    result = {kind: _level(durations, share) for kind, share in _SHARES.items()}
    if processor:
        level = _level(processor, _SHARES["quartile"])
        if level.value > result["twentieth"].value + math.log(_COMPUTING):
            result["processor"] = level
    result["mean"] = Level(_log(fmean(durations)), None)
    return result


def _level(durations: Sequence[int], share: float) -> Level:
    """A quantile, and its error by a jackknife over blocks of time."""
    value = _log(quantile(sorted(durations), share))
    if len(durations) < _FEWEST:
        return Level(value, None)
    count = min(_BLOCKS, len(durations) // 2)
    edges = [len(durations) * i // count for i in range(count + 1)]
    blocks = [sorted(durations[begin:end]) for begin, end in pairwise(edges)]
    blocks = [block[:: max(1, len(block) // _PER_BLOCK)] for block in blocks]
    without = []
    for left_out in range(count):
        rest = [ticks for number, block in enumerate(blocks) if number != left_out for ticks in block]
        without.append(_log(quantile(sorted(rest), share)))
    center = fmean(without)
    jackknife = (count - 1) / count * sum((each - center) ** 2 for each in without)
    return Level(value, math.sqrt(jackknife + (_READING / math.exp(value)) ** 2))


def _log(ticks: float) -> float:
    return math.log(max(1.0, ticks))


def student(probability: float, freedom: float) -> float:
    """The quantile of Student's t, by its expansion about the normal one (within 5 % from 3 degrees of freedom)."""
    z = NormalDist().inv_cdf(probability)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


def judge(a: Sequence[Mapping[str, Level]], b: Sequence[Mapping[str, Level]], *, confidence: float) -> Judged:
    """Compare the levels of the recordings of two sides.

    ``confidence`` holds for all prefixes together: the chance that every interval is right.
    """
    names = [name for name in _union(a) if any(name in levels for levels in b)]
    if not names:
        return Judged()
    result = Judged()
    tail = (1 - confidence) / len(names) / 2
    raw = ([_values(each, names) for each in a], [_values(each, names) for each in b])
    result.absolute = _estimates(names, raw, _noises(a, b, names, _HIDDEN_ABSOLUTE), tail, center=0.0, spoilt=1.0)
    if len(names) == 1:
        return result
    factors = tuple(_factors(side) for side in raw)
    calm = tuple(
        [{name: value - factor for name, value in values.items()} for values, factor in zip(side, of, strict=True)]
        for side, of in zip(raw, factors, strict=True)
    )
    noises = _noises(a, b, names, _HIDDEN)
    changes = {name: _change(calm, name) for name in names}
    sure = [name for name in names if noises[name] is not None and (noises[name] or 0.0) < 0.1**2]
    center = _middle([changes[name] for name in (sure if len(sure) >= 3 else names)])
    spoilt = len(names) / (len(names) - 1)  # taking out what all have in common takes out some of their own
    result.relative = _estimates(names, calm, noises, tail, center=center, spoilt=spoilt)
    result.common = _common(center, factors[0], factors[1], confidence)
    return result


_Sides = tuple[list[dict[str, float]], ...]


def _union(side: Sequence[Mapping[str, Level]]) -> list[str]:
    return list(dict.fromkeys(name for levels in side for name in levels))


def _values(levels: Mapping[str, Level], names: Sequence[str]) -> dict[str, float]:
    return {name: levels[name].value for name in names if name in levels}


def _middle(values: Sequence[float]) -> float:
    """The median; of the two middle values of an even number, the point between them that is nearest to no change."""
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return min(max(0.0, low), high)


def _factors(side: Sequence[Mapping[str, float]]) -> list[float]:
    """By how much each recording of a side is slower than its fellows, in all prefixes alike."""
    usual: dict[str, float] = {}
    for name in {name: None for values in side for name in values}:
        usual[name] = median(values[name] for values in side if name in values)
    return [_middle([value - usual[name] for name, value in values.items()]) if values else 0.0 for values in side]


def _change(sides: _Sides, name: str) -> float:
    before, after = ([values[name] for values in side if name in values] for side in sides)
    return fmean(after) - fmean(before)


def _noises(
    a: Sequence[Mapping[str, Level]], b: Sequence[Mapping[str, Level]], names: Sequence[str], hidden: float
) -> dict[str, float | None]:
    """By prefix, the variance of one recording's level as far as recordings show it inside; None if they don't."""
    result: dict[str, float | None] = {}
    for name in names:
        errors = [levels[name].error for levels in (*a, *b) if name in levels]
        known = [error**2 for error in errors if error is not None]
        result[name] = fmean(known) + hidden**2 if len(known) == len(errors) else None
    return result


def _spread(sides: _Sides, name: str) -> tuple[float, int]:
    """The variance of a prefix's level within the sides, and its degrees of freedom."""
    total, freedom = 0.0, 0
    for side in sides:
        values = [values[name] for values in side if name in values]
        if len(values) > 1:
            total += variance(values) * (len(values) - 1)
            freedom += len(values) - 1
    return (total / freedom if freedom else 0.0), freedom


def _estimates(
    names: Sequence[str],
    sides: _Sides,
    noises: Mapping[str, float | None],
    tail: float,
    *,
    center: float,
    spoilt: float,
) -> dict[str, Estimate]:
    """The intervals of the changes of each prefix that can be judged."""
    spreads = {name: _spread(sides, name) for name in names}
    observed = [spread for spread, freedom in spreads.values() if freedom]
    typical = median(observed) if observed else 0.0
    result = {}
    for name in names:
        (spread, freedom), inside = spreads[name], noises[name]
        prior = _PRIOR if inside is not None else 0
        if freedom + prior < 3:
            continue  # neither the runs nor the recordings are enough to tell noise
        if inside is None:  # a few recordings' own variance may be small by chance
            per_recording = spoilt * max(spread, typical)
        else:
            per_recording = (prior * max(inside, spoilt * typical) + freedom * spoilt * spread) / (prior + freedom)
        counts = [sum(1 for values in side if name in values) for side in sides]
        error = math.sqrt(per_recording * sum(1 / count for count in counts))
        change = _change(sides, name) - center
        reach = student(1 - tail, prior + freedom) * error
        result[name] = _estimate(change, reach)
    return result


def _common(center: float, a: Sequence[float], b: Sequence[float], confidence: float) -> Estimate:
    """The common factor. Its interval is between recordings; with one of a side, the prior stands in for it."""
    change = center + fmean(b) - fmean(a)
    freedom = len(a) + len(b) - 2
    squares = sum((value - fmean(side)) ** 2 for side in (a, b) for value in side)
    per_recording = (_PRIOR * _HIDDEN_ABSOLUTE**2 + squares) / (_PRIOR + freedom)
    error = math.sqrt(per_recording * (1 / len(a) + 1 / len(b)))
    return _estimate(change, student((1 + confidence) / 2, _PRIOR + freedom) * error)


def ratio_of_means(a: Sequence[float], b: Sequence[float], *, confidence: float = 0.95) -> Estimate | None:
    """The ratio of positive amounts with an interval over recordings; None unless each side has two or more."""
    if min(len(a), len(b)) < 2 or min(*a, *b) <= 0:
        return None
    before, after = [math.log(x) for x in a], [math.log(x) for x in b]
    freedom = len(a) + len(b) - 2
    pooled = (variance(before) * (len(a) - 1) + variance(after) * (len(b) - 1)) / freedom
    error = math.sqrt(pooled * (1 / len(a) + 1 / len(b)))
    return _estimate(fmean(after) - fmean(before), student((1 + confidence) / 2, freedom) * error)


def _estimate(change: float, reach: float) -> Estimate:
    bounded = min(reach, 50.0)  # an interval beyond e**50 says "anything"; the exponential must not overflow
    return Estimate(math.exp(change), math.exp(change - bounded), math.exp(change + bounded))
