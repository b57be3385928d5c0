"""One function per thing that can happen to a worker: each changes the model and notes effects in the outbox.

What arrives for another attempt than the current one is stale and changes nothing, except that a stale value in the
executor's store is dropped. Nothing here starts a run or a fetch: that is ``dispatch.run``, once per loop turn.

From the scheduler: on_compute_tasks, on_free_tasks, on_steal_tasks, on_codes, on_drop_codes, on_fetch_replicas,
on_holders. From the executor: on_executor_ready, on_tasks_finished, on_tasks_erred, on_tasks_seceded,
on_tasks_returned, on_executor_lost. From the shell's fetches and data server: on_fetch_done, on_fetch_failed,
on_fetch_unusable, on_value_received.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gnomon.runtime.messages import DropCodes, ExecutorLost, TasksErred, TasksFinished, TasksSeceded
from gnomon.runtime.worker.state import changes
from gnomon.runtime.worker.state.model import WorkerModel
from gnomon.runtime.worker.state.outbox import Outbox
from gnomon.runtime.worker.state.records import Run, Value
from gnomon.runtime.worker.state.states import EXECUTING, FETCH, FLIGHT, MEMORY, MISSING, SECEDED

if TYPE_CHECKING:
    from gnomon.runtime.messages import (
        Codes,
        ComputeTasks,
        ErrorRecord,
        FetchReplicas,
        FreeTasks,
        Holders,
        Payload,
        StealTasks,
        TasksReturned,
    )

__all__ = [
    "on_codes",
    "on_compute_tasks",
    "on_drop_codes",
    "on_executor_lost",
    "on_executor_ready",
    "on_fetch_done",
    "on_fetch_failed",
    "on_fetch_replicas",
    "on_fetch_unusable",
    "on_free_tasks",
    "on_holders",
    "on_steal_tasks",
    "on_tasks_erred",
    "on_tasks_finished",
    "on_tasks_returned",
    "on_tasks_seceded",
    "on_value_received",
]


# From the scheduler


def on_compute_tasks(model: WorkerModel, outbox: Outbox, message: ComputeTasks, now: float) -> None:
    """Tasks to run, and where the values they need are."""
    task_ids = message.task_ids
    attempts = message.attempts
    model.remember(now, "compute", task_ids, attempts)
    count = len(task_ids)
    for i in range(count):
        run = model.runs.get(task_ids[i])
        if run is not None and run.attempt < attempts[i]:  # before the new run's values are noted: it may drop them
            changes.free_run(model, outbox, run)
    fresh = _note_dependencies(model, message)
    keys = message.keys
    code_ids = message.code_ids
    payloads = message.payloads
    priorities = message.priorities
    durations = message.durations
    dependencies = message.dependencies
    resources = message.resources
    executors = message.executors
    pool = model.default
    for i in range(count):
        if task_ids[i] in model.runs:
            continue  # the same attempt, or an older one than this
        if executors:
            pool = model.pools.get(executors[i], model.default)
        run = Run(task_ids[i], attempts[i], keys[i], code_ids[i], payloads[i], pool)
        run.priority = priorities[i]
        run.duration = durations[i]
        if executors:
            run.executor = executors[i]
        if resources:
            run.resources = resources[i]
        model.runs[run.task_id] = run
        if dependencies and dependencies[i]:
            run.dependencies = dependencies[i]
            _attach_all(model, run)
        if run.absent == 0:
            changes.make_ready(model, run)
    for value in fresh:
        if not value.dependents:
            changes.drop_unneeded(model, outbox, value)
        elif value.state is not MEMORY:
            _seek_or_report(model, outbox, value)


def _note_dependencies(model: WorkerModel, message: ComputeTasks) -> list[Value]:
    """The values of the message's ``dep_`` columns, as far as they are not here already."""
    dep_ids = message.dep_ids
    attempts = message.dep_attempts
    nbytes = message.dep_nbytes
    payloads = message.dep_values
    holders = message.dep_holders
    fresh = []
    for i in range(len(dep_ids)):
        value = model.values.get(dep_ids[i])
        if value is None or value.state is not MEMORY:
            fresh.append(changes.merge_value(model, dep_ids[i], attempts[i], nbytes[i], payloads[i], holders[i]))
    return fresh


