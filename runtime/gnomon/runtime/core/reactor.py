"""Everything that can happen to the scheduler, one function each.

A function changes the model and leaves its effects in the outbox. What names a client, worker, task or run that is no
more is late, and dropped; a message that makes no sense raises ValueError, and the caller closes the peer. None of them
chooses a worker: that is asked for by ``model.placement_wanted``, and done by ``placement.run`` once per loop turn.

Contents: of clients, of workers, of runs, of values.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sized

from gnomon.runtime.core import replicas, retiring
from gnomon.runtime.core.arrival import admit
from gnomon.runtime.core.clients import ClientState
from gnomon.runtime.core.interest import cancel, retry, unwant, want
from gnomon.runtime.core.model import Model
from gnomon.runtime.core.outbox import Outbox
from gnomon.runtime.core.recovery import lose_executor, lose_worker
from gnomon.runtime.core.states import RELEASED, WAITING
from gnomon.runtime.core.stealing import on_reply
from gnomon.runtime.core.task import TaskState
from gnomon.runtime.core.transitions import (
    demand,
    fail,
    leave_worker,
    let_go,
    lose,
    ready,
    release_code,
    requeue,
    set_state,
    to_memory,
)
from gnomon.runtime.core.worker import WorkerState
from gnomon.runtime.messages import (
    CancelFutures,
    ErrorRecord,
    ExecutorLost,
    ForgetCodes,
    Heartbeat,
    RegisterWorker,
    ReleaseFutures,
    ReplicasAdded,
    ReplicasMissing,
    RetryFutures,
    ScatterData,
    StealReplies,
    TasksErred,
    TasksFinished,
    TasksSeceded,
    TransfersDone,
    UpdateGraph,
    WantKeys,
)

__all__ = [
    "on_add_client",
    "on_add_worker",
    "on_cancel_futures",
    "on_executor_lost",
    "on_forget_codes",
    "on_heartbeat",
    "on_release_futures",
    "on_remove_client",
    "on_remove_worker",
    "on_replicas_added",
    "on_replicas_missing",
    "on_retire_workers",
    "on_retry_futures",
    "on_scatter",
    "on_steal_replies",
    "on_tasks_erred",
    "on_tasks_finished",
    "on_tasks_seceded",
    "on_transfers_done",
    "on_update_graph",
    "on_values_missing",
    "on_want_keys",
]

#: Bytes from which a transfer's time tells of the bandwidth rather than of latency.
_LARGE_TRANSFER = 1_000_000


def _check_columns(of: str, *columns: Sized) -> None:
    """Raise ValueError unless the columns of a message are equally long."""
    if len(set(map(len, columns))) > 1:
        raise ValueError(f"the columns of {of} differ in length")


# Clients


def on_add_client(model: Model, outbox: Outbox, name: str, now: float) -> int:
    """A client connected; returns its id."""
    model.now = now
    client_id = model.unseen_client
    model.unseen_client += 1
    model.clients[client_id] = ClientState(client_id, name)
    return client_id


def on_remove_client(model: Model, outbox: Outbox, client_id: int, now: float) -> None:
    """A client is gone, and with it all it wants."""
    client = model.clients.pop(client_id, None)
    if client is None:
        return
    model.now = now
    futures = list(client.futures.items())
    client.futures.clear()
    for future_id, ts in futures:
        unwant(ts, client, future_id)
    for _, ts in futures:
        if ts.client is None and ts in model.scattering:
            lose(model, outbox, ts)  # nobody else can bring it
        else:
            let_go(model, outbox, ts)
    for code in client.codes.values():
        code.references -= 1
        if code.references == 0:
            release_code(model, outbox, code)
    client.codes.clear()
    outbox.drop_client(client_id)


def on_update_graph(model: Model, outbox: Outbox, client_id: int, message: UpdateGraph, now: float) -> None:
    """New tasks. Raises ValueError."""
    client = model.clients.get(client_id)
    if client is not None:
        model.now = now
        admit(model, outbox, client, message)


def on_release_futures(model: Model, outbox: Outbox, client_id: int, message: ReleaseFutures, now: float) -> None:
    """A client lets go of futures."""
    client = model.clients.get(client_id)
    if client is None:
        return
    model.now = now
    futures = client.futures
    for future_id in message.future_ids:
        ts = futures.pop(future_id, None)
        if ts is not None:
            unwant(ts, client, future_id)
            if ts.client is None and ts.waiters == 0:
                let_go(model, outbox, ts)


def on_cancel_futures(model: Model, outbox: Outbox, client_id: int, message: CancelFutures, now: float) -> None:
    """A client cancels; all its futures of these tasks, and of what is made from them, are answered as cancelled."""
    client = model.clients.get(client_id)
    if client is None:
        return
    model.now = now
    for future_id in message.future_ids:
        ts = client.futures.get(future_id)
        if ts is not None:
            cancel(model, outbox, ts, client, message.force, message.reason or "cancelled", message.message)


def on_retry_futures(model: Model, outbox: Outbox, client_id: int, message: RetryFutures, now: float) -> None:
    """A client wants erred tasks to be run again."""
    client = model.clients.get(client_id)
    if client is None:
        return
    model.now = now
    for future_id in message.future_ids:
        ts = client.futures.get(future_id)
        if ts is not None:
            retry(model, outbox, ts)


def on_want_keys(model: Model, outbox: Outbox, client_id: int, message: WantKeys, now: float) -> None:
    """A client wants keys that others brought; those unknown here are answered as cancelled ("unknown").

    Raises ValueError if a future id is used twice, or is 0.
    """
    client = model.clients.get(client_id)
    if client is None:
        return
    _check_columns("wanted keys", message.keys, message.future_ids)
    if len(set(message.future_ids)) != len(message.future_ids) or 0 in message.future_ids:
        raise ValueError("a future id is used twice, or is 0")
    if not client.futures.keys().isdisjoint(message.future_ids):
        raise ValueError("a future id is in use")
    model.now = now
    for key, future_id in zip(message.keys, message.future_ids, strict=True):
        ts = model.tasks.get(key)
        if ts is None or (ts.state == RELEASED and ts.code is None):
            outbox.to_client(client_id).cancelled(future_id, "unknown", f"the scheduler knows no task {key!r}")
            continue
        want(outbox, ts, client, future_id)
        if ts.state == RELEASED:
            demand(model, outbox, ts)


def on_forget_codes(model: Model, outbox: Outbox, client_id: int, message: ForgetCodes, now: float) -> None:
    """A client won't name these codes again."""
    client = model.clients.get(client_id)
    if client is None:
        return
    model.now = now
    for client_code in message.codes:
        code = client.codes.pop(client_code, None)
        if code is not None:
            code.references -= 1
            if code.references == 0:
                release_code(model, outbox, code)


