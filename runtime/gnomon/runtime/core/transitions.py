"""The engine: how tasks change state, and what follows for their neighbours.

Everything that touches a task's state is in this file. Two numbers carry the graph: ``waiters`` of a task counts the
edges from dependents that are unfinished, so a task that nobody wants and with no waiters can be released at once;
``waiting_on`` counts the edges to dependencies that are not in memory, so a waiting task with none is ready. A task is
forgotten once it is released and all its dependents are forgotten. Chains are walked with lists, never by recursion.

Contents: set_state (the only place that writes ``TaskState.state``); demand, ready, requeue (towards a run); assign,
leave_worker (in and out of processing); to_memory; fail; lose; let_go (towards being forgotten); value_gone.
"""

from __future__ import annotations

from gnomon.runtime.core.codes import Code
from gnomon.runtime.core.model import Model
from gnomon.runtime.core.outbox import Outbox
from gnomon.runtime.core.states import (
    ERRED,
    FOLLOWERS,
    FORGOTTEN,
    MEMORY,
    NO_WORKER,
    PROCESSING,
    QUEUED,
    RELEASED,
    WAITING,
)
from gnomon.runtime.core.task import TaskState
from gnomon.runtime.core.worker import WorkerState
from gnomon.runtime.messages import ErrorRecord, Key, Payload

__all__ = [
    "assign",
    "demand",
    "drop_wants",
    "fail",
    "leave_worker",
    "let_go",
    "lose",
    "ready",
    "release_code",
    "requeue",
    "set_state",
    "settle",
    "to_memory",
    "value_gone",
]


def set_state(model: Model, ts: TaskState, state: int) -> None:
    """Write a task's state: its group's counts and the story follow."""
    before = ts.state
    if model.checking:
        assert state in FOLLOWERS[before], (ts, state, model.story.of(ts.key))
    counts = ts.group.counts
    counts[before] -= 1
    counts[state] += 1
    ts.state = state
    ws = ts.processing_on
    model.log.append((model.now, ts.key, ts.task_id, before, state, ts.attempt, 0 if ws is None else ws.worker_id))


def demand(model: Model, outbox: Outbox, root: TaskState) -> None:
    """Let a released task be computed, and the released tasks it needs, however deep."""
    if root.code is None:
        lose(model, outbox, root)
        return
    stack = [root]
    begun: list[TaskState] = []
    while stack:
        ts: TaskState = stack.pop()
        if ts.state != RELEASED:
            continue
        set_state(model, ts, WAITING)
        ts.waiting_on = 0
        begun.append(ts)
        for item in ts.dependencies:
            dep: TaskState = item
            dep.waiters += 1
            if dep.state != MEMORY:
                ts.waiting_on += 1
                if dep.state == RELEASED and dep.code is not None:
                    stack.append(dep)
    begun.reverse()
    for ts in begun:
        settle(model, outbox, ts)


def settle(model: Model, outbox: Outbox, ts: TaskState) -> None:
    """A task has become waiting: find out whether it is ready, or can never be."""
    if ts.state != WAITING:
        return
    if ts.waiting_on == 0:
        ready(model, ts)
        return
    for item in ts.dependencies:
        dep: TaskState = item
        error = dep.error
        if error is not None:
            fail(model, outbox, ts, error, dep.blame)
            return
        if dep.state == RELEASED and dep.code is None:
            lose(model, outbox, ts)
            return


def ready(model: Model, ts: TaskState) -> None:
    """Everything a waiting task needs is in memory: queue it, or let the next pass choose its worker."""
    model.placement_wanted = True
    if not ts.options.restricted:
        group = ts.group
        if not ts.dependencies or (not group.spread and group.alive > 2 * model.total_threads) or not _needs_bytes(ts):
            set_state(model, ts, QUEUED)
            model.queue.push(ts)
            return
    model.ready.append(ts)


def _needs_bytes(ts: TaskState) -> bool:
    """Whether some dependency's value has to be fetched by a worker that doesn't hold it."""
    for item in ts.dependencies:
        dep: TaskState = item
        if dep.value is None:
            return True
    return False


def assign(model: Model, outbox: Outbox, ts: TaskState, ws: WorkerState) -> None:
    """Give a ready or queued task to a worker."""
    if ts.state == QUEUED:
        model.queue.pop(ts)
    ts.attempt += 1
    ts.processing_on = ws
    ts.thief = 0
    duration = ts.group.prefix.duration
    ts.expected = duration if duration >= 0.0 else model.unknown_duration
    if not ws.processing:
        ws.last_done = model.now
    ws.processing[ts] = None
    ws.occupancy += ts.expected
    ws.active += 1
    set_state(model, ts, PROCESSING)
    outbox.to_worker(ws.worker_id).compute(ts, ws, duration)
    model.stealing_useful = True


