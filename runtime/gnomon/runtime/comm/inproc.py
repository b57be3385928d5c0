"""Connections within this process: objects by reference, between any two of its event loops and threads.

Ordering, errors and closing are those of the socket transports; a handshake has nothing to prove here, so it only
compares roles. Nothing is copied or serialized, so messages must not be changed after they are sent.

Contents: InprocComm, InprocListener, connect_inproc, listen_inproc.
"""

from __future__ import annotations

import asyncio
import enum
import itertools
import logging
import os
import threading
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gnomon.runtime import config
from gnomon.runtime.comm.address import Address
from gnomon.runtime.comm.base import Comm, Counters, Handlers, Listener, OnComm, Peer
from gnomon.runtime.errors import CommClosedError, ConnectTimeoutError, HandshakeError, PeerError
from gnomon.runtime.messages import Message, MessageError

__all__ = ["InprocComm", "InprocListener", "connect_inproc", "listen_inproc"]

logger = logging.getLogger("gnomon.comm")

_numbers = itertools.count(1)
_listeners: dict[str, InprocListener] = {}
_listeners_lock = threading.Lock()


class _Sign(enum.Enum):
    """What is put into an inbox beside messages."""

    GOODBYE = enum.auto()
    LOST = enum.auto()


class InprocComm(Comm):
    """See ``Comm``. Two of them make a connection; each belongs to a loop and has an inbox that the other one fills."""

    def __init__(self, loop: asyncio.AbstractEventLoop, address: str, peer: Peer) -> None:
        self.peer = peer
        self.local_address = address
        self.counters = Counters()
        self._loop = loop
        self._other: InprocComm | None = None
        self._handlers: Handlers | None = None
        self._inbox: deque[Sequence[Message] | _Sign] = deque()
        self._inbox_lock = threading.Lock()
        self._wake_scheduled = False
        self._unread = 0
        self._closing = False
        self._lost = False
        self._cause: BaseException | None = None
        self._gone = loop.create_future()
        self._close_timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'closed' if self.closed else 'open'} {self.peer.role} {self.peer.address}>"

    def join(self, other: InprocComm) -> None:
        """Make the two one connection."""
        self._other, other._other = other, self

    def start(self, handlers: Handlers) -> None:
        """From now on call the handlers; first with what has arrived. On the comm's own loop."""
        self._handlers = handlers
        self._read()
        if self._lost:
            self._tell_closed()

    # -- Sending -------------------------------------------------------------------------------------------------------

    def send(self, messages: Sequence[Message]) -> None:
        """See ``Comm.send``."""
        if self.closed:
            raise CommClosedError(f"the connection to {self.peer.address} is closed")
        if messages:
            self.counters.messages_sent += len(messages)
            self._put(messages if isinstance(messages, tuple) else list(messages))

    def _put(self, item: Sequence[Message] | _Sign) -> None:
        """Into the other's inbox; wake its loop unless it is to wake already."""
        other = self._other
        assert other is not None
        with other._inbox_lock:
            if item is _Sign.LOST:
                other._inbox.clear()
                other._unread = 0
            other._inbox.append(item)
            if not isinstance(item, _Sign):
                other._unread += len(item)
            wake = not other._wake_scheduled
            other._wake_scheduled = True
        if wake:
            self.counters.writes += 1
            try:
                other._loop.call_soon_threadsafe(other._wake)
            except RuntimeError:  # its loop is closed: nobody will ever read that
                self._loop.call_soon(self._lose, CommClosedError(f"the event loop of {self.peer.address} is gone"))

    @property
    def backlog(self) -> int:
        """See ``Comm.backlog``."""
        return self._other._unread if self._other is not None else 0

    # -- Receiving -----------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        self.counters.reads += 1
        self._read()

    def _read(self) -> None:
        """Take all there is, and make one callback for all messages in it."""
        if self._handlers is None:
            with self._inbox_lock:
                self._wake_scheduled = False
            return
        with self._inbox_lock:
            items = list(self._inbox)
            self._inbox.clear()
            self._unread = 0
            self._wake_scheduled = False
        messages: list[Message] = []
        sign: _Sign | None = None
        for item in items:
            if isinstance(item, _Sign):
                sign = item
                break
            messages += item
        if messages and not self._closing and not self._lost:
            self.counters.messages_received += len(messages)
            self._deliver(messages)
        if sign is _Sign.GOODBYE:
            if not self._closing:
                self.close()
            self._lose(None)
        elif sign is _Sign.LOST:
            self._lose(
                None
                if self._closing
                else CommClosedError(f"the connection to {self.peer.address} was lost: no goodbye")
            )

    def _deliver(self, messages: list[Message]) -> None:
        assert self._handlers is not None
        try:
            self._handlers.on_messages(self, messages)
        except (MessageError, PeerError) as exc:
            logger.warning("closed %s %s: %s", self.peer.role, self.peer.address, exc)
            self._cause = exc if isinstance(exc, PeerError) else PeerError(f"{self.peer.address}: {exc}")
            self.abort(str(exc))
        except BaseException:
            self.abort("the callback for messages failed")
            raise

    # -- Closing -------------------------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """See ``Comm.closed``."""
        return self._closing or self._lost

    def close(self) -> None:
        """See ``Comm.close``."""
        if not self.closed:
            self._closing = True
            self._put(_Sign.GOODBYE)
            timeout = config.get().comm.close_timeout
            self._close_timer = self._loop.call_later(timeout, self._give_up, timeout)

    def _give_up(self, timeout: float) -> None:
        self._lose(
            CommClosedError(f"{self.peer.address} did not take the last messages and the goodbye within {timeout:g} s")
        )

    def abort(self, reason: str = "") -> None:
        """See ``Comm.abort``."""
        if not self._lost:
            self._closing = True
            if self._cause is None:
                self._cause = CommClosedError(
                    f"the connection to {self.peer.address} was aborted here: {reason or 'no reason'}"
                )
            self._put(_Sign.LOST)
            self._loop.call_soon(self._lose, self._cause)

    def _lose(self, cause: BaseException | None) -> None:
        """It is over: say so, once, when there is someone to say it to."""
        if not self._lost:
            self._lost = True
            self._cause = self._cause or cause
            if self._close_timer is not None:
                self._close_timer.cancel()
            if self._handlers is not None:
                self._tell_closed()

    def _tell_closed(self) -> None:
        if not self._gone.done():
            assert self._handlers is not None
            self._gone.set_result(None)
            self._handlers.on_close(self, self._cause)

    async def wait_closed(self) -> None:
        """See ``Comm.wait_closed``."""
        await asyncio.shield(self._gone)


