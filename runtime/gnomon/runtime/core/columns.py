"""Builders of the messages that the brain sends: columns that grow row by row, made tuples when they are drained.

Contents: WorkerMail, ClientMail (what one destination is to get), and the builders they use.
"""

from __future__ import annotations

from gnomon.runtime.core.codes import Code
from gnomon.runtime.core.task import TaskState
from gnomon.runtime.core.worker import WorkerState
from gnomon.runtime.messages import (
    Codes,
    ComputeTasks,
    DropCodes,
    ErrorRecord,
    FetchReplicas,
    FreeTasks,
    FuturesCancelled,
    FuturesDone,
    FuturesErred,
    FuturesPending,
    Holders,
    Key,
    Message,
    Payload,
    StealTasks,
)

__all__ = ["ClientMail", "ComputeRows", "Rows", "WorkerMail"]

COMPUTE = 1
FREE = 2
STEAL = 3
FETCH = 4
HOLDERS = 5
CODES = 6
DROP_CODES = 7
DONE = 8
ERRED = 9
CANCELLED = 10
PENDING = 11


class Rows:
    """Up to four columns of a message of some kind; what they are, ``kind`` says."""

    __slots__ = ("first", "fourth", "kind", "second", "third")

    def __init__(self, kind: int) -> None:
        self.kind = kind
        self.first: list[object] = []
        self.second: list[object] = []
        self.third: list[object] = []
        self.fourth: list[object] = []

    def message(self) -> Message:
        """The finished message."""
        kind = self.kind
        if kind == FREE:
            return FreeTasks(tuple(self.first), tuple(self.second))  # type: ignore[arg-type]
        if kind == DONE:
            return FuturesDone(tuple(self.first), tuple(self.second), tuple(self.third))  # type: ignore[arg-type]
        return self._rare_message()

    def _rare_message(self) -> Message:
        kind = self.kind
        first, second, third, fourth = tuple(self.first), tuple(self.second), tuple(self.third), tuple(self.fourth)
        if kind == STEAL:
            return StealTasks(first, second)  # type: ignore[arg-type]
        if kind == FETCH:
            return FetchReplicas(first, second, third, fourth)  # type: ignore[arg-type]
        if kind == HOLDERS:
            return Holders(first, second, third)  # type: ignore[arg-type]
        if kind == CODES:
            return Codes(first, second)  # type: ignore[arg-type]
        if kind == DROP_CODES:
            return DropCodes(first)  # type: ignore[arg-type]
        if kind == ERRED:
            return FuturesErred(first, second, third, fourth)  # type: ignore[arg-type]
        if kind == CANCELLED:
            return FuturesCancelled(first, second[0], third[0])  # type: ignore[arg-type]
        assert kind == PENDING, kind
        return FuturesPending(first)  # type: ignore[arg-type]


class ComputeRows:
    """The columns of ``ComputeTasks``."""

    __slots__ = (
        "attempts",
        "code_ids",
        "dep_attempts",
        "dep_holders",
        "dep_ids",
        "dep_nbytes",
        "dep_seen",
        "dep_values",
        "dependencies",
        "durations",
        "executors",
        "keys",
        "payloads",
        "priorities",
        "resources",
        "task_ids",
    )

    def __init__(self) -> None:
        self.task_ids: list[int] = []
        self.attempts: list[int] = []
        self.keys: list[Key] = []
        self.code_ids: list[int] = []
        self.payloads: list[Payload] = []
        self.priorities: list[tuple[int, ...]] = []
        self.durations: list[float] = []
        self.dependencies: list[tuple[int, ...]] = []
        self.resources: list[tuple[tuple[str, float], ...]] = []
        self.executors: list[str] = []
        self.dep_seen: dict[TaskState, None] = {}
        self.dep_ids: list[int] = []
        self.dep_attempts: list[int] = []
        self.dep_nbytes: list[int] = []
        self.dep_values: list[Payload | None] = []
        self.dep_holders: list[tuple[str, ...]] = []

    def add(self, ts: TaskState, code: Code, ws: WorkerState, duration: float) -> None:
        """One more row."""
        rows = len(self.task_ids)
        self.task_ids.append(ts.task_id)
        self.attempts.append(ts.attempt)
        self.keys.append(ts.key)
        self.code_ids.append(code.code_id)
        self.payloads.append(ts.payload)
        self.priorities.append(ts.priority)
        self.durations.append(duration)
        # Columns that most messages leave empty are filled up once a row has something to say.
        if ts.dependencies:
            if not self.dependencies and rows:
                self.dependencies = [()] * rows
            self.dependencies.append(self._add_dependencies(ts, ws))
        elif self.dependencies:
            self.dependencies.append(())
        options = ts.options
        if options.resources:
            if not self.resources and rows:
                self.resources = [()] * rows
            self.resources.append(options.resources)
        elif self.resources:
            self.resources.append(())
        if options.executor:
            if not self.executors and rows:
                self.executors = [""] * rows
            self.executors.append(options.executor)
        elif self.executors:
            self.executors.append("")

    def _add_dependencies(self, ts: TaskState, ws: WorkerState) -> tuple[int, ...]:
        """The ids of what a task needs; where to get it is added for what the worker doesn't hold."""
        ids = []
        for item in ts.dependencies:
            dep: TaskState = item
            ids.append(dep.task_id)
            if dep in ws.has_what or dep in self.dep_seen:
                continue
            self.dep_seen[dep] = None
            self.dep_ids.append(dep.task_id)
            self.dep_attempts.append(dep.attempt)
            self.dep_nbytes.append(dep.nbytes)
            self.dep_values.append(dep.value)
            self.dep_holders.append(addresses_of(dep) if dep.value is None else ())
        return tuple(ids)

    def message(self) -> Message:
        """The finished message."""
        return ComputeTasks(
            tuple(self.task_ids),
            tuple(self.attempts),
            tuple(self.keys),
            tuple(self.code_ids),
            tuple(self.payloads),
            tuple(self.priorities),
            tuple(self.durations),
            tuple(self.dependencies),
            tuple(self.resources),
            tuple(self.executors),
            tuple(self.dep_ids),
            tuple(self.dep_attempts),
            tuple(self.dep_nbytes),
            tuple(self.dep_values),
            tuple(self.dep_holders),
        )


