"""Values of this worker for peers and clients: what the data server's threads ask, brain and executor answer.

The server's threads wait here, never on the loop; the loop asks the executor to encode, in batches, and hands what
comes back to whoever waits. Two peers that ask for one value at one time share one encoding.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple

from gnomon.runtime import clock
from gnomon.runtime.errors import ClusterError
from gnomon.runtime.messages import EncodeValues, ValueEncoded, ValueLost
from gnomon.runtime.protocol import Segment
from gnomon.runtime.transfer import Held, ValueEncodingError, Wanted, size_of
from gnomon.runtime.worker.state import INLINE, STORED, events

if TYPE_CHECKING:
    from gnomon.runtime.worker.agent import Worker

__all__ = ["ValueSource"]

_PUT_TIMEOUT = 30.0


class _Ready(NamedTuple):
    """A value ready to leave, the name of its type, and what making it so took (see ``ValueEncoded``)."""

    value: Held
    type_name: str
    seconds: float


class _Mine(threading.local):
    """What one thread of the server is at: values asked for, and what is told of those that it was given."""

    def __init__(self) -> None:
        self.futures: dict[Wanted, Future[_Ready | None]] = {}
        self.type_names: list[str] = []
        self.seconds = 0.0


class ValueSource:
    """The source of one worker's data server (see ``gnomon.runtime.transfer.Source``)."""

    def __init__(self, worker: Worker, loop: asyncio.AbstractEventLoop) -> None:
        self._worker = worker
        self._loop = loop
        self._lock = threading.Lock()
        self._encoding: dict[Wanted, Future[_Ready | None]] = {}
        self._by_number: dict[int, Wanted] = {}
        self._last_number = 0
        self._mine = _Mine()
        self._puts: list[tuple[Future[None], int, int, Held]] = []
        self._closed = False

    # Called by the server's threads

    def prepare(self, wanted: Sequence[Wanted]) -> None:
        """Have the executor encode together what will be asked for next by this thread."""
        stored = [pair for pair in wanted if self._worker.model.lookup(*pair)[0] == STORED]
        mine = self._mine
        mine.type_names, mine.seconds = [], 0.0
        mine.futures = self._ask(stored)

    def get(self, task_id: int, attempt: int, timeout: float) -> Held | None:
        """The value, or None if this worker doesn't have it.

        Raises TimeoutError, ValueEncodingError.
        """
        where, payload = self._worker.model.lookup(task_id, attempt)
        mine = self._mine
        if where == INLINE:
            mine.type_names.append("")
            return payload
        pair = (task_id, attempt)
        future = mine.futures.get(pair)
        if future is None and where == STORED:
            future = mine.futures[pair] = self._ask([pair])[pair]
        ready: _Ready | None = None
        if future is not None:
            try:
                ready = future.result(timeout)
            except ValueEncodingError:
                mine.type_names.append("")
                raise
            mine.futures.pop(pair, None)
        if ready is None:
            mine.type_names.append("")
            return None
        mine.type_names.append(ready.type_name)
        mine.seconds += ready.seconds
        return ready.value

    def told(self) -> tuple[tuple[str, ...], float]:
        """See ``Source``."""
        return tuple(self._mine.type_names), self._mine.seconds

    def put(self, task_id: int, attempt: int, value: Held) -> None:
        """Take a value that a client brings; waits for an executor that is being started.

        Raises ClusterError if there is none to hold it.
        """
        done: Future[None] = Future()
        self._call(self._put, done, task_id, attempt, value)
        try:
            done.result(_PUT_TIMEOUT)
        except TimeoutError:
            raise ClusterError(f"worker {self._worker.name} has no executor to hold the value") from None

    def _ask(self, wanted: Sequence[Wanted]) -> dict[Wanted, Future[_Ready | None]]:
        """One future per value, shared with whoever waits for it already."""
        futures: dict[Wanted, Future[_Ready | None]] = {}
        new: list[Wanted] = []
        with self._lock:
            if self._closed:
                raise ClusterError(f"worker {self._worker.name} is closing")
            for pair in wanted:
                future = self._encoding.get(pair)
                if future is None:
                    future = self._encoding[pair] = Future()
                    new.append(pair)
                futures[pair] = future
        if new:
            self._call(self._request, new)
        return futures

    def _call(self, function: object, *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)  # type: ignore[arg-type]
        except RuntimeError as exc:
            raise ClusterError(f"worker {self._worker.name} is closed") from exc

    # Called on the loop

    def _request(self, wanted: Sequence[Wanted]) -> None:
        numbers, task_ids = [], []
        for pair in wanted:
            if self._worker.model.lookup(*pair)[0] != STORED:  # freed in the meantime
                self._settle(pair, None)
                continue
            self._last_number += 1
            self._by_number[self._last_number] = pair
            numbers.append(self._last_number)
            task_ids.append(pair[0])
        if numbers:
            self._worker.send_to_executor([EncodeValues(tuple(numbers), tuple(task_ids))])

    def _put(self, done: Future[None], task_id: int, attempt: int, value: Held) -> None:
        worker = self._worker
        if not events.on_value_received(worker.model, worker.outbox, task_id, attempt, size_of(value), clock.now()):
            self._puts.append((done, task_id, attempt, value))
            return
        if isinstance(value, Segment):
            worker.put_segments([task_id], [value.layout], [os.dup(value.fd)])
        else:
            worker.put_values([task_id], [value])
        worker.ask_turn_end()
        if not done.done():
            done.set_result(None)

    def on_executor_ready(self) -> None:
        """There is an executor to hold what clients brought meanwhile."""
        puts, self._puts = self._puts, []
        for put in puts:
            self._put(*put)

    def on_encoded(self, message: ValueEncoded, fd: int | None) -> None:
        """The executor made a value ready; ``fd`` is its segment, if it has one."""
        value: Held | None = message.value
        if fd is not None:
            value = Segment.received(fd, message.layout)
        pair = self._by_number.pop(message.request_id, None)
        if pair is not None:
            ready = _Ready(value, message.type_name, message.seconds) if value is not None else None
            self._settle(pair, ready)

    def on_lost(self, message: ValueLost) -> None:
        """The executor doesn't have the value, or can't encode it."""
        pair = self._by_number.pop(message.request_id, None)
        if pair is not None:
            self._settle(pair, None if message.error is None else ValueEncodingError(message.error))

    def on_executor_lost(self) -> None:
        """Nothing that was asked for will come."""
        self._by_number.clear()
        with self._lock:
            waiting = list(self._encoding)
        for pair in waiting:
            self._settle(pair, None)

    def close(self) -> None:
        """Let nobody wait any longer."""
        with self._lock:
            self._closed = True
        self.on_executor_lost()

    def _settle(self, pair: Wanted, outcome: _Ready | ValueEncodingError | None) -> None:
        with self._lock:
            future = self._encoding.pop(pair, None)
        if future is None:
            return
        if isinstance(outcome, ValueEncodingError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
