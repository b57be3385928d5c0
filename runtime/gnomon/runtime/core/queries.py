"""Questions about the model. Nothing here changes it; workers are named by their addresses, as users know them.

Contents: who_has, has_what, processing, nthreads, locate, resolve_workers, counts, identity, story.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gnomon.runtime.core.model import Model
from gnomon.runtime.core.states import MEMORY, STATE_NAMES
from gnomon.runtime.core.worker import WorkerState
from gnomon.runtime.messages import Key, Payload

__all__ = [
    "counts",
    "groups",
    "has_what",
    "identity",
    "locate",
    "nthreads",
    "processing",
    "resolve_workers",
    "story",
    "who_has",
    "worker_info",
]


def who_has(model: Model, keys: Iterable[Key] | None = None) -> dict[Key, list[str]]:
    """By key, who holds its value; unknown keys have nobody. All keys in memory if none are named."""
    if keys is None:
        return {key: [ws.address for ws in ts.holders] for key, ts in model.tasks.items() if ts.state == MEMORY}
    found: dict[Key, list[str]] = {}
    for key in keys:
        ts = model.tasks.get(key)
        found[key] = [] if ts is None else [ws.address for ws in ts.holders]
    return found


def has_what(model: Model, workers: Iterable[str] | None = None) -> dict[str, list[Key]]:
    """By worker, the keys whose values it holds."""
    return {ws.address: [ts.key for ts in ws.has_what] for ws in _chosen(model, workers)}


def processing(model: Model, workers: Iterable[str] | None = None) -> dict[str, list[Key]]:
    """By worker, the keys that it was given to run."""
    return {ws.address: [ts.key for ts in ws.processing] for ws in _chosen(model, workers)}


def nthreads(model: Model, workers: Iterable[str] | None = None) -> dict[str, int]:
    """By worker, its number of threads."""
    return {ws.address: ws.nthreads for ws in _chosen(model, workers)}


def resolve_workers(model: Model, names: Iterable[str]) -> list[int]:
    """The ids of the workers that go by one of these addresses, names or hosts."""
    return [ws.worker_id for ws in model.workers_named(tuple(names))]


def locate(
    model: Model, client_id: int, future_ids: Iterable[int]
) -> list[tuple[int, int, int, tuple[str, ...], Payload | None]]:
    """Rows of future id, task id, attempt, addresses that hold the value, and the value itself if it is small.

    A future that is unknown, or whose task is not in memory now, has task id 0.
    """
    client = model.clients.get(client_id)
    rows: list[tuple[int, int, int, tuple[str, ...], Payload | None]] = []
    for future_id in future_ids:
        ts = None if client is None else client.futures.get(future_id)
        if ts is None or ts.state != MEMORY:
            rows.append((future_id, 0, 0, (), None))
        else:
            rows.append((future_id, ts.task_id, ts.attempt, tuple([ws.address for ws in ts.holders]), ts.value))
    return rows


def counts(model: Model) -> dict[str, int]:
    """Number of tasks by state."""
    totals = [0] * len(STATE_NAMES)
    for group in model.groups.values():
        for state, count in enumerate(group.counts):
            totals[state] += count
    return dict(zip(STATE_NAMES[:-1], totals, strict=False))


def groups(model: Model) -> dict[str, dict[str, int]]:
    """By prefix, the number of tasks by state."""
    found: dict[str, dict[str, int]] = {}
    for group in model.groups.values():
        row = found.setdefault(group.prefix.name, dict.fromkeys(STATE_NAMES[:-1], 0))
        for name, count in zip(STATE_NAMES[:-1], group.counts, strict=False):
            row[name] += count
    return found


def worker_info(ws: WorkerState) -> dict[str, Any]:
    """What is shown of one worker: plain values."""
    return {
        "id": ws.worker_id,
        "name": ws.name,
        "address": ws.address,
        "host": ws.host,
        "pid": ws.pid,
        "nthreads": ws.nthreads,
        "memory_limit": ws.memory_limit,
        "resources": dict(ws.resources),
        "last_seen": ws.last_seen,
        "nbytes": ws.nbytes,
        "occupancy": ws.occupancy,
        "processing": len(ws.processing),
        "in_memory": len(ws.has_what),
        "metrics": dict(ws.metrics),
        "info": dict(ws.info),
    }


def identity(model: Model) -> dict[str, Any]:
    """What the scheduler is and has: workers by address, clients, totals."""
    return {
        "workers": {ws.address: worker_info(ws) for ws in model.workers.values()},
        "clients": [client.name for client in model.clients.values()],
        "tasks": counts(model),
        "total_threads": model.total_threads,
    }


def story(model: Model, key: Key) -> list[tuple[float, int, str, str, int, int]]:
    """What happened to a key: time, task id, state before and after, attempt, worker id (0: none); oldest first."""
    found: list[tuple[float, int, str, str, int, int]] = model.story.of(key)
    return found


def _chosen(model: Model, workers: Iterable[str] | None) -> list[WorkerState]:
    if workers is None:
        return list(model.workers.values())
    return model.workers_named(tuple(workers))