def _attach_all(model: WorkerModel, run: Run) -> None:
    """Tie a run to its dependencies.

    One that is neither here nor described was here when the scheduler wrote: the executor died meanwhile. The scheduler
    will free the run when it hears of that; until then it waits for a value of attempt 0, which no one looks for.
    """
    for task_id in run.dependencies:
        value = model.values.get(task_id)
        if value is None:
            value = model.values[task_id] = Value(task_id, 0, 0, None, MISSING)
        changes.attach(model, run, value)


def _seek_or_report(model: WorkerModel, outbox: Outbox, value: Value) -> None:
    """Queue a value at its holders; if none is known, tell the scheduler."""
    changes.seek(model, value)
    if value.state is MISSING and value.attempt > 0:
        if value.reports:
            for holder, lost in value.reports:
                outbox.missing_rows.append((value.task_id, value.attempt, holder, lost))
            value.reports = None
        else:
            outbox.missing_rows.append((value.task_id, value.attempt, "", False))
        if value.wanted:  # the answer that the scheduler's wish for a copy gets
            value.wanted = False
            changes.drop_unneeded(model, outbox, value)


def on_free_tasks(model: WorkerModel, outbox: Outbox, message: FreeTasks, now: float) -> None:
    """Runs and values (of these attempts, or older ones) that the scheduler has no use for here."""
    task_ids = message.task_ids
    attempts = message.attempts
    model.remember(now, "free", task_ids, attempts)
    for i in range(len(task_ids)):
        run = model.runs.get(task_ids[i])
        if run is not None and run.attempt <= attempts[i]:
            changes.free_run(model, outbox, run)
        value = model.values.get(task_ids[i])
        if value is not None and value.attempt <= attempts[i] and (value.held or value.wanted):
            value.held = False
            value.wanted = False
            changes.drop_unneeded(model, outbox, value)


def on_steal_tasks(model: WorkerModel, outbox: Outbox, message: StealTasks, now: float) -> None:
    """The scheduler wants tasks back; those already with the executor are asked back from it first."""
    task_ids = message.task_ids
    attempts = message.attempts
    model.remember(now, "steal", task_ids, attempts)
    for i in range(len(task_ids)):
        run = model.runs.get(task_ids[i])
        if run is None or run.attempt != attempts[i] or run.state is SECEDED or run.begun:
            outbox.steal_rows.append((task_ids[i], attempts[i], False))
        elif run.state is EXECUTING:
            run.stealing = True
            if not run.asked:
                run.asked = True
                model.to_cancel.append(run)
        else:
            changes.remove_run(model, outbox, run)
            outbox.steal_rows.append((task_ids[i], attempts[i], True))


def on_codes(model: WorkerModel, outbox: Outbox, message: Codes, now: float) -> None:
    """Code that tasks will name; the executor gets it with the first run that needs it."""
    for i in range(len(message.code_ids)):
        model.codes[message.code_ids[i]] = message.blobs[i]


def on_drop_codes(model: WorkerModel, outbox: Outbox, message: DropCodes, now: float) -> None:
    """Code that no task will name again."""
    sent = []
    for code_id in message.code_ids:
        model.codes.pop(code_id, None)
        model.durations.pop(code_id, None)
        if model.sent_codes.pop(code_id, False):
            sent.append(code_id)
    if sent:
        outbox.send_executor(DropCodes(tuple(sent)))


