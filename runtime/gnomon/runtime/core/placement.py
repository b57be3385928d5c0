"""Which worker runs what: one pass per loop turn over all that has become ready since the last.

Ready tasks that need bytes go where they would start first: the backlog of the worker by its threads, plus the time to
bring what it doesn't hold. Queued tasks go to workers with room, the least loaded first, in runs of neighbours (which
are likely to be used together). The cost of the pass depends on the tasks and workers that changed, not on all of them.

Contents: run, choose, has_room.
"""

from __future__ import annotations

from gnomon.runtime.core.model import Model
from gnomon.runtime.core.outbox import Outbox
from gnomon.runtime.core.states import NO_WORKER, WAITING
from gnomon.runtime.core.task import TaskPrefix, TaskState
from gnomon.runtime.core.transitions import assign, set_state
from gnomon.runtime.core.worker import WorkerState

__all__ = ["choose", "has_room", "run"]

#: How many workers that hold nothing of what a task needs are considered beside those that do.
_OTHERS = 8


def run(model: Model, outbox: Outbox, now: float) -> None:
    """Place what is ready, then hand out the queue as far as workers have room."""
    model.now = now
    model.placement_wanted = False
    if model.ready:
        _place_ready(model, outbox)
    if model.queue.live and model.open:
        _hand_out(model, outbox)


def _place_ready(model: Model, outbox: Outbox) -> None:
    """Give each ready task to its worker, or let it wait for one that may run it."""
    ready = model.ready
    model.ready = []
    for item in ready:
        ts: TaskState = item
        if ts.state != WAITING or ts.waiting_on:
            continue  # an old entry
        ws = choose(model, ts)
        if ws is None:
            set_state(model, ts, NO_WORKER)
            model.no_worker[ts] = None
        else:
            assign(model, outbox, ts, ws)


def choose(model: Model, ts: TaskState) -> WorkerState | None:
    """The eligible worker on which a task would start first; None if there is none."""
    model.stamp += 1
    stamp = model.stamp
    total = 0
    candidates: list[WorkerState] = []
    for item in ts.dependencies:
        dep: TaskState = item
        if dep.value is not None:
            continue  # travels with the assignment
        nbytes = dep.nbytes
        total += nbytes
        for holder in dep.holders:
            ws: WorkerState = holder
            if ws.stamp != stamp:
                ws.stamp = stamp
                ws.local_bytes = 0
                if not ws.retiring:
                    candidates.append(ws)
            ws.local_bytes += nbytes
    if ts.options.restricted:
        candidates = model.eligible(ts.options)
    else:
        if not candidates:
            candidates = [ws for ws in model.workers.values() if not ws.retiring]
        _add_others(model, candidates, stamp)
    best = None
    best_cost = 0.0
    for ws in candidates:
        missing = total - ws.local_bytes if ws.stamp == stamp else total
        cost = ws.occupancy / ws.nthreads + missing / model.bandwidth
        if best is None or cost < best_cost or (cost == best_cost and ws.nbytes < best.nbytes):
            best = ws
            best_cost = cost
    return best


def _add_others(model: Model, candidates: list[WorkerState], stamp: int) -> None:
    """Some workers with an idle thread, or with little beside what runs, that are no candidates yet."""
    wanted = _OTHERS
    looks = 8 * _OTHERS
    for item in model.open:
        ws: WorkerState = item
        if ws.active < ws.floor and ws.stamp != stamp:
            candidates.append(ws)
            wanted -= 1
        looks -= 1
        if wanted == 0 or looks == 0:
            break


def has_room(model: Model, ws: WorkerState, prefix: TaskPrefix) -> bool:
    """Whether a worker may be given another queued run of this kind.

    ``ws.floor`` runs always; beyond that as many as fill ``backlog_seconds`` by their measured duration, unless their
    results are large or they are very many.
    """
    if ws.active < ws.floor:
        return True
    if prefix.duration < 0.0 or ws.active >= model.max_backlog * ws.nthreads:
        return False
    if ws.occupancy + prefix.duration > model.backlog_seconds * ws.nthreads:
        return False
    return ws.active * prefix.nbytes <= model.backlog_bytes * ws.nthreads


def _hand_out(model: Model, outbox: Outbox) -> None:
    """Give queued tasks to workers with room: to each at most its threads' share, again while that gets some away."""
    queue = model.queue
    if queue.live == 1:
        best = _least_loaded(model)
        _fill(model, outbox, best, 1)
        if queue.live == 0:
            return
    ranked = []
    for item in model.open:
        ws: WorkerState = item
        ranked.append((ws.occupancy / ws.nthreads, ws.active / ws.nthreads, ws.worker_id, ws))
    ranked.sort()
    given = 1
    while given and queue.live and model.open:
        given = 0
        threads = 0
        for entry in ranked:
            ws = entry[3]
            if ws in model.open:
                threads += ws.nthreads
        for entry in ranked:
            ws = entry[3]
            if queue.live == 0:
                break
            if ws not in model.open:
                continue
            share = (queue.live * ws.nthreads + threads - 1) // threads
            threads -= ws.nthreads
            given += _fill(model, outbox, ws, share)


def _least_loaded(model: Model) -> WorkerState:
    """The open worker with the smallest backlog: what the first of all, ranked, would be."""
    best = None
    for item in model.open:
        ws: WorkerState = item
        if best is None or _before(ws, best):
            best = ws
    assert best is not None
    return best


def _before(ws: WorkerState, other: WorkerState) -> bool:
    """Whether a worker has less to do than another."""
    mine = ws.occupancy / ws.nthreads
    theirs = other.occupancy / other.nthreads
    if mine != theirs:
        return mine < theirs
    mine = ws.active / ws.nthreads
    theirs = other.active / other.nthreads
    if mine != theirs:
        return mine < theirs
    return ws.worker_id < other.worker_id


def _fill(model: Model, outbox: Outbox, ws: WorkerState, share: int) -> int:
    """Give one worker up to ``share`` queued tasks; one without room for the next is no longer open."""
    queue = model.queue
    given = 0
    while given < share:
        ts = queue.peek()
        if ts is None:
            break
        if not has_room(model, ws, ts.group.prefix):
            model.open.pop(ws, None)
            break
        assign(model, outbox, ts, ws)
        given += 1
    return given
