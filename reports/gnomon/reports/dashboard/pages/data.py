"""Data: what moving it costs, and what holds memory.

Contents: communication, memory.
"""

from __future__ import annotations

from collections import defaultdict
from math import nan

from gnomon.reports.dashboard.context import Context
from gnomon.reports.dashboard.pages import panels
from gnomon.reports.dashboard.pages.colors import slots_of
from gnomon.reports.dashboard.pages.overview import NO_WORKER, rate_bytes
from gnomon.reports.dashboard.pages.panels import Panel
from gnomon.reports.dashboard.pages.view import View
from gnomon.reports.page import tables
from gnomon.reports.palette import OTHER
from gnomon.reports.recording import TICKS, Recording
from gnomon.reports.units import bytes_text, count_text

__all__ = ["communication", "memory"]

_NOTHING_MOVED = (
    "No worker fetched data from another yet. Small results travel inside control messages and are not counted here."
)
_WHOLE = " Sums of the whole run, whatever the window."

#: Names of a matrix at most; above as many workers, hosts are told apart.
_NAMES = 100


async def communication(context: Context, view: View) -> list[Panel]:
    """By transport, from whom to whom, by pair."""
    recording = context.model.recording(*view.window(context.model))
    by_pair = tables.pair_table(recording)
    return [
        _transports(view, recording),
        _matrix(recording),
        panels.told_table(view, by_pair._replace(note=by_pair.note + _WHOLE), empty=_NOTHING_MOVED),
    ]


def _transports(view: View, recording: Recording) -> Panel:
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for pair in recording.pairs:
        for at, amount in enumerate((pair.fetches, pair.nbytes, pair.ticks)):
            sums[pair.transport][at] += amount
    rows = [
        [
            panels.cell(name or "further pairs"), panels.count(fetches), panels.size(nbytes),
            panels.time(ticks), panels.cell(rate_bytes(nbytes, ticks / TICKS), nbytes / ticks if ticks else 0),
        ]
        for name, (fetches, nbytes, ticks) in sums.items()
    ]  # fmt: skip
    columns = (("by", False), ("fetches", True), ("moved", True), ("time", True), ("rate", True))
    return panels.table(view, "transports", columns, rows, caption="By transport", note=_WHOLE, empty=_NOTHING_MOVED)


def _matrix(recording: Recording) -> Panel:
    """Bytes from rows to columns, by worker or, above a hundred, by host."""
    by_host = len(recording.workers) > _NAMES
    group = {each.worker_id: each.host if by_host else each.label for each in recording.workers}
    sums: dict[tuple[str, str], int] = defaultdict(int)
    for pair in recording.pairs:
        if pair.from_id in group and pair.to_id in group:
            sums[group[pair.from_id], group[pair.to_id]] += pair.nbytes
    if not sums:
        return panels.text("matrix", _NOTHING_MOVED)
    names = list(dict.fromkeys(group.values()))[:_NAMES]
    most = max(sums.values())
    cells = []
    for source in names:
        row = []
        for target in names:
            nbytes = sums.get((source, target), 0)
            words = bytes_text(nbytes) if nbytes else "nothing"
            share = round(8 + 52 * nbytes / most) if nbytes else 0
            row.append((words if nbytes and len(names) <= 12 else "", share, f"{source} to {target}: {words}"))
        cells.append(row)
    return {
        "kind": "matrix",
        "name": "matrix",
        "caption": "Bytes moved, from rows to columns",
        "names": names,
        "cells": cells,
    }


async def memory(context: Context, view: View) -> list[Panel]:
    """Memory by worker, and whose results are large."""
    model = context.model
    return [_by_worker(context, view), _results(context, view, model.recording(*view.window(model)))]


def _by_worker(context: Context, view: View) -> Panel:
    now = context.model.counters
    workers = [] if now is None else list(now.workers.values())
    largest = max((each.memory for each in workers if each.memory == each.memory), default=1.0)
    rows = []
    for each in workers:
        measured = each.memory == each.memory
        limit = each.memory_limit or 0
        scale = max(1.0, limit or largest)
        managed = min(each.nbytes, each.memory) if measured else 0
        other = each.memory - managed if measured else 0
        bars = [
            ("meter-managed", 100 * managed / scale, f"results {bytes_text(managed)}"),
            ("meter-memory", min(100.0, 100 * other / scale), f"other {bytes_text(other)}"),
        ]
        rows.append(
            [
                panels.of_worker(each.name or each.address),
                panels.size(each.memory),
                panels.size(each.nbytes),
                panels.size(other if measured else nan),
                panels.cell(bytes_text(limit), limit) if limit else panels.cell("none", 0),
                panels.cell("", 100 * each.memory / scale if measured else -1.0, bars=bars if measured else ()),
                panels.count(each.in_memory),
            ]
        )  # fmt: skip
    columns = (
        ("worker", False), ("process memory", True), ("results, estimated", True), ("other", True), ("limit", True),
        ("", False), ("results held", True),
    )  # fmt: skip
    note = "Bars: results (dark) and all other memory (pale), of the limit, or of the largest worker where none is set."
    return panels.table(view, "memory", columns, rows, caption="Memory by worker, now", note=note, empty=NO_WORKER)


def _results(context: Context, view: View, recording: Recording) -> Panel:
    colors = slots_of(context.model)
    rows = [
        [
            panels.of_prefix(str(each.name), colors.get(str(each.name), OTHER)),
            panels.count(each.tasks),
            panels.size(each.nbytes),
            panels.cell(bytes_text(each.nbytes / each.tasks if each.tasks else 0), each.nbytes / max(1, each.tasks)),
        ]
        for each in sorted(recording.prefixes, key=lambda each: -each.nbytes)
        if each.nbytes and (not view.prefix or each.name == view.prefix)
    ]  # fmt: skip
    columns = (("prefix", False), ("tasks", True), ("results", True), ("mean", True))
    note = "Sizes as the workers estimated them, of all results made in the window, whether they are still held or not."
    return panels.table(view, "results", columns, rows, caption=f"Results by prefix, {count_text(len(rows))} prefixes",
                        note=note, empty="No task with a result of known size ended in this window.")  # fmt: skip
