"""From the scheduler's pages to a recording: runs and transfers, row by row.

Contents: add_runs, add_transfers.
"""

from __future__ import annotations

from typing import Any

from gnomon.reports.collect.measurements import all_ticks, ticks, typed
from gnomon.reports.recording import Recording

__all__ = ["add_runs", "add_transfers"]


def add_runs(
    recording: Recording,
    page: dict[str, Any],
    rows: int,
    ids: dict[int, int],
    prefix_index: dict[str, int],
    span_index: dict[tuple[str, ...], int],
) -> None:
    """Append at most ``rows`` runs of a page."""
    import numpy

    runs, part = recording.runs, page["runs"]
    rows = min(rows, len(part["keys"]))
    if not rows:
        return
    order = page["byteorder"]
    local = [prefix_index.setdefault(name, len(prefix_index)) for name in part["prefix_names"]]
    runs.keys.extend(part["keys"][:rows])
    runs.prefixes.extend([local[i] for i in typed("i", part["prefixes"], order)[:rows]])
    runs.workers.extend([ids.get(i, -1) for i in typed("q", part["workers"], order)[:rows]])
    runs.threads.extend(typed("i", part["threads"], order)[:rows].tolist())
    runs.nbytes.extend(typed("q", part["nbytes"], order)[:rows])
    runs.ok.extend(map(bool, typed("b", part["ok"], order)[:rows]))
    times = all_ticks(numpy.asarray(typed("d", part["timings"], order)).reshape(-1, 4)[:rows] - recording.start)
    # Each part ends when the next one begins, and none before it began, whatever the clocks said.
    lengths = numpy.diff(numpy.maximum.accumulate(times, axis=1), axis=1)
    for column, ticks_of in zip(
        (runs.begins, runs.decodes, runs.computes, runs.encodes), (times[:, 0], *lengths.T), strict=True
    ):
        column.frombytes(ticks_of.tobytes())
    if "cpus" in part:
        cpus = numpy.asarray(typed("d", part["cpus"], order)[:rows])
        runs.cpus.frombytes(numpy.where(numpy.isnan(cpus), -1, all_ticks(cpus)).tobytes())
        spans = [span_index.setdefault(tuple(name), len(span_index)) for name in part["span_names"]]
        runs.spans.extend([spans[i] for i in typed("i", part["spans"], order)[:rows]])


def add_transfers(
    recording: Recording,
    page: dict[str, Any],
    rows: int,
    ids: dict[int, int],
    transport_index: dict[str, int],
    type_index: dict[str, int],
) -> None:
    """Append at most ``rows`` transfers of a page."""
    transfers, part = recording.transfers, page["transfers"]
    order = page["byteorder"]
    froms = typed("q", part["froms"], order)[:rows]
    local = [transport_index.setdefault(name, len(transport_index)) for name in part["transport_names"]]
    starts, stops = typed("d", part["starts"], order), typed("d", part["stops"], order)
    transfers.transports.extend([local[i] for i in typed("i", part["transports"], order)[:rows]])
    transfers.froms.extend([ids.get(i, -1) for i in froms])
    transfers.tos.extend([ids.get(i, -1) for i in typed("q", part["tos"], order)[:rows]])
    transfers.nbytes.extend(typed("q", part["nbytes"], order)[:rows])
    for begin, end in zip(starts[:rows], stops[:rows], strict=True):
        first = ticks(begin - recording.start)
        transfers.begins.append(first)
        transfers.lengths.append(max(0, ticks(end - recording.start) - first))
    if "parts" in part:
        parts = typed("d", part["parts"], order)[: 3 * len(froms)]
        for at, column in enumerate((transfers.waits, transfers.holds, transfers.serialises)):
            column.extend(-1 if value != value else max(0, ticks(value)) for value in parts[at::3])
        names = [type_index.setdefault(name, len(type_index)) for name in part["type_names"]]
        transfers.types.extend([names[i] for i in typed("i", part["types"], order)[:rows]])
