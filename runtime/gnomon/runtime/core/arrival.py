"""Graphs that arrive: checked, ordered, made into tasks, tied to what is known, and set going.

Same key, other definition: a key that the scheduler knows keeps its first definition as long as that is alive. But a
definition that erred, that is only kept as lineage (released), or that a client cancelled while others went on needing
it, gives way to one that differs from it: the key then names a new task with a new id. The old one keeps its own
futures and dependents. So no value of an old definition is ever reported for a new one.

Contents: admit.
"""

from __future__ import annotations

from gnomon.runtime.core.clients import ClientState
from gnomon.runtime.core.codes import Code
from gnomon.runtime.core.interest import want
from gnomon.runtime.core.model import Model
from gnomon.runtime.core.options import Options
from gnomon.runtime.core.order import depth_first
from gnomon.runtime.core.outbox import Outbox
from gnomon.runtime.core.states import ERRED, MEMORY, PROCESSING, QUEUED, RELEASED, WAITING
from gnomon.runtime.core.task import TaskGroup, TaskState
from gnomon.runtime.core.transitions import demand, let_go, lose, set_state, settle
from gnomon.runtime.messages import Payload, UpdateGraph

__all__ = ["admit", "gives_way"]

#: Distinct dependencies by which the tasks of a group count as made from the same few things.
_FEW_SOURCES = 4


def admit(model: Model, outbox: Outbox, client: ClientState, message: UpdateGraph) -> None:
    """Take in a graph. Raises ValueError, having changed nothing, if the message makes no sense."""
    _check(client, message)
    sequence = depth_first(message.dependencies, len(message.externals))
    for client_code, blob in message.codes:
        client.codes[client_code] = model.add_code(blob)
    first_id = model.unseen_task
    rows = _make_tasks(model, client, message, _generation(model, message), sequence)
    dead: list[TaskState] = []
    if message.dependencies:
        dead = _link(client, message, rows, first_id)
    for i in range(len(rows)):
        future_id = message.future_ids[i]
        if future_id:
            want(outbox, rows[i], client, future_id)
    _set_going(model, outbox, rows, sequence, first_id)
    for ts in dead:
        lose(model, outbox, ts)


def _check(client: ClientState, message: UpdateGraph) -> None:
    """Raise ValueError unless the columns fit together and name only what is known."""
    n = len(message.keys)
    if not len(message.task_codes) == len(message.payloads) == len(message.future_ids) == n:
        raise ValueError("the columns of a graph differ in length")
    if len(message.dependencies) not in (0, n) or len(message.option_rows) not in (0, n):
        raise ValueError("an optional column of a graph is neither empty nor as long as the others")
    try:
        distinct = len(set(message.keys))
    except TypeError:
        raise ValueError("a key is not hashable") from None
    if distinct != n:
        raise ValueError("a graph names a key twice")
    brought = {code for code, _ in message.codes}
    if len(brought) != len(message.codes) or not brought.isdisjoint(client.codes):
        raise ValueError("a client code is given twice")
    for code in set(message.task_codes):
        if code not in brought and code not in client.codes:
            raise ValueError(f"client code {code} is unknown")
    wanted = [future_id for future_id in message.future_ids if future_id]
    if len(set(wanted)) != len(wanted) or not client.futures.keys().isdisjoint(wanted):
        raise ValueError("a future id is used twice")
    if message.option_rows:
        if min(message.option_rows) < 0 or max(message.option_rows) >= len(message.options):
            raise ValueError("a row names options that the graph doesn't have")
    elif n and not message.options:
        raise ValueError("a graph without options")


def _generation(model: Model, message: UpdateGraph) -> int:
    """The middle of the graph's priorities: later graphs come later, a running task's own graphs just before it.

    Graphs have even numbers, what tasks submit has the odd one before theirs.
    """
    parent = model.by_id.get(message.parent_task) if message.parent_task else None
    if parent is not None and parent.state == PROCESSING:
        generation: int = parent.priority[1]
        return generation if generation % 2 else generation - 1
    merged = message.fifo_timeout > 0.0 and model.now - model.generation_time <= message.fifo_timeout
    if not merged:
        model.generation += 2
        model.generation_time = model.now
    return model.generation


