"""Futures: handles on tasks, many per task if need be, and the state they share.

A ``Future`` is a handle that users hold; all handles that a client has on one registration of a key share one
``FutureState``. Only handles (and waits in progress) hold the state, so Python's own reference count says when nobody
wants the task any longer: the state's ``__del__`` then queues its release. It runs in whatever thread and moment the
collector chooses, so it takes no lock and only appends.

States change on the client's loop thread under the connection's lock; anyone may read them.

Contents: Future, FutureState, Waiter, Countdown, find_futures, futures_of, fire_and_forget.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Protocol

from gnomon.runtime.client import default
from gnomon.runtime.client.effects import Signal
from gnomon.runtime.messages import ErrorRecord, Key, Payload
from gnomon.runtime.protocol import is_named_tuple

if TYPE_CHECKING:
    from types import TracebackType

    from gnomon.runtime.client.client import Client
    from gnomon.runtime.client.connection import Connection

__all__ = [
    "CANCELLED",
    "ERROR",
    "FINISHED",
    "LOST",
    "PENDING",
    "Countdown",
    "Future",
    "FutureState",
    "Waiter",
    "find_futures",
    "fire_and_forget",
    "futures_of",
]

PENDING = "pending"
FINISHED = "finished"
ERROR = "error"
CANCELLED = "cancelled"
LOST = "lost"


class Waiter(Protocol):
    """Told once when a state it was added to ends, under the connection's lock: it must be quick and not raise.

    Fields:
        left: grows with each state it is added to.
    """

    left: int

    def settle(self, state: FutureState) -> None:
        """The state is no longer pending."""
        ...


class FutureState:
    """One registration of a key by one client.

    Fields:
        key: the task's name.
        id: the future id of this registration.
        status: ``pending``, ``finished``, ``error``, ``cancelled`` or ``lost``.
        payload: the value if it came with the news (small, or by reference), else None.
        nbytes: estimated size of the value.
        error: record of the failure (status error), or the exception itself (cancelled, lost).
        waiters: who is told of its end; None for nobody.
    """

    __slots__ = ("__weakref__", "connection", "error", "id", "key", "nbytes", "payload", "status", "waiters")

    def __init__(self, key: Key, number: int, connection: Connection) -> None:
        self.key = key
        self.id = number
        self.connection = connection
        self.status = PENDING
        self.payload: Payload | None = None
        self.nbytes = 0
        self.error: ErrorRecord | BaseException | None = None
        self.waiters: list[Waiter] | None = None

    def __del__(self) -> None:
        self.connection.release(self.id, self.key)


class Countdown(Signal):
    """Fires when so many states have ended, or at the first that ended badly if asked to."""

    __slots__ = ("left", "stop_on_error")

    def __init__(self, stop_on_error: bool = False) -> None:
        super().__init__()
        self.left = 0
        self.stop_on_error = stop_on_error

    def settle(self, state: FutureState) -> None:
        """One more has ended."""
        self.left -= 1
        if self.left <= 0 or (self.stop_on_error and state.status != FINISHED):
            self.fire()


class Future:
    """The result, sooner or later, of one task.

    ``await future`` and ``future.result()`` give the value or raise what the task raised. A future may be an argument
    of further tasks, at any depth of lists, tuples, dicts and sets. When the last handle dies, the result is released.

    Args:
        key: of a task the scheduler knows.
        client: whose future it is; default the current one.
    """

    __slots__ = ("__weakref__", "_client", "_state")

    #: dask takes objects with this mark for futures, to be looked up by their key.
    __dask_future__ = True

    def __init__(self, key: Key, client: Client | None = None) -> None:
        if client is None:
            client = default.current_client()
        self._state: FutureState | _Released = client.future_of_key(key).state
        self._client: Client = client

    @classmethod
    def of_state(cls, state: FutureState, client: Client) -> Future:
        """A new handle on a state."""
        future = _new(cls)
        future._state = state
        future._client = client
        return future

    @property
    def state(self) -> FutureState | _Released:
        """What all handles on this registration share; for the other modules of this room."""
        return self._state

    @property
    def key(self) -> Key:
        """Name of the task."""
        return self._state.key

    @property
    def client(self) -> Client:
        """The client it belongs to."""
        return self._client

    @property
    def status(self) -> str:
        """``pending``, ``finished``, ``error``, ``cancelled`` or ``lost``."""
        return self._state.status

    @property
    def type(self) -> type | None:
        """Type of the value where it is known here, else None."""
        state = self._state
        if state.status != FINISHED or state.payload is None:
            return None
        return type(self._client.decode_small(state.payload))

    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self._state.status != PENDING

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._state.status == CANCELLED

    def result(self, timeout: float | str | None = None) -> Any:
        """The value; waits for it, at most ``timeout`` seconds.

        Raises what the task raised, FutureCancelledError, FutureLostError, or TimeoutError.
        """
        return self._client.call(self._client.result_of(self, timeout))

    def exception(self, timeout: float | str | None = None) -> Any:
        """The exception the task raised, None if it raised none; waits for its end.

        Raises FutureCancelledError or TimeoutError.
        """
        return self._client.call(self._exception(timeout))

    def traceback(self, timeout: float | str | None = None) -> Any:
        """The traceback of the exception, None if there is none; waits for its end."""
        return self._client.call(self._traceback(timeout))

    async def _exception(self, timeout: float | str | None) -> BaseException | None:
        await self._client.wait_for_states((self,), timeout)
        state = self._state
        if state.status == FINISHED:
            return None
        exc = self._client.error_of(state)
        if state.status == CANCELLED:
            raise exc
        return exc

    async def _traceback(self, timeout: float | str | None) -> TracebackType | None:
        exc = await self._exception(timeout)
        return None if exc is None else exc.__traceback__

    def profile(self) -> Any:
        """The deep profile of its task, a ``gnomon.profiler`` session; waits for the task's end.

        Raises ValueError if there is none: it was submitted without ``profile=True``, or the scheduler dropped it.
        """
        return self._client.call(self._profile())

    async def _profile(self) -> Any:
        await self._client.wait_for_states((self,), None)
        return await self._client.task_profile(self._state.key)

    def add_done_callback(self, fn: Callable[[Future], Any]) -> None:
        """Call ``fn(future)`` once it has ended: in a thread, or on the loop of an asynchronous client."""
        self._client.add_callback(self, fn)

    def cancel(self, reason: str = "", msg: str = "", force: bool = False) -> Any:
        """Withdraw from the task; see ``Client.cancel``."""
        return self._client.cancel([self], reason=reason, msg=msg, force=force)

    def retry(self) -> Any:
        """Run the task again if it failed; see ``Client.retry``."""
        return self._client.retry([self])

    def release(self) -> None:
        """Let go of the task now; the future is of no further use."""
        if type(self._state) is FutureState:
            self._state = _Released(self._state.key)

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._client.await_result(self).__await__()

    def __reduce__(self) -> tuple[Callable[[Key], Future], tuple[Key]]:
        return self._client.rebuild_future, (self._state.key,)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Future):
            return NotImplemented
        return self._state is other._state or (self._client is other._client and self._state.key == other._state.key)

    def __hash__(self) -> int:
        return hash(self._state.key)

    def __repr__(self) -> str:
        return f"<Future: {self._state.status}, key: {self._state.key!s}>"


_new = object.__new__


class _Released:
    """Stands for the state of a future that was let go of."""

    __slots__ = ("key",)

    id = 0
    status = CANCELLED
    payload: Payload | None = None
    nbytes = 0
    waiters: list[Waiter] | None = None
    error: ErrorRecord | BaseException | None = None

    def __init__(self, key: Key) -> None:
        self.key = key


def find_futures(obj: Any) -> list[Future]:
    """The futures in a collection of dask's, or in nested lists, tuples, sets and dicts; one for each distinct task."""
    found: dict[int, Future] = {}
    stack = [obj]
    while stack:
        item = stack.pop()
        if isinstance(item, Future):
            found.setdefault(id(item.state), item)
        elif type(item) in (list, tuple, set, frozenset) or is_named_tuple(item):
            stack.extend(item)
        elif type(item) is dict:
            stack.extend(item.values())
        elif not isinstance(item, type) and hasattr(item, "__dask_graph__"):
            graph = item.__dask_graph__()
            if graph is not None:
                stack.extend(value for value in graph.values() if isinstance(value, Future))
    return list(found.values())[::-1]


def futures_of(obj: Any, client: Client | None = None) -> list[Future]:
    """The futures in a collection of dask's, or in nested lists, tuples, sets and dicts.

    Raises FutureCancelledError if one was cancelled.
    """
    futures = find_futures(obj)
    for future in futures:
        if future.status == CANCELLED:
            raise future.client.error_of(future.state)
    return futures if client is None else [future for future in futures if future.client is client]


def fire_and_forget(obj: Any) -> None:
    """Have tasks run to their end even if every future of them is dropped."""
    for future in futures_of(obj):
        future.client.keep_until_done(future)
