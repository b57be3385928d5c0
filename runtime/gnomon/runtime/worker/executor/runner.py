"""The engine of an executor: takes messages, keeps values and code, and has its threads run what is asked.

It is the same in a child process and in the agent's own. ``handle`` is called by one thread, which runs no user code
and is never kept waiting by any: in a child the thread that reads the link, else the agent's loop. What the executor
says comes by ``emit``, from any of its threads, one at a time.

Which thread does what: a run is decoded, called and encoded by the thread that takes it from its pool's queue. Values
are encoded, and die, on a thread of the pool that made them; those that came from elsewhere are decoded by the first
run that needs them. So a pool of one thread is the only thread that its objects ever see, but for those that secede:
such a thread goes on with its run, and another takes its place. With several threads, whichever is free serves.

Contents: Runner.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import count, repeat
from time import monotonic
from typing import Any

from gnomon.runtime.clock import now
from gnomon.runtime.messages import (
    CancelTasks,
    Codes,
    DropCodes,
    DropValues,
    EncodeValues,
    Message,
    PutSegments,
    PutValues,
    Request,
    RunTasks,
    TasksErred,
    TasksReturned,
    TasksSeceded,
)
from gnomon.runtime.worker.executor.context import Cluster, Place
from gnomon.runtime.worker.executor.failing import record_failure
from gnomon.runtime.worker.executor.interface import ExecutorSettings
from gnomon.runtime.worker.executor.observing import METHODS, Observing
from gnomon.runtime.worker.executor.outgoing import Emit, Outgoing, pack_times
from gnomon.runtime.worker.executor.page import THREADS, Cells
from gnomon.runtime.worker.executor.pool import Numbers, Pool, Row
from gnomon.runtime.worker.executor.requests import answer
from gnomon.runtime.worker.executor.running import TaskRunner
from gnomon.runtime.worker.executor.serving import Errand, Server
from gnomon.runtime.worker.executor.store import Store

__all__ = ["Runner"]


class Runner:
    """Threads that run user code, and what they hold.

    ``cells`` is where runs under way are recorded (see ``page``); by default in private memory. With ``by_reference``,
    values are answered as objects instead of bytes. ``crashed`` is called by a thread that ends by an error of ours.
    """

    def __init__(
        self,
        settings: ExecutorSettings,
        emit: Emit,
        *,
        cells: Cells | None = None,
        by_reference: bool = False,
        crashed: Callable[[], None] | None = None,
    ) -> None:
        self._outgoing = Outgoing(emit)
        self._observing = Observing(settings.instruments)
        self._store = Store()
        cells = [0] * (2 * THREADS) if cells is None else cells
        self._server = Server(
            self._store,
            self._outgoing,
            cells,
            errand=self._errand,
            write=self._write,
            message_bytes=settings.message_bytes,
            by_reference=by_reference,
        )
        tasks = TaskRunner(
            self._store,
            self._outgoing,
            self._server,
            cells,
            settings.inline_bytes,
            measure=settings.instruments.get("enabled", False) and settings.instruments["cpu"],
        )
        numbers = Numbers()
        cluster = Cluster(settings.scheduler, settings.security) if settings.scheduler else None
        self._pools = {
            name: Pool(
                name,
                nthreads,
                run=tasks.run,
                idle=self._idle,
                numbers=numbers,
                cluster=cluster,
                observing=self._observing,
                seceded=self._seceded,
                crashed=crashed,
            )
            for name, nthreads in {**settings.executors, "": settings.nthreads}.items()
        }
        self._default = self._pools[""]
        self._pools["default"] = self._default
        self._writer = Pool("segments", 1, run=tasks.run, idle=_nothing, numbers=Numbers(), crashed=crashed)
        self._handlers: dict[type[Any], Callable[[Any, Iterator[int]], None]] = {
            RunTasks: self._on_run_tasks,
            CancelTasks: self._on_cancel_tasks,
            PutValues: lambda m, fds: self._store.put_values(m.task_ids, m.values),
            PutSegments: self._on_put_segments,
            DropValues: lambda m, fds: self._server.drop(m.task_ids),
            EncodeValues: self._on_encode_values,
            Codes: lambda m, fds: self._store.put_codes(m.code_ids, m.blobs),
            DropCodes: lambda m, fds: self._store.drop_codes(m.code_ids),
            Request: self._on_request,
        }

    def handle(self, messages: Sequence[Message], fds: Sequence[int] = ()) -> None:
        """Take messages, and the descriptors of their ``PutSegments`` rows in order, which are ours from here on.

        Raises ValueError for a message that is none to an executor.
        """
        if any(type(message) is not Request or message.method not in METHODS for message in messages):
            self._observing.wake()
        left = iter(fds)
        try:
            for message in messages:
                handler = self._handlers.get(type(message))
                if handler is None:
                    raise ValueError(f"not a message to an executor: {type(message).__name__}")
                handler(message, left)
        finally:
            for fd in left:
                os.close(fd)

    def observe(self, *, own_process: bool) -> None:
        """Start the instruments, once the executor is ready; ``own_process``: it is alone in its process."""
        self._observing.start(own_process=own_process)

    def stop(self, on_stopped: Callable[[], None] | None = None) -> None:
        """Forget what is queued and begin nothing more.

        The last thread to end drops all values; ``on_stopped`` is called then.
        """
        self._observing.close()
        pools = self._all_pools()
        stopped = count(1)

        def one_more() -> None:
            if next(stopped) < len(pools):
                return
            self._server.drop_all()
            self._store.clear()
            if on_stopped is not None:
                on_stopped()

        for pool in pools:
            pool.close(one_more)

    def join(self, timeout: float) -> bool:
        """After ``stop``: wait for the threads, then send what waits; whether all ended in ``timeout`` seconds."""
        deadline = monotonic() + timeout
        ended = [pool.join(max(0.0, deadline - monotonic())) for pool in self._all_pools()]
        self._outgoing.close()
        return all(ended)

    def _all_pools(self) -> list[Pool]:
        """Each pool once, the default one last: its thread is the best place for values to die in."""
        named = [pool for pool in self._pools.values() if pool is not self._default]
        return [self._writer, *named, self._default]

    # ---- messages ----------------------------------------------------------------------------------------------------

    def _on_run_tasks(self, message: RunTasks, fds: Iterator[int]) -> None:
        dependencies = message.dependencies or repeat((), len(message.task_ids))
        rows: Iterator[Row] = zip(
            message.task_ids,
            message.attempts,
            message.keys,
            message.code_ids,
            message.payloads,
            message.durations,
            dependencies,
            strict=True,
        )
        if not message.executors:
            self._default.put(rows)
            return
        for row, name in zip(rows, message.executors, strict=True):
            pool = self._pools.get(name)
            if pool is None:
                self._refuse(row, name)
            else:
                pool.put([row])

    def _refuse(self, row: Row, name: str) -> None:
        """A run that names an executor that there is none of."""
        known = ", ".join(repr(name) for name in self._pools if name)
        text = f"task {row[2]!r} wants executor {name!r}, which this worker does not have; it has {known}"
        record = record_failure(ValueError(text))
        time = now()
        self._outgoing.add(TasksErred((row[0],), (row[1],), (record,), (0,), pack_times([(time,) * 4])))
        self._outgoing.flush()

    def _on_cancel_tasks(self, message: CancelTasks, fds: Iterator[int]) -> None:
        wanted = set(zip(message.task_ids, message.attempts, strict=True))
        taken = [pair for pool in self._all_pools() for pair in pool.take_back(wanted)]
        self._outgoing.add(TasksReturned(tuple(t for t, _ in taken), tuple(a for _, a in taken)))
        self._outgoing.flush()

    def _on_put_segments(self, message: PutSegments, fds: Iterator[int]) -> None:
        own = [fd for _, fd in zip(message.task_ids, fds, strict=False)]
        self._store.put_segments(message.task_ids, message.layouts, own, message.type_names)

    def _on_encode_values(self, message: EncodeValues, fds: Iterator[int]) -> None:
        for request_id, task_id in zip(message.request_ids, message.task_ids, strict=True):
            self._server.ask(request_id, task_id)

    def _on_request(self, message: Request, fds: Iterator[int]) -> None:
        if message.method in METHODS:
            self._observing.answer(message, self._send)
            return
        self._default.put_errand(lambda place: answer(message, self._outgoing))

    # ---- what the rooms call -----------------------------------------------------------------------------------------

    def _errand(self, pool: str, errand: Errand) -> None:
        self._pools.get(pool, self._default).put_errand(errand)

    def _write(self, errand: Errand) -> None:
        self._writer.put_errand(errand)

    def _send(self, message: Message) -> None:
        self._outgoing.add(message)
        self._outgoing.flush()

    def _idle(self) -> None:
        if self._outgoing.waiting:
            self._outgoing.flush()

    def _seceded(self, place: Place) -> None:
        task_id, attempt = (place.row or (0, 0))[:2]
        self._outgoing.add(TasksSeceded((task_id,), (attempt,)))
        self._outgoing.flush()


def _nothing() -> None:
    """What the writing thread does when it has nothing to do."""