def on_fetch_replicas(model: WorkerModel, outbox: Outbox, message: FetchReplicas, now: float) -> None:
    """The scheduler wants copies of values here."""
    task_ids = message.task_ids
    attempts = message.attempts
    model.remember(now, "copy", task_ids, attempts)
    for i in range(len(task_ids)):
        value = changes.merge_value(model, task_ids[i], attempts[i], message.nbytes[i], None, message.holders[i])
        if value.state is MEMORY:
            value.held = True
            outbox.added_rows.append((value.task_id, value.attempt, value.nbytes))
        else:
            value.wanted = True
            _seek_or_report(model, outbox, value)


def on_holders(model: WorkerModel, outbox: Outbox, message: Holders, now: float) -> None:
    """Where values that were reported missing are now; a value without holders waits, or its tasks will be freed."""
    task_ids = message.task_ids
    attempts = message.attempts
    model.remember(now, "holders", task_ids, attempts)
    for i in range(len(task_ids)):
        value = model.values.get(task_ids[i])
        if value is not None and value.state is not MEMORY and value.attempt <= attempts[i] and message.holders[i]:
            value = changes.merge_value(model, task_ids[i], attempts[i], value.nbytes, None, message.holders[i])
            changes.seek(model, value)


# From the executor


def on_executor_ready(model: WorkerModel, outbox: Outbox, now: float) -> None:
    """An executor, empty as yet, takes work."""
    model.ready = True


def on_tasks_finished(model: WorkerModel, outbox: Outbox, message: TasksFinished, now: float) -> None:
    """Runs that ended well; their values are in the executor's store, small ones in the message as well."""
    task_ids = message.task_ids
    attempts = message.attempts
    model.remember(now, "finished", task_ids, attempts)
    nbytes = message.nbytes
    payloads = message.values
    timings = array("d", message.timings)
    stale = []
    for i in range(len(task_ids)):
        run = changes.handed_end(model, outbox, task_ids[i], attempts[i], True)
        if run is None:
            stale.append(i)
            continue
        seconds = timings[4 * i + 3] - timings[4 * i]
        known = model.durations.get(run.code_id)
        model.durations[run.code_id] = seconds if known is None else (seconds + known) * 0.5
        value = model.values.get(run.task_id)
        if value is None:
            value = Value(run.task_id, attempts[i], nbytes[i], payloads[i], MEMORY)
            model.values[run.task_id] = value
        else:
            value.attempt = attempts[i]
            value.payload = payloads[i]
            changes.value_arrived(model, value, nbytes[i])
        value.stored = True
        value.held = True
        value.wanted = False
    _report(outbox, message, stale)


def on_tasks_erred(model: WorkerModel, outbox: Outbox, message: TasksErred, now: float) -> None:
    """Runs that failed."""
    task_ids = message.task_ids
    attempts = message.attempts
    model.remember(now, "erred", task_ids, attempts)
    ended = [changes.handed_end(model, outbox, task_ids[i], attempts[i], False) for i in range(len(task_ids))]
    stale = [i for i in range(len(ended)) if ended[i] is None]
    _report(outbox, message, stale)


def _report(outbox: Outbox, message: TasksFinished | TasksErred, stale: list[int]) -> None:
    """Tell the scheduler of ended runs, the stale rows left out."""
    count = len(message.task_ids)
    if len(stale) == count:
        return
    if stale:
        rows = sorted(set(range(count)).difference(stale))
        picked: dict[str, Any] = {
            name: tuple([column[i] for i in rows])
            for name, column in message._asdict().items()
            if type(column) is tuple and column
        }
        picked["timings"] = b"".join([message.timings[32 * i : 32 * i + 32] for i in rows])
        picked["cpus"] = b"".join([message.cpus[8 * i : 8 * i + 8] for i in rows])
        message = message._replace(**picked)
    outbox.send_scheduler(message)


