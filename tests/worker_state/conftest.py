"""A worker's brain on a bench: events in, messages out, invariants after each step, no message left at the end."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

import pytest

from gnomon.runtime.messages import (
    Codes,
    ComputeTasks,
    ErrorRecord,
    FreeTasks,
    Message,
    RunTasks,
    StealTasks,
    TasksErred,
    TasksFinished,
    TasksReturned,
)
from gnomon.runtime.worker.state import Fetch, Outbox, Settings, WorkerModel, dispatch, events, invariants

ERROR = ErrorRecord("ValueError", "ValueError: no")


class Bench:
    """One brain, its outbox, and short ways to say what happens to it."""

    def __init__(self, ready: bool = True, **settings: Any) -> None:
        self.model = WorkerModel(Settings(**{"nthreads": 1, "validate": True, **settings}))
        self.outbox = Outbox()
        self.now = 0.0
        self.call(events.on_codes, Codes((1,), (b"code",)))
        if ready:
            self.call(events.on_executor_ready)

    def call(self, event: Any, *arguments: Any) -> Any:
        self.now += 0.001
        result = event(self.model, self.outbox, *arguments, self.now)
        invariants.check_all(self.model)
        return result

    def dispatch(self) -> None:
        self.call(dispatch.run)

    def scheduler(self) -> list[Message]:
        return self.outbox.take_scheduler()

    def executor(self) -> list[Message]:
        """What goes to the executor after a pass."""
        self.dispatch()
        return self.outbox.take_executor()

    def fetches(self) -> list[Fetch]:
        """The fetches that a pass starts, all as if they had been asked for at 0."""
        return [fetch._replace(asked=0.0) for fetch in self.timed_fetches()]

    def timed_fetches(self) -> list[Fetch]:
        self.dispatch()
        return self.outbox.take_fetches()

    def handed(self) -> list[int]:
        """Ids of the runs handed to the executor by a pass."""
        return [i for m in self.executor() if isinstance(m, RunTasks) for i in m.task_ids]

    def compute(self, *task_ids: int, attempt: int = 1, **columns: Any) -> None:
        self.call(events.on_compute_tasks, compute(*task_ids, attempt=attempt, **columns))

    def free(self, *task_ids: int, attempt: int = 1) -> None:
        self.call(events.on_free_tasks, FreeTasks(task_ids, (attempt,) * len(task_ids)))

    def steal(self, *task_ids: int, attempt: int = 1) -> None:
        self.call(events.on_steal_tasks, StealTasks(task_ids, (attempt,) * len(task_ids)))

    def finish(self, *task_ids: int, attempt: int = 1, value: bytes | None = None, seconds: float = 1.0) -> None:
        self.call(events.on_tasks_finished, finished(*task_ids, attempt=attempt, value=value, seconds=seconds))

    def err(self, *task_ids: int, attempt: int = 1) -> None:
        self.call(events.on_tasks_erred, erred(*task_ids, attempt=attempt))

    def returned(self, *task_ids: int, attempt: int = 1) -> None:
        self.call(events.on_tasks_returned, TasksReturned(task_ids, (attempt,) * len(task_ids)))

    def fetched(self, holder: str, *task_ids: int, attempt: int = 1, value: bytes | None = None) -> list[bool]:
        count = len(task_ids)
        arguments = (holder, task_ids, (attempt,) * count, (100,) * count, (value,) * count)
        return list(self.call(events.on_fetch_done, *arguments))

    def fetch_failed(self, holder: str, *task_ids: int, attempt: int = 1, lost: bool = False) -> None:
        self.call(events.on_fetch_failed, holder, task_ids, (attempt,) * len(task_ids), lost)

    def lose_executor(self, *running: tuple[int, int]) -> None:
        self.call(events.on_executor_lost, running, ERROR)

    def state(self, task_id: int) -> str | None:
        """State of the run, else of the value."""
        record = self.model.runs.get(task_id) or self.model.values.get(task_id)
        return None if record is None else record.state


def compute(*task_ids: int, attempt: int = 1, deps: dict[int, Any] | None = None, **columns: Any) -> ComputeTasks:
    """Tasks to run. ``deps`` describes values: a payload, or a tuple of holders."""
    count = len(task_ids)
    if deps:
        columns["dep_ids"] = tuple(deps)
        columns["dep_attempts"] = (1,) * len(deps)
        columns["dep_nbytes"] = (100,) * len(deps)
        columns["dep_values"] = tuple(v if isinstance(v, bytes) else None for v in deps.values())
        columns["dep_holders"] = tuple(() if isinstance(v, bytes) else v for v in deps.values())
    rows: dict[str, Any] = {
        "task_ids": task_ids,
        "attempts": (attempt,) * count,
        "keys": tuple(f"key-{i}" for i in task_ids),
        "code_ids": (1,) * count,
        "payloads": (b"call",) * count,
        "priorities": tuple((0, 1, i) for i in task_ids),
        "durations": (-1.0,) * count,
    }
    return ComputeTasks(**{**rows, **columns})


def finished(*task_ids: int, attempt: int = 1, value: bytes | None = None, seconds: float = 1.0) -> TasksFinished:
    count = len(task_ids)
    timings = array("d", [0.0, 0.0, seconds, seconds] * count).tobytes()
    return TasksFinished(task_ids, (attempt,) * count, (100,) * count, (value,) * count, (0,) * count, timings)


def erred(*task_ids: int, attempt: int = 1) -> TasksErred:
    count = len(task_ids)
    return TasksErred(
        task_ids, (attempt,) * count, (ERROR,) * count, (0,) * count, array("d", [0.0] * 4 * count).tobytes()
    )


@pytest.fixture
def bench() -> Iterator[Bench]:
    """A worker of one thread with an executor; the test must look at every message that comes of it."""
    made = Bench()
    yield made
    assert made.outbox.is_empty(), "messages that the test didn't expect"


@pytest.fixture
def make_bench() -> Iterator[Any]:
    """Like ``bench``, with settings."""
    made: list[Bench] = []

    def make(**settings: Any) -> Bench:
        made.append(Bench(**settings))
        return made[-1]

    yield make
    assert all(b.outbox.is_empty() for b in made), "messages that the test didn't expect"