def addresses_of(ts: TaskState) -> tuple[str, ...]:
    """The addresses of the workers that hold a value."""
    holders = ts.holders
    if len(holders) == 1:
        ws: WorkerState = holders[0]
        return ws.addresses
    return tuple([ws.address for ws in holders])


class WorkerMail:
    """What a worker is to get, in order; the latest builder is the one that still grows."""

    __slots__ = ("computing", "kind", "parts", "rows")

    def __init__(self) -> None:
        self.parts: list[ComputeRows | Rows] = []
        self.kind = 0
        self.rows: Rows | None = None
        self.computing: ComputeRows | None = None

    def _open(self, kind: int) -> Rows:
        """The builder of a kind: the latest if it is of that kind, else a new one."""
        rows = self.rows
        if self.kind != kind or rows is None:
            rows = self.rows = Rows(kind)
            self.kind = kind
            self.parts.append(rows)
        return rows

    def compute(self, ts: TaskState, ws: WorkerState, duration: float) -> None:
        """Let it run a task; code that it was never sent goes before."""
        code = ts.code
        assert code is not None, ts
        if code.code_id not in ws.codes:
            ws.codes[code.code_id] = code
            code.workers.append(ws.worker_id)
            rows = self._open(CODES)
            rows.first.append(code.code_id)
            rows.second.append(code.blob)
        computing = self.computing
        if self.kind != COMPUTE or computing is None:
            computing = self.computing = ComputeRows()
            self.kind = COMPUTE
            self.parts.append(computing)
        computing.add(ts, code, ws, duration)

    def free(self, task_id: int, attempt: int) -> None:
        """Let it drop what it has of a run."""
        rows = self._open(FREE)
        rows.first.append(task_id)
        rows.second.append(attempt)

    def steal(self, task_id: int, attempt: int) -> None:
        """Ask for a task back."""
        rows = self._open(STEAL)
        rows.first.append(task_id)
        rows.second.append(attempt)

    def fetch(self, ts: TaskState) -> None:
        """Let it copy a value from its holders."""
        rows = self._open(FETCH)
        rows.first.append(ts.task_id)
        rows.second.append(ts.attempt)
        rows.third.append(ts.nbytes)
        rows.fourth.append(addresses_of(ts))

    def holders(self, task_id: int, attempt: int, addresses: tuple[str, ...]) -> None:
        """Say where a value is now."""
        rows = self._open(HOLDERS)
        rows.first.append(task_id)
        rows.second.append(attempt)
        rows.third.append(addresses)

    def drop_code(self, code_id: int) -> None:
        """Let it drop code."""
        self._open(DROP_CODES).first.append(code_id)

    def messages(self) -> list[Message]:
        """All of it, finished."""
        return [part.message() for part in self.parts]


class ClientMail:
    """What a client is to get, in order."""

    __slots__ = ("errors", "kind", "parts", "rows")

    def __init__(self) -> None:
        self.parts: list[Rows] = []
        self.kind = 0
        self.rows: Rows | None = None
        self.errors: dict[int, int] = {}

    def _open(self, kind: int) -> Rows:
        """The builder of a kind: the latest if it is of that kind, else a new one."""
        rows = self.rows
        if self.kind != kind or rows is None:
            rows = self.rows = Rows(kind)
            self.kind = kind
            self.parts.append(rows)
        return rows

    def done(self, future_id: int, nbytes: int, value: Payload | None) -> None:
        """A task is in memory."""
        rows = self._open(DONE)
        rows.first.append(future_id)
        rows.second.append(nbytes)
        rows.third.append(value)

    def erred(self, future_id: int, blame: Key, error: ErrorRecord) -> None:
        """A task failed; rows with the same error record share it."""
        if self.kind != ERRED:
            self.errors.clear()
        rows = self._open(ERRED)
        index = self.errors.get(id(error), -1)
        if index < 0:
            index = self.errors[id(error)] = len(rows.fourth)
            rows.fourth.append(error)
        rows.first.append(future_id)
        rows.second.append(index)
        rows.third.append(blame)

    def cancelled(self, future_id: int, reason: str, text: str) -> None:
        """A future will never be done."""
        rows = self._open(CANCELLED)
        if rows.first and (rows.second[0] != reason or rows.third[0] != text):
            rows = self.rows = Rows(CANCELLED)
            self.parts.append(rows)
        if not rows.first:
            rows.second.append(reason)
            rows.third.append(text)
        rows.first.append(future_id)

    def pending(self, future_id: int) -> None:
        """A task that was done or erred is being computed again."""
        self._open(PENDING).first.append(future_id)

    def messages(self) -> list[Message]:
        """All of it, finished."""
        return [part.message() for part in self.parts]