def on_scatter(
    model: Model, outbox: Outbox, client_id: int, message: ScatterData, now: float
) -> tuple[tuple[int, int, tuple[str, ...]], ...]:
    """A client brings data. Returns the answer that ``ScatterData`` describes.

    Raises ValueError for a malformed message, LookupError if no worker may hold what must be sent to one.
    """
    client = model.clients.get(client_id)
    if client is None:
        return ()
    model.now = now
    return replicas.scatter(model, outbox, client, message)


# Workers


def on_add_worker(model: Model, outbox: Outbox, message: RegisterWorker, now: float) -> int:
    """A worker joined; returns its id. Raises ValueError if its name is taken, or if it makes no sense."""
    if message.name in model.names:
        raise ValueError(f"there is a worker named {message.name!r} already")
    if message.nthreads < 1:
        raise ValueError("a worker has at least one thread")
    model.now = now
    worker_id = model.unseen_worker
    model.unseen_worker += 1
    floor = min(model.settings.saturation * message.nthreads, 1e9)
    ws = WorkerState(worker_id, message, max(math.ceil(floor), 1), now)
    model.workers[worker_id] = ws
    model.names[ws.name] = ws
    model.addresses[ws.address] = ws
    model.open[ws] = None
    model.total_threads += ws.nthreads
    model.workers_version += 1
    woken = list(model.no_worker)
    model.no_worker.clear()
    for ts in woken:
        set_state(model, ts, WAITING)
        ready(model, ts)
    model.placement_wanted = True
    model.stealing_useful = True
    return worker_id


def on_remove_worker(
    model: Model, outbox: Outbox, worker_id: int, cause: ErrorRecord | None, safe: bool, now: float
) -> None:
    """A worker is gone. ``safe``: it left in good order, and no task is to blame."""
    ws = model.workers.get(worker_id)
    if ws is not None:
        model.now = now
        lose_worker(model, outbox, ws, cause, safe)


