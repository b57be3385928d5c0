"""What happens when a worker, or only its executor, is lost.

Values of which it held the last copy are computed again, as far as someone wants or needs them; its unfinished tasks
are placed anew under another attempt number. Tasks that were running when it died are blamed: one that has taken down
more than ``allowed_failures`` is given up as ``KilledWorker``. Planned departures blame nobody.

Contents: lose_worker, lose_executor.
"""

from __future__ import annotations

from gnomon.runtime.core import retiring
from gnomon.runtime.core.model import Model
from gnomon.runtime.core.outbox import Outbox
from gnomon.runtime.core.states import RELEASED
from gnomon.runtime.core.task import TaskState
from gnomon.runtime.core.transitions import demand, fail, leave_worker, let_go, lose, requeue, value_gone
from gnomon.runtime.core.worker import WorkerState
from gnomon.runtime.messages import ErrorRecord

__all__ = ["lose_executor", "lose_worker"]

KILLED_WORKER = "gnomon.runtime.errors.KilledWorker"


def lose_worker(model: Model, outbox: Outbox, ws: WorkerState, cause: ErrorRecord | None, safe: bool) -> None:
    """A worker is gone with all it held. ``safe``: it left in good order, so no task is to blame."""
    del model.workers[ws.worker_id]
    if model.names.get(ws.name) is ws:
        del model.names[ws.name]
    if model.addresses.get(ws.address) is ws:
        del model.addresses[ws.address]
    model.workers_version += 1
    model.total_threads -= ws.nthreads
    for code in ws.codes.values():
        code.workers.remove(ws.worker_id)
    ws.codes.clear()
    model.retiring.pop(ws, None)
    blamed = {} if safe else _suspects(ws)
    _lose_all(model, outbox, ws, blamed, cause, False)
    for ts, expected in list(model.scattering.items()):
        if ws.worker_id in expected:
            expected.remove(ws.worker_id)
            if not expected:
                del model.scattering[ts]
                lose(model, outbox, ts)
    model.open.pop(ws, None)
    outbox.drop_worker(ws.worker_id)
    ws.alone = ()


def lose_executor(
    model: Model, outbox: Outbox, ws: WorkerState, running: dict[TaskState, None], cause: ErrorRecord | None
) -> None:
    """A worker's executor died; the worker stays, without values. ``running`` are the tasks that ran.

    Its agent lives on and keeps the code, which it gives to the next executor.
    """
    _lose_all(model, outbox, ws, running, cause, True)


def _suspects(ws: WorkerState) -> dict[TaskState, None]:
    """The tasks that a lost worker may have been running: nobody is left to tell.

    As many as it has threads, of the first by age and of the first by priority, and those that left their thread.
    """
    tasks = list(ws.processing)
    suspects = dict.fromkeys(ts for ts in tasks if ts.seceded)
    suspects.update(dict.fromkeys(tasks[: ws.nthreads]))
    suspects.update(dict.fromkeys(sorted(tasks, key=lambda ts: (ts.priority, ts.task_id))[: ws.nthreads]))
    return suspects


def _lose_all(
    model: Model, outbox: Outbox, ws: WorkerState, blamed: dict[TaskState, None], cause: ErrorRecord | None, alive: bool
) -> None:
    """Take values and tasks off a worker. First all values: a task is placed anew by what is left."""
    gone: list[TaskState] = []
    for ts in ws.has_what:
        ts.holders = tuple([holder for holder in ts.holders if holder is not ws])
        if not ts.holders and ts.value is None:
            gone.append(ts)
    retiring.forget_recipient(model, None, ws)
    ws.has_what.clear()
    ws.nbytes = 0
    for ts in gone:
        value_gone(model, outbox, ts)
    for ts in list(ws.processing):
        if ts.processing_on is not ws:
            continue  # what another of these led to has taken it off
        leave_worker(model, ts)
        if alive:
            outbox.free(ws, ts.task_id, ts.attempt)  # it may be on its way there still
        if ts in blamed:
            ts.failures += 1
            if ts.failures > model.settings.allowed_failures:
                fail(model, outbox, ts, _killed(ts, ws, cause), ts.key)
                continue
        requeue(model, outbox, ts)
    for ts in gone:
        if ts.state != RELEASED:
            continue
        if ts.client is not None or ts.waiters:
            demand(model, outbox, ts)
        else:
            let_go(model, outbox, ts)


def _killed(ts: TaskState, ws: WorkerState, cause: ErrorRecord | None) -> ErrorRecord:
    """The error of a task that was running too often when a worker died."""
    text = f"{ts.key!r} was running on {ts.failures} workers when they died, the last {ws.name!r}"
    if cause is not None:
        text = f"{text}: {cause.text}"
    return ErrorRecord(KILLED_WORKER, text)
