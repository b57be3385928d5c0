"""What is known of a worker. Records only: ``transitions`` changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gnomon.runtime.messages import RegisterWorker

if TYPE_CHECKING:
    from gnomon.runtime.core.codes import Code
    from gnomon.runtime.core.task import TaskState

__all__ = ["WorkerState"]


class WorkerState:
    """One registration of a worker; one that comes back is another, with another id.

    Attributes:
        alone: the tuple of this worker only, shared by all tasks that it alone holds; ``addresses`` likewise.
        processing: tasks given to it, in the order they were given.
        has_what: tasks whose value it holds.
        codes: code it was sent, by id.
        occupancy: expected seconds of the runs in ``processing``, those that seceded left out.
        active: number of these runs.
        last_done: when a run of it ended, or when it was given one while it had none.
        floor: runs that it is given whatever their duration.
        local_bytes, stamp: scratch of placement.
        retiring: whether it is to leave, and is given nothing (see ``retiring``).
    """

    __slots__ = (
        "active",
        "address",
        "addresses",
        "alone",
        "codes",
        "floor",
        "has_what",
        "host",
        "info",
        "last_done",
        "last_seen",
        "local_bytes",
        "memory_limit",
        "metrics",
        "name",
        "nbytes",
        "nthreads",
        "occupancy",
        "pid",
        "processing",
        "resources",
        "retiring",
        "stamp",
        "worker_id",
    )

    def __init__(self, worker_id: int, message: RegisterWorker, floor: int, now: float) -> None:
        self.worker_id = worker_id
        self.name = message.name
        self.address = message.address
        self.nthreads = message.nthreads
        self.memory_limit = message.memory_limit
        self.resources: dict[str, float] = dict(message.resources)
        self.host = message.host
        self.pid = message.pid
        self.info: dict[str, Any] = message.info
        self.metrics: dict[str, Any] = {}
        self.last_seen = now
        self.last_done = now
        self.alone: tuple[WorkerState, ...] = (self,)
        self.addresses: tuple[str, ...] = (message.address,)
        self.processing: dict[TaskState, None] = {}
        self.has_what: dict[TaskState, None] = {}
        self.codes: dict[int, Code] = {}
        self.nbytes = 0
        self.occupancy = 0.0
        self.active = 0
        self.floor = floor
        self.local_bytes = 0
        self.stamp = 0
        self.retiring = False

    def __repr__(self) -> str:
        return f"<WorkerState {self.name!r} id={self.worker_id} processing={len(self.processing)}>"
