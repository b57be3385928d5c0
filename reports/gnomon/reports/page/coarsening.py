"""A recording small enough for a page: coarser step by step, until it fits, with every step said.

Totals by prefix, worker and pair stay complete throughout. Keys go first (those of the longest and the erred runs
stay), then the details of the shortest runs.

Contents: coarsened.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from gnomon.reports.recording import Ledger, Recording, Runs
from gnomon.reports.units import count_text

__all__ = ["coarsened"]

#: Runs that keep their keys when keys are left out.
_KEYS = 20_000

#: Bytes that a run takes in the file, at least; no need to pack what can't fit.
_LEAST = 4

#: Runs of a sample that tells how large all of them will be, and the blocks that it is taken in.
_SAMPLE, _BLOCKS = 32_000, 8

_COLUMNS = (
    "prefixes", "workers", "threads", "begins", "decodes", "computes", "encodes", "nbytes", "ok", "cpus", "spans",
)  # fmt: skip


def coarsened(recording: Recording, most: int) -> tuple[Recording, bytes]:
    """The recording and its file of at most ``most`` bytes, unless what isn't runs is larger already."""
    rows = len(recording.runs)
    if rows * _LEAST <= most:
        packed = recording.dumps()
        if len(packed) <= most:
            return recording, packed
    recording = _without_keys(recording)
    count = _fitting(recording, most)
    while True:
        if count < len(recording.runs):
            recording = _longest(recording, count)
        packed = recording.dumps()
        if len(packed) <= most or len(recording.runs) <= _KEYS:
            return recording, packed
        count = int(len(recording.runs) * min(0.95, 0.98 * most / len(packed)))


def _fitting(recording: Recording, most: int) -> int:
    """How many runs will fit, as a sample of them tells; packing all only to see how large they are takes seconds."""
    runs, rows = recording.runs, len(recording.runs)
    if rows <= _SAMPLE:
        return rows
    blocks = [range(rows * i // _BLOCKS, rows * i // _BLOCKS + _SAMPLE // _BLOCKS) for i in range(_BLOCKS)]
    none, some = (len(replace(recording, runs=_rows(runs, chosen)).dumps()) for chosen in ([], list(chain(*blocks))))
    return min(rows, max(_KEYS, int(0.98 * (most - none) / (some - none) * _SAMPLE)))


def _without_keys(recording: Recording) -> Recording:
    """Only the erred and the longest runs keep their keys."""
    import numpy

    runs = recording.runs
    by_want = numpy.lexsort((-numpy.asarray(runs.computes), numpy.asarray(runs.ok) != 0))
    keys = [""] * len(runs)
    for row in by_want[:_KEYS].tolist():
        keys[row] = runs.keys[row]
    named = min(_KEYS, len(runs))
    info = {**recording.info, "coarsened": [
        *recording.info.get("coarsened", ()),
        f"The names of {count_text(len(runs) - named)} of {count_text(len(runs))} runs are left out to keep this "
        "file small; their times are here.",
    ]}  # fmt: skip
    ledgers = {**recording.ledgers, "keys": Ledger(len(runs), named)}
    return replace(recording, runs=replace(runs, keys=keys), info=info, ledgers=ledgers)


def _longest(recording: Recording, count: int) -> Recording:
    """Only the runs that took longest keep their details; the rest count in the totals."""
    import numpy

    runs = recording.runs
    length = sum(numpy.asarray(column) for column in (runs.decodes, runs.computes, runs.encodes))
    rows = numpy.sort(numpy.argsort(-length, kind="stable")[: max(_KEYS, count)])
    ledgers = {**recording.ledgers, "runs": Ledger(recording.ledgers["runs"].seen, len(rows))}
    return replace(recording, runs=_rows(runs, rows.tolist()), ledgers=ledgers)


def _rows(runs: Runs, rows: Sequence[int]) -> Runs:
    """Some rows of the runs."""
    import numpy

    fewer = Runs(prefix_names=runs.prefix_names, span_names=runs.span_names, keys=[runs.keys[row] for row in rows])
    chosen = numpy.asarray(rows, "q")
    for name in _COLUMNS:
        column = numpy.asarray(getattr(runs, name))
        if len(column):
            setattr(fewer, name, array("q", column[chosen].tobytes()))
    return fewer