def on_tasks_seceded(model: WorkerModel, outbox: Outbox, message: TasksSeceded, now: float) -> None:
    """Runs that left their thread slot; their resources stay taken until they end."""
    model.remember(now, "seceded", message.task_ids, message.attempts)
    rows = []
    for i in range(len(message.task_ids)):
        task_id = message.task_ids[i]
        attempt = message.attempts[i]
        run = model.runs.get(task_id)
        if run is None or run.attempt != attempt:
            run = model.freed.get((task_id, attempt))
        if run is None or run.state is not EXECUTING:
            continue
        run.begun = True
        run.pool.handed -= 1
        run.pool.work -= run.expected
        changes.move_run(model, run, SECEDED)
        if not run.freed:
            rows.append(i)
    if rows:
        ids = tuple([message.task_ids[i] for i in rows])
        outbox.send_scheduler(TasksSeceded(ids, tuple([message.attempts[i] for i in rows])))


def on_tasks_returned(model: WorkerModel, outbox: Outbox, message: TasksReturned, now: float) -> None:
    """The answer to the oldest open ``CancelTasks``: these were taken out of the queue, its others were begun.

    Raises ValueError if no ``CancelTasks`` is open.
    """
    if not model.cancel_batches:
        raise ValueError("an answer to a CancelTasks that was never sent")
    model.remember(now, "returned", message.task_ids, message.attempts)
    count = model.cancel_batches.pop(0)
    batch = model.asked[:count]
    del model.asked[:count]
    returned = set(zip(message.task_ids, message.attempts, strict=True))
    for run in batch:
        run.asked = False
        if (run.task_id, run.attempt) not in returned:
            run.begun = True
            if run.stealing:
                run.stealing = False
                outbox.steal_rows.append((run.task_id, run.attempt, False))
        elif run.freed:
            del model.freed[(run.task_id, run.attempt)]
            changes.end_handed(model, run)
            if run.leftover:
                changes.drop_leftover(model, outbox, run.task_id)
        else:
            run.stealing = False
            changes.end_handed(model, run)
            changes.remove_run(model, outbox, run)
            outbox.steal_rows.append((run.task_id, run.attempt, True))


def on_executor_lost(
    model: WorkerModel, outbox: Outbox, running: Sequence[tuple[int, int]], cause: ErrorRecord, now: float
) -> None:
    """The executor is gone, with all values and runs it had; ``running``: what its threads were at."""
    blamed = [(task_id, attempt) for task_id, attempt in running if _is_current(model, task_id, attempt)]
    task_ids = tuple([task_id for task_id, attempt in blamed])
    attempts = tuple([attempt for task_id, attempt in blamed])
    model.remember(now, "executor-lost", task_ids, attempts)
    outbox.forget_executor()
    outbox.send_scheduler(ExecutorLost(task_ids, attempts, cause))
    model.forget_all()


def _is_current(model: WorkerModel, task_id: int, attempt: int) -> bool:
    run = model.runs.get(task_id)
    return run is not None and run.attempt == attempt


# From the shell's fetches and data server


def on_fetch_done(
    model: WorkerModel,
    outbox: Outbox,
    holder: str,
    task_ids: Sequence[int],
    attempts: Sequence[int],
    nbytes: Sequence[int],
    values: Sequence[Payload | None],
    now: float,
) -> list[bool]:
    """Values arrived from a holder. Each row of a ``Fetch`` is reported once, here or as failed, in any grouping.

    ``values[i]`` is a small value's payload, which is kept here and given to the executor when needed; or None, and
    then the bytes are in the shell's hands, as a segment. Returns for each row whether it is wanted. For a wanted
    segment the shell must at once send ``outbox.take_executor()`` and then the ``PutSegments``; the others it closes.
    """
    model.remember(now, "fetched", task_ids, attempts)
    accepted = []
    for i in range(len(task_ids)):
        _land(model, holder, task_ids[i])
        value = model.values.get(task_ids[i])
        if value is None or value.state is MEMORY:
            accepted.append(False)
            continue
        if value.attempt != attempts[i] or not (model.ready or values[i] is not None):
            _seek_again(model, outbox, value)
            accepted.append(False)
            continue
        for row_holder, lost in value.reports or ():
            if lost:
                outbox.missing_rows.append((value.task_id, value.attempt, row_holder, True))
        if values[i] is None:
            value.stored = True
        else:
            value.payload = values[i]
        value.held = True
        value.wanted = False
        changes.value_arrived(model, value, nbytes[i])
        outbox.added_rows.append((value.task_id, value.attempt, value.nbytes))
        accepted.append(True)
    return accepted


