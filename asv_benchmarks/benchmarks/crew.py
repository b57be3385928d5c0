"""An executor without an agent, on an event loop of its own: runs go in, and outcomes are counted.

Contents: Crew, and the code it knows: ADD, LENGTH.
"""

from __future__ import annotations

import asyncio
import operator
import os
from collections.abc import Sequence
from typing import Any

from gnomon.runtime.comm import new_event_loop
from gnomon.runtime.messages import (
    Codes,
    DropValues,
    ErrorRecord,
    ExecutorReady,
    Message,
    PutSegments,
    PutValues,
    RunTasks,
    TasksErred,
    TasksFinished,
)
from gnomon.runtime.protocol import Ref, Segment, decode_error, dumps_call, dumps_code
from gnomon.runtime.worker.executor.interface import Executor, ExecutorSettings
from gnomon.runtime.worker.executor.process import ProcessExecutor
from gnomon.runtime.worker.executor.thread import ThreadExecutor

__all__ = ["ADD", "LENGTH", "Crew"]

#: Numbers of the code that every crew is given: ``operator.add`` and ``len``.
ADD, LENGTH = 1, 2

_FIRST = dumps_call((Ref(0),), {})


class Crew:
    """An executor of one kind, ``thread`` or ``process``, of one thread. ``run`` runs coroutines on its loop."""

    def __init__(self, kind: str) -> None:
        self._runner = asyncio.Runner(loop_factory=new_event_loop)
        self.run = self._runner.run
        self.batches = 0
        self._done = self._wanted = 0
        self._next_id = 1
        self._failure: BaseException | None = None
        self._news = asyncio.Event()
        settings = ExecutorSettings()
        self._executor: Executor
        if kind == "process":
            self._executor = ProcessExecutor(
                settings, on_messages=self._heard, on_lost=self._lost, on_failed=self._failed
            )
        else:
            self._executor = ThreadExecutor(settings, on_messages=self._heard, by_reference=False)
        self.run(self._open())

    async def _open(self) -> None:
        await self._executor.start()
        await asyncio.wait_for(self._news.wait(), 30)
        if self._failure is not None:
            raise self._failure
        self._executor.send([Codes((ADD, LENGTH), (dumps_code(operator.add), dumps_code(len)))])

    def close(self) -> None:
        """End the executor and the loop."""
        self.run(self._executor.close(5.0))
        self._runner.close()

    def _heard(self, messages: list[Message], fds: list[int]) -> None:
        self.batches += 1
        ready = False
        for message in messages:
            if isinstance(message, TasksFinished):
                self._done += len(message.task_ids)
            elif isinstance(message, TasksErred):
                self._failure = decode_error(message.errors[0])
            elif isinstance(message, ExecutorReady):
                ready = True
        if ready or self._failure is not None or self._done >= self._wanted:
            self._news.set()

    def _lost(self, running: list[tuple[int, int]], cause: ErrorRecord) -> None:
        self._failed(cause)

    def _failed(self, cause: ErrorRecord) -> None:
        self._failure = decode_error(cause)
        self._news.set()

    async def perform(self, n: int, code: int, payload: bytes, chunk: int = 0) -> None:
        """Run ``n`` tasks of the same code and arguments, ``chunk`` at a time (0: all at once); drop their results."""
        for start in range(0, n, chunk or n):
            count = min(chunk or n, n - start)
            ids = self._new_ids(count)
            await self._finish(ids, [self._rows(ids, code, payload, ())])
            self._executor.send([DropValues(ids)])

    async def measure(self, values: Sequence[bytes | Segment]) -> None:
        """Have the executor decode each value to take its length, as a task's dependency; segments stay ours."""
        needs = self._new_ids(len(values))
        small = [(i, v) for i, v in zip(needs, values, strict=True) if isinstance(v, bytes)]
        large = [(i, v) for i, v in zip(needs, values, strict=True) if isinstance(v, Segment)]
        puts: list[Message] = []
        if small:
            puts.append(PutValues(tuple([i for i, _ in small]), tuple([v for _, v in small])))
        if large:
            puts.append(PutSegments(tuple([i for i, _ in large]), tuple([v.layout for _, v in large])))
        ids = self._new_ids(len(values))
        rows = self._rows(ids, LENGTH, _FIRST, tuple([(i,) for i in needs]))
        await self._finish(ids, [*puts, rows], [os.dup(v.fd) for _, v in large])
        self._executor.send([DropValues(ids + needs)])

    def _new_ids(self, count: int) -> tuple[int, ...]:
        first, self._next_id = self._next_id, self._next_id + count
        return tuple(range(first, first + count))

    def _rows(self, ids: tuple[int, ...], code: int, payload: bytes, needs: tuple[Any, ...]) -> RunTasks:
        n = len(ids)
        keys = tuple([f"task-{i}" for i in ids])
        return RunTasks(ids, (1,) * n, keys, (code,) * n, (payload,) * n, (2e-5,) * n, needs)

    async def _finish(self, ids: tuple[int, ...], messages: list[Message], fds: Sequence[int] = ()) -> None:
        """Send messages, and wait until as many more tasks are done as there are ids."""
        self._wanted = self._done + len(ids)
        self._news.clear()
        self._executor.send(messages, fds)
        await asyncio.wait_for(self._news.wait(), 60)
        if self._failure is not None:
            raise self._failure
