"""A recording small enough for a page: coarser step by step, until it fits, with every step said.

Totals by prefix, worker and pair stay complete throughout. Keys go first (those of the longest and the erred runs
stay), then the details of the shortest runs.

Contents: coarsened.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Sequence
from dataclasses import replace

from gnomon.reports.recording import Ledger, Recording, Runs
from gnomon.reports.units import count_text

__all__ = ["coarsened"]

#: Runs that keep their keys when keys are left out.
_KEYS = 20_000

#: Bytes that a run takes in the file, at least; no need to pack what can't fit.
_LEAST = 4

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
    while True:
        packed = recording.dumps()
        if len(packed) <= most or len(recording.runs) <= _KEYS:
            return recording, packed
        recording = _longest(recording, int(len(recording.runs) * min(0.9, 0.95 * most / len(packed))))


def _without_keys(recording: Recording) -> Recording:
    """Only the erred and the longest runs keep their keys."""
    runs = recording.runs
    named = set(heapq.nlargest(_KEYS, range(len(runs)), key=lambda row: (not runs.ok[row], runs.computes[row])))
    keys = [key if row in named else "" for row, key in enumerate(runs.keys)]
    info = {**recording.info, "coarsened": [
        *recording.info.get("coarsened", ()),
        f"The names of {count_text(len(runs) - len(named))} of {count_text(len(runs))} runs are left out to keep this "
        "file small; their times are here.",
    ]}  # fmt: skip
    ledgers = {**recording.ledgers, "keys": Ledger(len(runs), len(named))}
    return replace(recording, runs=replace(runs, keys=keys), info=info, ledgers=ledgers)


def _longest(recording: Recording, count: int) -> Recording:
    """Only the runs that took longest keep their details; the rest count in the totals."""
    runs = recording.runs
    length = array("q", map(sum, zip(runs.decodes, runs.computes, runs.encodes, strict=True)))
    rows = sorted(heapq.nlargest(max(_KEYS, count), range(len(runs)), key=length.__getitem__))
    ledgers = {**recording.ledgers, "runs": Ledger(recording.ledgers["runs"].seen, len(rows))}
    return replace(recording, runs=_rows(runs, rows), ledgers=ledgers)


def _rows(runs: Runs, rows: Sequence[int]) -> Runs:
    """Some rows of the runs."""
    fewer = Runs(prefix_names=runs.prefix_names, span_names=runs.span_names, keys=[runs.keys[row] for row in rows])
    for name in _COLUMNS:
        column: array[int] = getattr(runs, name)
        if len(column):
            setattr(fewer, name, array("q", [column[row] for row in rows]))
    return fewer
