"""What the scheduler's totals grew by between two marks: the recording without its details.

Contents: between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnomon.reports.collect.measurements import ticks
from gnomon.reports.recording import (
    Clock,
    ErrorGroup,
    Ledger,
    LogLine,
    LoopPart,
    Pair,
    Recording,
    RegionTotals,
    SpanTotals,
    Totals,
    TypeTotals,
    Worker,
)

__all__ = ["between"]


def between(first: dict[str, Any], last: dict[str, Any]) -> Recording:
    """The recording without its details: what two marks say."""
    start: float = first["now"]
    recording = Recording(start=start, duration=max(0, ticks(last["now"] - start)))
    recording.workers = [
        Worker(
            i,
            name,
            address,
            nthreads,
            host,
            ticks(joined - start),
            None if left is None else ticks(left - start),
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
    _add_processor_time(recording, first, last)
    recording.spans = _spans(first, last)
    regions = {tuple(row[:2]): row[2:] for row in first.get("regions", ())}
    for prefix, region, count, inside, own in last.get("regions", ()):
        was = regions.get((prefix, region), (0, 0.0, 0.0))
        if count > was[0]:
            row = RegionTotals(prefix, region, count - was[0], ticks(inside - was[1]), ticks(own - was[2]))
            recording.regions.append(row)
    _add_transfers(recording, first, last)
    _add_scheduler(recording, first, last)
    errors_before = {tuple(row[:3]): row[3] for row in first["errors"]}
    for prefix, type_name, summary, count, key, worker_id, text, *_ in last["errors"]:
        new = count - errors_before.get((prefix, type_name, summary), 0)
        if new > 0:
            recording.errors.append(ErrorGroup(prefix, type_name, summary, new, key, worker_id, text))
    recording.errors.sort(key=lambda group: -group.times)
    recording.logs = [LogLine(ticks(t - start), level, text) for t, level, text in last["logs"] if t >= start]
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


def _spans(first: dict[str, Any], last: dict[str, Any]) -> list[SpanTotals]:
    before = {tuple(row[0]): row[1:] for row in first.get("span_cpu", ())}
    after = {tuple(row[0]): row[1:] for row in last.get("span_cpu", ())}
    result = []
    for t in _differences(first.get("spans", ()), last.get("spans", ())):
        name: Any = t.name
        pairs = zip(after.get(name, (0.0, 0.0)), before.get(name, (0.0, 0.0)), strict=True)
        cpu, measured = (max(0, ticks(new - was)) for new, was in pairs)
        result.append(SpanTotals(name, t.tasks, t.erred, t.nbytes, t.compute, t.decode, t.encode, cpu, measured))
    return result


def _add_transfers(recording: Recording, first: dict[str, Any], last: dict[str, Any]) -> None:
    """Add what was fetched: by pair of workers, and by type of value."""
    before = {tuple(row[:3]): row[3:] for row in first["pairs"]}
    parts_before = {tuple(row[:3]): row[3:] for row in first.get("pair_parts", ())}
    parts = {tuple(row[:3]): row[3:] for row in last.get("pair_parts", ())}
    for *name, count, nbytes, seconds in last["pairs"]:
        key = tuple(name)
        count0, nbytes0, seconds0 = before.get(key, (0, 0, 0.0))
        if count <= count0:
            continue
        grown: tuple[int, ...] = (-1, -1, -1)
        if key in parts:
            was = parts_before.get(key, (0.0, 0.0, 0.0))
            grown = tuple(max(0, ticks(new - old)) for new, old in zip(parts[key], was, strict=True))
        amounts = (count - count0, nbytes - nbytes0, max(0, ticks(seconds - seconds0)), *grown)
        recording.pairs.append(Pair(name[0], name[1], name[2], *amounts))
    types_before = {row[0]: row[1:] for row in first.get("types", ())}
    for type_name, *values in last.get("types", ()):
        growth = [new - was for new, was in zip(values, types_before.get(type_name, (0,) * 6), strict=True)]
        if any(growth):
            times = [max(0, ticks(seconds)) for seconds in growth[2:]]
            recording.types.append(TypeTotals(type_name, growth[0], growth[1], *times))


def _add_scheduler(recording: Recording, first: dict[str, Any], last: dict[str, Any]) -> None:
    """Add how far the scheduler saw clocks off, and the budget of the scheduler's loop."""
    rows = {worker.worker_id: row for row, worker in enumerate(recording.workers)}
    recording.clocks = [
        Clock(rows[worker_id], offset, uncertainty, samples)
        for worker_id, _, offset, uncertainty, samples in last.get("clocks", ())
        if worker_id in rows
    ]
    before = {row[0]: row[2:] for row in first.get("loop", ())}
    for name, source, seconds, count in last.get("loop", ()):
        was = before.get(name, (0.0, 0))
        recording.loop.append(LoopPart(name, source, max(0, ticks(seconds - was[0])), max(0, count - was[1])))


def _add_processor_time(recording: Recording, first: dict[str, Any], last: dict[str, Any]) -> None:
    """Add what the totals know of time on the processor."""
    for name, kind in (("prefixes", "prefix_cpu"), ("worker_totals", "worker_cpu")):
        before = {row[0]: row[1:] for row in first.get(kind, ())}
        after = {row[0]: row[1:] for row in last.get(kind, ())}
        totals: list[Totals] = getattr(recording, name)
        for at, each in enumerate(totals):
            pairs = zip(after.get(each.name, (0.0, 0.0)), before.get(each.name, (0.0, 0.0)), strict=True)
            cpu, measured = (max(0, ticks(new - was)) for new, was in pairs)
            totals[at] = each._replace(cpu=cpu, measured=measured)


def _differences(before: Sequence[Sequence[Any]], after: Sequence[Sequence[Any]]) -> list[Totals]:
    """What the totals grew by; names that did not grow are left out."""
    old = {_hashable(row[0]): row[1:] for row in before}
    result = []
    for name, *values in after:
        name = _hashable(name)
        growth = [new - was for new, was in zip(values, old.get(name, (0,) * 6), strict=True)]
        if growth[0] > 0:
            result.append(Totals(name, growth[0], growth[1], growth[2], *(max(0, ticks(s)) for s in growth[3:])))
    return result


def _hashable(name: Any) -> Any:
    """A name as a key: spans are lists when they come off a wire."""
    return tuple(name) if isinstance(name, list) else name
