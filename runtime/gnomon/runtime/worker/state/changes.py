"""The changes of state of runs and values, each keeping every collection of the model in step. No policy here.

Which state may follow which stands in ``states``; the ``events`` say when.
"""

from __future__ import annotations

from heapq import heappush
from typing import TYPE_CHECKING

from gnomon.runtime.worker.state.model import WorkerModel
from gnomon.runtime.worker.state.outbox import Outbox
from gnomon.runtime.worker.state.records import Run, Value
from gnomon.runtime.worker.state.states import (
    CONSTRAINED,
    EXECUTING,
    FETCH,
    FLIGHT,
    GONE,
    MEMORY,
    MISSING,
    READY,
    RUN_ARROWS,
    SECEDED,
    VALUE_ARROWS,
    WAITING,
)

if TYPE_CHECKING:
    from gnomon.runtime.messages import Payload

__all__ = [
    "attach",
    "drop_leftover",
    "drop_unneeded",
    "end_handed",
    "free_run",
    "handed_end",
    "make_ready",
    "merge_value",
    "move_run",
    "move_value",
    "release_dependencies",
    "remove_run",
    "seek",
    "value_arrived",
]


def move_run(model: WorkerModel, run: Run, state: str) -> None:
    """Set a run's state; raises AssertionError, when validating, if the table doesn't have the change."""
    if model.validate and state not in RUN_ARROWS[run.state]:
        raise AssertionError(f"run {run.task_id} {run.state} -> {state}: {model.story(run.task_id)}")
    run.state = state


def move_value(model: WorkerModel, value: Value, state: str) -> None:
    """Set a value's state; raises AssertionError, when validating, if the table doesn't have the change."""
    if model.validate and state not in VALUE_ARROWS[value.state]:
        raise AssertionError(f"value {value.task_id} {value.state} -> {state}: {model.story(value.task_id)}")
    value.state = state


# Runs


def make_ready(model: WorkerModel, run: Run) -> None:
    """All that the run needs is here: let it wait for its turn."""
    model.number += 1
    if run.resources:
        move_run(model, run, CONSTRAINED)
        heap = run.pool.constrained.get(run.resources)
        if heap is None:
            heap = run.pool.constrained[run.resources] = []
        heappush(heap, (run.priority, model.number, run))
    else:
        move_run(model, run, READY)
        heappush(run.pool.ready, (run.priority, model.number, run))


def attach(model: WorkerModel, run: Run, value: Value) -> None:
    """Let a run depend on a value; the run counts it as absent unless it is in memory."""
    if value.dependents is None:
        value.dependents = {}
    elif run.task_id in value.dependents:
        return
    value.dependents[run.task_id] = run
    if value.state is not MEMORY:
        run.absent += 1
        if run.priority < value.priority:
            value.priority = run.priority
            if value.state is FETCH:
                seek(model, value)


def release_dependencies(model: WorkerModel, outbox: Outbox, run: Run) -> None:
    """The run needs its dependencies no more; drop those that nothing else keeps here."""
    for task_id in run.dependencies:
        value = model.values.get(task_id)
        if value is not None and value.dependents and value.dependents.get(run.task_id) is run:
            del value.dependents[run.task_id]
            drop_unneeded(model, outbox, value)


def end_handed(model: WorkerModel, run: Run) -> None:
    """The executor is rid of a run: give back its slot and resources."""
    if run.state is EXECUTING:
        pool = run.pool
        pool.handed -= 1
        pool.work -= run.expected
        if pool.handed == 0:
            pool.work = 0.0  # sums of floats drift
    if run.resources:
        for name, amount in run.resources:
            model.available[name] += amount
    move_run(model, run, GONE)


def handed_end(model: WorkerModel, outbox: Outbox, task_id: int, attempt: int, stored: bool) -> Run | None:
    """The current run that the executor says has ended, taken out of the model; None if the row is stale.

    ``stored``: it left a value in the executor's store. That of a stale run is dropped.
    """
    run = model.runs.get(task_id)
    if run is None or run.attempt != attempt or (run.state is not EXECUTING and run.state is not SECEDED):
        old = model.freed.pop((task_id, attempt), None) if model.freed else None
        if old is not None:
            end_handed(model, old)
        if stored or (old is not None and old.leftover):
            drop_leftover(model, outbox, task_id)
        return None
    if run.stealing:
        run.stealing = False
        outbox.steal_rows.append((task_id, attempt, False))
    del model.runs[task_id]
    end_handed(model, run)
    if run.dependencies:
        release_dependencies(model, outbox, run)
    if run.leftover and not stored:
        drop_leftover(model, outbox, task_id)
    return run


