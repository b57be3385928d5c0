"""What a profile shows: functions from a session to a session, to be put one after the other.

    fold(hide_library(keep_labels(session, ["parse"])), 0.01)

Filters (``keep_*``, ``drop_*``) drop samples. Shapers (``below``, ``hide_library``, ``group_by_module``, ``invert``,
``fold``) keep every sample and change what stack it has, so that times still add up to the same sum.
None of them knows how a session is drawn; ``calltree.call_tree`` makes the tree for that.

Contents: Match, is_library, keep_labels, keep_prefix, keep_threads, keep_time, keep_functions, drop_functions,
keep_busy, below, hide_library, group_by_module, invert, fold.
"""

from __future__ import annotations

import os
import re
import sysconfig
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from gnomon.profiler.sessions.names import is_idle
from gnomon.profiler.sessions.session import MARKER, REGION, Function, Nodes, Samples, Session

__all__ = [
    "Match",
    "below",
    "drop_functions",
    "fold",
    "group_by_module",
    "hide_library",
    "invert",
    "is_library",
    "keep_busy",
    "keep_functions",
    "keep_labels",
    "keep_prefix",
    "keep_threads",
    "keep_time",
]

#: Says of a function whether it is meant.
Match = Callable[[Function], bool]

Row = tuple[int, int, int, int, int]

