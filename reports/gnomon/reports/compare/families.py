"""What else is compared beside prefixes: spans, regions of the user's, and fetches by transport and type of value.

Each kind is a family that is judged by itself, as prefixes are: relative to what moved all of the family alike. Spans
are judged by the computing times of their tasks. Of regions and fetches a recording has sums alone (or times that say
as much about the network as about the code), so that only several recordings of each side can judge their means: of
regions the time of their own per entry, of fetches the time per MiB.

Contents: Amount, Change, Family, KINDS, amounts_of, compare_families.
"""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gnomon.reports.compare.noise import Estimate, Level, judge, levels_of
from gnomon.reports.recording import Recording

__all__ = ["KINDS", "Amount", "Change", "Family", "amounts_of", "compare_families"]

#: The families: what each is called, and what its times are per.
KINDS = {
    "spans": ("span", "per task"),
    "regions": ("region", "per entry"),
    "transports": ("transport", "per MiB"),
    "types": ("type", "per MiB"),
}

#: The levels of spans that are judged; the mean says the least, and comes last.
_LEVELS = ("twentieth", "quartile", "mean")


class Amount(NamedTuple):
    """One name of a family in one recording: how often, ticks in all, bytes, and levels of single times."""

    times: int
    ticks: int
    nbytes: int
    levels: dict[str, Level]


class Change(NamedTuple):
    """A name on both sides. ``verdict``: slower, faster, same, unjudged, only in A, only in B. ``kind``: the level."""

    name: str
    verdict: str
    a: list[Amount]
    b: list[Amount]
    kind: str = ""
    judged: Estimate | None = None


@dataclass(slots=True)
class Family:
    """One of ``KINDS``: slower names first, then by time."""

    kind: str
    changes: list[Change]

    @property
    def slower(self) -> list[Change]:
        """What got slower beyond noise."""
        return [change for change in self.changes if change.verdict == "slower"]


def amounts_of(recording: Recording) -> dict[str, dict[str, Amount]]:
    """The families of a recording, by kind and name."""
    return {
        "spans": _spans(recording),
        "regions": {
            f"{each.name} in {each.prefix}": Amount(each.times, each.own, 0, _mean(each.own, each.times))
            for each in recording.regions
        },
        "transports": _transports(recording),
        "types": {
            each.name or "(not known)": Amount(
                each.values, each.ticks, each.nbytes, _mean(each.ticks, each.nbytes / 2**20)
            )
            for each in recording.types
        },
    }


def _mean(ticks: float, number: float) -> dict[str, Level]:
    if ticks <= 0 or number <= 0:
        return {}
    return {"mean": Level(math.log(ticks / number), None)}


def _spans(recording: Recording) -> dict[str, Amount]:
    runs = recording.runs
    computes: dict[int, array[int]] = defaultdict(lambda: array("q"))
    for row in sorted(range(len(runs.spans)), key=runs.begins.__getitem__):
        if runs.ok[row]:
            computes[runs.spans[row]].append(runs.computes[row])
    index = {name: number for number, name in enumerate(runs.span_names)}
    result = {}
    for each in recording.spans:
        known = computes.get(index.get(each.name, -1), array("q"))
        levels = {kind: level for kind, level in levels_of(known).items() if kind in _LEVELS} if known else {}
        if each.name:  # the runs of no span have the name of no words
            result[" / ".join(each.name)] = Amount(each.tasks, each.compute, each.nbytes, levels)
    return result


def _transports(recording: Recording) -> dict[str, Amount]:
    result: dict[str, Amount] = {}
    for pair in recording.pairs:
        before = result.get(pair.transport, Amount(0, 0, 0, {}))
        ticks, nbytes = before.ticks + pair.ticks, before.nbytes + pair.nbytes
        result[pair.transport] = Amount(before.times + pair.fetches, ticks, nbytes, _mean(ticks, nbytes / 2**20))
    return {name or "(further pairs)": amount for name, amount in result.items()}


def compare_families(
    a: Sequence[Mapping[str, Mapping[str, Amount]]],
    b: Sequence[Mapping[str, Mapping[str, Amount]]],
    *,
    least: float,
    confidence: float,
    absolute: bool,
) -> list[Family]:
    """The families that either side has, of recordings in the form of ``amounts_of``."""
    share = 1 - (1 - confidence) / len(KINDS) / len(_LEVELS)  # each gets its part of the chance to be wrong
    result = []
    for kind in KINDS:
        sides = tuple([each.get(kind, {}) for each in side] for side in (a, b))
        changes = _changes(sides[0], sides[1], least, share, absolute=absolute)
        if changes:
            result.append(Family(kind, changes))
    return result


def _changes(
    a: Sequence[Mapping[str, Amount]], b: Sequence[Mapping[str, Amount]], least: float, confidence: float, *,
    absolute: bool,
) -> list[Change]:  # fmt: skip
    estimates: dict[str, dict[str, Estimate]] = defaultdict(dict)
    for level in _LEVELS:
        sides = [
            [{name: amount.levels[level] for name, amount in each.items() if level in amount.levels} for each in side]
            for side in (a, b)
        ]
        judged = judge(sides[0], sides[1], confidence=confidence)
        for name, estimate in {**judged.absolute, **({} if absolute else judged.relative)}.items():
            estimates[name][level] = estimate
    names = dict.fromkeys(name for side in (a, b) for each in side for name in each)
    changes = [_change(name, a, b, estimates[name], least) for name in names]
    changes.sort(key=lambda change: (change.verdict != "slower", -_ticks(change), change.name))
    return changes


def _ticks(change: Change) -> int:
    return sum(amount.ticks for amount in (*change.a, *change.b))


def _change(
    name: str,
    a: Sequence[Mapping[str, Amount]],
    b: Sequence[Mapping[str, Amount]],
    known: Mapping[str, Estimate],
    least: float,
) -> Change:
    before, after = ([each[name] for each in side if name in each] for side in (a, b))
    if not before or not after:
        return Change(name, "only in B" if after else "only in A", before, after)
    if not known:
        return Change(name, "unjudged", before, after)
    for verdict in ("slower", "faster"):
        for kind, estimate in known.items():
            if verdict == "slower" and estimate.low > 1 and estimate.ratio >= 1 + least:
                return Change(name, verdict, before, after, kind, estimate)
            if verdict == "faster" and estimate.high < 1 and estimate.ratio <= 1 / (1 + least):
                return Change(name, verdict, before, after, kind, estimate)
    kind = next(iter(known))
    return Change(name, "same", before, after, kind, known[kind])
