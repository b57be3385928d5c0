"""A comparison as one HTML file, in the report's style: offline, readable without scripts, A and B on one scale.

Contents: build_comparison.
"""

from __future__ import annotations

import math
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from gnomon.reports import palette
from gnomon.reports.account import PARTS
from gnomon.reports.compare import lineup
from gnomon.reports.compare.comparison import Comparison, PrefixChange, Side
from gnomon.reports.compare.noise import Estimate
from gnomon.reports.compare.profiles import Frame, Profile
from gnomon.reports.compare.words import conclusions, headline, notices
from gnomon.reports.page.tables import PART_WORDS
from gnomon.reports.templates import load_template
from gnomon.reports.units import time_text

__all__ = ["build_comparison"]

#: Prefixes that are drawn; the tables have all of them.
_DRAWN = 40


class Reach(NamedTuple):
    """A ratio drawn on a logarithmic axis: the positions of its interval and itself, in percent."""

    low: float
    dot: float
    high: float
    text: str


def build_comparison(comparison: Comparison, title: str = "gnomon comparison") -> str:
    """The page as text. It needs no network and holds no recording."""
    sides = (comparison.a, comparison.b)
    by_time = sorted(comparison.prefixes, key=lambda change: -max(_total(change.a), _total(change.b)))
    slots = palette.slots([change.name for change in by_time])
    limit = _limit(comparison)
    context = {
        "title": title,
        "css": _read("gnomon.reports.page", "report.css") + _read(__package__, "compare.css"),
        "js": _read(__package__, "compare.js"),
        "palette_css": palette.css(),
        "headline": headline(comparison),
        "regressed": comparison.regressed,
        "notices": notices(comparison),
        "conclusions": conclusions(comparison),
        "sides": [_side(side) for side in sides],
        "bars": _bars(sides),
        "slots": slots,
        "reaches": [
            (change.name, change.verdict, _reach(change.judged, limit))
            for change in comparison.prefixes[:_DRAWN]
            if change.judged
        ],
        "drawn": min(_DRAWN, len(comparison.prefixes)),
        "ends": (lineup.ratio_text(math.exp(-limit)), lineup.ratio_text(math.exp(limit))),
        "pairs": _pairs(by_time[:_DRAWN]),
        "setup": lineup.setup_table(comparison),
        "verdicts": lineup.verdict_table(comparison),
        "prefixes": lineup.prefix_table(comparison),
        "whole": lineup.whole_table(comparison),
        "parts": lineup.part_table(comparison),
        "transfers": lineup.transfer_table(comparison),
        "fetching": lineup.fetch_table(comparison),
        "families": {family.kind: lineup.family_table(family, comparison) for family in comparison.families},
        "stalls": lineup.stall_table(comparison),
        "watched": comparison.stalls is not None,
        "workers": lineup.worker_table(comparison),
        "profiles": [(profile, lineup.profile_table(profile)) for profile in comparison.profiles],
        "flame": _flame,
        "facts": dict(sides[1].samples[0].facts),
    }
    return load_template(Path(__file__).with_name("compare.html")).render(context)


def _read(package: str, name: str) -> str:
    return (resources.files(package) / name).read_text("utf-8")


def _side(side: Side) -> dict[str, Any]:
    return {
        "letter": side.letter,
        "names": [each.name for each in side.samples],
        "count": len(side.samples),
        "wall": time_text(side.mean(lambda each: each.duration)),
        "workers": ", ".join(sorted({f"{each.workers} workers with {each.threads} threads" for each in side.samples})),
    }


def _bars(sides: tuple[Side, Side]) -> list[tuple[str, str, list[tuple[str, str, float, str]]]]:
    """The account's bar of each side, both on the scale of the greater capacity: part, word, percent, time."""
    most = max(side.mean(lambda each: each.capacity) for side in sides) or 1.0
    result = []
    for side in sides:
        segments = []
        for part in PARTS:
            ticks = side.mean(lambda each, part=part: each.parts[part])  # type: ignore[misc]
            if ticks:
                segments.append((part, PART_WORDS.get(part, (part, ""))[0], 100 * ticks / most, time_text(ticks)))
        result.append((side.letter, time_text(side.mean(lambda each: each.capacity)), segments))
    return result


def _limit(comparison: Comparison) -> float:
    """Half the width of the ratios' axis, as a logarithm: all ratios are on it, wide intervals are cut off."""
    logs = [abs(math.log(change.judged.ratio)) for change in comparison.prefixes[:_DRAWN] if change.judged]
    return max(math.log(1.5), 1.15 * max(logs, default=0.0))


def _reach(estimate: Estimate | None, limit: float) -> Reach:
    if estimate is None:
        raise ValueError("only judged changes are drawn")

    def place(ratio: float) -> float:
        return 50 * (1 + max(-1.0, min(1.0, math.log(ratio) / limit)))

    text = f"{lineup.ratio_text(estimate.ratio)} ({lineup.interval_text(estimate)})"
    return Reach(place(estimate.low), place(estimate.ratio), place(estimate.high), text)


def _flame(profile: Profile) -> list[tuple[Frame, str, str]]:
    """The frames with a shade for how they changed, and what they say."""
    result = []
    for frame in profile.frames:
        change = frame.b - frame.a
        strength = min(3, round(4 * abs(change) / frame.width)) if abs(change) > 0.002 else 0
        shade = f"worse-{strength}" if change > 0 else f"better-{strength}"
        told = f"{frame.name}: A {100 * frame.a:.1f} %, B {100 * frame.b:.1f} % ({100 * change:+.1f} points)"
        result.append((frame, shade if strength else "same", told))
    return result


def _total(side: list[Any]) -> float:
    return fmean(each.total for each in side) if side else 0.0


def _pairs(changes: list[PrefixChange]) -> list[tuple[str, list[tuple[str, float, str]]]]:
    """The prefixes' total times on both sides, in percent of the greatest."""
    most = max((max(_total(change.a), _total(change.b)) for change in changes), default=0.0) or 1.0
    return [
        (
            change.name,
            [
                (letter, 100 * _total(of_side) / most, time_text(_total(of_side)) if of_side else "not there")
                for letter, of_side in (("A", change.a), ("B", change.b))
            ],
        )
        for change in changes
    ]
