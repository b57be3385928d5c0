"""The numbers of a recording that limits can speak of, by name. Times in seconds, shares of 1, sizes in bytes.

Contents: Measure, WHOLE, PREFIX, values_of_whole, values_by_prefix.
"""

from __future__ import annotations

from typing import NamedTuple

from gnomon.reports.account import PARTS, Account
from gnomon.reports.durations import durations
from gnomon.reports.recording import TICKS, Recording

__all__ = ["PREFIX", "WHOLE", "Measure", "values_by_prefix", "values_of_whole"]


class Measure(NamedTuple):
    """What a measure is of (``time``, ``share``, ``bytes``, ``count``, ``rate``), and what it says."""

    kind: str
    meaning: str


#: Measures of the recording as a whole. Each part of the account has a share.
WHOLE = {
    "duration": Measure("time", "wall time of the recording"),
    "utilisation": Measure("share", "share of the capacity in tasks"),
    "tasks": Measure("count", "runs of tasks that ended"),
    "rate": Measure("rate", "tasks per second of wall time"),
    "errors": Measure("count", "runs that raised"),
    "moved": Measure("bytes", "bytes that workers fetched from each other"),
    "results": Measure("bytes", "bytes of results"),
    "workers_left": Measure("count", "workers that left before the end"),
    "missed": Measure("count", "runs whose details were lost"),
    **{f"{part}_share": Measure("share", f"share of the capacity that is {part}") for part in PARTS},
}

#: Measures of one prefix.
PREFIX = {
    "count": Measure("count", "runs"),
    "errors": Measure("count", "runs that raised"),
    "total": Measure("time", "computing, decoding and encoding of all its runs"),
    "share": Measure("share", "the same as a share of the capacity"),
    "mean": Measure("time", "mean computing time"),
    "median": Measure("time", "median computing time, of the runs with details"),
    "p99": Measure("time", "99 % computing time, of the runs with details"),
    "longest": Measure("time", "longest computing time, of the runs with details"),
    "results": Measure("bytes", "bytes of results"),
}


def values_of_whole(recording: Recording, account: Account) -> dict[str, float | None]:
    """The values of ``WHOLE``; None where there is nothing to measure, such as a share of no capacity."""
    capacity = account.capacity
    ledger = recording.ledgers.get("runs")
    return {
        "duration": recording.duration / TICKS,
        "utilisation": account.parts.busy / capacity if capacity else None,
        "tasks": account.tasks,
        "rate": account.tasks * TICKS / recording.duration if recording.duration else None,
        "errors": account.erred,
        "moved": sum(pair.nbytes for pair in recording.pairs),
        "results": account.nbytes,
        "workers_left": sum(1 for each in account.workers if each.worker.left is not None),
        "missed": ledger.missed if ledger else 0,
        **{
            f"{part}_share": ticks / capacity if capacity else None
            for part, ticks in zip(PARTS, account.parts.values(), strict=True)
        },
    }


def values_by_prefix(recording: Recording, account: Account) -> dict[str, dict[str, float | None]]:
    """The values of ``PREFIX`` by prefix; None where no run has details."""
    known = durations(recording)
    result: dict[str, dict[str, float | None]] = {}
    for totals in recording.prefixes:
        name = str(totals.name)
        each = known.get(name)
        total = totals.decode + totals.compute + totals.encode
        result[name] = {
            "count": totals.tasks,
            "errors": totals.erred,
            "total": total / TICKS,
            "share": total / account.capacity if account.capacity else None,
            "mean": totals.compute / totals.tasks / TICKS if totals.tasks else None,
            "median": each.median / TICKS if each else None,
            "p99": each.p99 / TICKS if each else None,
            "longest": each.most / TICKS if each else None,
            "results": totals.nbytes,
        }
    return result
