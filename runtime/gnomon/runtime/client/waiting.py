"""Waiting for many futures: ``wait`` for all or the first, ``as_completed`` for one after the other.

Contents: wait, as_completed, DoneAndNotDone, ALL_COMPLETED, FIRST_COMPLETED.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from gnomon.runtime.client import default
from gnomon.runtime.client.effects import Signal, pause
from gnomon.runtime.client.future import CANCELLED, Future, FutureState, futures_of
from gnomon.runtime.client.packing import seconds

if TYPE_CHECKING:
    from gnomon.runtime.client.client import Client

__all__ = ["ALL_COMPLETED", "FIRST_COMPLETED", "DoneAndNotDone", "as_completed", "wait"]

ALL_COMPLETED = "ALL_COMPLETED"
FIRST_COMPLETED = "FIRST_COMPLETED"


class DoneAndNotDone(NamedTuple):
    """Futures that have ended, and the others."""

    done: set[Future]
    not_done: set[Future]


def wait(fs: Any, timeout: Any = None, return_when: str = ALL_COMPLETED) -> Any:
    """Wait until all futures have ended, or the first of them; gives ``(done, not_done)``.

    Args:
        fs: futures, nested as you like, or dask collections that hold some.
        timeout: seconds.
        return_when: ``ALL_COMPLETED`` or ``FIRST_COMPLETED``.

    Raises TimeoutError, FutureCancelledError if one was cancelled. Futures of an asynchronous client: await it.
    """
    if return_when not in (ALL_COMPLETED, FIRST_COMPLETED):
        raise NotImplementedError(f"return_when must be {ALL_COMPLETED} or {FIRST_COMPLETED}, not {return_when!r}")
    if timeout is not None and not isinstance(timeout, int | float | str) and not hasattr(timeout, "total_seconds"):
        raise TypeError(f"timeout must be a time, not {timeout!r}; were the futures meant to be in a list?")
    futures = futures_of(fs)
    client = futures[0].client if futures else default.current_client()
    return client.call(_wait(client, futures, seconds(timeout), return_when))


async def _wait(client: Client, futures: list[Future], timeout: float | None, return_when: str) -> DoneAndNotDone:
    if return_when == ALL_COMPLETED:
        await client.wait_for_states(futures, timeout)
    elif not any(future.done() for future in futures):
        first = _Inbox()
        states = _states(futures)
        if not client.watch(states, first):
            try:
                await pause(first, timeout)
            finally:
                client.unwatch(states, first)
    done = {future for future in futures if future.done()}
    for future in done:
        if future.status == CANCELLED:
            raise client.error_of(future.state)
    return DoneAndNotDone(done, {future for future in futures if future not in done})


def _states(futures: Iterable[Future]) -> list[FutureState]:
    return [state for future in futures if type(state := future.state) is FutureState]


class _Inbox(Signal):
    """Collects states as they end."""

    __slots__ = ("left", "states")

    def __init__(self) -> None:
        super().__init__()
        self.left = 0
        self.states: deque[FutureState] = deque()

    def settle(self, state: FutureState) -> None:
        """One more has ended."""
        self.states.append(state)
        self.fire()


class as_completed:  # noqa: N801 - the name users know
    """Iterate over futures in the order in which they end; ``async for`` with an asynchronous client.

    More futures may be added while it runs. One that ended badly is given like others, unless results are asked for.

    Args:
        futures: to begin with.
        loop: not used; the futures know their loop.
        with_results: give ``(future, result)``.
        raise_errors: with results, raise a task's error; else it stands in the place of the result.
        timeout: seconds for the whole iteration; then TimeoutError is raised.
    """

    def __init__(
        self,
        futures: Iterable[Future] | None = None,
        loop: Any = None,
        with_results: bool = False,
        raise_errors: bool = True,
        *,
        timeout: float | str | None = None,
    ) -> None:
        self.with_results = with_results
        self.raise_errors = raise_errors
        limit = seconds(timeout)
        self._deadline = None if limit is None else time.monotonic() + limit
        self._inbox = _Inbox()
        self._futures: dict[int, list[Future]] = defaultdict(list)
        self._ready: deque[Future] = deque()
        self._client: Client | None = None
        if futures:
            self.update(futures)

    # Filling

    def add(self, future: Future) -> None:
        """One more future to wait for."""
        self.update((future,))

    def update(self, futures: Iterable[Future]) -> None:
        """More futures to wait for."""
        futures = list(futures)
        for future in futures:
            if not isinstance(future, Future):
                raise TypeError(f"as_completed takes futures, not {future!r}")
        for future in futures:
            self._client = future.client
            self._futures[id(future.state)].append(future)
        by_client: dict[Client, list[FutureState]] = defaultdict(list)
        for future in futures:
            state = future.state
            if type(state) is FutureState:
                by_client[future.client].append(state)
            else:
                self._ready.append(self._futures[id(state)].pop())
        for client, states in by_client.items():
            for state in client.watch(states, self._inbox):
                self._inbox.settle(state)

    def clear(self) -> None:
        """Forget all futures, ended or not."""
        for futures in self._futures.values():
            for future in futures:
                future.client.unwatch(_states([future]), self._inbox)
        self._futures.clear()
        self._ready.clear()
        self._inbox.states.clear()

    # Looking

    def count(self) -> int:
        """Futures that have not been given yet."""
        return sum(map(len, self._futures.values())) + len(self._ready)

    def is_empty(self) -> bool:
        """Whether all have been given."""
        return not self.count()

    def has_ready(self) -> bool:
        """Whether the next one can be given at once."""
        self._collect()
        return bool(self._ready)

    # Iterating

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.is_empty():
            raise StopIteration
        client = self._known_client()
        if client.asynchronous:
            raise TypeError("futures of an asynchronous client are iterated with 'async for'")
        return client.call(self._next())

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        if self.is_empty():
            raise StopAsyncIteration
        return await self._known_client().call_async(self._next())

    def next_batch(self, block: bool = True) -> Any:
        """All that have ended and were not given yet; waits for one if ``block``."""
        return self._known_client().call(self._batch(block)) if self._client is not None else []

    def batches(self) -> Iterator[list[Any]]:
        """Batch after batch until all are given."""
        while not self.is_empty():
            yield self.next_batch(block=True)

    def _known_client(self) -> Client:
        return self._client if self._client is not None else default.current_client()

    def _collect(self) -> None:
        """Move what has ended from the inbox to the ready ones."""
        states = self._inbox.states
        while states:
            futures = self._futures.get(id(states.popleft()))
            if futures:
                self._ready.append(futures.pop())

    async def _wait_ready(self) -> None:
        while not self.has_ready():
            self._inbox.fired = False
            if self._inbox.states:
                continue
            left = None if self._deadline is None else self._deadline - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError("the futures were not done in time")
            await pause(self._inbox, left)

    async def _next(self) -> Any:
        await self._wait_ready()
        return await self._given(self._ready.popleft())

    async def _batch(self, block: bool) -> list[Any]:
        if block and not self.is_empty():
            await self._wait_ready()
        self._collect()
        batch = list(self._ready)
        self._ready.clear()
        return [await self._given(future) for future in batch]

    async def _given(self, future: Future) -> Any:
        if not self.with_results:
            return future
        try:
            return future, await future.client.result_of(future, None)
        except Exception as exc:
            if self.raise_errors:
                raise
            return future, exc