def on_retire_workers(model: Model, outbox: Outbox, worker_ids: Iterable[int], now: float) -> dict[int, int]:
    """Workers are to leave in good order; called again and again until they have.

    Returns how many tasks and values still keep each of those that are there: one with 0 can go, and nothing is lost.
    """
    model.now = now
    leaving = [model.workers[worker_id] for worker_id in worker_ids if worker_id in model.workers]
    for ws in leaving:
        retiring.begin(model, ws)
    return {ws.worker_id: retiring.advance(model, outbox, ws) for ws in leaving}


def on_executor_lost(model: Model, outbox: Outbox, worker_id: int, message: ExecutorLost, now: float) -> None:
    """The executor of a worker died with all it held."""
    ws = model.workers.get(worker_id)
    if ws is None:
        return
    model.now = now
    _check_columns("a lost executor", message.running, message.attempts)
    running: dict[TaskState, None] = {}
    for task_id, attempt in zip(message.running, message.attempts, strict=True):
        ts = model.by_id.get(task_id)
        if ts is not None and ts.processing_on is ws and ts.attempt == attempt:
            running[ts] = None
    lose_executor(model, outbox, ws, running, message.cause)


def on_heartbeat(model: Model, worker_id: int, message: Heartbeat, now: float) -> None:
    """A worker is alive."""
    ws = model.workers.get(worker_id)
    if ws is not None:
        ws.last_seen = now
        ws.metrics = message.metrics


def on_steal_replies(model: Model, outbox: Outbox, worker_id: int, message: StealReplies, now: float) -> None:
    """A worker gives tasks back, or keeps them."""
    ws = model.workers.get(worker_id)
    if ws is None:
        return
    _check_columns("steal replies", message.task_ids, message.attempts, message.given)
    model.now = now
    for task_id, attempt, given in zip(message.task_ids, message.attempts, message.given, strict=True):
        ts = _current(model, ws, task_id, attempt)
        if ts is not None:
            on_reply(model, outbox, ws, ts, given)


# Runs


def _current(model: Model, ws: WorkerState, task_id: int, attempt: int) -> TaskState | None:
    """The task whose current run this is, if the worker has it; None if the news is late."""
    ts = model.by_id.get(task_id)
    if ts is None or ts.processing_on is not ws or ts.attempt != attempt:
        return None
    return ts


def _numbers(values: tuple[int, ...]) -> array[int]:
    """A column as 64-bit integers. Raises ValueError if they are none."""
    try:
        return array("q", values)
    except (OverflowError, TypeError):
        raise ValueError("a column of integers holds something else") from None


def _seconds(timings: bytes, rows: int) -> array[float]:
    """The times of runs, four to a row. Raises ValueError if they are not."""
    if len(timings) != 32 * rows:
        raise ValueError(f"the timings of {rows} runs have {len(timings)} bytes")
    times = array("d")
    times.frombytes(timings)
    return times


def _cpus(cpus: bytes, rows: int) -> array[float]:
    """Seconds on the CPU per row, NaN where nobody measured. Raises ValueError."""
    if not cpus:
        return array("d", [math.nan]) * rows
    if len(cpus) != 8 * rows:
        raise ValueError(f"the CPU times of {rows} runs have {len(cpus)} bytes")
    seconds: array[float] = array("d")
    seconds.frombytes(cpus)
    return seconds


def on_tasks_finished(model: Model, outbox: Outbox, worker_id: int, message: TasksFinished, now: float) -> None:
    """Runs ended well. Raises ValueError."""
    task_ids, attempts, values = message.task_ids, message.attempts, message.values
    n = len(task_ids)
    times = _seconds(message.timings, n)
    sizes = _numbers(message.nbytes)
    threads = _numbers(message.threads)
    cpus = _cpus(message.cpus, n)
    _check_columns("finished runs", task_ids, attempts, values, sizes, threads)
    ws = model.workers.get(worker_id)
    if ws is None:
        return
    model.now = now
    late: list[int] = []
    ticks = times
    nbytes = sizes
    by_id = model.by_id
    for i in range(n):
        ts = by_id.get(task_ids[i])
        if ts is None or ts.processing_on is not ws or ts.attempt != attempts[i]:
            late.append(i)
            outbox.free(ws, task_ids[i], attempts[i])
            continue
        outbox.record_run(ts)
        duration = ticks[4 * i + 3] - ticks[4 * i]
        size = nbytes[i]
        if not 0.0 <= duration < 1e9:
            duration = 0.0  # a clock that jumped, or no number
        ts.group.prefix.observe(duration, size if size > 0 else 0)
        leave_worker(model, ts)
        ts.holders = ws.alone
        to_memory(model, outbox, ts, size if size > 0 else 0, values[i])
    outbox.record_rows(worker_id, threads, times, cpus, sizes, 1, late)


