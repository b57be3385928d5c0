"""What a worker's brain knows: the collections, and questions about them. ``changes`` keeps them in step."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from gnomon.runtime.worker.state import states
from gnomon.runtime.worker.state.records import Flight, Pool, Run, Value
from gnomon.runtime.worker.state.settings import Settings

if TYPE_CHECKING:
    from gnomon.runtime.messages import Payload

__all__ = ["INLINE", "STORED", "UNKNOWN", "WorkerModel"]

UNKNOWN = "unknown"
INLINE = "inline"
STORED = "stored"


class WorkerModel:
    """Everything the brain of one worker knows.

    Attributes:
        ready: whether an executor is there to take work.
        runs: the current run of each task, by task id.
        freed: runs that the scheduler freed while the executor had them, by task id and attempt.
        values: what is here or is wanted here, by task id.
        pools: the executors' threads by name; ``default`` is the unnamed one.
        available: amount of each resource that no handed-over run holds.
        codes: blobs by code id; ``sent_codes`` those that this executor has.
        durations: measured seconds per run of each code id.
        flights: what is being fetched, by holder, and ``in_flight`` by task id.
        queues: for each holder a heap of ``(priority, number, value)`` to fetch from it.
        to_cancel: runs to be asked back from the executor in this turn; ``asked`` those asked for, in order, and
            ``cancel_batches`` how many of them each unanswered ``CancelTasks`` held.
        number: counts heap entries, so that equal priorities stay in order of arrival.
        now: time of the event under way.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.validate = settings.validate
        self.ready = False
        self.runs: dict[int, Run] = {}
        self.freed: dict[tuple[int, int], Run] = {}
        self.values: dict[int, Value] = {}
        self.default = Pool("", settings.nthreads)
        self.pools: dict[str, Pool] = {"": self.default}
        for name, nthreads in settings.executors:
            self.pools[name] = Pool(name, nthreads)
        self.available: dict[str, float] = dict(settings.resources)
        self.codes: dict[int, Payload] = {}
        self.sent_codes: dict[int, bool] = {}
        self.durations: dict[int, float] = {}
        self.flights: dict[str, Flight] = {}
        self.in_flight: dict[int, Flight] = {}
        self.queues: dict[str, list[tuple[tuple[int, ...], int, Value]]] = {}
        self.to_cancel: list[Run] = []
        self.asked: list[Run] = []
        self.cancel_batches: list[int] = []
        self.number = 0
        self.now = 0.0
        self.log: deque[tuple[float, str, Any, Any]] = deque(maxlen=settings.story)

    def forget_all(self) -> None:
        """The executor is gone, and with it every value and run. Code stays, and so do the fetches under way."""
        self.ready = False
        self.runs = {}
        self.freed = {}
        self.values = {}
        for pool in self.pools.values():
            pool.ready = []
            pool.constrained = {}
            pool.handed = 0
            pool.work = 0.0
        self.available = dict(self.settings.resources)
        self.sent_codes = {}
        self.queues = {}
        self.to_cancel = []
        self.asked = []
        self.cancel_batches = []

    def lookup(self, task_id: int, attempt: int) -> tuple[str, Payload | None]:
        """Where a value is, for who asks for it.

        Returns ``(INLINE, payload)``, or ``(STORED, None)`` if the executor has it, or ``(UNKNOWN, None)``.
        """
        value = self.values.get(task_id)
        if value is None or value.attempt != attempt or value.state != states.MEMORY:
            return UNKNOWN, None
        if value.payload is not None:
            return INLINE, value.payload
        return STORED, None

    def counts(self) -> dict[str, int]:
        """Number of runs and of values by state, for heartbeats."""
        names = ("WAITING", "READY", "CONSTRAINED", "EXECUTING", "SECEDED", "FETCH", "FLIGHT", "MISSING", "MEMORY")
        numbers: dict[str, int] = {getattr(states, name): 0 for name in names}
        for run in self.runs.values():
            numbers[run.state] += 1
        for value in self.values.values():
            numbers[value.state] += 1
        return numbers

    def remember(self, now: float, event: str, task_ids: Any, attempts: Any) -> None:
        """Note a batch in the story; each event begins with it."""
        self.now = now
        self.log.append((now, event, task_ids, attempts))

    def story(self, task_id: int) -> list[tuple[float, str, int]]:
        """What happened to a task, oldest first: time, event, attempt; as far as the bounded log goes back."""
        found = []
        for now, event, task_ids, attempts in self.log:
            for row, attempt in zip(task_ids, attempts, strict=False):
                if row == task_id:
                    found.append((now, event, attempt))
        return found
