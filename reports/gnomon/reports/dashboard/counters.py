"""How the cluster stands at one moment: tasks by state, workers, totals; read from the scheduler's answer to ``live``.

Contents: Counters, WorkerNow, Departed, read_counters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan
from typing import Any, NamedTuple

from gnomon.reports.collect.measurements import typed
from gnomon.reports.dashboard.totals import Sums, sums_of, sums_of_columns
from gnomon.reports.records import Totals

__all__ = ["Counters", "Departed", "WorkerNow", "read_counters"]


class Facts(NamedTuple):
    """What does not change of a worker."""

    id: int
    name: str
    address: str
    host: str
    pid: int
    nthreads: int
    memory_limit: int
    joined: float


class WorkerNow(NamedTuple):
    """A worker as it is: ``nbytes`` of results that it holds, ``occupancy`` seconds of work that it was given.

    ``memory`` is resident bytes of its processes; ``cpu`` percent of one processor that its tasks' process uses, NaN
    where that is not known; ``last_seen`` and ``joined`` scheduler time; ``memory_limit`` 0 for none.
    """

    id: int
    name: str
    address: str
    host: str
    pid: int
    nthreads: int
    memory_limit: int
    joined: float
    processing: int
    in_memory: int
    nbytes: int
    occupancy: float
    memory: float
    cpu: float
    last_seen: float


class Departed(NamedTuple):
    """A worker that left, as the scheduler tells of it; times in seconds."""

    id: int
    name: str
    address: str
    nthreads: int
    host: str
    joined: float
    left: float
    reason: str


@dataclass(slots=True)
class Counters:
    """The cluster at ``time``. ``prefixes``: living tasks by prefix and state; ``totals``: of all runs."""

    time: float
    states: dict[str, int]
    prefixes: dict[str, dict[str, int]]
    workers: dict[int, WorkerNow]
    clients: int
    queued: int
    no_worker: int
    total_threads: int
    groups: int
    prefix_sums: Sums = field(default_factory=Sums)
    worker_sums: Sums = field(default_factory=Sums)

    @property
    def totals(self) -> dict[str, Totals]:
        """All runs by prefix, in ticks."""
        return {str(name): Totals(name, *amounts) for name, amounts in self.prefix_sums.items()}

    @property
    def worker_totals(self) -> dict[int, Totals]:
        """All runs by worker id, in ticks."""
        return {name: Totals(name, *amounts) for name, amounts in self.worker_sums.items()}


def read_counters(answer: Mapping[str, Any], facts: dict[int, Facts], cpus: Mapping[int, float]) -> Counters:
    """The counters of an answer; its new facts are added to ``facts``. ``cpus``: percent by worker id."""
    for row in answer["facts"]:
        facts[row[0]] = Facts(*row)
    states = answer["states"]
    prefixes = {name: dict(zip(states, counts, strict=True)) for name, *counts in answer["living"]}
    return Counters(
        time=answer["now"],
        states={state: sum(row[state] for row in prefixes.values()) for state in states},
        prefixes=prefixes,
        workers=_workers(answer, facts, cpus),
        clients=answer["clients"],
        queued=answer["queued"],
        no_worker=answer["no_worker"],
        total_threads=answer["threads"],
        groups=answer["groups"],
        prefix_sums=sums_of(answer["prefixes"], answer["prefix_cpu"]),
        worker_sums=sums_of_columns(answer["worker_totals"], answer["page"]["byteorder"]),
    )


def _workers(answer: Mapping[str, Any], facts: dict[int, Facts], cpus: Mapping[int, float]) -> dict[int, WorkerNow]:
    order = answer["page"]["byteorder"]
    columns = [
        typed(code, answer["workers"][name], order)
        for name, code in (
            ("ids", "q"), ("processing", "q"), ("in_memory", "q"), ("nbytes", "q"), ("occupancy", "d"), ("memory", "d"),
            ("last_seen", "d"),
        )
    ]  # fmt: skip
    found = {}
    for worker_id, processing, in_memory, nbytes, occupancy, memory, seen in zip(*columns, strict=True):
        known = facts.get(worker_id)
        if known is not None:
            cpu = cpus.get(worker_id, nan)
            found[worker_id] = WorkerNow(*known, processing, in_memory, nbytes, occupancy, memory, cpu, seen)
    return found
