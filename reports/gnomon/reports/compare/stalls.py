"""Stalls of event loops on both sides: which causes came up more often, and for how long.

Stalls are few, so they are counted: the ratio of two rates has the interval of two counts (the square root of each).

Contents: Stalled, StallChange, stalls_of, compare_stalls.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

from gnomon.reports.compare.noise import Estimate
from gnomon.reports.recording import Recording

__all__ = ["StallChange", "Stalled", "compare_stalls", "stalls_of"]

_PROCESSES = ("scheduler", "agent", "executor")


class Stalled(NamedTuple):
    """How often, for how long in all, and at most; ticks."""

    times: int
    ticks: int
    most: int


class StallChange(NamedTuple):
    """One cause in one kind of process and function; per recording. ``verdict``: more, fewer, same, only in A or B."""

    process: str
    cause: str
    function: str
    a: Stalled
    b: Stalled
    verdict: str
    ratio: Estimate | None


def stalls_of(recording: Recording) -> dict[tuple[str, str, str], Stalled]:
    """The stalls of a recording by process, cause and function."""
    result: dict[tuple[str, str, str], Stalled] = {}
    for stall in recording.stalls:
        process = _PROCESSES[stall.process] if 0 <= stall.process < len(_PROCESSES) else "unknown"
        key = (process, stall.cause, stall.function)
        before = result.get(key, Stalled(0, 0, 0))
        result[key] = Stalled(before.times + 1, before.ticks + stall.length, max(before.most, stall.length))
    return result


def compare_stalls(
    a: Sequence[tuple[int, Mapping[tuple[str, str, str], Stalled]]],
    b: Sequence[tuple[int, Mapping[tuple[str, str, str], Stalled]]],
    *,
    confidence: float,
) -> list[StallChange]:
    """The changes, those that came up more first, then by time. Each recording is its duration in ticks and stalls."""
    keys = dict.fromkeys(key for side in (a, b) for _, stalls in side for key in stalls)
    time = (max(1, sum(duration for duration, _ in a)), max(1, sum(duration for duration, _ in b)))
    chance = (1 - confidence) / max(1, len(keys))
    result = []
    for key in keys:
        before, after = (_total([stalls[key] for _, stalls in side if key in stalls]) for side in (a, b))
        ratio = _ratio(before.times / time[0], after.times / time[1], before, after, chance)
        verdict = _verdict(before, after, ratio, chance, time)
        result.append(StallChange(*key, _share(before, len(a)), _share(after, len(b)), verdict, ratio))
    rank = {"more": 0, "only in B": 1}
    return sorted(result, key=lambda each: (rank.get(each.verdict, 2), -each.a.ticks - each.b.ticks, each[:3]))


def _total(rows: Sequence[Stalled]) -> Stalled:
    most = max((each.most for each in rows), default=0)
    return Stalled(sum(each.times for each in rows), sum(each.ticks for each in rows), most)


def _share(stalled: Stalled, recordings: int) -> Stalled:
    """The mean over recordings, of which at least one of any that was seen."""
    times = max(stalled.times > 0, round(stalled.times / recordings))
    return Stalled(times, round(stalled.ticks / recordings), stalled.most)


def _ratio(rate_a: float, rate_b: float, a: Stalled, b: Stalled, chance: float) -> Estimate | None:
    if not a.times or not b.times:
        return None
    change = math.log(rate_b / rate_a)
    reach = NormalDist().inv_cdf(1 - chance / 2) * math.sqrt(1 / a.times + 1 / b.times)
    return Estimate(math.exp(change), math.exp(change - reach), math.exp(change + reach))


def _verdict(before: Stalled, after: Stalled, ratio: Estimate | None, chance: float, time: tuple[int, int]) -> str:
    if ratio is not None:
        return "more" if ratio.low > 1 else "fewer" if ratio.high < 1 else "same"
    if after.times:  # how likely it is that all of them fall on this side by chance
        return "more" if (time[1] / sum(time)) ** after.times < chance else "only in B"
    return "fewer" if (time[0] / sum(time)) ** before.times < chance else "only in A"
