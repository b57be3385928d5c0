"""Chrome's trace event format: a process per worker, a thread per lane, a slice per run, its coding inside.

Times are microseconds from the recording's start. Fetches overlap, so they are asynchronous slices of the worker that
fetched; log lines and departures of workers are instants. Events are written one by one, for a recording may be large.

Contents: write_trace, trace_events.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gnomon.reports.export.lanes import lanes
from gnomon.reports.recording import Recording
from gnomon.reports.units import bytes_text

__all__ = ["trace_events", "write_trace"]

#: Ticks in a microsecond.
_MICRO = 10

#: Process numbers: the scheduler's, then the workers' in order, then that of workers nobody knows.
_SCHEDULER = 1
_FIRST = 2


def write_trace(recording: Recording, path: Path) -> list[Path]:
    """Write the trace as JSON and return the path. Raises OSError."""
    with path.open("w", encoding="utf-8") as file:
        file.write('{"traceEvents":[\n')
        for number, event in enumerate(trace_events(recording)):
            file.write((",\n" if number else "") + json.dumps(event, separators=(",", ":")))
        tail = {"recorded": str(recording.info.get("created", "")), "start": recording.start}
        file.write(f'\n],"displayTimeUnit":"ms","otherData":{json.dumps(tail)}}}\n')
    return [path]


def trace_events(recording: Recording) -> Iterator[dict[str, Any]]:
    """The events: names of processes and threads first."""
    yield from _names(recording)
    runs = recording.runs
    for lane in lanes(recording):
        place = {"pid": _process(recording, lane.worker), "tid": lane.thread}
        for row in lane.rows:
            begin, decode, compute, encode = (
                runs.begins[row],
                runs.decodes[row],
                runs.computes[row],
                runs.encodes[row],
            )
            args = {"key": runs.keys[row], "result_bytes": runs.nbytes[row], "ok": bool(runs.ok[row])}
            name = runs.prefix_names[runs.prefixes[row]]
            yield _slice(name, "task", begin, decode + compute + encode, place, args)
            if decode:
                yield _slice("decode", "part", begin, decode, place)
            if encode:
                yield _slice("encode", "part", begin + decode + compute, encode, place)
    yield from _transfers(recording)
    yield from _instants(recording)


def _process(recording: Recording, worker: int) -> int:
    return _FIRST + (worker if worker >= 0 else len(recording.workers))


def _names(recording: Recording) -> Iterator[dict[str, Any]]:
    names = {_SCHEDULER: "scheduler"}
    names |= {_FIRST + row: worker.label for row, worker in enumerate(recording.workers)}
    if -1 in recording.runs.workers or -1 in recording.transfers.tos:
        names[_process(recording, -1)] = "unknown worker"
    for pid, name in names.items():
        yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
        yield {"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": pid}}
    for lane in lanes(recording):
        place = {"pid": _process(recording, lane.worker), "tid": lane.thread}
        yield {"ph": "M", "name": "thread_name", **place, "args": {"name": f"thread {lane.thread}"}}


def _slice(
    name: str, category: str, begin: int, length: int, place: dict[str, int], args: dict[str, Any] | None = None
) -> dict[str, Any]:
    event = {"ph": "X", "name": name, "cat": category, "ts": begin / _MICRO, "dur": length / _MICRO, **place}
    return event if args is None else {**event, "args": args}


def _transfers(recording: Recording) -> Iterator[dict[str, Any]]:
    transfers = recording.transfers
    for row, (source, to) in enumerate(zip(transfers.froms, transfers.tos, strict=True)):
        name = recording.workers[source].label if source >= 0 else "unknown worker"
        nbytes, begin = transfers.nbytes[row], transfers.begins[row]
        common = {
            "cat": "transfer",
            "id": row,
            "name": f"{bytes_text(nbytes)} from {name}",
            "pid": _process(recording, to),
            "tid": 0,
        }
        transport = transfers.transport_names[transfers.transports[row]]
        yield {"ph": "b", **common, "ts": begin / _MICRO, "args": {"bytes": nbytes, "transport": transport}}
        yield {"ph": "e", **common, "ts": (begin + transfers.lengths[row]) / _MICRO}


def _instants(recording: Recording) -> Iterator[dict[str, Any]]:
    place = {"pid": _SCHEDULER, "tid": 0}
    for line in recording.logs:
        yield {"ph": "i", "s": "g", "name": line.text[:200], "cat": line.level, "ts": line.time / _MICRO, **place}
    for row, worker in enumerate(recording.workers):
        if worker.left is not None:
            name = f"left: {worker.reason}"
            yield {"ph": "i", "s": "p", "name": name, "cat": "worker", "ts": worker.left / _MICRO,
                   "pid": _FIRST + row, "tid": 0}  # fmt: skip
