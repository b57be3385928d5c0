"""A comm over a byte stream: handshake, frames, batching of writes and the goodbye, whatever moves the bytes.

``StreamComm`` is a ``BufferedProtocol`` in asyncio's sense. A transport (asyncio's own, or the tornado backend's, which
offers the same few methods) reads into its buffer and takes its writes.

    shaking --done--> known --start()--> open --close() or a goodbye--> closing --lost--> closed

Closing is in two steps, so that nothing sent before is lost: who closes says goodbye (an empty frame) and reads on,
dropping what comes, until the other's goodbye or the end of the stream. Closing a socket with unread bytes in it
would make the system reset the connection, and the peer lose what it had not read yet.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

from gnomon.profiler.marks.regions import enter, leave, slot
from gnomon.runtime.comm.base import Comm, Counters, Handlers, Peer
from gnomon.runtime.comm.framing import (
    GOODBYE,
    PREFIX_SIZE,
    USUAL_BUFFER,
    FrameReader,
    FrameSizeError,
    encode_batches,
    prefix,
)
from gnomon.runtime.comm.handshake import HELLO_LIMIT, Initiator, Responder, foreign_error
from gnomon.runtime.errors import CommClosedError, HandshakeError, PeerError
from gnomon.runtime.messages import Limits, Message, MessageError, decode

__all__ = ["ClosedInHandshakeError", "StreamComm", "Transport"]

logger = logging.getLogger("gnomon.comm")

#: Pieces up to this many bytes are joined into one write; larger ones go as they are, in slices.
_JOINED = 64 << 10
_SLICE = 1 << 20
#: The transport's buffer between which we stop and go on handing it bytes.
_HIGH_WATER = 1 << 20
_LOW_WATER = 256 << 10


#: Regions of the profile.
_READ = slot("comm.read")
_DECODE = slot("comm.decode")
_ENCODE = slot("comm.encode")
_WRITE = slot("comm.write")


class ClosedInHandshakeError(HandshakeError):
    """The peer closed, or the connection broke, before the handshake was over, and nothing was said of why."""

    def __init__(self, address: str, cause: BaseException | None) -> None:
        why = f": {cause}" if cause is not None else ""
        super().__init__(f"{address} closed the connection during the handshake{why}")
        self.__cause__ = cause


class Transport(Protocol):
    """What a comm needs of an asyncio transport."""

    def write(self, data: bytes | memoryview) -> None:
        """Take bytes; never blocks."""

    def get_write_buffer_size(self) -> int:
        """Bytes taken that the system has not."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """When to call ``pause_writing`` and ``resume_writing``."""

    def close(self) -> None:
        """Write what is buffered, then close."""

    def abort(self) -> None:
        """Close at once."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """``sockname``, ``peername``, ``ssl_object``."""


class _State(enum.IntEnum):
    SHAKING = 0
    KNOWN = 1
    OPEN = 2
    CLOSING = 3
    CLOSED = 4


class StreamComm(Comm, asyncio.BufferedProtocol):
    """See the module. ``made`` is done when the transport stands; then ``shake_hands``, then ``start``."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, max_frame: int, close_timeout: float) -> None:
        self.counters = Counters()
        self.local_address = ""
        self.transport: Transport | None = None
        self._loop = loop
        self._limits = Limits(frame=max_frame)
        self._close_timeout = close_timeout
        self._state = _State.SHAKING
        self._reader = FrameReader(HELLO_LIMIT)
        self._side: Initiator | Responder | None = None
        self._shaken: asyncio.Future[Peer] = loop.create_future()
        self._handlers: Handlers | None = None
        self._out: deque[bytes | memoryview] = deque()
        self._out_bytes = 0
        self._flush_scheduled = False
        self._paused = False
        self._said_goodbye = False
        self._heard_goodbye = False
        self._cause: BaseException | None = None
        self._close_timer: asyncio.TimerHandle | None = None
        self._lost: asyncio.Future[None] = loop.create_future()
        self._told = False
        self._shaken.add_done_callback(_seen)

    def __repr__(self) -> str:
        who = f"{self.peer.role} {self.peer.address}" if self._state >= _State.KNOWN else "unknown"
        return f"<{type(self).__name__} {self._state.name.lower()} {who}>"

    # -- Handshake -----------------------------------------------------------------------------------------------------

    async def shake_hands(self, side: Initiator | Responder) -> Peer:
        """Run the handshake to its end; who the peer is.

        Raises HandshakeError, after which the caller aborts or closes.
        """
        assert self.transport is not None
        self._side = side
        if isinstance(side, Initiator):
            self._write_frame(side.start())
        self._read_frames()
        self.peer = await self._shaken
        return self.peer

    def _take_handshake_frame(self, frame: bytes) -> None:
        assert self._side is not None
        try:
            answer = self._side.receive(frame)
        except HandshakeError as exc:
            if self._side.farewell:
                self._write_frame(self._side.farewell)
            self._end_handshake(exc)
            return
        if answer:
            self._write_frame(answer)
        if self._side.peer is not None:
            self.peer = self._side.peer
            self._side = None  # and with it the secret
            self._state = _State.KNOWN
            self._reader.limit = self._limits.frame
            if not self._shaken.done():
                self._shaken.set_result(self.peer)

    def _end_handshake(self, exc: BaseException) -> None:
        """The handshake failed: close after the farewell is out."""
        self._state = _State.CLOSING
        if not self._shaken.done():
            self._shaken.set_exception(exc)
        if self.transport is not None:
            self.transport.close()

    def _write_frame(self, body: bytes) -> None:
        assert self.transport is not None
        self.counters.bytes_sent += PREFIX_SIZE + len(body)
        self.transport.write(prefix(body) + body)

    def start(self, handlers: Handlers) -> None:
        """From now on call the handlers; first with what has arrived since the handshake."""
        self._handlers = handlers
        if self._state is _State.KNOWN:
            self._state = _State.OPEN
            self._reader.usual = USUAL_BUFFER
            self._read_frames()
        elif self._lost.done():
            self._read_messages()
            if self._heard_goodbye:
                self._cause = None
            self._tell_closed()

    # -- Sending -------------------------------------------------------------------------------------------------------

    def send(self, messages: Sequence[Message]) -> None:
        """See ``Comm.send``."""
        if self._state is not _State.OPEN and self._state is not _State.KNOWN:
            raise CommClosedError(f"the connection to {self._peer_name()} is closed")
        if not messages:
            return
        out = self._out
        enter(_ENCODE)
        try:
            bodies = encode_batches(messages, self._limits.frame)
        finally:
            leave(_ENCODE)
        for body in bodies:
            out.append(prefix(body))
            out.append(body)
            self._out_bytes += PREFIX_SIZE + len(body)
        self.counters.messages_sent += len(messages)
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Hand the queue to the transport in as few writes as makes sense, until it has had enough."""
        self._flush_scheduled = False
        out, transport = self._out, self.transport
        if transport is None or self._paused or self._state is _State.CLOSED:
            return
        while out and not self._paused:
            small: list[bytes | memoryview] = []
            size = 0
            while out and len(out[0]) <= _JOINED and size <= _HIGH_WATER:
                size += len(out[0])
                small.append(out.popleft())
            if small and out and size <= _JOINED:  # the first part of a large piece goes with its prefix
                rest = memoryview(out[0])
                small.append(rest[:_JOINED])
                out[0] = rest[_JOINED:]
            if small:
                self._write(b"".join(small) if len(small) > 1 else small[0])
            elif len(out[0]) <= _SLICE:
                self._write(out.popleft())
            else:
                rest = memoryview(out[0])
                out[0] = rest[_SLICE:]
                self._write(rest[:_SLICE])
        if not out and self._heard_goodbye:
            self._loop.call_soon(transport.close)  # not from within asyncio's TLS, which may be calling us

    def _write(self, data: bytes | memoryview) -> None:
        assert self.transport is not None
        self._out_bytes -= len(data)
        self.counters.bytes_sent += len(data)
        self.counters.writes += 1
        enter(_WRITE)
        self.transport.write(data)
        leave(_WRITE)

    def pause_writing(self) -> None:
        """Asyncio's word that the transport has enough."""
        self._paused = True

    def resume_writing(self) -> None:
        """Asyncio's word that the transport wants more."""
        self._paused = False
        self._flush()

    @property
    def backlog(self) -> int:
        """See ``Comm.backlog``."""
        if self.transport is None or self._state is _State.CLOSED:
            return 0
        return self._out_bytes + self.transport.get_write_buffer_size()

    # -- Receiving -----------------------------------------------------------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:
        """Asyncio's request for room."""
        return self._reader.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Asyncio's word that bytes arrived."""
        self._reader.advance(nbytes)
        self.counters.bytes_received += nbytes
        self.counters.reads += 1
        self._read_frames()

    def _read_frames(self) -> None:
        """Take every whole frame there is, and make one callback for all messages in them."""
        try:
            while self._state is _State.SHAKING and self._side is not None:
                frame = self._reader.next_frame()
                if frame is None:
                    return
                self._take_handshake_frame(bytes(frame))
        except FrameSizeError as exc:
            self._end_handshake(foreign_error(self._address(), exc.start))
            return
        if self._state is _State.OPEN:
            self._read_messages()
        elif self._state is _State.CLOSING:
            self._read_goodbye()

    def _read_messages(self) -> None:
        messages: list[Message] = []
        failure: Exception | None = None
        enter(_READ)
        try:
            while (frame := self._reader.next_frame()) is not None:
                if not frame:
                    self._heard_goodbye = True
                    break
                enter(_DECODE)
                try:
                    messages += decode(frame, self._limits)
                finally:
                    leave(_DECODE)
        except (MessageError, FrameSizeError) as exc:
            failure = exc
        finally:
            leave(_READ)
        if messages:
            self.counters.messages_received += len(messages)
            failure = self._deliver(messages) or failure
        if failure is not None:
            if self._state < _State.CLOSING:
                self._blame_peer(failure)
        elif self._heard_goodbye:
            self._answer_goodbye()

    def _deliver(self, messages: list[Message]) -> Exception | None:
        """Call back; what the callback holds against the peer."""
        assert self._handlers is not None
        try:
            self._handlers.on_messages(self, messages)
        except (MessageError, PeerError) as exc:
            return exc
        except BaseException:
            self.abort("the callback for messages failed")
            raise
        return None

    def _blame_peer(self, failure: Exception) -> None:
        logger.warning("closed %s %s: %s", self.peer.role, self._peer_name(), failure)
        self._cause = failure if isinstance(failure, PeerError) else PeerError(f"{self._peer_name()}: {failure}")
        self._abort()

    def _read_goodbye(self) -> None:
        """We are closing: drop what comes, until the other's goodbye."""
        try:
            while not self._heard_goodbye and (frame := self._reader.next_frame()) is not None:
                self._heard_goodbye = not frame
        except FrameSizeError:
            self._abort()
            return
        if self._heard_goodbye:
            self._flush()

    # -- Closing -------------------------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """See ``Comm.closed``."""
        return self._state >= _State.CLOSING

    def close(self) -> None:
        """See ``Comm.close``."""
        if self._state is _State.SHAKING:
            self._end_handshake(CommClosedError("closed during the handshake"))
        elif self._state < _State.CLOSING:
            self._say_goodbye()

    def _say_goodbye(self) -> None:
        self._state = _State.CLOSING
        self._out.append(GOODBYE)
        self._out_bytes += len(GOODBYE)
        self._close_timer = self._loop.call_later(self._close_timeout, self._give_up)
        self._flush()

    def _answer_goodbye(self) -> None:
        """The peer closes: send what is queued and our own goodbye; the flush then closes the transport."""
        if self._state < _State.CLOSING:
            self._say_goodbye()
        else:
            self._flush()

    def _give_up(self) -> None:
        if self._state is not _State.CLOSED:
            self._cause = CommClosedError(
                f"{self._peer_name()} did not take the last bytes and the goodbye within {self._close_timeout:g} s"
            )
            self._abort()

    def abort(self, reason: str = "") -> None:
        """See ``Comm.abort``."""
        if self._state is not _State.CLOSED and self._cause is None:
            self._cause = CommClosedError(
                f"the connection to {self._peer_name()} was aborted here: {reason or 'no reason'}"
            )
        self._abort()

    def _abort(self) -> None:
        if self._state is _State.CLOSED:
            return
        self._state = _State.CLOSING
        self._out.clear()
        self._out_bytes = 0
        if self.transport is not None:
            self.transport.abort()

    async def wait_closed(self) -> None:
        """See ``Comm.wait_closed``."""
        await asyncio.shield(self._lost)

    # -- What the transport says of itself -----------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        """Asyncio's word that the connection stands (after TLS's own handshake)."""
        self.transport = transport
        transport.set_write_buffer_limits(high=_HIGH_WATER, low=_LOW_WATER)

    def eof_received(self) -> bool:
        """Asyncio's word that the peer writes no more. Without its goodbye it is gone, and takes nothing either."""
        if self._state is _State.KNOWN or self._state is _State.OPEN:
            self._cause = CommClosedError(f"the connection to {self._peer_name()} was lost: it left without a goodbye")
        if self._state is not _State.SHAKING and not self._heard_goodbye:
            self._loop.call_soon(self._abort)  # not from within asyncio's TLS, which is not made for that
        return False

    def connection_lost(self, exc: BaseException | None) -> None:
        """Asyncio's word that the connection is gone."""
        closing, shaking = self._state is _State.CLOSING, not self._shaken.done()
        self._state = _State.CLOSED
        self._out.clear()
        self._out_bytes = 0
        if self._close_timer is not None:
            self._close_timer.cancel()
        if shaking:
            self._shaken.set_exception(self._cause or ClosedInHandshakeError(self._address(), exc))
        elif self._cause is None and not (closing and exc is None):
            self._cause = CommClosedError(f"the connection to {self._peer_name()} was lost: {exc or 'no goodbye'}")
            self._cause.__cause__ = exc
        if not self._lost.done():
            self._lost.set_result(None)
        if self._handlers is not None:
            self._tell_closed()

    def _tell_closed(self) -> None:
        if not self._told:
            self._told = True
            assert self._handlers is not None
            self._handlers.on_close(self, self._cause)
            self._handlers = None

    def _address(self) -> str:
        return self._side.address if self._side is not None else "the peer"

    def _peer_name(self) -> str:
        if self._state < _State.KNOWN or not hasattr(self, "peer"):
            return self._address()
        return f"{self.peer.address} ({self.peer.name})" if self.peer.name else self.peer.address


def _seen(future: asyncio.Future[Any]) -> None:
    """Nobody may be waiting for it any more; asyncio shall not complain of an error that nobody took."""
    if not future.cancelled():
        future.exception()
