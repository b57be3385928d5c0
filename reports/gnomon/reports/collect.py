"""From the scheduler's answers to a recording: the conversation, and the conversion of its pages.

The conversation is a generator that yields questions and is sent the answers, so that one text serves clients of both
kinds, waiting and asynchronous. It does no input or output.

Contents: Ask, collect.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from operator import sub
from typing import Any, NamedTuple

from gnomon.reports import observed, profiled
from gnomon.reports.observed import ticks, typed
from gnomon.reports.recording import (
    TICKS,
    ErrorGroup,
    Ledger,
    LogLine,
    Pair,
    Recording,
    RegionTotals,
    SpanTotals,
    Totals,
    Worker,
)

__all__ = ["Ask", "collect"]

#: Rows asked for at once: what the scheduler packs in a few milliseconds.
_PAGE = 10_000


class Ask(NamedTuple):
    """A question to the scheduler, answered by what ``client.request(method, **arguments)`` returns.

    An ``optional`` one that fails is answered by None.
    """

    method: str
    arguments: dict[str, Any]
    optional: bool = False


def collect(first: dict[str, Any]) -> Generator[Ask, Any, Recording]:
    """Fetch everything since the mark ``first``, up to a mark set now. The generator returns the recording.

    Runs that end after the second mark was set are left out, so that details and totals speak of the same runs.
    """
    last = yield Ask("telemetry_mark", {})
    recording = _between(first, last)
    ids = {worker.worker_id: row for row, worker in enumerate(recording.workers)}
    number, end = tuple(first["number"]), tuple(last["number"])
    rings = tuple(last.get("rings", ("runs", "transfers")))
    if "demand" in rings:
        observed.begin_demand(recording, first["demand"], ids)
    span_index: dict[tuple[str, ...], int] = {}
    prefix_index: dict[str, int] = {}
    transport_index: dict[str, int] = {}
    while any(here < there for here, there in zip(number, end, strict=True)):
        page = yield Ask("telemetry", {"since": number, "limit": _PAGE})
        skipped = [here + gone for here, gone in zip(number, page["missed"], strict=True)]
        wanted = [max(0, there - here) for here, there in zip(skipped, end, strict=True)]
        _add_runs(recording, page, wanted[0], ids, prefix_index, span_index)
        _add_transfers(recording, page, wanted[1], ids, transport_index)
        for name, rows in zip(rings[2:], wanted[2:], strict=True):
            if name in _OBSERVED:
                _OBSERVED[name](recording, page, rows, ids)
        if tuple(page["next"]) == number:
            break  # a scheduler that restarted has nothing of what the mark spoke of
        number = tuple(page["next"])
    recording.runs.prefix_names = list(prefix_index)
    recording.transfers.transport_names = list(transport_index)
    recording.runs.span_names = list(span_index)
    _balance(recording, dict(zip(rings, map(sub, end, first["number"]), strict=True)), len(first.get("demand", ())))
    if "series" in rings:
        window = {"start": recording.start, "stop": recording.start + recording.duration / TICKS}
        for process in profiled.PROCESSES:
            answers = yield Ask("profile", {"process": process, **window}, optional=True)
            profiled.add_profile(recording, process, answers)
    return recording


#: What takes the rows of a page, by ring.
_OBSERVED = {"series": observed.add_series, "stalls": observed.add_stalls, "demand": observed.add_demand}


def _balance(recording: Recording, seen: dict[str, int], demand_before: int) -> None:
    """Enter into the ledgers what there was of each kind, and what is here."""
    kept = {
        "runs": len(recording.runs),
        "transfers": len(recording.transfers),
        "series": len(recording.series),
        "stalls": len(recording.stalls),
        "demand": len(recording.demand) - demand_before,
    }
    for name, rows in kept.items():
        if name in seen:
            recording.ledgers[name] = Ledger(max(0, seen[name]), rows)
    # Tasks can't run without some demand: where none was told of, nobody watched it.
    recording.demand.known = len(recording.demand) > 0 and not recording.ledgers["demand"].missed


def _between(first: dict[str, Any], last: dict[str, Any]) -> Recording:
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
    recording.spans = [
        SpanTotals(tuple(t.name), t.tasks, t.erred, t.nbytes, t.compute)  # type: ignore[arg-type]
        for t in _differences(first.get("spans", ()), last.get("spans", ()))
    ]
    regions = {tuple(row[:2]): row[2:] for row in first.get("regions", ())}
    for prefix, region, count, inside, own in last.get("regions", ()):
        was = regions.get((prefix, region), (0, 0.0, 0.0))
        if count > was[0]:
            row = RegionTotals(prefix, region, count - was[0], ticks(inside - was[1]), ticks(own - was[2]))
            recording.regions.append(row)
    before = {tuple(row[:3]): row[3:] for row in first["pairs"]}
    for *name, count, nbytes, seconds in last["pairs"]:
        count0, nbytes0, seconds0 = before.get(tuple(name), (0, 0, 0.0))
        if count > count0:
            pair = Pair(name[0], name[1], name[2], count - count0, nbytes - nbytes0, max(0, ticks(seconds - seconds0)))
            recording.pairs.append(pair)
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


def _add_runs(
    recording: Recording,
    page: dict[str, Any],
    rows: int,
    ids: dict[int, int],
    prefix_index: dict[str, int],
    span_index: dict[tuple[str, ...], int],
) -> None:
    """Append at most ``rows`` runs of a page."""
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
    runs.ok.extend(1 if ok else 0 for ok in typed("b", part["ok"], order)[:rows])
    timings = typed("d", part["timings"], order)
    start = recording.start
    if "cpus" in part:
        runs.cpus.extend(-1 if cpu != cpu else ticks(cpu) for cpu in typed("d", part["cpus"], order)[:rows])
        spans = [span_index.setdefault(tuple(name), len(span_index)) for name in part["span_names"]]
        runs.spans.extend([spans[i] for i in typed("i", part["spans"], order)[:rows]])
    for row in range(rows):
        t0, t1, t2, t3 = timings[4 * row : 4 * row + 4]
        began = ticks(t0 - start)
        started = max(began, ticks(t1 - start))
        ended = max(started, ticks(t2 - start))
        runs.begins.append(began)
        runs.decodes.append(started - began)
        runs.computes.append(ended - started)
        runs.encodes.append(max(ended, ticks(t3 - start)) - ended)


def _add_transfers(
    recording: Recording, page: dict[str, Any], rows: int, ids: dict[int, int], transport_index: dict[str, int]
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