def remove_run(model: WorkerModel, outbox: Outbox, run: Run) -> None:
    """Forget a run that the executor hasn't got."""
    del model.runs[run.task_id]
    if run.state is not GONE:
        move_run(model, run, GONE)
    run.payload = b""  # its heap entry may stay for a while
    if run.dependencies:
        release_dependencies(model, outbox, run)
    if run.leftover:
        drop_leftover(model, outbox, run.task_id)


def free_run(model: WorkerModel, outbox: Outbox, run: Run) -> None:
    """Nobody wants a run's outcome any more."""
    if run.state is EXECUTING or run.state is SECEDED:
        if run.stealing:
            run.stealing = False
            outbox.steal_rows.append((run.task_id, run.attempt, False))
        run.freed = True
        del model.runs[run.task_id]
        model.freed[(run.task_id, run.attempt)] = run
        if run.dependencies:
            release_dependencies(model, outbox, run)
        if run.state is EXECUTING and not run.asked and not run.begun:
            run.asked = True
            model.to_cancel.append(run)
    else:
        remove_run(model, outbox, run)


# Values


def merge_value(
    model: WorkerModel,
    task_id: int,
    attempt: int,
    nbytes: int,
    payload: Payload | None,
    holders: tuple[str, ...] | list[str],
) -> Value:
    """Take in what the scheduler says of a value that is wanted here: its payload, or where to fetch it.

    The value's queues are not touched: who calls this calls ``seek`` when it is known who wants it.
    """
    value = model.values.get(task_id)
    if value is None:
        value = model.values[task_id] = Value(task_id, attempt, nbytes, payload, MISSING)
        if payload is not None:
            move_value(model, value, MEMORY)
            return value
    elif value.state is MEMORY or value.attempt > attempt:
        return value
    elif payload is not None:
        value.attempt = attempt
        value.payload = payload
        value_arrived(model, value, nbytes)
        return value
    if value.attempt != attempt:  # what was known of an older attempt is worth nothing
        value.attempt = attempt
        value.holders = None
        value.failures = None
        value.reports = None
        if value.state is not MISSING:
            move_value(model, value, MISSING)
    if value.holders is None:
        value.holders = []
    for holder in holders:
        if holder not in value.holders:
            value.holders.append(holder)
    return value


def seek(model: WorkerModel, value: Value) -> None:
    """A value is wanted: queue it at its holders, or join its flight, or report that nobody is known to hold it."""
    if value.state is MEMORY or value.state is FLIGHT:
        return
    if not value.holders:
        if value.state is not MISSING:
            move_value(model, value, MISSING)
        return
    if value.state is MISSING:
        move_value(model, value, FETCH)
        value.sought = model.now
    if value.task_id in model.in_flight:
        return  # one flight at a time for a value; when it ends, this one is sought again
    for holder in value.holders:
        model.number += 1
        queue = model.queues.get(holder)
        if queue is None:
            queue = model.queues[holder] = []
        heappush(queue, (value.priority, model.number, value))


def value_arrived(model: WorkerModel, value: Value, nbytes: int) -> None:
    """A value is here now, or made anew; let the runs that waited for it alone be ready."""
    value.nbytes = nbytes
    if value.state is MEMORY:
        return
    move_value(model, value, MEMORY)
    value.holders = None
    value.failures = None
    value.reports = None
    if value.dependents:
        for run in value.dependents.values():
            if run.state is WAITING:
                run.absent -= 1
                if run.absent == 0:
                    make_ready(model, run)


def drop_unneeded(model: WorkerModel, outbox: Outbox, value: Value) -> None:
    """Drop a value if neither the scheduler nor a run here keeps it."""
    if value.held or value.wanted or value.dependents:
        return
    del model.values[value.task_id]
    move_value(model, value, GONE)
    value.payload = None  # its queue entries may stay for a while
    if value.stored:
        drop_leftover(model, outbox, value.task_id)


def drop_leftover(model: WorkerModel, outbox: Outbox, task_id: int) -> None:
    """The executor's store holds a value that nobody wants: drop it, now or with what has its id.

    The store knows no attempts. While a run of the same task is under way its value may be there already, unreported.
    """
    value = model.values.get(task_id)
    if value is not None:
        value.stored = True
        return
    run = model.runs.get(task_id)
    if run is not None:
        run.leftover = True
        return
    outbox.dropped.append(task_id)