def on_tasks_erred(model: Model, outbox: Outbox, worker_id: int, message: TasksErred, now: float) -> None:
    """Runs raised: run them again while they have retries left, else they fail, and what needs them too.

    Raises ValueError.
    """
    n = len(message.task_ids)
    times = _seconds(message.timings, n)
    threads = _numbers(message.threads)
    cpus = _cpus(message.cpus, n)
    _check_columns("erred runs", message.task_ids, message.attempts, message.errors, threads)
    ws = model.workers.get(worker_id)
    if ws is None:
        return
    model.now = now
    late: list[int] = []
    for i in range(n):
        ts = _current(model, ws, message.task_ids[i], message.attempts[i])
        if ts is None:
            late.append(i)
            continue
        outbox.record_run(ts)
        leave_worker(model, ts)
        if ts.retries > 0:
            ts.retries -= 1
            requeue(model, outbox, ts)
        else:
            fail(model, outbox, ts, message.errors[i], ts.key)
    outbox.record_rows(worker_id, threads, times, cpus, array("q", bytes(8 * n)), 0, late)


def on_tasks_seceded(model: Model, outbox: Outbox, worker_id: int, message: TasksSeceded, now: float) -> None:
    """Running tasks left their threads: they count no longer against their worker's room. Raises ValueError."""
    ws = model.workers.get(worker_id)
    if ws is None:
        return
    _check_columns("seceded runs", message.task_ids, message.attempts)
    model.now = now
    for task_id, attempt in zip(message.task_ids, message.attempts, strict=True):
        ts = _current(model, ws, task_id, attempt)
        if ts is None or ts.seceded:
            continue
        ts.seceded = True
        ws.active -= 1
        ws.occupancy = max(ws.occupancy - ts.expected, 0.0) if ws.active else 0.0
        ts.expected = 0.0
        if not ws.retiring:
            model.open[ws] = None
        if model.queue.live:
            model.placement_wanted = True


# Values


def on_transfers_done(model: Model, worker_id: int, message: TransfersDone, now: float) -> None:
    """A worker fetched values: what large ones took is the measure of the bandwidth. Raises ValueError."""
    _check_columns("transfers", message.nbytes, message.starts, message.stops)
    for i in range(len(message.nbytes)):
        seconds = message.stops[i] - message.starts[i]
        if message.nbytes[i] >= _LARGE_TRANSFER and 1e-6 < seconds < 1e6:
            model.bandwidth += 0.2 * (message.nbytes[i] / seconds - model.bandwidth)


def on_replicas_added(model: Model, outbox: Outbox, worker_id: int, message: ReplicasAdded, now: float) -> None:
    """A worker holds copies of values, or data that a client sent it. Raises ValueError."""
    ws = model.workers.get(worker_id)
    if ws is None:
        return
    sizes = _numbers(message.nbytes)
    _check_columns("replicas", message.task_ids, message.attempts, sizes)
    if sizes and min(sizes) < 0:
        raise ValueError("the size of a replica is negative")
    model.now = now
    for task_id, attempt, nbytes in zip(message.task_ids, message.attempts, sizes, strict=True):
        replicas.add(model, outbox, ws, task_id, attempt, nbytes)


def on_replicas_missing(model: Model, outbox: Outbox, worker_id: int, message: ReplicasMissing, now: float) -> None:
    """A worker couldn't have values from their holders. Raises ValueError."""
    ws = model.workers.get(worker_id)
    if ws is None:
        return
    _check_columns("missing replicas", message.task_ids, message.attempts, message.holders, message.lost)
    model.now = now
    rows = zip(message.task_ids, message.attempts, message.holders, message.lost, strict=True)
    for task_id, attempt, holder, lost in rows:
        replicas.missing(model, outbox, ws, task_id, attempt, holder, lost)


def on_values_missing(
    model: Model,
    outbox: Outbox,
    client_id: int,
    task_ids: tuple[int, ...],
    attempts: tuple[int, ...],
    holder: str,
    lost: bool,
    now: float,
) -> None:
    """A client couldn't have values from a holder; it is told ``FuturesPending`` of those to be computed again."""
    if client_id not in model.clients:
        return
    _check_columns("missing values", task_ids, attempts)
    model.now = now
    for task_id, attempt in zip(task_ids, attempts, strict=True):
        replicas.missing(model, outbox, None, task_id, attempt, holder, lost)