def _make_tasks(
    model: Model, client: ClientState, message: UpdateGraph, generation: int, sequence: list[int] | None
) -> list[TaskState]:
    """A task for every row: the one that is known, or a new one."""
    n = len(message.keys)
    if n == 0:
        return []
    keys = message.keys
    payloads = message.payloads
    task_codes = message.task_codes
    option_rows = message.option_rows
    all_options = [model.options_of(wish) for wish in message.options]
    places = range(n) if sequence is None else _places(sequence)
    tasks = model.tasks
    codes = client.codes
    rows: list[TaskState] = []
    client_code = -1
    code = None
    options: Options = all_options[0]
    for i in range(n):
        if code is None or task_codes[i] != client_code:
            client_code = task_codes[i]
            code = codes[client_code]
        ts = tasks.get(keys[i])
        if ts is None or gives_way(ts, code, payloads[i]):
            if option_rows:
                options = all_options[option_rows[i]]
            priority = (-options.user_priority, generation, places[i])
            ts = model.add_task(keys[i], code, payloads[i], options, priority)
        rows.append(ts)
    return rows


def _places(sequence: list[int]) -> list[int]:
    """By row, its place in the sequence."""
    places = [0] * len(sequence)
    for place in range(len(sequence)):
        places[sequence[place]] = place
    return places


def gives_way(ts: TaskState, code: Code | None, payload: Payload) -> bool:
    """Whether a known definition of a key makes room for this one; see the head of this module."""
    if ts.state != ERRED and ts.state != RELEASED and not ts.cancelled:
        return False
    if ts.code is None or code is None:
        return True
    if ts.code is not code and ts.code.blob != code.blob:
        return True
    return bool(ts.payload != payload)


def _link(client: ClientState, message: UpdateGraph, rows: list[TaskState], first_id: int) -> list[TaskState]:
    """Tie new tasks to what they need. Returns those that need a future which is no more."""
    externals = [client.futures.get(future_id) for future_id in message.externals]
    dependencies = message.dependencies
    dead: list[TaskState] = []
    for i in range(len(rows)):
        row = dependencies[i]
        ts = rows[i]
        if not row or ts.task_id < first_id:
            continue
        group = ts.group
        needs: list[TaskState] = []
        alive = True
        for item in row:
            index = item
            dep = rows[index] if index >= 0 else externals[-1 - index]
            if dep is None:
                alive = False
                continue
            needs.append(dep)
            if dep.dependents is None:
                dep.dependents = [ts]
            else:
                dep.dependents.append(ts)
            if not group.spread:
                _note_source(group, dep)
        ts.dependencies = tuple(needs)
        if not alive:
            dead.append(ts)
    return dead


def _note_source(group: TaskGroup, dep: TaskState) -> None:
    """A task of a group depends on this one."""
    if dep.task_id not in group.sources:
        if len(group.sources) < _FEW_SOURCES:
            group.sources.append(dep.task_id)
        else:
            group.spread = True


def _set_going(model: Model, outbox: Outbox, rows: list[TaskState], sequence: list[int] | None, first_id: int) -> None:
    """Demand what is wanted, and what that needs; drop rows that nobody wants."""
    n = len(rows)
    unneeded: list[TaskState] = []
    for k in range(n - 1, -1, -1):
        ts = rows[k if sequence is None else sequence[k]]
        if ts.task_id < first_id:
            continue
        if ts.client is None and ts.waiters == 0:
            unneeded.append(ts)
            continue
        if not ts.dependencies and not ts.options.restricted:
            continue
        set_state(model, ts, WAITING)
        for item in ts.dependencies:
            dep: TaskState = item
            dep.waiters += 1
    for k in range(n):
        ts = rows[k if sequence is None else sequence[k]]
        if ts.task_id < first_id:
            if ts.state == RELEASED and (ts.client is not None or ts.waiters):
                demand(model, outbox, ts)
        elif ts.state == WAITING:
            for item in ts.dependencies:
                dep = item
                if dep.state != MEMORY:
                    ts.waiting_on += 1
            settle(model, outbox, ts)
        elif ts.state == RELEASED and (ts.client is not None or ts.waiters):
            set_state(model, ts, QUEUED)
            model.queue.push(ts)
            model.placement_wanted = True
    for ts in unneeded:
        let_go(model, outbox, ts)
