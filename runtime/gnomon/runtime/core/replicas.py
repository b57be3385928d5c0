"""Values: their copies on workers, reports that one is missing, and data that clients bring.

Contents: add (a worker holds a copy), missing (one couldn't be had), forget_holder, scatter.
"""

from __future__ import annotations

from gnomon.runtime.core import retiring
from gnomon.runtime.core.arrival import gives_way
from gnomon.runtime.core.clients import ClientState
from gnomon.runtime.core.interest import want
from gnomon.runtime.core.model import Model
from gnomon.runtime.core.outbox import Outbox
from gnomon.runtime.core.states import MEMORY, PROCESSING, RELEASED, WAITING
from gnomon.runtime.core.task import TaskState
from gnomon.runtime.core.transitions import (
    demand,
    fail,
    leave_worker,
    let_go,
    requeue,
    set_state,
    to_memory,
    value_gone,
)
from gnomon.runtime.core.worker import WorkerState
from gnomon.runtime.messages import NO_OPTIONS, ErrorRecord, ScatterData

__all__ = ["add", "forget_holder", "missing", "scatter"]

UNREACHABLE = "gnomon.runtime.errors.CommError"


def add(model: Model, outbox: Outbox, ws: WorkerState, task_id: int, attempt: int, nbytes: int) -> None:
    """A worker holds a copy of a value; of one that is no longer current it is told to drop it."""
    ts = model.by_id.get(task_id)
    if ts is not None and ts.attempt == attempt:
        if ts in model.scattering:
            del model.scattering[ts]
            ts.holders = ws.alone
            to_memory(model, outbox, ts, nbytes, None)
            return
        if ts.state == MEMORY:
            ts.missing = 0  # it can be fetched
            if ts not in ws.has_what:
                ts.holders = (*ts.holders, ws)
                ws.has_what[ts] = None
                ws.nbytes += ts.nbytes
            return
    outbox.free(ws, task_id, attempt)


def forget_holder(ts: TaskState, ws: WorkerState) -> None:
    """A worker doesn't hold a value any more."""
    ts.holders = tuple([holder for holder in ts.holders if holder is not ws])
    del ws.has_what[ts]
    ws.nbytes -= ts.nbytes


def missing(
    model: Model, outbox: Outbox, asker: WorkerState | None, task_id: int, attempt: int, holder: str, lost: bool
) -> None:
    """A worker (or a client: None) couldn't have a value from a holder: name others, or place its tasks anew.

    A holder that answers that it doesn't have the value is believed. One that can't be reached keeps its copy for
    others to try, until ``missing_limit`` reports; then the value is computed again.
    """
    ts = model.by_id.get(task_id)
    if ts is None:
        return
    if asker is not None and model.retiring:
        retiring.forget_recipient(model, ts, asker)
    if ts.state == MEMORY and ts.attempt == attempt:
        ws = model.addresses.get(holder)
        if ws is not None and ts in ws.has_what:
            ts.missing += 1
            if lost or ts.missing > model.settings.missing_limit:
                forget_holder(ts, ws)
                outbox.free(ws, task_id, attempt)  # it may have got a copy since it was asked
        others = tuple([other.address for other in ts.holders if other is not ws])
        if others:
            if asker is not None:
                outbox.to_worker(asker.worker_id).holders(task_id, attempt, others)
            return
        if not ts.holders and ts.value is None:
            value_gone(model, outbox, ts)
    if asker is not None:
        _take_back(model, outbox, ts, asker)
    if ts.state == RELEASED:
        if ts.client is not None or ts.waiters:
            demand(model, outbox, ts)
        else:
            let_go(model, outbox, ts)


def _take_back(model: Model, outbox: Outbox, dep: TaskState, ws: WorkerState) -> None:
    """A worker can't run the tasks that need this value as it knows it: place them anew, within bounds."""
    stuck = [ts for ts in dep.dependents or () if ts.state == PROCESSING and ts.processing_on is ws]
    for ts in stuck:
        if ts.processing_on is not ws:
            continue  # named twice, or taken off by what another led to
        leave_worker(model, ts)
        outbox.free(ws, ts.task_id, ts.attempt)
        ts.missing += 1
        if ts.missing > 3 * model.settings.missing_limit:
            text = f"{ts.key!r} was not run: {ts.missing} times its worker could not fetch {dep.key!r}, which it needs"
            fail(model, outbox, ts, ErrorRecord(UNREACHABLE, text), ts.key)
        else:
            requeue(model, outbox, ts)


def scatter(
    model: Model, outbox: Outbox, client: ClientState, message: ScatterData
) -> tuple[tuple[int, int, tuple[str, ...]], ...]:
    """Register data that a client brings; per row its task id, attempt, and where the client is to send it.

    Raises ValueError for a malformed message, LookupError if no worker may hold what must be sent to one.
    """
    n = len(message.keys)
    if not len(message.future_ids) == len(message.nbytes) == len(message.values) == n:
        raise ValueError("the columns of scattered data differ in length")
    if (
        len(set(message.future_ids)) != n
        or 0 in message.future_ids
        or not client.futures.keys().isdisjoint(message.future_ids)
    ):
        raise ValueError("a future id is used twice, or is 0")
    named = model.workers_named(message.workers) if message.workers else model.workers.values()
    targets = [ws for ws in named if not ws.retiring]
    if not targets and None in message.values:
        raise LookupError("no worker may hold the data")
    load = {ws: ws.nbytes for ws in targets}
    return tuple([_scatter_row(model, outbox, client, message, i, load) for i in range(n)])


def _scatter_row(
    model: Model, outbox: Outbox, client: ClientState, message: ScatterData, i: int, load: dict[WorkerState, int]
) -> tuple[int, int, tuple[str, ...]]:
    """One row of ``scatter``. ``load`` is what each worker holds, counting what is on its way."""
    key, value, nbytes = message.keys[i], message.values[i], message.nbytes[i]
    future_id = message.future_ids[i]
    ts = model.tasks.get(key)
    if ts is None or gives_way(ts, None, b""):
        ts = model.add_task(key, None, b"", model.options_of(NO_OPTIONS), (0, model.generation, 0))
        ts.attempt = 1
        set_state(model, ts, WAITING)
        ts.waiting_on = 1  # for the data itself
        want(outbox, ts, client, future_id)
        if value is None:
            model.scattering[ts] = []
        else:
            to_memory(model, outbox, ts, nbytes, value)
    else:
        want(outbox, ts, client, future_id)
        if ts.state == RELEASED:
            demand(model, outbox, ts)
    if ts not in model.scattering:
        return (ts.task_id, ts.attempt, ())
    ranked = sorted(load, key=lambda ws: (load[ws], ws.worker_id))
    chosen = ranked[: message.copies] if message.copies else ranked
    for ws in chosen:
        load[ws] += nbytes
        if ws.worker_id not in model.scattering[ts]:
            model.scattering[ts].append(ws.worker_id)
    return (ts.task_id, ts.attempt, tuple([ws.address for ws in chosen]))
