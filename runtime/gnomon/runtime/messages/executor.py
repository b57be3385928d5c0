"""What a worker's agent and its executor say to each other, by socket pair or inside one process.

``Codes``, ``DropCodes``, ``Request``, ``Response``, ``Failure``, ``TasksFinished``, ``TasksErred`` and ``TasksSeceded``
are used here as well. Large values travel as memory segments: a file descriptor beside the message, and a **layout**,
the byte lengths of the frames in it (the pickle stream first, then its out-of-band buffers; see
``gnomon.runtime.protocol``).

Contents, to the executor: RunTasks, CancelTasks, PutValues, PutSegments, DropValues, EncodeValues, ShutdownExecutor.
From it: ExecutorReady, TasksReturned, ValueEncoded, ValueLost.
"""

from __future__ import annotations

from typing import NamedTuple

from gnomon.runtime.messages.values import ErrorRecord, Key, Payload

__all__ = [
    "CancelTasks",
    "DropValues",
    "EncodeValues",
    "ExecutorReady",
    "PutSegments",
    "PutValues",
    "RunTasks",
    "ShutdownExecutor",
    "TasksReturned",
    "ValueEncoded",
    "ValueLost",
]


class RunTasks(NamedTuple):
    """Run these in the order given. Every dependency is already in the executor's store, or in ``PutValues`` before
    this.

    Columns as in ``ComputeTasks``.
    """

    task_ids: tuple[int, ...]
    attempts: tuple[int, ...]
    keys: tuple[Key, ...]
    code_ids: tuple[int, ...]
    payloads: tuple[Payload, ...]
    durations: tuple[float, ...]
    dependencies: tuple[tuple[int, ...], ...] = ()
    executors: tuple[str, ...] = ()


class CancelTasks(NamedTuple):
    """Take these out of the queue if no thread has begun them; answered by ``TasksReturned`` with those taken out.

    Each ``CancelTasks`` gets exactly one answer, in order, without rows if none was taken out. A run that was begun
    reports its end as ever; a run taken out never reports.
    """

    task_ids: tuple[int, ...]
    attempts: tuple[int, ...]


class PutValues(NamedTuple):
    """Small values that tasks need: pickled bytes, or objects by reference."""

    task_ids: tuple[int, ...]
    values: tuple[Payload, ...]


class PutSegments(NamedTuple):
    """Large values that tasks need, one file descriptor per row beside this message.

    ``type_names``: as in ``ValueEncoded``; empty column: nobody knows.
    """

    task_ids: tuple[int, ...]
    layouts: tuple[tuple[int, ...], ...]
    type_names: tuple[str, ...] = ()


class DropValues(NamedTuple):
    """Values to forget; every result, small ones as well, stays in the executor's store until then."""

    task_ids: tuple[int, ...]


class EncodeValues(NamedTuple):
    """Make values ready to leave; each is answered by ``ValueEncoded`` or ``ValueLost``."""

    request_ids: tuple[int, ...]
    task_ids: tuple[int, ...]


class ShutdownExecutor(NamedTuple):
    """Finish running tasks for at most ``grace`` seconds, then leave."""

    grace: float


class ExecutorReady(NamedTuple):
    """The executor takes work. ``pid`` is its process."""

    pid: int


class TasksReturned(NamedTuple):
    """The rows of a ``CancelTasks`` that were taken out of the queue; the others were begun or are unknown."""

    task_ids: tuple[int, ...]
    attempts: tuple[int, ...]


class ValueEncoded(NamedTuple):
    """A value ready to leave: ``value`` if small (bytes, or by reference), else a segment beside this message.

    Fields:
        type_name: short name of its type, "" where nobody knows.
        seconds: what making it ready took after it was asked for, without waiting for a thread that is free.
    """

    request_id: int
    task_id: int
    layout: tuple[int, ...]
    value: Payload | None
    type_name: str = ""
    seconds: float = 0.0


class ValueLost(NamedTuple):
    """A value that can't leave: unknown here (``error`` is None), or its encoding failed."""

    request_id: int
    task_id: int
    error: ErrorRecord | None
