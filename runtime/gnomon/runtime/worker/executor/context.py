"""What a task can know of where it runs.

``current_task`` and ``secede`` work in the thread that runs the task, in coroutines it awaits and in threads started by
``asyncio.to_thread``; ``cluster`` works anywhere in an executor's process.

Contents: current_task, secede, cluster, set_cluster, keep_profile; CurrentTask, Cluster; Place, enter (for the
executor's threads).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple

from gnomon.runtime.messages import Key
from gnomon.runtime.worker.executor.page import THREADS

__all__ = [
    "Cluster",
    "CurrentTask",
    "Place",
    "cluster",
    "current_task",
    "enter",
    "keep_profile",
    "secede",
    "set_cluster",
]


class CurrentTask(NamedTuple):
    """The run under way.

    Fields:
        key, task_id, attempt: which run it is.
        thread: number of the thread, within the worker.
        executor: name of the executor it runs on; empty is the default.
    """

    key: Key
    task_id: int
    attempt: int
    thread: int
    executor: str


class Cluster(NamedTuple):
    """How to reach the scheduler: its address, and the plain form of the security settings."""

    address: str
    security: Mapping[str, Any]


class Place:
    """One thread of an executor, and the run it is at. One object per thread, changed from run to run.

    Fields:
        thread: its number. cell: where its runs are recorded (see ``page``).
        executor: the pool's name. cluster: what ``cluster()`` answers.
        row: the run under way, a row that starts with ``(task_id, attempt, key)``; None between runs.
        left: it seceded: it ends with the run it is at.
        leave: called once by ``secede``.
        fresh: ids of values it made lately that can't leave yet.
        label: its only item is what a profile calls the run under way (see ``gnomon.profiler.marks.labels``).
        cpu_mark: processor seconds of the thread when these were last read.
        region_changes, regions: of the regions that its tasks entered, what was told already.
        profile: deep profile of the run under way, if one was made.
    """

    __slots__ = (
        "cell",
        "cluster",
        "cpu_mark",
        "executor",
        "fresh",
        "label",
        "leave",
        "left",
        "profile",
        "region_changes",
        "regions",
        "row",
        "thread",
    )

    def __init__(
        self, thread: int, executor: str, cluster: Cluster | None, leave: Callable[[Place], None] | None = None
    ) -> None:
        self.thread = thread
        self.cell = 2 * min(thread, THREADS - 1)
        self.executor = executor
        self.cluster = cluster
        self.row: tuple[Any, ...] | None = None
        self.left = False
        self.leave = leave
        self.fresh: deque[int] = deque(maxlen=32)
        self.label = [""]
        self.cpu_mark = 0.0
        self.region_changes = 0
        self.regions: dict[int, tuple[int, float, float]] = {}
        self.profile = b""


_place: ContextVar[Place | None] = ContextVar("gnomon_place", default=None)
_cluster: Cluster | None = None


def enter(place: Place) -> None:
    """The calling thread is ``place`` from now on."""
    _place.set(place)


def current_task() -> CurrentTask:
    """The run that this code is part of. Raises RuntimeError outside of tasks."""
    place = _place.get()
    row = None if place is None else place.row
    if place is None or row is None:
        raise RuntimeError("no task runs here")
    task_id, attempt, key = row[:3]
    return CurrentTask(key, task_id, attempt, place.thread, place.executor)


def secede() -> None:
    """Give the thread's slot to other tasks while this one goes on; its outcome is still reported. Idempotent.

    Raises RuntimeError outside of tasks.
    """
    current_task()
    place = _place.get()
    if place is not None and not place.left and place.leave is not None:
        place.leave(place)


def keep_profile(profile: bytes) -> None:
    """Have the deep profile of the run under way sent with its outcome; no effect outside of tasks."""
    place = _place.get()
    if place is not None and place.row is not None:
        place.profile = profile


def set_cluster(address: str, security: Mapping[str, Any]) -> None:
    """The cluster of this process: what ``cluster`` answers outside of the executor's threads."""
    global _cluster
    _cluster = Cluster(address, security)


def cluster() -> Cluster | None:
    """The cluster that the running task, or else this process, belongs to; None if it belongs to none."""
    place = _place.get()
    return _cluster if place is None or place.cluster is None else place.cluster
