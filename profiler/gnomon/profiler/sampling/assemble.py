"""Sessions made of a sampler's numbers: only what a window needs is kept, and gets its names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnomon.profiler.marks import regions
from gnomon.profiler.sampling.history import Piece
from gnomon.profiler.sampling.stacks import LABEL_BITS, MAX_LABELS, NODE_BITS
from gnomon.profiler.sessions import names
from gnomon.profiler.sessions.session import (
    MARKER,
    REGION,
    Bucket,
    Function,
    Nodes,
    RegionTime,
    Samples,
    Session,
    Thread,
)

__all__ = ["assemble"]

_NODE = (1 << NODE_BITS) - 1
_LABEL = (1 << LABEL_BITS) - 1


class _Renumbering:
    """Old numbers to new ones, given in the order in which they are first asked for."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}

    def __call__(self, old: int) -> int:
        return self.numbers.setdefault(old, len(self.numbers))


def assemble(
    pieces: Sequence[Piece],
    *,
    tree: tuple[Sequence[int], Sequence[int], Sequence[int]],
    functions: Sequence[tuple[str, str, int]],
    threads: Sequence[tuple[int, str]],
    labels: Sequence[str],
    meta: Mapping[str, Any],
) -> Session:
    """The session of some pieces of history.

    ``tree``: parents, functions and lines of all nodes; ``functions``: name, file and first line; ``threads``: ident
    and name; all by number. ``meta`` is completed by what the pieces say.
    """
    new_thread, new_label = _Renumbering(), _Renumbering()
    new_label(0)
    columns: tuple[list[int], ...] = ([], [], [], [], [])
    for bucket, piece in enumerate(pieces):
        for key, count in sorted(piece.counts.items()):
            row = (
                bucket,
                new_thread(key >> (NODE_BITS + LABEL_BITS)),
                new_label(key >> NODE_BITS & _LABEL),
                key & _NODE,
                count,
            )
            for column, value in zip(columns, row, strict=True):
                column.append(value)
    rows = tuple(
        RegionTime(bucket, new_thread(thread), regions.slot_name(slot), round(entries), seconds, own)
        for bucket, piece in enumerate(pieces)
        for (thread, slot), (entries, seconds, own) in sorted(piece.regions.items())
    )
    nodes, named, moved = _needed(tree, functions, columns[3])
    label_names = (*labels, *[""] * (MAX_LABELS - 1 - len(labels)), "(others)")
    process = str(meta["process"])
    return Session(
        meta=_complete(meta, pieces, sum(columns[4])),
        functions=named,
        nodes=nodes,
        buckets=tuple(_bucket(piece) for piece in pieces),
        threads=tuple(Thread(*threads[old], process) for old in new_thread.numbers),
        labels=tuple(label_names[old] for old in new_label.numbers),
        samples=Samples(
            tuple(columns[0]),
            tuple(columns[1]),
            tuple(columns[2]),
            tuple(moved[node] for node in columns[3]),
            tuple(columns[4]),
        ),
        regions=rows,
    )


def _needed(
    tree: tuple[Sequence[int], Sequence[int], Sequence[int]],
    functions: Sequence[tuple[str, str, int]],
    ends: Sequence[int],
) -> tuple[Nodes, tuple[Function, ...], dict[int, int]]:
    """The nodes in which samples end and all above them, the functions of those, and the nodes' new numbers."""
    parents, of_node, lines = tree
    needed: set[int] = set()
    for node in set(ends):
        while node >= 0 and node not in needed:
            needed.add(node)
            node = parents[node]
    kept = sorted(needed)  # a parent has the smaller number
    moved = {old: new for new, old in enumerate(kept)}
    new_function = _Renumbering()
    nodes = Nodes(
        tuple(moved[parents[node]] if parents[node] >= 0 else -1 for node in kept),
        tuple(new_function(of_node[node]) for node in kept),
        tuple(lines[node] for node in kept),
    )
    known = names.modules_by_file()
    named = tuple(_function(functions[old], known) for old in new_function.numbers)
    return nodes, named, moved


def _function(key: tuple[str, str, int], known: dict[str, str]) -> Function:
    name, file, line = key
    module = "" if file in {REGION, MARKER} else names.module_of(file, known)
    return Function(name, file, line, module)


def _bucket(piece: Piece) -> Bucket:
    missed, cpu = round(piece.missed), max(0.0, piece.cpu)
    return Bucket(piece.start, piece.stop, piece.ticks, missed, piece.late, piece.late_max, cpu, piece.points)


def _complete(meta: Mapping[str, Any], pieces: Sequence[Piece], samples: int) -> dict[str, Any]:
    ticks = sum(piece.ticks for piece in pieces)
    seconds = sum(piece.stop - piece.start for piece in pieces)
    return {
        **meta,
        "interval": seconds / ticks if ticks else 0.0,
        "samples": samples,
        "ticks": ticks,
        "missed": round(sum(piece.missed for piece in pieces)),
        "cpu": sum(piece.cpu for piece in pieces),
    }
