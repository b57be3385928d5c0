"""What is known of a task, and of tasks alike.

Contents: TaskState, TaskGroup, TaskPrefix. Records only: ``transitions`` changes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.runtime.core.states import RELEASED, STATE_NAMES
from gnomon.runtime.messages import ErrorRecord, Key, Payload

if TYPE_CHECKING:
    from gnomon.runtime.core.clients import ClientState
    from gnomon.runtime.core.codes import Code
    from gnomon.runtime.core.options import Options
    from gnomon.runtime.core.worker import WorkerState

__all__ = ["TaskGroup", "TaskPrefix", "TaskState"]


class TaskPrefix:
    """What runs of tasks with one prefix had in common; outlives them. Negative averages: never seen.

    Attributes:
        duration: smoothed seconds of a run, decoding and encoding included.
        nbytes: smoothed bytes of a result.
        groups: how many groups are alive.
    """

    __slots__ = ("duration", "groups", "name", "nbytes")

    def __init__(self, name: str) -> None:
        self.name = name
        self.duration = -1.0
        self.nbytes = -1.0
        self.groups = 0

    def observe(self, duration: float, nbytes: float) -> None:
        """Take a finished run into the averages."""
        if duration < 0.0:
            duration = 0.0
        if self.duration < 0.0:
            self.duration = duration
            self.nbytes = nbytes
        else:
            self.duration += 0.3 * (duration - self.duration)
            self.nbytes += 0.3 * (nbytes - self.nbytes)


class TaskGroup:
    """Tasks of one collection (see ``names``).

    Attributes:
        counts: number of living tasks by state.
        alive: their sum.
        sources: ids of the tasks that tasks of this group depend on, while they are few.
        spread: whether they are many, so that the place of a task of this group matters.
    """

    __slots__ = ("alive", "counts", "name", "prefix", "sources", "spread")

    def __init__(self, name: str, prefix: TaskPrefix) -> None:
        self.name = name
        self.prefix = prefix
        self.counts = [0] * len(STATE_NAMES)
        self.alive = 0
        self.sources: list[int] = []
        self.spread = False


class TaskState:
    """One definition of a key, from the graph that brought it to its being forgotten.

    Attributes:
        task_id: never used again; a key that is defined anew has another.
        code: None for data that a client scattered.
        attempt: number of the current run, or of the run that made the value.
        dependencies: what it needs, in the order of its arguments; may name a task twice, like ``dependents``.
        dependents: what needs it, one entry per edge; ``dead`` of them are forgotten and not yet swept out.
        waiters: edges of dependents that are unfinished.
        waiting_on: edges to dependencies that are not in memory; 0 while waiting means ready to be placed.
        client, future_id, more_wants: who wants it; the first registration, and further pairs if any.
        processing_on: the worker it was given to.
        holders: workers that hold its value.
        value: the payload of a small value.
        expected: seconds that its run is counted with in the worker's occupancy.
        thief: worker id that this task is to be moved to once its worker gives it back, 0 if none.
        failures: executors or workers that died while they ran it.
        missing: reports that a worker could not get its value.
        retries: how often an exception is still answered by another run.
        cancelled: whether a client cancelled it while others went on needing it.
        error, blame: the failure, and the key whose run raised it.
    """

    __slots__ = (
        "attempt",
        "blame",
        "cancelled",
        "client",
        "code",
        "dead",
        "dependencies",
        "dependents",
        "error",
        "expected",
        "failures",
        "future_id",
        "group",
        "holders",
        "key",
        "missing",
        "more_wants",
        "nbytes",
        "options",
        "payload",
        "priority",
        "processing_on",
        "retries",
        "seceded",
        "state",
        "task_id",
        "thief",
        "value",
        "waiters",
        "waiting_on",
    )

    def __init__(
        self,
        task_id: int,
        key: Key,
        group: TaskGroup,
        code: Code | None,
        payload: Payload,
        options: Options,
        priority: tuple[int, int, int],
    ) -> None:
        self.task_id = task_id
        self.key = key
        self.group = group
        self.code = code
        self.payload = payload
        self.options = options
        self.priority = priority
        self.state = RELEASED
        self.attempt = 0
        self.dependencies: tuple[TaskState, ...] = ()
        self.dependents: list[TaskState] | None = None
        self.dead = 0
        self.waiters = 0
        self.waiting_on = 0
        self.client: ClientState | None = None
        self.future_id = 0
        self.more_wants: list[tuple[ClientState, int]] | None = None
        self.processing_on: WorkerState | None = None
        self.holders: tuple[WorkerState, ...] = ()
        self.value: Payload | None = None
        self.nbytes = 0
        self.expected = 0.0
        self.seceded = False
        self.thief = 0
        self.failures = 0
        self.missing = 0
        self.retries = options.retries
        self.cancelled = False
        self.error: ErrorRecord | None = None
        self.blame: Key = ""

    def __repr__(self) -> str:
        return f"<TaskState {self.key!r} id={self.task_id} {STATE_NAMES[self.state]}>"
