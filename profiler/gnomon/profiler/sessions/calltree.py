"""A session as a tree for people: threads on top, below them each function once under each caller, times in seconds.

A session's nodes tell lines of one function apart and are shared by all threads; a call tree joins the lines (and
remembers their times) and separates the threads. It is still columns of numbers: a page can take them as they are.

Contents: CallTree, FunctionTime, THREAD, call_tree, by_function, depth_first, short_path.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gnomon.profiler.sessions.session import Function, Session

__all__ = ["THREAD", "CallTree", "FunctionTime", "by_function", "call_tree", "depth_first", "short_path"]

#: ``Function.file`` of the topmost calls, which stand for threads. Their ``module`` is the process's name.
THREAD = "<thread>"


class Timed(NamedTuple):
    """Seconds that samples of one bucket ended in one call."""

    bucket: int
    call: int
    seconds: float


class FunctionTime(NamedTuple):
    """A function over all its callers: seconds in itself, and with what it called (recursion counted once)."""

    function: Function
    own: float
    total: float


@dataclass(frozen=True, slots=True)
class CallTree:
    """Calls as parallel columns; ``parent`` is -1 for a thread and less than the call's own number otherwise.

    ``own`` and ``total`` are seconds, ``lines`` the seconds by line of the function (the line of the call, for what it
    called). ``samples`` are sorted by bucket.
    """

    functions: tuple[Function, ...]
    parent: tuple[int, ...]
    function: tuple[int, ...]
    own: tuple[float, ...]
    total: tuple[float, ...]
    lines: tuple[dict[int, float], ...]
    samples: tuple[Timed, ...]

    @property
    def seconds(self) -> float:
        """All sampled seconds, of all threads."""
        return sum(total for total, parent in zip(self.total, self.parent, strict=True) if parent < 0)

    def children(self) -> list[list[int]]:
        """The calls below each call, heaviest first; the last list holds the threads."""
        found: list[list[int]] = [[] for _ in range(len(self.parent) + 1)]
        for call, parent in enumerate(self.parent):
            found[parent].append(call)
        for calls in found:
            calls.sort(key=lambda call: (-self.total[call], call))
        return found


def call_tree(session: Session) -> CallTree:
    """The session's samples as a tree of calls."""
    parents, node_functions, node_lines = session.nodes
    functions = list(session.functions)
    parent: list[int] = []
    function: list[int] = []
    numbers: dict[tuple[int, int], int] = {}
    #: The call of a node, by thread.
    calls: list[dict[int, int]] = [{} for _ in session.threads]

    def number(caller: int, what: int) -> int:
        known = numbers.get((caller, what))
        if known is None:
            known = numbers[caller, what] = len(parent)
            parent.append(caller)
            function.append(what)
        return known

    def call_of(thread: int, node: int) -> int:
        known = calls[thread]
        if -1 not in known:
            row = session.threads[thread]
            functions.append(Function(row.name, THREAD, row.ident, row.process))
            known[-1] = number(-1, len(functions) - 1)
        path = []
        while node not in known:
            path.append(node)
            node = parents[node]
        call = known[node]
        for node in reversed(path):
            call = known[node] = number(call, node_functions[node])
        return call

    ticks = [bucket.tick_seconds for bucket in session.buckets]
    times: dict[tuple[int, int], float] = defaultdict(float)
    node_times: dict[tuple[int, int], float] = defaultdict(float)
    for bucket, thread, _, node, count in zip(*session.samples, strict=True):
        seconds = count * ticks[bucket]
        times[bucket, call_of(thread, node)] += seconds
        node_times[thread, node] += seconds

    own = [0.0] * len(parent)
    for (_, call), seconds in times.items():
        own[call] += seconds
    return CallTree(
        tuple(functions),
        tuple(parent),
        tuple(function),
        tuple(own),
        tuple(_totals(parent, own)),
        tuple(_lines(len(parent), calls, node_times, parents, node_lines)),
        tuple(Timed(bucket, call, seconds) for (bucket, call), seconds in sorted(times.items())),
    )


def by_function(tree: CallTree) -> list[FunctionTime]:
    """Each function's times, most own time first; threads are left out."""
    own: dict[int, float] = defaultdict(float)
    total: dict[int, float] = defaultdict(float)
    active: dict[int, int] = defaultdict(int)
    for call, entered in depth_first(tree.children()):
        function = tree.function[call]
        if not entered:
            active[function] -= 1
            continue
        own[function] += tree.own[call]
        if not active[function]:
            total[function] += tree.total[call]
        active[function] += 1
    rows = [FunctionTime(tree.functions[f], own[f], total[f]) for f in total if tree.functions[f].file != THREAD]
    return sorted(rows, key=lambda row: (-row.own, -row.total, row.function))


def depth_first(children: Sequence[Sequence[int]]) -> Iterator[tuple[int, bool]]:
    """Walk calls from the threads down: each call twice, with True before its callees and False after them."""
    waiting = [(call, True) for call in reversed(children[-1])]
    while waiting:
        call, entered = waiting.pop()
        yield call, entered
        if entered:
            waiting.append((call, False))
            waiting.extend((child, True) for child in reversed(children[call]))


def short_path(file: str) -> str:
    """A file as seen from the nearest folder of ``sys.path`` or the working folder; other files as they are."""
    best = file
    for folder in (*sys.path, os.getcwd()):
        start = folder.rstrip(os.sep) + os.sep
        if folder and file.startswith(start) and len(file) - len(start) < len(best):
            best = file[len(start) :]
    return best


def _totals(parent: Sequence[int], own: Sequence[float]) -> list[float]:
    """Own seconds and those of all below; a parent's number is less than its child's."""
    total = list(own)
    for number in range(len(parent) - 1, -1, -1):
        if parent[number] >= 0:
            total[parent[number]] += total[number]
    return total


def _lines(
    count: int,
    calls: Sequence[dict[int, int]],
    node_times: dict[tuple[int, int], float],
    parents: Sequence[int],
    node_lines: Sequence[int],
) -> list[dict[int, float]]:
    """For each call, the seconds of each line that its nodes stood at."""
    lines: list[dict[int, float]] = [{} for _ in range(count)]
    totals: list[dict[int, float]] = [dict.fromkeys(known, 0.0) for known in calls]
    for (thread, node), seconds in node_times.items():
        totals[thread][node] += seconds
    for known, total in zip(calls, totals, strict=True):
        for node in sorted(total, reverse=True):
            if node < 0:
                continue
            total[parents[node]] += total[node]
            line, call = node_lines[node], known[node]
            if line > 0:
                lines[call][line] = lines[call].get(line, 0.0) + total[node]
    return lines
