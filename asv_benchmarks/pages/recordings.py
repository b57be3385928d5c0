"""Recordings that look like those of real clusters, of any number of tasks, made without running any.

Contents: busy_recording.
"""

from __future__ import annotations

import random
from array import array
from typing import Any

from gnomon.profiler import Session
from gnomon.reports.recording import Recording
from gnomon.reports.records import TICKS, Demand, Ledger, Pair, Runs, Series, Totals, Transfers, Worker

__all__ = ["busy_recording"]

_START = 1_790_000_000.0
_PREFIXES = (
    "read-csv", "parse", "count", "merge", "shuffle-transfer", "shuffle-barrier", "sum", "getitem", "len",
    "from-delayed", "repartition", "tiny",
)  # fmt: skip
_SCALES = (3.0, 2.0, 1.0, 0.7, 1.5, 0.2, 0.4, 0.1, 0.05, 0.3, 0.8, 0.02)
_MEASURED = ("seconds", "cpu", "memory", "busy", "lag_p50", "lag_p99", "lag_max", "gc_seconds", "host_received",
             "tasks", "samples", "samples_missed", "own_cpu")  # fmt: skip

#: Rows that a scheduler keeps of demand, and of transfers.
_DEMAND, _TRANSFERS = 50_000, 100_000


def busy_recording(tasks: int, *, workers: int = 16, threads: int = 4, mean: float = 0.005) -> Recording:
    """A recording of so many tasks: a dozen prefixes in phases, gaps, fetches, errors, demand, series, profiles.

    ``mean`` is the usual computing time in seconds. The same arguments give the same recording.
    """
    chance = random.Random(7)
    recording = Recording(start=_START, duration=0)
    recording.workers = [
        Worker(i + 1, f"worker-{i}", f"tcp://10.0.0.{i + 1}:4000", threads, f"host-{i // 4}", -TICKS, None, "")
        for i in range(workers)
    ]
    end = _add_runs(recording, tasks, workers * threads, threads, mean, chance)
    recording.duration = end + TICKS // 10
    _add_transfers(recording, min(_TRANSFERS, tasks // 5), workers, chance)
    _add_demand(recording, min(_DEMAND, tasks // 2), workers, chance)
    _add_series(recording, workers, chance)
    recording.profiles = [
        {"name": name, "kind": kind, "session": _session(recording, of, chance)}
        for name, kind, of in (
            ("The scheduler's process", "scheduler", 1),
            ("Tasks, on all workers", "executor", workers),
            ("The workers' agents", "agent", workers),
        )
    ]
    return recording


def _add_runs(recording: Recording, tasks: int, lanes: int, threads: int, mean: float, chance: random.Random) -> int:
    """Fill in the runs and their totals; the time of the last one's end."""
    clocks = [round(chance.random() * 0.1 * TICKS) for _ in range(lanes)]
    rows = []
    for number in range(tasks):
        lane = number % lanes if number < lanes else chance.randrange(lanes)
        kind = min(11, 3 * (4 * number // tasks) + chance.choice((0, 0, 0, 1, 2))) if chance.random() < 0.95 else 11
        compute = round(chance.lognormvariate(0, 0.7) * mean * _SCALES[kind] * TICKS)
        begin, decode, encode = clocks[lane], 400 + chance.randrange(400), 300 + chance.randrange(300)
        clocks[lane] = begin + decode + compute + encode + round(chance.expovariate(1) * 0.0004 * TICKS)
        ok = chance.random() > 0.002
        cpu = round(compute * min(1.0, 0.7 + 0.4 * chance.random()))
        rows.append((begin + decode + compute + encode, lane, kind, begin, decode, compute, encode, ok, cpu))
    rows.sort()
    runs = recording.runs = Runs(
        keys=[f"{_PREFIXES[row[2]]}-{chance.getrandbits(64):016x}" for row in rows],
        prefix_names=list(_PREFIXES),
        prefixes=array("q", [row[2] for row in rows]),
        workers=array("q", [row[1] // threads for row in rows]),
        threads=array("q", [row[1] % threads for row in rows]),
        begins=array("q", [row[3] for row in rows]),
        decodes=array("q", [row[4] for row in rows]),
        computes=array("q", [row[5] for row in rows]),
        encodes=array("q", [row[6] for row in rows]),
        nbytes=array("q", [chance.randrange(10**6) for _ in rows]),
        ok=array("q", [row[7] for row in rows]),
        cpus=array("q", [row[8] for row in rows]),
        spans=array("q", bytes(8 * tasks)),
    )
    runs.span_names = [()]
    recording.ledgers["runs"] = Ledger(tasks, tasks)
    recording.prefixes = _totals(runs, runs.prefixes, _PREFIXES)
    recording.worker_totals = _totals(runs, runs.workers, [worker.worker_id for worker in recording.workers])
    return max(clocks)


def _totals(runs: Runs, of: array[int], names: Any) -> list[Totals]:
    sums = [[0] * 8 for _ in names]
    columns = (runs.ok, runs.nbytes, runs.decodes, runs.computes, runs.encodes, runs.cpus)
    for at, ok, nbytes, decode, compute, encode, cpu in zip(of, *columns, strict=True):
        for number, amount in enumerate((1, 1 - ok, nbytes, decode, compute, encode, cpu, compute)):
            sums[at][number] += amount
    return [Totals(name, *row) for name, row in zip(names, sums, strict=True) if row[0]]


def _add_transfers(recording: Recording, count: int, workers: int, chance: random.Random) -> None:
    begins = sorted(chance.randrange(recording.duration) for _ in range(count))
    froms = [chance.randrange(workers) for _ in begins]
    tos = [(source + 1 + chance.randrange(workers - 1)) % workers for source in froms]
    lengths = [round(chance.expovariate(1) * 0.002 * TICKS) for _ in begins]
    nbytes = [chance.randrange(10**6) for _ in begins]
    recording.transfers = Transfers(
        transport_names=["tcp"],
        transports=array("q", bytes(8 * count)),
        froms=array("q", froms),
        tos=array("q", tos),
        begins=array("q", begins),
        lengths=array("q", lengths),
        nbytes=array("q", nbytes),
    )
    recording.ledgers["transfers"] = Ledger(count, count)
    sums: dict[tuple[int, int], list[int]] = {}
    for source, to, size, length in zip(froms, tos, nbytes, lengths, strict=True):
        pair = sums.setdefault((source + 1, to + 1), [0, 0, 0])
        for number, amount in enumerate((1, size, length)):
            pair[number] += amount
    recording.pairs = [Pair(*pair, "tcp", *amounts) for pair, amounts in sums.items()]


def _add_demand(recording: Recording, count: int, workers: int, chance: random.Random) -> None:
    times = sorted(chance.randrange(recording.duration) for _ in range(count))
    owners = [chance.randrange(-1, workers) for _ in times]
    kinds = [1 if owner < 0 else chance.randrange(2, 5) for owner in owners]
    state: dict[tuple[int, int], int] = {}
    values = []
    for owner in zip(owners, kinds, strict=True):
        state[owner] = 1 - state.get(owner, 0)
        values.append(state[owner])
    recording.demand = Demand(True, *(array("q", column) for column in (times, owners, kinds, values)))
    recording.ledgers["demand"] = Ledger(count, count)


def _add_series(recording: Recording, workers: int, chance: random.Random) -> None:
    series = Series(values={name: array("d") for name in _MEASURED})
    for second in range(1, 2 + recording.duration // TICKS):
        for worker, process in [(-1, 0), *((w, p) for w in range(workers) for p in (1, 2))]:
            series.times.append(second * TICKS - chance.randrange(TICKS // 10))
            series.workers.append(worker)
            series.processes.append(process)
            row = (1.0, 60 + 40 * chance.random(), 2e8 + 1e7 * chance.random(), 30.0, 1e-4, 1e-3, 5e-3, 0.01, 1e6,
                   100.0, 100.0, 0.0, 0.002)  # fmt: skip
            for name, value in zip(_MEASURED, row, strict=True):
                series.values[name].append(value)
    recording.series = series
    recording.ledgers["series"] = Ledger(len(series), len(series))


def _session(recording: Recording, processes: int, chance: random.Random) -> dict[str, Any]:
    """A profile of some hundred functions, with the samples of a bucket a second."""
    functions = [[f"function_{i}", f"/app/module_{i % 20}.py", i, f"module_{i % 20}"] for i in range(200)]
    nodes: dict[str, list[int]] = {"parent": [-1], "function": [0], "line": [1]}
    for node in range(1, 600):
        nodes["parent"].append(chance.randrange(max(0, node - 60), node))
        nodes["function"].append(chance.randrange(200))
        nodes["line"].append(chance.randrange(1000))
    seconds = max(1, recording.duration // TICKS)
    samples: dict[str, list[int]] = {name: [] for name in ("bucket", "thread", "label", "node", "count")}
    labels = ["", *_PREFIXES] if processes > 1 else [""]
    for bucket in range(seconds):
        for _ in range(60):
            row = (bucket, 0, chance.randrange(len(labels)), min(599, int(chance.paretovariate(0.4))), 2)
            for name, value in zip(samples, row, strict=True):
                samples[name].append(value)
    start, stop = recording.start, recording.start + seconds
    return Session.from_plain(
        {
            "format": "gnomon-profile", "version": 1,
            "meta": {"start": start, "stop": stop, "interval": 0.0107, "samples": 120 * seconds, "ticks": 100 * seconds,
                     "missed": 0, "cpu": 0.1, "pid": 1, "process": "", "python": "3.11"},
            "functions": functions, "nodes": nodes,
            "buckets": [[start + i, start + i + 1, 100, 0, 0.0, 0.0, 0.0, 100] for i in range(seconds)],
            "threads": [[1, "thread", ""]], "labels": labels, "samples": samples, "regions": [],
        }
    ).to_plain()  # fmt: skip
