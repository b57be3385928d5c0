"""A fake executor: threads that take virtual time, a store of values, and the manners of the real one."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, NamedTuple

from gnomon.runtime.messages import (
    CancelTasks,
    Codes,
    DropCodes,
    DropValues,
    ErrorRecord,
    Message,
    PutSegments,
    PutValues,
    RunTasks,
    TasksErred,
    TasksFinished,
    TasksReturned,
    TasksSeceded,
)
from tests.simulation.definitions import Definition, Oracle, value_of
from tests.simulation.world import SimulationError, World

__all__ = ["Executor"]


class _Row(NamedTuple):
    task_id: int
    attempt: int
    code_id: int
    payload: Any
    dependencies: tuple[int, ...]


class Executor:
    """One incarnation. ``emit`` gets its messages, ``die`` is called when a task takes it down."""

    def __init__(
        self,
        world: World,
        oracle: Oracle,
        pools: dict[str, int],
        resources: dict[str, float],
        emit: Callable[[Message], None],
        die: Callable[[], None],
    ) -> None:
        self._world = world
        self._oracle = oracle
        self._emit = emit
        self._die = die
        self._free = dict(pools)
        self._resources = resources
        self._queues: dict[str, list[_Row]] = {name: [] for name in pools}
        self._codes: set[int] = set()
        self.store: dict[int, bytes] = {}
        self._trapped: dict[int, ErrorRecord] = {}
        self.running: dict[tuple[int, int], str] = {}
        self._wishes: dict[tuple[int, int], Any] = {}
        self.alive = True

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits."""
        return not self.running and not any(self._queues.values())

    def handle(self, message: Any) -> None:
        """What the agent sent."""
        kind = type(message)
        if kind is RunTasks:
            self._enqueue(message)
        elif kind is CancelTasks:
            self._cancel(message)
        elif kind is PutValues:
            self.store.update(zip(message.task_ids, message.values, strict=True))
        elif kind is DropValues:
            for task_id in message.task_ids:
                self.store.pop(task_id, None)
        elif kind is Codes:
            if not self._codes.isdisjoint(message.code_ids):
                raise SimulationError(f"code was sent twice: {message}")
            self._codes.update(message.code_ids)
        elif kind is DropCodes:
            self._codes.difference_update(message.code_ids)
        else:
            raise SimulationError(f"the executor doesn't know {message}")

    def read(self, task_id: int) -> bytes | ErrorRecord | None:
        """A value on its way out."""
        return self._trapped.get(task_id) or self.store.get(task_id)

    def put_segments(self, message: PutSegments, values: tuple[bytes, ...]) -> None:
        """Values that came by descriptor."""
        self.store.update(zip(message.task_ids, values, strict=True))

    def _enqueue(self, message: RunTasks) -> None:
        count = len(message.task_ids)
        for i in range(count):
            needs = message.dependencies[i] if message.dependencies else ()
            name = message.executors[i] if message.executors else ""
            row = _Row(message.task_ids[i], message.attempts[i], message.code_ids[i], message.payloads[i], needs)
            if row.code_id not in self._codes:
                raise SimulationError(f"task {row.task_id} came before its code {row.code_id}")
            self._queues[name if name in self._queues else ""].append(row)
        self._begin()

    def _cancel(self, message: CancelTasks) -> None:
        wanted = set(zip(message.task_ids, message.attempts, strict=True))
        taken = []
        for name, queue in self._queues.items():
            taken += [row for row in queue if (row.task_id, row.attempt) in wanted]
            self._queues[name] = [row for row in queue if (row.task_id, row.attempt) not in wanted]
        self._emit(TasksReturned(tuple(r.task_id for r in taken), tuple(r.attempt for r in taken)))

    def _begin(self) -> None:
        for name, queue in self._queues.items():
            while queue and self._free[name] > 0:
                row = queue.pop(0)
                self._free[name] -= 1
                self._start(name, row)

    def _start(self, name: str, row: _Row) -> None:
        definition = self._oracle.definitions[row.payload]
        number = self._oracle.runs.get(row.payload, 0)
        self._oracle.runs[row.payload] = number + 1
        self.running[(row.task_id, row.attempt)] = name
        self._check_wish(name, row)
        inputs = [self.store.get(dep) for dep in row.dependencies]
        ticks = definition.ticks
        if number < definition.kills:
            self._world.after(ticks, self._crash, row)
            return
        if definition.secedes and number >= definition.failures:
            self._world.after(ticks // 2, self._secede, row)
        self._world.after(ticks, self._end, row, definition, number, inputs)

    def _check_wish(self, name: str, row: _Row) -> None:
        """A run is on the threads that it asked for, and there is enough of what it takes."""
        wish = self._oracle.wishes.get(row.payload)
        if wish is None:
            return  # nobody's future ever depended on it
        if name != (wish.executor if wish.executor in self._free else ""):
            raise SimulationError(f"task {row.task_id} for executor {wish.executor!r} runs on {name!r}")
        self._wishes[(row.task_id, row.attempt)] = wish
        for resource, total in self._resources.items():
            taken = sum(dict(w.resources).get(resource, 0.0) for w in self._wishes.values())
            if taken > total:
                raise SimulationError(f"runs take {taken} of {total} {resource}: {list(self._wishes)}")

    def _crash(self, row: _Row) -> None:
        if self.alive:
            self._world.trace("crash", (row.task_id, row.attempt))
            self._die()

    def _secede(self, row: _Row) -> None:
        if self.alive:
            name = self.running[(row.task_id, row.attempt)]
            self._free[name] += 1
            self.running[(row.task_id, row.attempt)] = "seceded"
            self._emit(TasksSeceded((row.task_id,), (row.attempt,)))
            self._begin()

    def _end(self, row: _Row, definition: Definition, number: int, inputs: list[bytes | None]) -> None:
        if not self.alive:
            return
        name = self.running.pop((row.task_id, row.attempt))
        self._wishes.pop((row.task_id, row.attempt), None)
        if name != "seceded":
            self._free[name] += 1
        start = self._world.now - definition.ticks / 1e6
        timings = array("d", [start, start, self._world.now, self._world.now]).tobytes()
        one = ((row.task_id,), (row.attempt,))
        present = [value for value in inputs if value is not None]
        if number < definition.failures:
            error = ErrorRecord("ValueError", row.payload.decode())
            self._oracle.raised[row.payload] = self._oracle.raised.get(row.payload, 0) + 1
            self._emit(TasksErred(*one, (error,), (0,), timings))
        elif len(present) < len(inputs):
            error = ErrorRecord("KeyError", "a dependency was not in the store")
            self._emit(TasksErred(*one, (error,), (0,), timings))
        else:
            value = value_of(row.payload, present)
            self.store[row.task_id] = value
            if definition.trapped:
                self._trapped[row.task_id] = ErrorRecord("ValueError", row.payload.decode())
            inline = value if definition.small else None
            self._emit(TasksFinished(*one, (definition.nbytes,), (inline,), (0,), timings))
        self._begin()
