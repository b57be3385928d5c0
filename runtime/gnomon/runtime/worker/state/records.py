"""What the brain remembers of each run, value, executor pool and flight. Records hold data; ``changes`` changes them.

Contents: Run, Value, Pool, Flight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gnomon.runtime.worker.state import states

if TYPE_CHECKING:
    from gnomon.runtime.messages import Key, Payload

__all__ = ["LAST_PRIORITY", "Flight", "Pool", "Run", "Value"]

#: Sorts after every priority of a task: values that no task here waits for are fetched last.
LAST_PRIORITY: tuple[int, ...] = (1 << 62,)


class Pool:
    """The threads of one named executor, and the runs that wait for them.

    Attributes:
        ready: heap of ``(priority, number, run)``; entries whose run is no longer ready are skipped when met.
        constrained: for each combination of resources, such a heap of the runs that need it.
        handed: runs the executor has and has not reported the end of (seceded ones don't count).
        work: their expected seconds.
    """

    __slots__ = ("constrained", "handed", "name", "nthreads", "ready", "work")

    def __init__(self, name: str, nthreads: int) -> None:
        self.name = name
        self.nthreads = nthreads
        self.ready: list[tuple[tuple[int, ...], int, Run]] = []
        self.constrained: dict[tuple[tuple[str, float], ...], list[tuple[tuple[int, ...], int, Run]]] = {}
        self.handed = 0
        self.work = 0.0


class Run:
    """One attempt of one task, to be run here.

    Attributes:
        absent: distinct dependencies that are not in memory.
        expected: seconds it counts in its pool's ``work`` while the executor has it.
        freed: nobody wants its outcome any more; it is only remembered until the executor is rid of it.
        asked: its ``CancelTasks`` is under way.
        begun: the executor said that a thread had taken it.
        stealing: the scheduler waits for an answer whether it is given back.
        leftover: the executor may hold an older value under this task's id.
    """

    __slots__ = (
        "absent",
        "asked",
        "attempt",
        "begun",
        "code_id",
        "dependencies",
        "duration",
        "executor",
        "expected",
        "freed",
        "key",
        "leftover",
        "payload",
        "pool",
        "priority",
        "resources",
        "state",
        "stealing",
        "task_id",
    )

    def __init__(self, task_id: int, attempt: int, key: Key, code_id: int, payload: Payload, pool: Pool) -> None:
        self.task_id = task_id
        self.attempt = attempt
        self.key = key
        self.code_id = code_id
        self.payload: Any = payload
        self.pool = pool
        self.state = states.WAITING
        self.priority: tuple[int, ...] = ()
        self.duration = -1.0
        self.dependencies: tuple[int, ...] = ()
        self.resources: tuple[tuple[str, float], ...] = ()
        self.executor = ""
        self.absent = 0
        self.expected = 0.0
        self.freed = False
        self.asked = False
        self.begun = False
        self.stealing = False
        self.leftover = False


class Value:
    """A result that is here, or is wanted here.

    Attributes:
        payload: a small value's pickled bytes, or None.
        stored: the executor's store has it.
        held: the scheduler knows that it is here and will free it.
        wanted: the scheduler asked for a copy that isn't here yet.
        holders: addresses to fetch it from.
        failures: vain tries by holder.
        reports: pairs of holder and whether the value is lost there, not yet told to the scheduler.
        dependents: the unfinished runs here that need it, by task id.
        priority: the best of theirs.
        sought: when it was first to be fetched.
    """

    __slots__ = (
        "attempt",
        "dependents",
        "failures",
        "held",
        "holders",
        "nbytes",
        "payload",
        "priority",
        "reports",
        "sought",
        "state",
        "stored",
        "task_id",
        "wanted",
    )

    def __init__(self, task_id: int, attempt: int, nbytes: int, payload: Payload | None, state: str) -> None:
        self.task_id = task_id
        self.attempt = attempt
        self.nbytes = nbytes
        self.payload: Any = payload
        self.state = state
        self.stored = False
        self.held = False
        self.wanted = False
        self.holders: list[str] | None = None
        self.failures: dict[str, int] | None = None
        self.reports: list[tuple[str, bool]] | None = None
        self.dependents: dict[int, Run] | None = None
        self.priority = LAST_PRIORITY
        self.sought = 0.0


class Flight:
    """What is being fetched from one holder: expected bytes of each task id that was not reported yet."""

    __slots__ = ("holder", "rows")

    def __init__(self, holder: str) -> None:
        self.holder = holder
        self.rows: dict[int, int] = {}