class InprocListener(Listener):
    """See ``Listener``."""

    def __init__(self, name: str, on_comm: OnComm, role: str, accept: Collection[str], info: Mapping[str, Any]) -> None:
        self.address = self.contact_address = f"inproc://{name}"
        self.role = role
        self.accept = frozenset(accept)
        self.info = info
        self.loop = asyncio.get_running_loop()
        self._name = name
        self._on_comm = on_comm

    def admit(self, comm: InprocComm, accepted: asyncio.Future[None], waiting_loop: asyncio.AbstractEventLoop) -> None:
        """Take one half of a new connection. On the listener's loop."""
        with _listeners_lock:
            listening = _listeners.get(self._name) is self
        if not listening:
            _tell(waiting_loop, accepted, CommClosedError(f"{self.address} was closed"))
            return
        _tell(waiting_loop, accepted, None)
        try:
            handlers = self._on_comm(comm)
        except (HandshakeError, PeerError) as exc:
            logger.warning("%s: %s", self.address, exc)
            comm.start(Handlers(lambda *_: None, lambda *_: None))
            comm.abort(str(exc))
            return
        comm.start(handlers)

    def close(self) -> None:
        """See ``Listener.close``."""
        with _listeners_lock:
            if _listeners.get(self._name) is self:
                del _listeners[self._name]

    async def wait_closed(self) -> None:
        """See ``Listener.wait_closed``."""


def _tell(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None], error: BaseException | None) -> None:
    """Settle a future of another loop, if that and the future still wait."""

    def settle() -> None:
        if not future.done():
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:  # that loop is closed
        pass


async def listen_inproc(
    address: Address, on_comm: OnComm, *, role: str, accept: Collection[str], info: Mapping[str, Any]
) -> InprocListener:
    """See ``listen``. Without a name, a new one is made up."""
    name = address.host or f"{os.getpid()}-{next(_numbers)}"
    listener = InprocListener(name, on_comm, role, accept, info)
    with _listeners_lock:
        if name in _listeners:
            raise OSError(f"inproc://{name} is in use")
        _listeners[name] = listener
    return listener


async def connect_inproc(
    address: Address, *, role: str, expect: Collection[str], info: Mapping[str, Any], timeout: float, handlers: Handlers
) -> InprocComm:
    """See ``connect``."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout):
            while True:
                comm = await _try_to_connect(address, role, expect, info)
                if comm is not None:
                    break
                await asyncio.sleep(0.01)
    except TimeoutError as exc:
        raise ConnectTimeoutError(
            f"nobody accepted a connection at {address} within {timeout:g} s; inproc:// reaches this process only"
        ) from exc
    loop.call_soon(comm.start, handlers)
    return comm


async def _try_to_connect(
    address: Address, role: str, expect: Collection[str], info: Mapping[str, Any]
) -> InprocComm | None:
    """A connection; None if nobody listens. Raises HandshakeError."""
    with _listeners_lock:
        listener = _listeners.get(address.host)
    if listener is None:
        return None
    if listener.role not in expect:
        raise HandshakeError(f"{address} is a {listener.role}; this side talks to a {' or '.join(expect)}")
    if role not in listener.accept:
        raise HandshakeError(
            f"the {listener.role} at {address} talks to a {' or '.join(sorted(listener.accept))}, not to a {role}"
        )
    loop = asyncio.get_running_loop()
    own_address = f"inproc://{os.getpid()}-{next(_numbers)}"
    mine = InprocComm(loop, own_address, _peer(listener.role, str(address), listener.info))
    theirs = InprocComm(listener.loop, str(address), _peer(role, own_address, info))
    mine.join(theirs)
    accepted = loop.create_future()
    try:
        listener.loop.call_soon_threadsafe(listener.admit, theirs, accepted, loop)
        await accepted
    except (RuntimeError, CommClosedError):  # closed between the look-up and now
        return None
    except asyncio.CancelledError:
        mine.abort("nobody waits for it any more")
        raise
    return mine


def _peer(role: str, address: str, info: Mapping[str, Any]) -> Peer:
    return Peer(role, address, str(info.get("name", "")), dict(info))