_LIBRARY_PATH = re.compile(r"[/\\](?:site-packages|dist-packages)[/\\]|[/\\]lib[/\\]python\d|^<frozen ", re.IGNORECASE)
_LIBRARY_FOLDERS = tuple(
    {os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)


def is_library(function: Function) -> bool:
    """Whether a function belongs to Python or an installed package, judged by its file: here or on any other host."""
    return function.file.startswith(_LIBRARY_FOLDERS) or bool(_LIBRARY_PATH.search(function.file))


# ------------------------------------------------------------------------------------------------------------- filters


def keep_labels(session: Session, labels: Collection[str]) -> Session:
    """Only samples with one of the labels; "" stands for samples without a label."""
    return _keep_label(session, lambda label: label in labels)


def keep_prefix(session: Session, prefix: str) -> Session:
    """Only samples whose label starts so."""
    return _keep_label(session, lambda label: label.startswith(prefix))


def _keep_label(session: Session, wanted: Callable[[str], bool]) -> Session:
    chosen = {number for number, label in enumerate(session.labels) if wanted(label)}
    return _with_rows(session, (row for row in _rows(session) if row[2] in chosen))


def keep_threads(session: Session, threads: Collection[int | str]) -> Session:
    """Only samples and regions of threads given by identity or name."""
    chosen = {n for n, thread in enumerate(session.threads) if thread.ident in threads or thread.name in threads}
    kept = _with_rows(session, (row for row in _rows(session) if row[1] in chosen))
    return replace(kept, regions=tuple(row for row in session.regions if row.thread in chosen))


def keep_time(session: Session, start: float | None = None, stop: float | None = None) -> Session:
    """Only what was recorded between two times of the wall clock, in seconds.

    A bucket is the finest that a session knows: the result has the buckets that the window touches, whole, and its
    ``start`` and ``stop`` say what that came to.
    """
    first = float("-inf") if start is None else start
    last = float("inf") if stop is None else stop
    kept = [n for n, bucket in enumerate(session.buckets) if bucket.start < last and bucket.stop > first]
    number = {old: new for new, old in enumerate(kept)}
    buckets = tuple(session.buckets[n] for n in kept)
    extent = {"start": buckets[0].start, "stop": buckets[-1].stop} if buckets else {}
    counts = {"ticks": sum(b.ticks for b in buckets), "missed": sum(b.missed for b in buckets)}
    cut = replace(
        session,
        meta={**session.meta, **extent, **counts, "cpu": sum(b.cpu for b in buckets)},
        buckets=buckets,
        regions=tuple(row._replace(bucket=number[row.bucket]) for row in session.regions if row.bucket in number),
    )
    return _with_rows(cut, ((number[row[0]], *row[1:]) for row in _rows(session) if row[0] in number))


def keep_functions(session: Session, match: Match) -> Session:
    """Only samples with a matching function somewhere in their stack."""
    inside = _inside(session, match)
    return _with_rows(session, (row for row in _rows(session) if inside[row[3]]))


def drop_functions(session: Session, match: Match) -> Session:
    """Only samples without a matching function in their stack."""
    inside = _inside(session, match)
    return _with_rows(session, (row for row in _rows(session) if not inside[row[3]]))


def _inside(session: Session, match: Match) -> list[bool]:
    """For each node, whether it or a caller matches."""
    matching = [match(function) for function in session.functions]
    inside: list[bool] = []
    for parent, function in zip(session.nodes.parent, session.nodes.function, strict=True):
        inside.append(matching[function] or (parent >= 0 and inside[parent]))
    return inside


def keep_busy(session: Session, idle: Match = is_idle) -> Session:
    """Only samples that do not end in a function known to wait, as for a lock, a queue or the network."""
    waits = [idle(session.functions[function]) for function in session.nodes.function]
    return _with_rows(session, (row for row in _rows(session) if not waits[row[3]]))


# ------------------------------------------------------------------------------------------------------------- shapers


def below(session: Session, match: Match) -> Session:
    """Cut off what lies above the outermost matching function of each stack; stacks without one stay whole."""
    parents, functions, lines = session.nodes
    matching = [match(function) for function in session.functions]
    seen: list[bool] = []
    parent = list(parents)
    for node, (caller, function) in enumerate(zip(parents, functions, strict=True)):
        above = caller >= 0 and seen[caller]
        seen.append(above or matching[function])
        if matching[function] and not above:
            parent[node] = -1
    return _joined(session, parent, functions, lines, range(len(parent)))


def hide_library(session: Session, library: Match = is_library) -> Session:
    """Hide the insides of libraries: of a row of library functions that call each other only the first stays.

    Its time includes that of the hidden ones; what they call back hangs below it. Regions and markers always stay.
    """
    parents, functions, lines = session.nodes
    hidden = [library(function) and function.file not in (REGION, MARKER) for function in session.functions]
    stays: list[int] = []  # for each node, itself or the caller that stands for it
    for node, (caller, function) in enumerate(zip(parents, functions, strict=True)):
        stays.append(stays[caller] if caller >= 0 and hidden[function] and hidden[functions[caller]] else node)
    parent = [stays[caller] if caller >= 0 else -1 for caller in parents]
    return _joined(session, parent, functions, lines, stays)


def group_by_module(session: Session) -> Session:
    """One frame per module: its functions that call each other become one. Regions stay as they are."""
    parents, node_functions, _ = session.nodes
    grouped: dict[Function, int] = {}
    of: list[int] = []
    for function in session.functions:
        whole = function if function.file in (REGION, MARKER) else _module(function)
        of.append(grouped.setdefault(whole, len(grouped)))
    functions = [of[function] for function in node_functions]
    stays: list[int] = []
    for node, caller in enumerate(parents):
        stays.append(stays[caller] if caller >= 0 and functions[caller] == functions[node] else node)
    parent = [stays[caller] if caller >= 0 else -1 for caller in parents]
    changed = replace(session, functions=tuple(grouped))
    return _joined(changed, parent, functions, [0] * len(functions), stays)


def _module(function: Function) -> Function:
    name = function.module or os.path.basename(function.file) or "(unknown)"
    return Function(name, "", 0, function.module)


def invert(session: Session) -> Session:
    """Turn stacks upside down: on top the functions that were running, below them who called them."""
    parents, functions, lines = session.nodes
    parent: list[int] = []
    origin: list[int] = []
    numbers: dict[tuple[int, int, int], int] = {}
    ends: dict[int, int] = {}  # for the last node of a stack, the deepest node of the stack turned round

    def turned(node: int) -> int:
        above = -1
        while node >= 0:
            key = (above, functions[node], lines[node])
            if key not in numbers:
                numbers[key] = len(parent)
                parent.append(above)
                origin.append(node)
            above = numbers[key]
            node = parents[node]
        return above

    rows = []
    for bucket, thread, label, node, count in _rows(session):
        if node not in ends:
            ends[node] = turned(node)
        rows.append((bucket, thread, label, ends[node], count))
    nodes = Nodes(tuple(parent), tuple(functions[node] for node in origin), tuple(lines[node] for node in origin))
    return _with_rows(replace(session, nodes=nodes), rows)


def fold(session: Session, share: float = 0.01) -> Session:
    """Put small functions together, per caller, as "(n smaller)": whose time with callees is below a share of all.

    Lines of a function are judged together. A threshold of 0 keeps all.
    """
    parents, functions, lines = session.nodes
    ticks = [bucket.tick_seconds for bucket in session.buckets]
    total = [0.0] * len(parents)
    for bucket, _, _, node, count in _rows(session):
        total[node] += count * ticks[bucket]
    least = share * sum(total)
    for node in range(len(parents) - 1, -1, -1):
        if parents[node] >= 0:
            total[parents[node]] += total[node]

    #: The first node of a function below a caller stands for its other lines; callers are judged before callees.
    leads: dict[tuple[int, int], int] = {}
    lead: list[int] = []
    for node, caller in enumerate(parents):
        above = lead[caller] if caller >= 0 else -1
        lead.append(leads.setdefault((above, functions[node]), node))
    weight: dict[int, float] = defaultdict(float)
    for node, seconds in enumerate(total):
        weight[lead[node]] += seconds
    small = [weight[lead[node]] < least for node in range(len(parents))]

    members: dict[int, set[int]] = defaultdict(set)  # leading caller -> small functions just below it
    for node, caller in enumerate(parents):
        if small[node] and not (caller >= 0 and small[caller]):
            members[lead[caller] if caller >= 0 else -1].add(functions[node])
    known = list(session.functions)
    markers: dict[int, int] = {}
    for caller, found in members.items():
        known.append(Function(f"({len(found):,} smaller)", MARKER, 0, ""))
        markers[caller] = len(known) - 1

    new_functions, new_lines = list(functions), list(lines)
    stays: list[int] = []
    for node, caller in enumerate(parents):
        if caller >= 0 and small[caller]:
            stays.append(stays[caller])
            continue
        stays.append(node)
        if small[node]:
            new_functions[node] = markers[lead[caller] if caller >= 0 else -1]
            new_lines[node] = 0
    return _joined(replace(session, functions=tuple(known)), parents, new_functions, new_lines, stays)


# ---------------------------------------------------------------------------------------------------------------- parts


def _rows(session: Session) -> Iterable[Row]:
    return zip(*session.samples, strict=True)


def _joined(
    session: Session, parent: Sequence[int], function: Sequence[int], line: Sequence[int], stays: Sequence[int]
) -> Session:
    """A session on other nodes: ``stays`` says which node stands for each one; equal nodes become one."""
    numbers: dict[tuple[int, int, int], int] = {}
    new: list[int] = []
    for node, kept in enumerate(stays):
        if kept != node:
            new.append(new[kept])
            continue
        caller = new[parent[node]] if parent[node] >= 0 else -1
        new.append(numbers.setdefault((caller, function[node], line[node]), len(numbers)))
    columns = zip(*numbers, strict=True) if numbers else ((), (), ())
    changed = replace(session, nodes=Nodes(*(tuple(column) for column in columns)))
    return _with_rows(changed, ((b, t, label, new[node], count) for b, t, label, node, count in _rows(session)))


def _with_rows(session: Session, rows: Iterable[Row]) -> Session:
    """The session with these samples, equal ones added up, without the nodes and functions that nothing uses now."""
    counts: dict[tuple[int, int, int, int], int] = defaultdict(int)
    for bucket, thread, label, node, count in rows:
        counts[bucket, thread, label, node] += count
    parents, node_functions, lines = session.nodes
    used = [False] * len(parents)
    for key in counts:
        used[key[3]] = True
    for node in range(len(parents) - 1, -1, -1):
        if used[node] and parents[node] >= 0:
            used[parents[node]] = True
    kept = [node for node, wanted in enumerate(used) if wanted]
    number = {old: new for new, old in enumerate(kept)}
    number[-1] = -1
    functions: dict[int, int] = {}
    for node in kept:
        functions.setdefault(node_functions[node], len(functions))
    nodes = Nodes(
        tuple(number[parents[node]] for node in kept),
        tuple(functions[node_functions[node]] for node in kept),
        tuple(lines[node] for node in kept),
    )
    columns: Iterable[Iterable[int]] = ((), (), (), (), ())
    if counts:
        columns = zip(
            *((b, t, label, number[node], n) for (b, t, label, node), n in sorted(counts.items())), strict=True
        )
    return replace(
        session,
        meta={**session.meta, "samples": sum(counts.values())},
        functions=tuple(session.functions[old] for old in functions),
        nodes=nodes,
        samples=Samples(*(tuple(column) for column in columns)),
    )
