"""From the scheduler's answers to a recording: the conversation, and the conversion of its pages.

The conversation is a generator that yields questions and is sent the answers, so that one text serves clients of both
kinds, waiting and asynchronous. It does no input or output.

Contents: Ask, collect.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

from gnomon.reports.recording import (
    TICKS,
    ErrorGroup,
    Ledger,
    LogLine,
    Pair,
    Recording,
    Totals,
    Worker,
)

__all__ = ["Ask", "collect"]

#: Rows asked for at once: what the scheduler packs in a few milliseconds.
_PAGE = 10_000


class Ask(NamedTuple):
    """A question to the scheduler, answered by what ``client.request(method, **arguments)`` returns."""

    method: str
    arguments: dict[str, Any]


def collect(first: dict[str, Any]) -> Generator[Ask, Any, Recording]:
    """Fetch everything since the mark ``first``, up to a mark set now. The generator returns the recording.

    Runs that end after the second mark was set are left out, so that details and totals speak of the same runs.
    """
    last = yield Ask("telemetry_mark", {})
    recording = _between(first, last)
    ids = {worker.worker_id: row for row, worker in enumerate(recording.workers)}
    number, end = tuple(first["number"]), tuple(last["number"])
    prefix_index: dict[str, int] = {}
    transport_index: dict[str, int] = {}
    while any(here < there for here, there in zip(number, end, strict=True)):
        page = yield Ask("telemetry", {"since": number, "limit": _PAGE})
        skipped = [here + gone for here, gone in zip(number, page["missed"], strict=True)]
        wanted = [max(0, there - here) for here, there in zip(skipped, end, strict=True)]
        _add_runs(recording, page, wanted[0], ids, prefix_index)
        _add_transfers(recording, page, wanted[1], ids, transport_index)
        if tuple(page["next"]) == number:
            break  # a scheduler that restarted has nothing of what the mark spoke of
        number = tuple(page["next"])
    recording.runs.prefix_names = list(prefix_index)
    recording.transfers.transport_names = list(transport_index)
    seen = [there - here for here, there in zip(first["number"], end, strict=True)]
    recording.ledgers["runs"] = Ledger(max(0, seen[0]), len(recording.runs))
    recording.ledgers["transfers"] = Ledger(max(0, seen[1]), len(recording.transfers))
    return recording


def _between(first: dict[str, Any], last: dict[str, Any]) -> Recording:
    """The recording without its details: what two marks say."""
    start: float = first["now"]
    recording = Recording(start=start, duration=max(0, _ticks(last["now"] - start)))
    recording.workers = [
        Worker(
            i,
            name,
            address,
            nthreads,
            host,
            _ticks(joined - start),
            None if left is None else _ticks(left - start),
            why,
        )
        for i, name, address, nthreads, host, joined, left, why in last["workers"]
        if left is None or left > start
    ]
    known = {worker.worker_id for worker in recording.workers}
    recording.prefixes = _differences(first["prefixes"], last["prefixes"])
    recording.worker_totals = [
        t for t in _differences(first["worker_totals"], last["worker_totals"]) if t.name in known
    ]
    before = {tuple(row[:3]): row[3:] for row in first["pairs"]}
    for *name, count, nbytes, seconds in last["pairs"]:
        count0, nbytes0, seconds0 = before.get(tuple(name), (0, 0, 0.0))
        if count > count0:
            pair = Pair(name[0], name[1], name[2], count - count0, nbytes - nbytes0, max(0, _ticks(seconds - seconds0)))
            recording.pairs.append(pair)
    errors_before = {tuple(row[:3]): row[3] for row in first["errors"]}
    for prefix, type_name, summary, count, key, worker_id, text, *_ in last["errors"]:
        new = count - errors_before.get((prefix, type_name, summary), 0)
        if new > 0:
            recording.errors.append(ErrorGroup(prefix, type_name, summary, new, key, worker_id, text))
    recording.errors.sort(key=lambda group: -group.times)
    recording.logs = [LogLine(_ticks(t - start), level, text) for t, level, text in last["logs"] if t >= start]
    errors_seen = last["errors_seen"] - first["errors_seen"]
    recording.ledgers = {
        "errors": Ledger(errors_seen, sum(group.times for group in recording.errors)),
        "logs": Ledger(last["logs_seen"] - first["logs_seen"], min(len(recording.logs), last["logs_seen"])),
        "workers": Ledger(
            len(recording.workers) + last["workers_forgotten"] - first["workers_forgotten"], len(recording.workers)
        ),
    }
    recording.info["ring_length"] = last["length"]
    return recording


def _differences(before: Sequence[Sequence[Any]], after: Sequence[Sequence[Any]]) -> list[Totals]:
    """What the totals grew by; names that did not grow are left out."""
    old = {row[0]: row[1:] for row in before}
    result = []
    for name, *values in after:
        growth = [new - was for new, was in zip(values, old.get(name, (0,) * 6), strict=True)]
        if growth[0] > 0:
            result.append(Totals(name, growth[0], growth[1], growth[2], *(max(0, _ticks(s)) for s in growth[3:])))
    return result


def _add_runs(
    recording: Recording, page: dict[str, Any], rows: int, ids: dict[int, int], prefix_index: dict[str, int]
) -> None:
    """Append at most ``rows`` runs of a page."""
    runs, part = recording.runs, page["runs"]
    rows = min(rows, len(part["keys"]))
    if not rows:
        return
    swap = page["byteorder"] != sys.byteorder
    local = [prefix_index.setdefault(name, len(prefix_index)) for name in part["prefix_names"]]
    runs.keys.extend(part["keys"][:rows])
    runs.prefixes.extend([local[i] for i in _array("i", part["prefixes"], swap)[:rows]])
    runs.workers.extend([ids.get(i, -1) for i in _array("q", part["workers"], swap)[:rows]])
    runs.threads.extend(_array("i", part["threads"], swap)[:rows].tolist())
    runs.nbytes.extend(_array("q", part["nbytes"], swap)[:rows])
    runs.ok.extend(1 if ok else 0 for ok in _array("b", part["ok"], swap)[:rows])
    timings = array("d", part["timings"])
    if swap:
        timings.byteswap()
    start = recording.start
    for row in range(rows):
        t0, t1, t2, t3 = timings[4 * row : 4 * row + 4]
        began = _ticks(t0 - start)
        started = max(began, _ticks(t1 - start))
        ended = max(started, _ticks(t2 - start))
        runs.begins.append(began)
        runs.decodes.append(started - began)
        runs.computes.append(ended - started)
        runs.encodes.append(max(ended, _ticks(t3 - start)) - ended)


def _add_transfers(
    recording: Recording, page: dict[str, Any], rows: int, ids: dict[int, int], transport_index: dict[str, int]
) -> None:
    """Append at most ``rows`` transfers of a page."""
    transfers, part = recording.transfers, page["transfers"]
    swap = page["byteorder"] != sys.byteorder
    froms = _array("q", part["froms"], swap)[:rows]
    local = [transport_index.setdefault(name, len(transport_index)) for name in part["transport_names"]]
    starts, stops = array("d", part["starts"]), array("d", part["stops"])
    if swap:
        starts.byteswap()
        stops.byteswap()
    transfers.transports.extend([local[i] for i in _array("i", part["transports"], swap)[:rows]])
    transfers.froms.extend([ids.get(i, -1) for i in froms])
    transfers.tos.extend([ids.get(i, -1) for i in _array("q", part["tos"], swap)[:rows]])
    transfers.nbytes.extend(_array("q", part["nbytes"], swap)[:rows])
    for begin, end in zip(starts[:rows], stops[:rows], strict=True):
        first = _ticks(begin - recording.start)
        transfers.begins.append(first)
        transfers.lengths.append(max(0, _ticks(end - recording.start) - first))


def _array(code: str, data: bytes, swap: bool) -> array[int]:
    column: array[int] = array(code)
    column.frombytes(data)
    if swap:
        column.byteswap()
    return column


def _ticks(seconds: float) -> int:
    """Whole ticks; a clock that shows no number, or one out of all range, counts as the start."""
    if not math.isfinite(seconds) or abs(seconds) > 1e10:
        return 0
    return round(seconds * TICKS)
