"""What must hold between any two events, checked from scratch. For tests, simulations and debugging: it walks
everything."""

from __future__ import annotations

from gnomon.runtime.core.model import Model
from gnomon.runtime.core.states import (
    ERRED,
    FORGOTTEN,
    MEMORY,
    NO_WORKER,
    PROCESSING,
    QUEUED,
    RELEASED,
    STATE_NAMES,
    UNFINISHED,
    WAITING,
)
from gnomon.runtime.core.task import TaskState

__all__ = ["check_all"]


def check_all(model: Model) -> None:
    """Raise AssertionError, with the story of the task where there is one, if the model contradicts itself."""
    for ts in model.by_id.values():
        try:
            _check_task(model, ts)
            _check_edges(ts)
            _check_state(model, ts)
        except AssertionError as exc:
            raise AssertionError(f"{exc}: {ts!r}, story: {model.story.of(ts.key)}") from exc
    _check_workers(model)
    _check_clients(model)
    _check_collections(model)


def _check_task(model: Model, ts: TaskState) -> None:
    assert ts.state != FORGOTTEN, "a forgotten task has an id"
    assert model.by_id[ts.task_id] is ts, "a task stands under another id"
    current = model.tasks.get(ts.key)
    assert current is None or current.task_id >= ts.task_id, "an old definition of the key is current"
    assert ts.group is model.groups[ts.group.name], "a task is of a group that is no more"
    wants = [] if ts.client is None else [(ts.client, ts.future_id), *(ts.more_wants or ())]
    assert ts.more_wants is None or ts.more_wants, "an empty list of wants"
    assert ts.client is not None or ts.more_wants is None, "wants, but no first one"
    for client, future_id in wants:
        assert client.futures.get(future_id) is ts, "a client doesn't know that it wants this"
        assert model.clients.get(client.client_id) is client, "a client that is gone wants this"


def _check_edges(ts: TaskState) -> None:
    dependents = ts.dependents or []
    dead = [d for d in dependents if d.state == FORGOTTEN]
    assert ts.dead == len(dead), "wrong count of dead dependents"
    waiters = [d for d in dependents if d.state in UNFINISHED]
    assert ts.waiters == len(waiters), f"{ts.waiters} waiters, but {len(waiters)} dependents are unfinished"
    for dependent in dependents:
        assert dependent.state == FORGOTTEN or ts in dependent.dependencies, "a dependent doesn't know it"
    for dep in ts.dependencies:
        assert dep.state != FORGOTTEN, "a dependency is forgotten"
        assert dep.dependents is not None, "a dependency has no dependents"
        assert dep.dependents.count(ts) == ts.dependencies.count(dep), "edges differ by end"
    needed = ts.client is not None or ts.waiters
    assert needed or ts.state == RELEASED, "nobody needs it, but it isn't released"
    assert needed or len(dependents) > len(dead), "nothing comes of it, but it isn't forgotten"
    assert not needed or ts.state != RELEASED or ts.code is None, "it is needed, but released"
    assert ts.client is None or ts.state != RELEASED, "it is wanted, but released"


def _check_state(model: Model, ts: TaskState) -> None:
    missing = [dep for dep in ts.dependencies if dep.state != MEMORY]
    if ts.state == WAITING and ts.code is None:
        assert ts in model.scattering, "data that isn't on its way is waited for"
    elif ts.state == WAITING:
        assert ts.waiting_on == len(missing), f"waits for {ts.waiting_on}, but {len(missing)} are missing"
        assert missing or ts in model.ready, "ready, but in no list"
        for dep in missing:
            assert dep.state in UNFINISHED, "it waits for something that nobody makes"
    elif ts.state in (QUEUED, NO_WORKER):
        assert not missing, "placed without its dependencies"
    assert (ts.state == PROCESSING) == (ts.processing_on is not None), "processing, or not?"
    if ts.processing_on is not None:
        assert ts in ts.processing_on.processing, "its worker doesn't know it"
        assert ts.attempt > 0, "a run without a number"
    assert (ts.state == NO_WORKER) == (ts in model.no_worker), "wrong place for no-worker"
    assert (ts.state == ERRED) == (ts.error is not None), "an error, or none?"
    if ts.state == MEMORY:
        assert ts.holders or ts.value is not None, "in memory nowhere"
    else:
        assert not ts.holders, "held, but not in memory"
        assert ts.value is None, "a value, but not in memory"
    assert len(set(ts.holders)) == len(ts.holders), "a holder twice"
    for ws in ts.holders:
        assert ts in ws.has_what, "a holder doesn't know it"
    assert ts.state == PROCESSING or (not ts.seceded and not ts.thief), "left-overs of a run"
    assert bool(ts.thief) == (model.moving.get(ts.task_id) is ts), "moving, or not?"