def leave_worker(model: Model, ts: TaskState) -> None:
    """Take a processing task off its worker's books; the caller gives it another state."""
    ws = ts.processing_on
    assert ws is not None, ts
    ts.processing_on = None
    del ws.processing[ts]
    ws.last_done = model.now
    if ts.seceded:
        ts.seceded = False
    else:
        ws.active -= 1
        ws.occupancy -= ts.expected
        if ws.active == 0 or ws.occupancy < 0.0:
            ws.occupancy = 0.0  # sums of floats drift
    if ts.thief:
        ts.thief = 0
        model.moving.pop(ts.task_id, None)
    if not ws.retiring:
        model.open[ws] = None
    if model.queue.live:
        model.placement_wanted = True


def to_memory(model: Model, outbox: Outbox, ts: TaskState, nbytes: int, value: Payload | None) -> None:
    """A task's value is there: tell those who want it, wake dependents, let dependencies go.

    The caller has taken it off its worker's books, and set its holders.
    """
    set_state(model, ts, MEMORY)
    ts.nbytes = nbytes
    ts.value = value
    ts.missing = 0
    ts.failures = 0
    for holder in ts.holders:
        ws: WorkerState = holder
        ws.has_what[ts] = None
        ws.nbytes += nbytes
    outbox.tell(ts)
    dependents = ts.dependents
    if ts.waiters and dependents is not None:
        for item in dependents:
            dependent: TaskState = item
            if dependent.state == WAITING:
                dependent.waiting_on -= 1
                if dependent.waiting_on == 0:
                    ready(model, dependent)
    for item in ts.dependencies:
        dep: TaskState = item
        dep.waiters -= 1
        if dep.waiters == 0 and dep.client is None:
            let_go(model, outbox, dep)
    if ts.waiters == 0 and ts.client is None:
        let_go(model, outbox, ts)


def requeue(model: Model, outbox: Outbox, ts: TaskState) -> None:
    """A processing task, off its worker's books, starts again from waiting."""
    set_state(model, ts, WAITING)
    ts.waiting_on = 0
    gone: list[TaskState] = []
    for item in ts.dependencies:
        dep: TaskState = item
        if dep.state != MEMORY:
            ts.waiting_on += 1
            if dep.state == RELEASED and dep.code is not None:
                gone.append(dep)
    for dep in gone:
        demand(model, outbox, dep)
    settle(model, outbox, ts)


def fail(model: Model, outbox: Outbox, root: TaskState, error: ErrorRecord, blame: Key) -> None:
    """An unfinished task failed, and with it those waiting for it. The caller has taken it off its worker's books."""
    stack = [root]
    unneeded: list[TaskState] = []
    while stack:
        ts: TaskState = stack.pop()
        before = ts.state
        if before < WAITING or before > PROCESSING:
            continue
        _leave_waiting_place(model, ts)
        set_state(model, ts, ERRED)
        ts.error = error
        ts.blame = blame
        outbox.tell_erred(ts, error)
        for item in ts.dependents or ():
            dependent: TaskState = item
            if dependent.state == WAITING:
                stack.append(dependent)
        for item in ts.dependencies:
            dep: TaskState = item
            dep.waiters -= 1
            if dep.waiters == 0 and dep.client is None:
                unneeded.append(dep)
        if ts.waiters == 0 and ts.client is None:
            unneeded.append(ts)
    for ts in unneeded:
        let_go(model, outbox, ts)


def _leave_waiting_place(model: Model, ts: TaskState) -> None:
    """An unfinished task that no worker has is about to change state: keep the books of where it waited."""
    state = ts.state
    if state == QUEUED:
        model.queue.discard()
    elif state == NO_WORKER:
        del model.no_worker[ts]
    elif state == WAITING and ts.code is None:
        model.scattering.pop(ts, None)


def lose(model: Model, outbox: Outbox, root: TaskState) -> None:
    """What a task is made of is gone for good: whoever wants it, or waits for it, is told so."""
    stack = [root]
    lost: dict[TaskState, None] = {}
    while stack:
        ts: TaskState = stack.pop()
        if ts in lost:
            continue
        lost[ts] = None
        drop_wants(outbox, ts, "lost", f"{root.key!r} was brought by a client or made from such data, and is lost")
        for item in ts.dependents or ():
            dependent: TaskState = item
            if dependent.state == PROCESSING:
                # It may have had its inputs still; but then it would go on to need what can't be made again.
                ws = dependent.processing_on
                assert ws is not None, dependent
                leave_worker(model, dependent)
                outbox.free(ws, dependent.task_id, dependent.attempt)
                set_state(model, dependent, WAITING)
                dependent.waiting_on = 1
            if dependent.state == WAITING:
                stack.append(dependent)
    for ts in reversed(list(lost)):
        let_go(model, outbox, ts)


