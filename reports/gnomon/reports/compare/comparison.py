"""What changed between two sides, prefix by prefix, and which of it is more than noise.

A prefix is *slower* if one of its levels is, relative to the common factor: the interval of its ratio lies above 1, and
the ratio is at least ``1 + least``. With ``absolute=True`` the common factor is not taken out, and also counts itself.
A lone prefix is judged absolutely, as there is nothing to take out.

Contents: Side, PrefixChange, Comparison, compare, LEAST, CONFIDENCE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from gnomon.reports.compare.families import Family, compare_families
from gnomon.reports.compare.noise import KINDS, Estimate, Judged, Level, judge, ratio_of_means
from gnomon.reports.compare.profiles import Profile, compare_profiles
from gnomon.reports.compare.sides import PrefixSample, Sample
from gnomon.reports.compare.stalls import StallChange, compare_stalls

__all__ = ["CONFIDENCE", "LEAST", "Comparison", "PrefixChange", "Side", "compare"]

#: The least slow-down that counts, as a share; and how sure all verdicts together are to raise no false alarm.
LEAST = 0.05
CONFIDENCE = 0.99


@dataclass(slots=True)
class Side:
    """The recordings of one side, and what they are called together."""

    letter: str
    samples: list[Sample]

    def amounts(self, amount: Callable[[Sample], float]) -> list[float]:
        """An amount of every recording."""
        return [amount(sample) for sample in self.samples]

    def mean(self, amount: Callable[[Sample], float]) -> float:
        """An amount, averaged over the recordings."""
        return fmean(self.amounts(amount))

    def of_prefix(self, name: str) -> list[PrefixSample]:
        """What the recordings that know a prefix say of it."""
        return [sample.prefixes[name] for sample in self.samples if name in sample.prefixes]


@dataclass(slots=True)
class PrefixChange:
    """A prefix on both sides. ``verdict`` is slower, faster, same, unjudged, only in A, or only in B.

    ``kind`` is the level that the ratios speak of: that which decided the verdict, else the steadiest known.
    ``relative`` is the ratio to the common factor (None if there is no other prefix), ``absolute`` the plain one, and
    ``judged`` that of the two which the verdict rests on.
    """

    name: str
    a: list[PrefixSample]
    b: list[PrefixSample]
    verdict: str
    kind: str = ""
    relative: Estimate | None = None
    absolute: Estimate | None = None
    judged: Estimate | None = None

    @property
    def lost(self) -> float:
        """Ticks by which side B's tasks of this prefix took longer than at A's speed, per recording."""
        if self.judged is None or not self.b:
            return 0.0
        return fmean(prefix.total for prefix in self.b) * (1 - 1 / self.judged.ratio)


@dataclass(slots=True)
class Comparison:
    """The outcome. ``prefixes``: slower ones by time lost, then the others by time.

    ``families`` are spans, regions and fetches; ``stalls`` None if a side did not watch for them.
    """

    a: Side
    b: Side
    least: float
    confidence: float
    absolute: bool
    common: Estimate | None
    common_slower: bool
    wall: Estimate | None
    prefixes: list[PrefixChange] = field(default_factory=list)
    profiles: list[Profile] = field(default_factory=list)
    families: list[Family] = field(default_factory=list)
    stalls: list[StallChange] | None = None

    @property
    def slower(self) -> list[PrefixChange]:
        """The prefixes that got slower beyond noise, most time lost first."""
        return [change for change in self.prefixes if change.verdict == "slower"]

    @property
    def regressed(self) -> bool:
        """Whether something got slower beyond noise."""
        return bool(self.slower) or self.common_slower or any(family.slower for family in self.families)

    @property
    def repeats(self) -> bool:
        """Whether each side has several recordings."""
        return min(len(self.a.samples), len(self.b.samples)) > 1


def compare(
    a: Sequence[Sample],
    b: Sequence[Sample],
    *,
    least: float = LEAST,
    confidence: float = CONFIDENCE,
    absolute: bool = False,
) -> Comparison:
    """Compare the recordings of two sides. Raises ValueError if a side has none, or a number is out of range."""
    if not a or not b:
        raise ValueError("each side needs at least one recording")
    if not 0 <= least < 10 or not 0.5 <= confidence < 1:
        raise ValueError("the least slow-down is a share such as 0.05, the confidence a share such as 0.99")
    sides = Side("A", list(a)), Side("B", list(b))
    share = 1 - (1 - confidence) / len(KINDS)  # each kind gets its part of the chance to be wrong
    judged = {kind: judge(_levels(sides[0], kind), _levels(sides[1], kind), confidence=share) for kind in KINDS}
    names = list(dict.fromkeys(name for side in sides for each in side.samples for name in each.prefixes))
    changes = [_change(name, sides, judged, least, absolute) for name in names]
    changes.sort(key=_rank)
    common = judged["twentieth"].common  # every prefix with runs has it
    walls = [side.amounts(lambda each: each.duration) for side in sides]
    return Comparison(
        a=sides[0],
        b=sides[1],
        least=least,
        confidence=confidence,
        absolute=absolute,
        common=common,
        common_slower=absolute and common is not None and _beyond(common, least),
        wall=ratio_of_means(walls[0], walls[1]),
        prefixes=changes,
        profiles=compare_profiles([each.profiles for each in a], [each.profiles for each in b]),
        families=compare_families(
            [each.families for each in a], [each.families for each in b], least=least, confidence=confidence,
            absolute=absolute,
        ),
        stalls=_stalls(sides, confidence),
    )  # fmt: skip


def _stalls(sides: tuple[Side, Side], confidence: float) -> list[StallChange] | None:
    a, b = ([(each.duration, each.stalls) for each in side.samples if each.stalls is not None] for side in sides)
    return compare_stalls(a, b, confidence=confidence) if a and b else None


def _levels(side: Side, kind: str) -> list[dict[str, Level]]:
    return [
        {name: prefix.levels[kind] for name, prefix in each.prefixes.items() if kind in prefix.levels}
        for each in side.samples
    ]


def _rank(change: PrefixChange) -> tuple[bool, bool, float, float, str]:
    """Slower ones first, those that all their tasks show before those whose mean does, most time lost first."""
    slower = change.verdict == "slower"
    return not slower, change.kind == "mean" and slower, -change.lost if slower else 0.0, -_time(change), change.name


def _time(change: PrefixChange) -> float:
    return max(fmean(prefix.total for prefix in side) if side else 0.0 for side in (change.a, change.b))


def _beyond(estimate: Estimate, least: float) -> bool:
    return estimate.low > 1 and estimate.ratio >= 1 + least


def _change(
    name: str, sides: tuple[Side, Side], judged: dict[str, Judged], least: float, absolute: bool
) -> PrefixChange:
    a, b = sides[0].of_prefix(name), sides[1].of_prefix(name)
    if not a or not b:
        return PrefixChange(name, a, b, "only in B" if b else "only in A")
    estimates: dict[str, tuple[Estimate | None, Estimate | None]] = {
        kind: (of_kind.relative.get(name), of_kind.absolute.get(name)) for kind, of_kind in judged.items()
    }
    decisive = {
        kind: (whole if absolute or relative is None else relative) for kind, (relative, whole) in estimates.items()
    }
    known = {kind: estimate for kind, estimate in decisive.items() if estimate is not None}
    if not known:
        return PrefixChange(name, a, b, "unjudged")
    verdict, kind = "same", next(iter(known))
    for each, estimate in known.items():
        if _beyond(estimate, least):
            verdict, kind = "slower", each
            break
    else:
        for each, estimate in known.items():
            if estimate.high < 1 and estimate.ratio <= 1 / (1 + least):
                verdict, kind = "faster", each
                break
    return PrefixChange(name, a, b, verdict, kind, *estimates[kind], known[kind])
