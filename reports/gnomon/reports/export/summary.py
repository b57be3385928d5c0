"""The account and the tables of a page as one JSON object, with the same numbers. Times in seconds.

Contents: summary, write_summary.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gnomon.reports.account import PARTS, Account, Parts, account, percentages
from gnomon.reports.durations import durations
from gnomon.reports.findings import findings
from gnomon.reports.recording import TICKS, Pair, Recording, TypeTotals

__all__ = ["summary", "write_summary"]

#: Version of the object; it grows when a meaning changes, not when something is added.
_VERSION = 1


def write_summary(recording: Recording, path: Path) -> list[Path]:
    """Write the summary as JSON and return the path. Raises OSError."""
    path.write_text(json.dumps(summary(recording), indent=1, default=str, ensure_ascii=False) + "\n", "utf-8")
    return [path]


def summary(recording: Recording) -> dict[str, Any]:
    """The summary of a recording. ``sum(parts) == capacity`` in ticks, and in seconds but for rounding of doubles."""
    result = account(recording)
    values = result.parts.values()
    return {
        "format": "gnomon-summary",
        "version": _VERSION,
        "start": recording.start,
        "duration": recording.duration / TICKS,
        "tasks": result.tasks,
        "erred": result.erred,
        "result_bytes": result.nbytes,
        "account": {
            "capacity": result.capacity / TICKS,
            "alongside": result.alongside / TICKS,
            "parts": _seconds(result.parts),
            "percent": dict(zip(PARTS, percentages(values), strict=True)),
        },
        "findings": [finding.text for finding in findings(recording, result)],
        "prefixes": _prefixes(recording, result),
        "workers": _workers(result),
        "transfers": _transfers(recording),
        "types": _types(recording),
        "loop": {part.name: part.ticks / TICKS for part in recording.loop},
        "errors": [group._asdict() for group in recording.errors],
        "records": {name: {"seen": each.seen, "kept": each.kept} for name, each in recording.ledgers.items()},
        "info": recording.info,
    }


def _prefixes(recording: Recording, result: Account) -> list[dict[str, Any]]:
    """A row for each prefix: its parts, and the distribution of its durations as far as they are known."""
    known = durations(recording)
    return [
        {
            "prefix": each.name,
            "tasks": each.tasks,
            "erred": each.erred,
            "result_bytes": each.nbytes,
            "parts": _seconds(each.parts),
            "durations": {
                name: value if name == "rows" else value / TICKS for name, value in known[each.name]._asdict().items()
            }
            if each.name in known
            else None,
        }
        for each in result.prefixes
    ]


def _workers(result: Account) -> list[dict[str, Any]]:
    """A row for each worker: what it is, when it was there, and its parts."""
    return [
        {
            "worker": each.worker.label,
            "address": each.worker.address,
            "threads": each.worker.nthreads,
            "host": each.worker.host,
            "joined": each.worker.joined / TICKS,
            "left": None if each.worker.left is None else each.worker.left / TICKS,
            "reason": each.worker.reason,
            "tasks": each.tasks,
            "erred": each.erred,
            "capacity": each.capacity / TICKS,
            "alongside": each.alongside / TICKS,
            "parts": _seconds(each.parts),
        }
        for each in result.workers
    ]


def _transfers(recording: Recording) -> list[dict[str, Any]]:
    """A row for each pair of workers and transport."""
    by_id = {worker.worker_id: worker.label for worker in recording.workers}
    return [
        {
            "from": by_id.get(pair.from_id),
            "to": by_id.get(pair.to_id),
            "transport": pair.transport,
            "fetches": pair.fetches,
            "bytes": pair.nbytes,
            "time": pair.ticks / TICKS,
            **_fetch_parts(pair),
        }
        for pair in recording.pairs
    ]


def _types(recording: Recording) -> list[dict[str, Any]]:
    return [
        {
            "type": each.name,
            "values": each.values,
            "bytes": each.nbytes,
            "time": each.ticks / TICKS,
            **_fetch_parts(each),
        }
        for each in recording.types
    ]


def _fetch_parts(of: Pair | TypeTotals) -> dict[str, float | None]:
    """Seconds of waiting before, and of the time itself; None: not measured."""
    parts = {name: getattr(of, name) for name in ("wait", "hold", "serialise")}
    return {name: ticks / TICKS if ticks >= 0 else None for name, ticks in parts.items()}


def _seconds(parts: Parts) -> dict[str, float]:
    return {name: ticks / TICKS for name, ticks in zip(PARTS, parts.values(), strict=True)}
