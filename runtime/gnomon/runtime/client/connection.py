"""The stream to the scheduler: one buffer out, one dispatch in, and the tables of what the client has asked for.

Any thread registers futures and pushes entries; a flag sees to it that the loop is woken once for all of them. What the
scheduler says is applied on the loop, a whole batch under one lock, and wakes each waiting thread at most once. Values
pass through here unopened.

Contents: Connection, Reply.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gnomon.runtime.client.effects import Signal
from gnomon.runtime.client.future import CANCELLED, ERROR, FINISHED, LOST, PENDING, FutureState, Waiter
from gnomon.runtime.client.outgoing import Outgoing, Release
from gnomon.runtime.comm import Comm, connect
from gnomon.runtime.errors import CommClosedError, CommError, FutureCancelledError, FutureLostError, KilledWorker
from gnomon.runtime.messages import (
    ErrorRecord,
    Failure,
    FuturesCancelled,
    FuturesDone,
    FuturesErred,
    FuturesPending,
    Key,
    Message,
    Request,
    Response,
    ScatterData,
    UpdateGraph,
)

__all__ = ["Connection", "Reply"]

_KILLED = f"{KilledWorker.__module__}.{KilledWorker.__qualname__}"


class Reply(Signal):
    """The answer to a request, once it has come: a result, or an error (a record, or an exception of this side)."""

    __slots__ = ("error", "result")

    def __init__(self) -> None:
        super().__init__()
        self.result: Any = None
        self.error: ErrorRecord | BaseException | None = None


class Connection:
    """One client's stream, before, while and after it stands.

    Fields:
        address: of the scheduler.
        refusal: None while calls are welcome, else why not (not connected any more, closed, forked).
        on_lost: called on the loop when the stream has ended, whoever ended it.
        by_reference: whether payloads may be objects of this process.
        future_id: gives the next future id.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.address = ""
        self.refusal: str | None = None
        self.on_lost: Callable[[], None] | None = None
        self.by_reference = False
        self._lock = threading.Lock()
        self._outgoing = Outgoing()
        self._append = self._outgoing.queue.append
        self._awake = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._comm: Comm | None = None
        self.future_id: Callable[[], int] = itertools.count(1).__next__
        self._request_ids = itertools.count(1)
        self._by_id: dict[int, weakref.ref[FutureState]] = {}
        self._by_key: dict[Key, weakref.ref[FutureState]] = {}
        self._replies: dict[int, Reply] = {}
        self._kept: set[FutureState] = set()
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            FuturesDone: self._on_done,
            FuturesErred: self._on_erred,
            FuturesCancelled: self._on_cancelled,
            FuturesPending: self._on_pending,
            Response: self._on_response,
            Failure: self._on_failure,
        }

    # Life

    async def open(self, address: str, security: Any, timeout: float, info: Mapping[str, Any]) -> None:
        """Connect; what was pushed before leaves now. Runs on the loop that will carry the stream.

        Raises CommError (ConnectTimeoutError, HandshakeError...).
        """
        self.address = address
        self._loop = asyncio.get_running_loop()
        self.by_reference = address.startswith("inproc://")
        self._comm = await connect(
            address,
            role="client",
            security=security,
            timeout=timeout,
            info={"name": self.name, **info},
            on_messages=self._on_messages,
            on_close=self._on_close,
        )
        self._flush()

    async def close(self, reason: str) -> None:
        """Send what is queued, leave, and end every future that is still waited for."""
        comm = self._comm
        if comm is not None and not comm.closed:
            self._flush()
            self._end(reason)
            comm.close()
            await comm.wait_closed()
        else:
            self._end(reason)

    def abandon(self, reason: str) -> None:
        """In a forked child: the stream belongs to the parent, and any lock may be held by a thread that isn't here."""
        self._lock = threading.Lock()
        self._comm = None
        self._loop = None
        self.refusal = reason
        self._end(reason)

    def check(self) -> None:
        """Raise CommClosedError if nothing can be asked of the scheduler any more."""
        if self.refusal is not None:
            raise CommClosedError(self.refusal)

    # Out

    def push(self, entry: Any) -> None:
        """Queue an entry (see ``outgoing``) from any thread.

        Raises CommClosedError.
        """
        if self.refusal is not None:
            raise CommClosedError(self.refusal)
        self._append(entry)
        if not self._awake:
            self._wake()

    def queue(self, entry: Any) -> None:
        """Queue an entry that can wait for the next ``push``."""
        self._append(entry)

    def release(self, number: int, key: Key) -> None:
        """Nobody holds this registration any longer. Called by the collector, anywhere: takes no lock, never raises."""
        if self.refusal is None:
            self._append(Release(number, key))
            if not self._awake:
                self._wake()

    def ask(self, method: str, arguments: dict[str, Any]) -> Reply:
        """Put a question; the reply fires when it is answered, or when the stream ends.

        Raises CommClosedError.
        """
        number, reply = self.expect_reply()
        self.push(Request(number, method, arguments))
        return reply

    def expect_reply(self) -> tuple[int, Reply]:
        """A request number that is being waited for, and where its answer will be."""
        self.check()
        number = next(self._request_ids)
        reply = self._replies[number] = Reply()
        return number, reply

    def _wake(self) -> None:
        loop = self._loop
        if loop is None:
            return
        self._awake = True
        try:
            loop.call_soon_threadsafe(self._flush)
        except RuntimeError:
            pass  # the loop is closed, and with it the stream: whoever waits has been told

    def _flush(self) -> None:
        """On the loop: send everything that is queued."""
        self._awake = False
        comm = self._comm
        if comm is None:
            return
        messages = self._outgoing.drain()
        if self._outgoing.released:
            self._forget(self._outgoing.released)
        if not messages:
            return
        try:
            comm.send(messages)
        except CommClosedError:
            return  # on_close comes, or came, with the cause
        except (CommError, TypeError, ValueError, OverflowError):
            self._send_one_by_one(comm, messages)

    def _send_one_by_one(self, comm: Comm, messages: Sequence[Message]) -> None:
        """One of the messages can't be sent: fail what it was about, and send the others."""
        for message in messages:
            try:
                comm.send([message])
            except CommClosedError:
                return
            except (CommError, TypeError, ValueError, OverflowError) as exc:
                self._fail(message, exc)

    def _fail(self, message: Message, exc: Exception) -> None:
        if isinstance(message, UpdateGraph | ScatterData):
            self._settle(message.future_ids, ERROR, exc)
        number = getattr(message, "request_id", 0)
        reply = self._replies.pop(number, None)
        if reply is not None:
            reply.error = exc
            reply.fire()

    # Futures

    def register(self, key: Key) -> FutureState:
        """A new registration of a key. The caller pushes what makes the scheduler know it."""
        number = self.future_id()
        state = FutureState(key, number, self)
        self._by_id[number] = ref = weakref.ref(state)
        with self._lock:
            self._by_key[key] = ref
        return state

    def find(self, key: Key) -> FutureState | None:
        """The state of a key that this client already has a future of."""
        ref = self._by_key.get(key)
        return None if ref is None else ref()

    def watch(self, states: Iterable[FutureState], waiter: Waiter) -> list[FutureState]:
        """Have a waiter told when each state ends; gives the states that have ended already, of which it isn't told.

        The waiter's ``left`` grows by the number of the others.
        """
        ended = []
        with self._lock:
            count = 0
            for state in states:
                if state.status == PENDING:
                    count += 1
                    if state.waiters is None:
                        state.waiters = [waiter]
                    else:
                        state.waiters.append(waiter)
                else:
                    ended.append(state)
            waiter.left += count
        return ended

    def unwatch(self, states: Iterable[FutureState], waiter: Waiter) -> None:
        """Stop telling a waiter of states that have not ended."""
        with self._lock:
            for state in states:
                if state.waiters is not None:
                    state.waiters = [other for other in state.waiters if other is not waiter] or None

    def keep(self, state: FutureState) -> None:
        """Hold a state until it has ended, whoever drops it."""
        with self._lock:
            if state.status == PENDING:
                self._kept.add(state)

    def disown(self, states: Iterable[FutureState], reason: str, message: str) -> None:
        """End states as cancelled, here and now."""
        with self._lock:
            for state in states:
                self._end_state(state, CANCELLED, FutureCancelledError(state.key, reason, message))
                ref = self._by_key.get(state.key)
                if ref is not None and ref() is state:
                    del self._by_key[state.key]

    def reopen(self, states: Iterable[FutureState]) -> list[FutureState]:
        """Make erred states pending again; gives those that were."""
        with self._lock:
            erred = [state for state in states if state.status == ERROR]
            for state in erred:
                state.status = PENDING
                state.error = None
            return erred

    def _forget(self, released: Iterable[Release]) -> None:
        """Drop table entries whose states are gone. A key may have been registered anew meanwhile: look again."""
        by_id, by_key = self._by_id, self._by_key
        with self._lock:
            for number, key in released:
                by_id.pop(number, None)
                ref = by_key.get(key)
                if ref is not None and ref() is None:
                    del by_key[key]

    # In

    def _on_messages(self, comm: Comm, messages: list[Message]) -> None:
        with self._lock:
            for message in messages:
                handler = self._handlers.get(type(message))
                if handler is not None:
                    handler(message)

    def _on_done(self, message: FuturesDone) -> None:
        by_id = self._by_id
        for number, nbytes, value in zip(*message, strict=True):
            ref = by_id.get(number)
            state = None if ref is None else ref()
            if state is None or state.status == CANCELLED:
                continue
            state.status = FINISHED
            state.payload = value
            state.nbytes = nbytes
            waiters = state.waiters
            if waiters is not None:
                state.waiters = None
                for waiter in waiters:
                    waiter.settle(state)
            if self._kept:
                self._kept.discard(state)

    def _on_erred(self, message: FuturesErred) -> None:
        for number, row, cause in zip(message.future_ids, message.error_rows, message.causes, strict=True):
            error: ErrorRecord | BaseException = message.errors[row]
            if message.errors[row].type_name == _KILLED:  # the scheduler's own word, which knows no exceptions
                error = KilledWorker(message.errors[row].text, cause)
            self._settle_one(number, ERROR, error)

    def _on_cancelled(self, message: FuturesCancelled) -> None:
        for number in message.future_ids:
            ref = self._by_id.get(number)
            state = None if ref is None else ref()
            if state is None:
                continue
            if message.reason == "lost":
                self._end_state(state, LOST, FutureLostError(f"{state.key!r}: {message.message}"))
            else:
                self._end_state(state, CANCELLED, FutureCancelledError(state.key, message.reason, message.message))
            if self._by_key.get(state.key) is ref:
                del self._by_key[state.key]

    def _on_pending(self, message: FuturesPending) -> None:
        for number in message.future_ids:
            ref = self._by_id.get(number)
            state = None if ref is None else ref()
            if state is not None and state.status in (FINISHED, ERROR):
                state.status = PENDING
                state.payload = None
                state.error = None

    def _on_response(self, message: Response) -> None:
        reply = self._replies.pop(message.request_id, None)
        if reply is not None:
            reply.result = message.result
            reply.fire()

    def _on_failure(self, message: Failure) -> None:
        reply = self._replies.pop(message.request_id, None)
        if reply is not None:
            reply.error = message.error
            reply.fire()

    def _on_close(self, comm: Comm, exc: BaseException | None) -> None:
        at = time.strftime("%H:%M:%S")
        cause = f": {exc}" if exc is not None else ""
        how = "closed the connection" if exc is None else "was lost"
        self._end(f"the scheduler at {self.address} {how} at {at}{cause}")
        if self.on_lost is not None:
            self.on_lost()

    # Ends

    def _settle(self, numbers: Iterable[int], status: str, error: ErrorRecord | BaseException) -> None:
        with self._lock:
            for number in numbers:
                self._settle_one(number, status, error)

    def _settle_one(self, number: int, status: str, error: ErrorRecord | BaseException) -> None:
        ref = self._by_id.get(number)
        state = None if ref is None else ref()
        if state is not None:
            self._end_state(state, status, error)

    def _end_state(self, state: FutureState, status: str, error: ErrorRecord | BaseException) -> None:
        """Under the lock: this is how it ended; a cancelled state stays that."""
        if state.status == CANCELLED:
            return
        state.status = status
        state.error = error
        state.payload = None
        waiters, state.waiters = state.waiters, None
        for waiter in waiters or ():
            waiter.settle(state)
        self._kept.discard(state)

    def _end(self, reason: str) -> None:
        """The stream is over: tell everyone who waits."""
        if self.refusal is None:
            self.refusal = reason
        with self._lock:
            states = [state for ref in tuple(self._by_id.values()) if (state := ref()) is not None]
            for state in states:
                if state.status == PENDING:
                    self._end_state(state, LOST, FutureLostError(f"{state.key!r} will not be computed: {reason}"))
            replies, self._replies = self._replies, {}
            for reply in replies.values():
                reply.error = CommClosedError(reason)
                reply.fire()
            self._by_id.clear()
            self._by_key.clear()
            self._kept.clear()