def _check_workers(model: Model) -> None:
    for worker_id, ws in model.workers.items():
        assert ws.worker_id == worker_id, ws
        assert model.names[ws.name] is ws, ws
        for ts in ws.processing:
            assert ts.processing_on is ws, (ws, ts)
        for ts in ws.has_what:
            assert ws in ts.holders, (ws, ts)
        assert ws.nbytes == sum(ts.nbytes for ts in ws.has_what), ws
        running = [ts for ts in ws.processing if not ts.seceded]
        assert ws.active == len(running), (ws, ws.active, len(running))
        expected = sum(ts.expected for ts in running)
        assert abs(ws.occupancy - expected) < 1e-6 * (1 + expected), (ws, ws.occupancy, expected)
        for code_id, code in ws.codes.items():
            assert code.code_id == code_id, ws
            assert worker_id in code.workers, (ws, code_id)
            assert code.references > 0, (ws, code_id)
    assert model.total_threads == sum(ws.nthreads for ws in model.workers.values())
    for ws in model.open:
        assert model.workers.get(ws.worker_id) is ws, ws
        assert not ws.retiring, ws
    for ws, asked in model.retiring.items():
        assert ws.retiring, ws
        assert model.workers.get(ws.worker_id) is ws, ws
        for other in asked.values():
            assert model.workers.get(other.worker_id) is other, (ws, other)


def _check_clients(model: Model) -> None:
    references: dict[int, int] = {}
    codes = {}
    for client_id, client in model.clients.items():
        assert client.client_id == client_id
        for future_id, ts in client.futures.items():
            wants = [(ts.client, ts.future_id), *(ts.more_wants or ())]
            assert (client, future_id) in wants, (future_id, ts)
        for code in client.codes.values():
            references[code.code_id] = references.get(code.code_id, 0) + 1
            codes[code.code_id] = code
    for ts in model.by_id.values():
        if ts.code is not None:
            references[ts.code.code_id] = references.get(ts.code.code_id, 0) + 1
            codes[ts.code.code_id] = ts.code
    for code_id, code in codes.items():
        assert code.references == references[code_id], (code_id, code.references, references[code_id])


def _check_collections(model: Model) -> None:
    for key, ts in model.tasks.items():
        assert ts.key == key, ts
        assert model.by_id.get(ts.task_id) is ts, ts
    queued = [ts for ts in model.by_id.values() if ts.state == QUEUED]
    assert model.queue.live == len(queued), (model.queue.live, len(queued))
    entries = {*model.queue.line, *[entry[2] for entry in model.queue.heap]}
    assert entries.issuperset(queued), "a queued task is not in the queue"
    assert not (model.queue.live or model.ready) or model.placement_wanted or _all_full(model), (
        "placement wasn't asked for"
    )
    counts: dict[str, list[int]] = {}
    for ts in model.by_id.values():
        row = counts.setdefault(ts.group.name, [0] * len(STATE_NAMES))
        row[ts.state] += 1
    assert counts == {name: list(group.counts) for name, group in model.groups.items()}, "wrong counts of groups"
    for group in model.groups.values():
        assert group.alive == sum(group.counts), group.name
    for ts in model.scattering:
        assert ts.state == WAITING, ts
        assert ts.code is None, ts
    for ts in model.moving.values():
        assert ts.thief, ts


def _all_full(model: Model) -> bool:
    """Whether a pass could do nothing: no entry to place, and no worker with room for what is next in the queue."""
    stale = all(ts.state != WAITING or ts.waiting_on for ts in model.ready)
    return stale and all(ws.active >= ws.floor or ws.retiring for ws in model.workers.values())
