"""What a client and the scheduler say to each other.

A client names each of its registrations of a key by a **future id**, a positive integer it never uses again. The
scheduler reports by future id, so what it says of an older registration can't be taken for news of a newer one.
A client names code (a pickled function, or a pickled batch of graph tasks) by a **client code**, likewise its own.

Contents, to the scheduler: UpdateGraph, ReleaseFutures, CancelFutures, RetryFutures, WantKeys, ScatterData,
ForgetCodes. From it: FuturesDone, FuturesErred, FuturesCancelled, FuturesPending.
"""

from __future__ import annotations

from typing import NamedTuple

from gnomon.runtime.messages.values import NO_OPTIONS, ErrorRecord, Key, Payload, TaskOptions

__all__ = [
    "CancelFutures",
    "ForgetCodes",
    "FuturesCancelled",
    "FuturesDone",
    "FuturesErred",
    "FuturesPending",
    "ReleaseFutures",
    "RetryFutures",
    "ScatterData",
    "UpdateGraph",
    "WantKeys",
]


class UpdateGraph(NamedTuple):
    """New tasks, one row each; a key the scheduler already knows keeps its first definition.

    Fields:
        codes: pairs of client code and blob that this client sends for the first time.
        keys: the tasks' names.
        task_codes: per row the client code it runs.
        payloads: per row its arguments, opaque to the scheduler.
        dependencies: per row the tasks it needs, in the order the executor receives them: ``i >= 0`` is row ``i`` of
            this message, ``-1 - j`` is ``externals[j]``. An empty column: no row needs anything.
        externals: future ids of this client that rows depend on.
        future_ids: per row the future id by which the client wants it, 0 if it doesn't.
        options: the distinct options of the rows.
        option_rows: per row its index into ``options``; an empty column: every row has ``options[0]``.
        fifo_timeout: seconds within which this graph shares the generation of the one before it.
        parent_task: id of the running task that submits this, 0 if none.
    """

    codes: tuple[tuple[int, Payload], ...]
    keys: tuple[Key, ...]
    task_codes: tuple[int, ...]
    payloads: tuple[Payload, ...]
    dependencies: tuple[tuple[int, ...], ...]
    externals: tuple[int, ...]
    future_ids: tuple[int, ...]
    options: tuple[TaskOptions, ...] = (NO_OPTIONS,)
    option_rows: tuple[int, ...] = ()
    fifo_timeout: float = 0.0
    parent_task: int = 0


class ReleaseFutures(NamedTuple):
    """The client lets go of these; what nobody else wants or needs is released."""

    future_ids: tuple[int, ...]


class CancelFutures(NamedTuple):
    """Withdraw interest and stop unstarted work; with ``force`` also for other clients that want the keys."""

    future_ids: tuple[int, ...]
    force: bool = False
    reason: str = ""
    message: str = ""


class RetryFutures(NamedTuple):
    """Run erred tasks again."""

    future_ids: tuple[int, ...]


class WantKeys(NamedTuple):
    """Register interest in keys that the scheduler is expected to know (futures that came from elsewhere)."""

    keys: tuple[Key, ...]
    future_ids: tuple[int, ...]


class ScatterData(NamedTuple):
    """Data that the client brings. The answer to ``request_id`` is a tuple, per row ``(task_id, attempt, addresses)``.

    A row with a value (small, inside this message) is done at once and its addresses are empty. For the others the
    client sends the bytes to the data servers of ``addresses``; each of these workers then reports the replica.

    Fields:
        values: per row the payload, or None if it is to be sent to workers.
        workers: addresses, names or hosts that may hold the data; empty means any.
        copies: how many workers hold each row (0: all of those eligible).
    """

    request_id: int
    keys: tuple[Key, ...]
    future_ids: tuple[int, ...]
    nbytes: tuple[int, ...]
    values: tuple[Payload | None, ...]
    workers: tuple[str, ...] = ()
    copies: int = 1


class ForgetCodes(NamedTuple):
    """The client will not name these client codes again."""

    codes: tuple[int, ...]


class FuturesDone(NamedTuple):
    """Tasks in memory. ``values`` holds a small value's payload, else None: ask who has it and fetch."""

    future_ids: tuple[int, ...]
    nbytes: tuple[int, ...]
    values: tuple[Payload | None, ...]


class FuturesErred(NamedTuple):
    """Tasks that failed, or need one that did. ``causes`` names the key whose run raised."""

    future_ids: tuple[int, ...]
    error_rows: tuple[int, ...]
    causes: tuple[Key, ...]
    errors: tuple[ErrorRecord, ...]


class FuturesCancelled(NamedTuple):
    """Futures that will never be done: cancelled by someone, lost, or unknown. ``reason`` is one word for programs."""

    future_ids: tuple[int, ...]
    reason: str
    message: str


class FuturesPending(NamedTuple):
    """Futures that were done or erred and are being computed again."""

    future_ids: tuple[int, ...]