def drop_wants(outbox: Outbox, ts: TaskState, reason: str, text: str) -> None:
    """Take a task from everyone who wants it, and tell them."""
    client = ts.client
    if client is None:
        return
    del client.futures[ts.future_id]
    outbox.to_client(client.client_id).cancelled(ts.future_id, reason, text)
    if ts.more_wants is not None:
        for other, future_id in ts.more_wants:
            del other.futures[future_id]
            outbox.to_client(other.client_id).cancelled(future_id, reason, text)
    ts.client = None
    ts.future_id = 0
    ts.more_wants = None


def let_go(model: Model, outbox: Outbox, root: TaskState) -> None:
    """Somebody stopped to want or need a task: release it if nobody does, forget it if nothing comes of it."""
    stack = [root]
    while stack:
        ts: TaskState = stack.pop()
        if ts.waiters or ts.client is not None or ts.state == FORGOTTEN:
            continue
        if ts.state != RELEASED:
            _release(model, outbox, ts, stack)
        dependents = ts.dependents
        if dependents is None or ts.dead == len(dependents):
            _forget(model, outbox, ts, stack)


def _release(model: Model, outbox: Outbox, ts: TaskState, stack: list[TaskState]) -> None:
    """Stop a task's run, or free its value; dependencies that nobody needs any more go on the stack."""
    state = ts.state
    if state == MEMORY:
        for holder in ts.holders:
            ws: WorkerState = holder
            del ws.has_what[ts]
            ws.nbytes -= ts.nbytes
            outbox.free(ws, ts.task_id, ts.attempt)
        ts.holders = ()
        ts.value = None
    elif state == ERRED:
        ts.error = None
        ts.blame = ""
    else:
        runner = ts.processing_on
        if runner is not None:
            leave_worker(model, ts)
            outbox.free(runner, ts.task_id, ts.attempt)
        else:
            _leave_waiting_place(model, ts)
        for item in ts.dependencies:
            dep: TaskState = item
            dep.waiters -= 1
            if dep.waiters == 0 and dep.client is None:
                stack.append(dep)
    set_state(model, ts, RELEASED)


def _forget(model: Model, outbox: Outbox, ts: TaskState, stack: list[TaskState]) -> None:
    """Take a released task out of the model; dependencies kept for its sake alone go on the stack."""
    set_state(model, ts, FORGOTTEN)
    group = ts.group
    group.counts[FORGOTTEN] -= 1
    group.alive -= 1
    if group.alive == 0:
        model.drop_group(group)
    del model.by_id[ts.task_id]
    if model.tasks.get(ts.key) is ts:
        del model.tasks[ts.key]
    code = ts.code
    if code is not None:
        ts.code = None
        code.references -= 1
        if code.references == 0:
            release_code(model, outbox, code)
    for item in ts.dependencies:
        dep: TaskState = item
        dep.dead += 1
        dependents = dep.dependents
        assert dependents is not None, dep
        if dep.dead == len(dependents):
            dep.dependents = None
            dep.dead = 0
            stack.append(dep)
        elif dep.dead > 32 and dep.dead * 2 > len(dependents):
            dep.dependents = [d for d in dependents if d.state != FORGOTTEN]
            dep.dead = 0
    ts.dependencies = ()
    ts.dependents = None


def release_code(model: Model, outbox: Outbox, code: Code) -> None:
    """Nothing names this code any more: workers that have it may drop it."""
    for worker_id in code.workers:
        ws = model.workers.get(worker_id)
        if ws is not None and ws.codes.pop(code.code_id, None) is not None:
            outbox.to_worker(worker_id).drop_code(code.code_id)
    code.workers = []


def value_gone(model: Model, outbox: Outbox, ts: TaskState) -> None:
    """The last copy of a task's value is gone. The caller demands it afterwards, once it knows all that is gone."""
    set_state(model, ts, RELEASED)
    ts.holders = ()
    ts.value = None
    if ts.code is not None:
        outbox.tell_pending(ts)
    for item in ts.dependents or ():
        dependent: TaskState = item
        if dependent.state == QUEUED or dependent.state == NO_WORKER:
            _leave_waiting_place(model, dependent)
            set_state(model, dependent, WAITING)
            dependent.waiting_on = 1
        elif dependent.state == WAITING:
            dependent.waiting_on += 1
