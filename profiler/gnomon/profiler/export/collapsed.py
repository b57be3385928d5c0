"""Collapsed stacks: one line per stack, ``thread;outer;inner count``, as flame graph scripts read them.

Contents: to_collapsed.
"""

from __future__ import annotations

from collections import defaultdict

from gnomon.profiler.export.words import place_text, plain
from gnomon.profiler.sessions.session import MARKER, REGION, Function, Session

__all__ = ["to_collapsed"]


def to_collapsed(session: Session) -> str:
    """The stacks with their numbers of samples; lines of one function are joined, threads are kept apart."""
    names = [_frame(function) for function in session.functions]
    stacks: list[str] = []
    for parent, function in zip(session.nodes.parent, session.nodes.function, strict=True):
        stacks.append(f"{stacks[parent]};{names[function]}" if parent >= 0 else names[function])
    counts: dict[str, int] = defaultdict(int)
    for _, thread, _, node, count in zip(*session.samples, strict=True):
        counts[f"{_clean(session.threads[thread].name)};{stacks[node]}"] += count
    return "".join(f"{stack} {count}\n" for stack, count in sorted(counts.items()))


def _frame(function: Function) -> str:
    place = "" if function.file in (REGION, MARKER) else place_text(function)
    return _clean(f"{function.name} ({place})" if place else function.name)


def _clean(text: str) -> str:
    """A name without what separates frames and lines."""
    return plain(text).replace(";", ":")
