"""The conversation with a scheduler that ends in a recording.

The conversation is a generator that yields questions and is sent the answers, so that one text serves clients of both
kinds, waiting and asynchronous. It does no input or output.

Contents: Ask, collect.
"""

from __future__ import annotations

from collections.abc import Generator
from operator import sub
from typing import Any, NamedTuple

from gnomon.reports.collect import measurements, profiles
from gnomon.reports.collect.details import add_runs, add_transfers
from gnomon.reports.collect.marks import between
from gnomon.reports.recording import TICKS, Ledger, Recording

__all__ = ["Ask", "collect"]

#: Rows of each kind asked for at once. The scheduler's loop does nothing else while it packs them: that must stay well
#: below 10 ms, and 10,000 runs alone take 6 to 10.
_PAGE = 4_000


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
    recording = between(first, last)
    ids = {worker.worker_id: row for row, worker in enumerate(recording.workers)}
    number, end = tuple(first["number"]), tuple(last["number"])
    rings = tuple(last.get("rings", ("runs", "transfers")))
    if "demand" in rings:
        measurements.begin_demand(recording, first["demand"], ids)
    span_index: dict[tuple[str, ...], int] = {}
    prefix_index: dict[str, int] = {}
    transport_index: dict[str, int] = {}
    type_index: dict[str, int] = {}
    while any(here < there for here, there in zip(number, end, strict=True)):
        page = yield Ask("telemetry", {"since": number, "limit": _PAGE})
        skipped = [here + gone for here, gone in zip(number, page["missed"], strict=True)]
        wanted = [max(0, there - here) for here, there in zip(skipped, end, strict=True)]
        add_runs(recording, page, wanted[0], ids, prefix_index, span_index)
        add_transfers(recording, page, wanted[1], ids, transport_index, type_index)
        for name, rows in zip(rings[2:], wanted[2:], strict=True):
            if name in _OBSERVED:
                _OBSERVED[name](recording, page, rows, ids)
        if tuple(page["next"]) == number:
            break  # a scheduler that restarted has nothing of what the mark spoke of
        number = tuple(page["next"])
    recording.runs.prefix_names = list(prefix_index)
    recording.transfers.transport_names = list(transport_index)
    recording.transfers.type_names = list(type_index)
    recording.runs.span_names = list(span_index)
    _balance(recording, dict(zip(rings, map(sub, end, first["number"]), strict=True)), len(first.get("demand", ())))
    if "series" in rings:
        window = {"start": recording.start, "stop": recording.start + recording.duration / TICKS}
        for process in profiles.PROCESSES:
            answers = yield Ask("profile", {"process": process, **window}, optional=True)
            profiles.add_profile(recording, process, answers)
    if "task_profiles" in last:
        yield from _task_profiles(recording, first.get("task_profiles", 0), last["task_profiles"])
    return recording


def _task_profiles(recording: Recording, before: int, after: int) -> Generator[Ask, Any, None]:
    """Fetch the latest deep profiles that were made between two numbers."""
    number, rows = max(before, after - profiles.MOST), []
    while number < after:
        page = yield Ask("task_profiles", {"since": number}, optional=True)
        if page is None or page["next"] <= number:
            break
        rows += [row for row in page["rows"] if row[0] < after]
        number = page["next"]
    profiles.add_task_profiles(recording, rows, after - before)


#: What takes the rows of a page, by ring.
_OBSERVED = {"series": measurements.add_series, "stalls": measurements.add_stalls, "demand": measurements.add_demand}


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
