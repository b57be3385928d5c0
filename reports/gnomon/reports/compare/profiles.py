"""The profiles of both sides on one tree: which functions take another share of the samples, and the flame graph of it.

The frames' order is alphabetical, so that shapes can be compared; a frame is as wide as its mean share of both sides,
which adds up along the tree, and its colour says which side it is greater on. Samples are few: ``sure`` tells what two
counts of samples show beyond chance.

Contents: Frame, FunctionChange, Profile, profiles_of, compare_profiles.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from gnomon.profiler.sessions.session import Difference, Function, Session
from gnomon.reports.recording import Recording

__all__ = ["Frame", "FunctionChange", "Profile", "compare_profiles", "profiles_of"]

#: Frames narrower than this share are put together per caller; deeper ones than this are not drawn.
_LEAST = 0.002
_DEEPEST = 60

#: How many standard errors a change of share must have.
_ERRORS = 3.5


class Frame(NamedTuple):
    """A frame of the flame graph: its depth, its left edge and width in shares, its name, and each side's share."""

    depth: int
    left: float
    width: float
    name: str
    a: float
    b: float


class FunctionChange(NamedTuple):
    """The share of samples that ended in a function, of each side; ``sure`` if that differs beyond chance."""

    name: str
    place: str
    a: float
    b: float
    sure: bool


class Profile(NamedTuple):
    """One kind of profile, compared. ``samples`` of each side; functions by the change of their share."""

    kind: str
    samples: tuple[int, int]
    frames: list[Frame]
    depth: int
    functions: list[FunctionChange]


def profiles_of(recording: Recording) -> tuple[dict[str, Session], int]:
    """The recording's profiles, merged by kind, and how many can't be read."""
    unread = 0
    sessions: dict[str, list[Session]] = defaultdict(list)
    for each in recording.profiles:
        try:
            sessions[str(each["kind"])].append(Session.from_plain(each["session"]))
        except (ValueError, KeyError, TypeError):
            unread += 1
    return {kind: Session.merge(of_kind) for kind, of_kind in sessions.items()}, unread


def compare_profiles(a: Sequence[dict[str, Session]], b: Sequence[dict[str, Session]]) -> list[Profile]:
    """The kinds of profile that both sides have, in alphabetical order."""
    kinds = {kind for each in a for kind in each} & {kind for each in b for kind in each}
    result = []
    for kind in sorted(kinds):
        before, after = (Session.merge([each[kind] for each in side if kind in each]) for side in (a, b))
        counts = (sum(before.samples.count), sum(after.samples.count))
        if all(counts):
            difference = before.diff(after)
            frames = _frames(difference)
            depth = max((frame.depth for frame in frames), default=0) + 1
            result.append(Profile(kind, counts, frames, depth, _functions(difference, counts)))
    return result


def _functions(difference: Difference, counts: tuple[int, int]) -> list[FunctionChange]:
    before: dict[int, float] = defaultdict(float)
    after: dict[int, float] = defaultdict(float)
    for function, a, b in zip(difference.nodes.function, *difference.shares(), strict=True):
        before[function] += a
        after[function] += b
    result = []
    for number, known in enumerate(difference.functions):
        a, b = before[number], after[number]
        variance = a * (1 - a) / counts[0] + b * (1 - b) / counts[1]
        if a != b:
            result.append(FunctionChange(_name(known), _place(known), a, b, abs(b - a) > _ERRORS * math.sqrt(variance)))
    return sorted(result, key=lambda each: (not each.sure, -abs(each.b - each.a), each.name))


def _frames(difference: Difference) -> list[Frame]:
    """Lay the tree out from the roots."""
    parents = difference.nodes.parent
    totals = [list(column) for column in difference.shares()]
    children: dict[int, list[int]] = defaultdict(list)
    for node in range(len(parents) - 1, -1, -1):
        children[parents[node]].append(node)
        if parents[node] >= 0:
            for column in totals:
                column[parents[node]] += column[node]
    names = [_name(difference.functions[number]) for number in difference.nodes.function]
    result: list[Frame] = []
    waiting = [(-1, 0, 0.0)]
    while waiting:
        parent, depth, left = waiting.pop()
        small: list[int] = []
        for node in sorted(children[parent], key=names.__getitem__):
            a, b = totals[0][node], totals[1][node]
            width = (a + b) / 2
            if width < _LEAST:
                small.append(node)
                continue
            result.append(Frame(depth, left, width, names[node], a, b))
            if depth + 1 < _DEEPEST:
                waiting.append((node, depth + 1, left))
            left += width
        a, b = (sum(column[node] for node in small) for column in totals)
        if (a + b) / 2 >= _LEAST:
            result.append(Frame(depth, left, (a + b) / 2, f"other ({len(small)} frames)", a, b))
    return result


def _name(function: Function) -> str:
    return f"{function.module}.{function.name}" if function.module else function.name


def _place(function: Function) -> str:
    return f"{function.file}:{function.first_line}" if function.first_line > 0 else ""
