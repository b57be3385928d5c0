"""A comparison in words: what to beware of, and what it found.

Contents: notices, conclusions, headline.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from gnomon.reports.compare.comparison import Comparison, PrefixChange, Side
from gnomon.reports.compare.families import KINDS, Change
from gnomon.reports.compare.lineup import KIND_WORDS, interval_text, ratio_text
from gnomon.reports.compare.noise import Estimate
from gnomon.reports.units import count_text, cut, time_text

__all__ = ["conclusions", "headline", "notices"]

#: Names listed in one sentence.
_NAMES = 5


def headline(comparison: Comparison) -> str:
    """The outcome in one line."""
    slower = comparison.slower
    if slower:
        return f"Slower beyond noise: {_list([change.name for change in slower])}."
    further = [f"{KINDS[family.kind][0]} {cut(change.name, 40)!r}" for family in comparison.families
               for change in family.slower]  # fmt: skip
    if further:
        return f"Slower beyond noise: {', '.join(further[:_NAMES])}."
    if comparison.common_slower and comparison.common:
        return f"Slower beyond noise: all prefixes alike, {_ratio(comparison.common)}."
    judged = [change for change in comparison.prefixes if change.judged is not None]
    if not judged:
        return "Nothing could be judged: no prefix has enough runs with details on both sides."
    return "Nothing got slower beyond noise."


def notices(comparison: Comparison) -> list[str]:
    """What makes the sides less comparable, or the verdicts less sure."""
    a, b = comparison.a, comparison.b
    result = []
    threads = [sorted({(each.workers, each.threads) for each in side.samples}) for side in (a, b)]
    if threads[0] != threads[1]:
        words = [", ".join(f"{w} workers with {t} threads" for w, t in of_side) for of_side in threads]
        result.append(
            f"Capacity differs: A had {words[0]}, B had {words[1]}. Wall times and seconds of idleness do not compare; "
            "times per task do, as far as tasks don't compete."
        )
    for side in (a, b):
        result += _about_side(side)
    if not comparison.repeats:
        result.append(
            f"n={len(a.samples)} and n={len(b.samples)}: with one recording of a side, what differs between two runs "
            "of the same code is assumed, not measured. Record each side five times to measure it."
        )
    if comparison.common is None and any(change.judged for change in comparison.prefixes):
        result.append("Only one prefix is on both sides: a slower machine and slower code look the same.")
    return result


def _about_side(side: Side) -> list[str]:
    result = []
    missed = sum(each.missed for each in side.samples)
    if missed:
        result.append(
            f"{side.letter} lacks the details of {count_text(missed)} runs: its levels, medians and 99 % are of the "
            "rest."
        )
    raised = [each.name for each in side.samples if each.raised]
    if raised:
        result.append(f"The recorded block raised in {_list(raised)} ({side.letter}).")
    unread = sum(each.unread for each in side.samples)
    if unread:
        result.append(f"{count_text(unread)} profiles of {side.letter} can't be read and are left out.")
    erred = sum(each.erred for each in side.samples)
    if erred:
        result.append(f"{count_text(erred)} runs erred in {side.letter}; they are left out of levels and quantiles.")
    return result


def conclusions(comparison: Comparison) -> list[str]:
    """What was found, weightiest first."""
    result = [_slower(comparison, change) for change in comparison.slower]
    if comparison.common:
        result.append(_common(comparison.common, absolute=comparison.absolute))
    for family in comparison.families:
        result += [_slower_in(family.kind, change) for change in family.slower]
    result += _stalls(comparison)
    if not comparison.slower:
        result += _greatest(comparison)
    faster = [change for change in comparison.prefixes if change.verdict == "faster" and change.judged]
    faster.sort(key=lambda change: change.judged.ratio if change.judged else 1.0)
    result += [
        f"{cut(change.name, 40)!r} got faster: {_ratio(change.judged)} per task."
        for change in faster[:_NAMES]
        if change.judged
    ]
    result.append(_wall(comparison))
    for letter in "AB":
        only = [change.name for change in comparison.prefixes if change.verdict == f"only in {letter}"]
        if only:
            result.append(f"Only in {letter}: {_list(only)}.")
    result += _counts(comparison)
    few = [change.name for change in comparison.prefixes if change.verdict == "unjudged"]
    if few:
        result.append(f"Too few runs to judge: {_list(few)}.")
    return result


def _slower(comparison: Comparison, change: PrefixChange) -> str:
    name = cut(change.name, 40)
    parts = []
    if change.relative:
        parts.append(f"{_ratio(change.relative)} relative to the others")
    if change.absolute:
        parts.append(f"{_ratio(change.absolute)} as it is")
    tasks = fmean(each.tasks for each in change.b)
    seen = f"{KIND_WORDS[change.kind]} of its tasks' times"
    if change.kind == "processor":
        seen = "lower quartile of its tasks' times on the processor"
    if change.kind == "mean":
        seen = "mean of its tasks' times, while its quick tasks are as quick as before"
    return (
        f"{name!r} got slower: {', '.join(parts)} ({seen}). That is {time_text(change.lost)} more in "
        f"{count_text(round(tasks))} tasks."
    )


def _slower_in(kind: str, change: Change) -> str:
    what, per = KINDS[kind]
    assert change.judged is not None
    return f"The {what} {cut(change.name, 40)!r} got slower: {_ratio(change.judged)} {per} ({KIND_WORDS[change.kind]})."


def _stalls(comparison: Comparison) -> list[str]:
    result = []
    for each in [each for each in comparison.stalls or () if each.verdict == "more"][:_NAMES]:
        rate = f": {_ratio(each.ratio)} as often" if each.ratio else ", where A had none"
        what = f"{each.cause} in {each.function!r}" if each.function else each.cause
        result.append(
            f"The {each.process}'s event loop stalled more often ({what}){rate}, {time_text(each.b.ticks)} in all."
        )
    return result


def _common(common: Estimate, *, absolute: bool) -> str:
    if abs(common.ratio - 1) < 0.03:
        return f"Common factor of all prefixes: {_ratio(common)}."
    way = "longer" if common.ratio > 1 else "shorter"
    handled = "It counts in the verdicts." if absolute else "Verdicts are relative to it."
    return (
        f"All prefixes alike took {way}: common factor {_ratio(common)}. The machine was in another state, or "
        f"something changed that all tasks share. {handled}"
    )


def _greatest(comparison: Comparison) -> list[str]:
    same = [change for change in comparison.prefixes if change.verdict == "same" and change.judged]
    greatest = max(same, key=lambda change: change.judged.ratio if change.judged else 0.0, default=None)
    if greatest is None or greatest.judged is None or greatest.judged.ratio <= 1:
        return []
    return [f"Greatest rise within noise: {cut(greatest.name, 40)!r}, {_ratio(greatest.judged)}."]


def _wall(comparison: Comparison) -> str:
    before, after = (side.mean(lambda each: each.duration) for side in (comparison.a, comparison.b))
    if comparison.wall:
        return f"Wall time {time_text(before)}, then {time_text(after)}: {_ratio(comparison.wall)}."
    return f"Wall time {time_text(before)}, then {time_text(after)}: {ratio_text(after / before)} (n=1, no interval)."


def _counts(comparison: Comparison) -> list[str]:
    changed = []
    for change in comparison.prefixes:
        if change.a and change.b:
            before, after = (fmean(each.tasks for each in side) for side in (change.a, change.b))
            if abs(after - before) > 0.01 * max(before, after):
                changed.append((abs(after - before), f"{cut(change.name, 40)!r} {before:,.0f}, then {after:,.0f}"))
    if not changed:
        return []
    changed.sort(reverse=True)
    more = f" and {len(changed) - _NAMES} more" if len(changed) > _NAMES else ""
    return [f"Numbers of tasks differ: {'; '.join(text for _, text in changed[:_NAMES])}{more}."]


def _ratio(estimate: Estimate) -> str:
    return f"{ratio_text(estimate.ratio)} ({interval_text(estimate)})"


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(repr(cut(name, 40)) for name in names[:_NAMES]) + more