def on_fetch_failed(
    model: WorkerModel,
    outbox: Outbox,
    holder: str,
    task_ids: Sequence[int],
    attempts: Sequence[int],
    lost: bool,
    now: float,
) -> None:
    """Values that a holder doesn't have (``lost``), or that could not be had from it (unreachable, broken off).

    Other holders are tried; when there are none, the scheduler is told.
    """
    model.remember(now, "lost" if lost else "unreachable", task_ids, attempts)
    for i in range(len(task_ids)):
        _land(model, holder, task_ids[i])
        value = model.values.get(task_ids[i])
        if value is None or value.state is MEMORY:
            continue
        if value.attempt == attempts[i]:
            if value.failures is None:
                value.failures = {}
            tries = value.failures.get(holder, 0) + 1
            value.failures[holder] = tries
            if value.reports is None:
                value.reports = []
            value.reports.append((holder, lost or tries >= model.settings.fetch_failures))
            if value.holders and holder in value.holders:
                value.holders.remove(holder)
        _seek_again(model, outbox, value)


def on_fetch_unusable(
    model: WorkerModel, outbox: Outbox, holder: str, task_id: int, attempt: int, error: ErrorRecord, now: float
) -> None:
    """A holder has a value that can't leave it: the runs here that need it have failed for that reason."""
    model.remember(now, "unusable", (task_id,), (attempt,))
    _land(model, holder, task_id)
    value = model.values.get(task_id)
    if value is None or value.state is MEMORY:
        return
    if value.attempt != attempt:
        _seek_again(model, outbox, value)
        return
    runs = list((value.dependents or {}).values())
    if value.wanted:
        value.wanted = False
        outbox.missing_rows.append((task_id, attempt, holder, False))
        changes.drop_unneeded(model, outbox, value)
    if runs:
        ids = tuple([run.task_id for run in runs])
        attempts = tuple([run.attempt for run in runs])
        for run in runs:
            changes.remove_run(model, outbox, run)
        count = len(runs)
        times = array("d", [now] * (4 * count)).tobytes()
        outbox.send_scheduler(TasksErred(ids, attempts, (error,) * count, (0,) * count, times))


def _seek_again(model: WorkerModel, outbox: Outbox, value: Value) -> None:
    """A flight of this value ended without it."""
    if value.state is FLIGHT:
        changes.move_value(model, value, FETCH)
    _seek_or_report(model, outbox, value)


def _land(model: WorkerModel, holder: str, task_id: int) -> None:
    """A row of a fetch was reported; the last one makes its holder free for another fetch."""
    flight = model.flights.get(holder)
    if flight is not None and task_id in flight.rows:
        del flight.rows[task_id]
        del model.in_flight[task_id]
        if not flight.rows:
            del model.flights[holder]


def on_value_received(model: WorkerModel, outbox: Outbox, task_id: int, attempt: int, nbytes: int, now: float) -> bool:
    """A client sent a value, which is in the shell's hands as a segment.

    Returns True if the shell must at once send ``outbox.take_executor()`` and then the ``PutSegments``; False if no
    executor is there to hold it, and the client is to be told that this failed.
    """
    model.remember(now, "received", (task_id,), (attempt,))
    if not model.ready:
        return False
    value = changes.merge_value(model, task_id, attempt, nbytes, None, ())
    if value.state is not MEMORY:
        value.stored = True
        changes.value_arrived(model, value, nbytes)
    value.held = True
    value.wanted = False
    outbox.added_rows.append((task_id, attempt, nbytes))
    return True
