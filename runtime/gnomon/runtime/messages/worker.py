"""What the scheduler and a worker say to each other.

The scheduler names each definition of a key by a **task id** that is never used again, and each assignment of a task
by an **attempt** (1, 2, ...) of that id. ``(task_id, attempt)`` names a run and the value that came of it; whatever
arrives for another pair than the current one is stale and dropped. A worker's **address** is that of its data server.
Times are seconds of the sender's monotonic-aligned wall clock (see ``gnomon.runtime.clock``).

Contents, to the worker: WorkerRegistered, Codes, DropCodes, ComputeTasks, FreeTasks, StealTasks, FetchReplicas,
Holders, HeartbeatReply, CloseWorker. From it: RegisterWorker, TasksFinished, TasksErred, TasksSeceded, ReplicasAdded,
ReplicasMissing, StealReplies, ExecutorLost, TransfersDone, Heartbeat; and for the records alone RegionsTimed,
DemandChanged, TaskProfiled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gnomon.runtime.messages.values import ErrorRecord, Key, Payload

__all__ = [
    "CloseWorker",
    "Codes",
    "ComputeTasks",
    "DemandChanged",
    "DropCodes",
    "ExecutorLost",
    "FetchReplicas",
    "FreeTasks",
    "Heartbeat",
    "HeartbeatReply",
    "Holders",
    "RegionsTimed",
    "RegisterWorker",
    "ReplicasAdded",
    "ReplicasMissing",
    "StealReplies",
    "StealTasks",
    "TaskProfiled",
    "TasksErred",
    "TasksFinished",
    "TasksSeceded",
    "TransfersDone",
    "WorkerRegistered",
]


class RegisterWorker(NamedTuple):
    """The first message of a worker.

    Fields:
        name: unique in the cluster (a second worker of a living one's name is refused).
        address: of its data server; host and port, with scheme.
        nthreads: tasks that run at once.
        memory_limit: bytes; 0 is none.
        resources: pairs of abstract resource and amount.
        host: the machine's identity, for restrictions by host and transfers on one machine.
        pid: of the agent.
        info: what is only shown (versions, nanny or not, local directory...).
    """

    name: str
    address: str
    nthreads: int
    memory_limit: int
    resources: tuple[tuple[str, float], ...]
    host: str
    pid: int
    info: dict[str, Any]


class WorkerRegistered(NamedTuple):
    """The scheduler's welcome. ``error`` is empty, or says why the worker is refused."""

    worker_id: int
    heartbeat_interval: float
    error: str = ""


class Codes(NamedTuple):
    """Code that tasks name by ``code_id``; sent once, before the first task that needs it."""

    code_ids: tuple[int, ...]
    blobs: tuple[Payload, ...]


class DropCodes(NamedTuple):
    """Code that no task will name again."""

    code_ids: tuple[int, ...]


class ComputeTasks(NamedTuple):
    """Run these tasks, one row each. The ``dep_`` columns have one row per distinct dependency this worker doesn't
    hold.

    Fields:
        priorities: per row a tuple that sorts; the smallest runs first.
        dependencies: per row the task ids it needs, in the order of its arguments. Empty column: none needs any.
        durations: per row the expected seconds; negative if unknown.
        resources: per row pairs of resource and amount held while it runs. Empty column: none.
        executors: per row the executor's name. Empty column: all on the default.
        dep_ids, dep_attempts, dep_nbytes: the value needed.
        dep_values: its payload if small, else None.
        dep_holders: addresses of workers to fetch it from (empty if the payload is given).
    """

    task_ids: tuple[int, ...]
    attempts: tuple[int, ...]
    keys: tuple[Key, ...]
    code_ids: tuple[int, ...]
    payloads: tuple[Payload, ...]
    priorities: tuple[tuple[int, ...], ...]
    durations: tuple[float, ...]
    dependencies: tuple[tuple[int, ...], ...] = ()
    resources: tuple[tuple[tuple[str, float], ...], ...] = ()
    executors: tuple[str, ...] = ()
    dep_ids: tuple[int, ...] = ()
    dep_attempts: tuple[int, ...] = ()
    dep_nbytes: tuple[int, ...] = ()
    dep_values: tuple[Payload | None, ...] = ()
    dep_holders: tuple[tuple[str, ...], ...] = ()


class FreeTasks(NamedTuple):
    """Drop whatever you hold of these runs: a queued run is forgotten, a running one's outcome dropped, a value
    freed."""

    task_ids: tuple[int, ...]
    attempts: tuple[int, ...]


class StealTasks(NamedTuple):
    """Give these back if they have not been handed to a thread; answered by ``StealReplies``."""

    task_ids: tuple[int, ...]
    attempts: tuple[int, ...]


class FetchReplicas(NamedTuple):
    """Fetch copies of these values from their holders; answered by ``ReplicasAdded`` or ``ReplicasMissing``."""

    task_ids: tuple[int, ...]
    attempts: tuple[int, ...]
    nbytes: tuple[int, ...]
    holders: tuple[tuple[str, ...], ...]


class Holders(NamedTuple):
    """Where values that this worker reported missing are now. No holders: wait, or the tasks will be freed."""

    task_ids: tuple[int, ...]
    attempts: tuple[int, ...]
    holders: tuple[tuple[str, ...], ...]


class HeartbeatReply(NamedTuple):
    """``sent`` is the worker's clock as in its heartbeat, ``now`` the scheduler's; ``interval`` in seconds."""

    sent: float
    now: float
    interval: float


class CloseWorker(NamedTuple):
    """Leave, in good order."""

    reason: str


class TasksFinished(NamedTuple):
    """Runs that ended well. The same record goes from executor to agent and from agent to scheduler.

    Fields:
        nbytes: estimated size of each value in bytes.
        values: payload of a small value (pickled: at most ``executor.inline_bytes``), else None.
        threads: number of the thread that ran it, within the worker.
        timings: four doubles per row, packed by ``array('d').tobytes()``: start of decoding, start of the user's
            code, its end, end of encoding; wall clock, seconds.
        cpus: one double per row, packed likewise: seconds that the thread was on the CPU in the user's code, NaN where
            unknown. Empty: not measured.
    """

    task_ids: tuple[int, ...]
    attempts: tuple[int, ...]
    nbytes: tuple[int, ...]
    values: tuple[Payload | None, ...]
    threads: tuple[int, ...]
    timings: bytes
    cpus: bytes = b""


class TasksErred(NamedTuple):
    """Runs that raised, or could not be decoded or encoded. Other columns as in ``TasksFinished``."""

    task_ids: tuple[int, ...]
    attempts: tuple[int, ...]
    errors: tuple[ErrorRecord, ...]
    threads: tuple[int, ...]
    timings: bytes
    cpus: bytes = b""


class TasksSeceded(NamedTuple):
    """Running tasks that left their thread slot (long-running)."""

    task_ids: tuple[int, ...]
    attempts: tuple[int, ...]


class ReplicasAdded(NamedTuple):
    """Values that this worker now holds beside others (fetched, or received from a client).

    It holds them, as it does the values of ``TasksFinished``, until ``FreeTasks``; so the scheduler answers rows that
    are stale to it with ``FreeTasks``.
    """

    task_ids: tuple[int, ...]
    attempts: tuple[int, ...]
    nbytes: tuple[int, ...]


class ReplicasMissing(NamedTuple):
    """Values that could not be had: ``holders[i]`` said it has no such value, or could not be reached.

    ``lost[i]`` is True if the holder answered that it doesn't have the value, False if it could not be reached.
    """

    task_ids: tuple[int, ...]
    attempts: tuple[int, ...]
    holders: tuple[str, ...]
    lost: tuple[bool, ...]


class StealReplies(NamedTuple):
    """Per row whether the task was given back (True) or stays (False)."""

    task_ids: tuple[int, ...]
    attempts: tuple[int, ...]
    given: tuple[bool, ...]


class ExecutorLost(NamedTuple):
    """The executor died with all values and queued runs; a new one is on its way. ``running`` are to blame.

    Every value and unfinished run that the scheduler counted on this worker is gone. The scheduler answers with
    ``FreeTasks`` for all of them, so that what it had sent meanwhile is forgotten by the worker as well.
    """

    running: tuple[int, ...]
    attempts: tuple[int, ...]
    cause: ErrorRecord


class TransfersDone(NamedTuple):
    """Fetches that ended, for the records.

    Fields:
        holders: address fetched from. nbytes: moved. starts, stops: wall clock, seconds. transports: ``tcp``, ``tls``,
            ``shared-memory`` or ``inproc``.
        parts: seconds from asked to begun, and between start and stop those that the holder took to begin, and to
            pickle and write. Empty column: not known.
        types: rows of type, number of values and bytes. Empty column: not known.
    """

    holders: tuple[str, ...]
    nbytes: tuple[int, ...]
    starts: tuple[float, ...]
    stops: tuple[float, ...]
    transports: tuple[str, ...]
    parts: tuple[tuple[float, float, float], ...] = ()
    types: tuple[tuple[tuple[str, int, int], ...], ...] = ()


class Heartbeat(NamedTuple):
    """A sign of life. ``metrics`` maps names to numbers (cpu percent, memory bytes...)."""

    sent: float
    metrics: dict[str, Any]


class RegionsTimed(NamedTuple):
    """What tasks spent in the regions that the user named, since the executor last said so.

    Fields:
        time: when this was summed up; wall clock, seconds.
        prefixes, names: of the tasks, and of the region.
        counts: entries. seconds: inside. own_seconds: those without regions nested in it.
    """

    time: float
    prefixes: tuple[str, ...]
    names: tuple[str, ...]
    counts: tuple[int, ...]
    seconds: tuple[float, ...]
    own_seconds: tuple[float, ...]


class DemandChanged(NamedTuple):
    """What a worker's idle threads wait for has changed.

    Fields:
        kinds: what (see ``gnomon.runtime.instruments.demand``). values: whether there is some from now on.
        times: since when; wall clock, seconds.
    """

    kinds: tuple[int, ...]
    values: tuple[bool, ...]
    times: tuple[float, ...]


class TaskProfiled(NamedTuple):
    """The deep profile of a run that was asked for with ``profile=True``; opaque bytes."""

    task_id: int
    attempt: int
    profile: bytes
