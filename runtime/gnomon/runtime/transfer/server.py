"""The answering side: a worker's data server hands out the values its worker holds, and takes those that clients send.

One thread accepts on a TCP port and on a unix socket in a private directory; each live connection has a thread of its
own, for most of its time in one system call. Peers that only sit there are closed, first those that have not proved who
they are. The server knows no tasks: its ``Source`` does.

Contents: DataServer.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

from gnomon.runtime.comm.security import Security
from gnomon.runtime.errors import HandshakeError, SerializationError
from gnomon.runtime.messages import ByReference, ErrorRecord
from gnomon.runtime.protocol import Segment, encode_error
from gnomon.runtime.transfer import local
from gnomon.runtime.transfer.dialing import Doors, welcome
from gnomon.runtime.transfer.link import MAX_FDS, Link, LinkClosedError, checked_layout, close_fds
from gnomon.runtime.transfer.machine import memory_size
from gnomon.runtime.transfer.records import Held, Source, Told, TransferError, ValueEncodingError, Wanted

__all__ = ["DataServer"]

logger = logging.getLogger(__name__)

#: An answer is sent in chunks of about this many bytes, so that the first values travel while later ones are encoded.
_CHUNK = 4 << 20

#: Bytes of a small value that travel inside a header; larger ones get a segment.
_INLINE = 8 << 20

#: Seconds after which a peer that waits for a value to be encoded is told that we live; and after which we give up.
_SIGN_OF_LIFE = 5.0
_PATIENCE = 600.0


class _Connection:
    """One accepted peer. ``state`` is ``handshake``, ``idle`` or ``busy``; it began at ``since``, monotonic seconds."""

    __slots__ = ("since", "sock", "state", "thread")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.thread: threading.Thread | None = None
        self.state = "handshake"
        self.since = time.monotonic()

    def enter(self, state: str) -> None:
        self.state = state
        self.since = time.monotonic()

    def abort(self) -> None:
        """Wake its thread with an error."""
        try:
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)
        except OSError:
            pass  # not connected any more


class DataServer:
    """Serves a source at an address until it is closed.

    Arguments:
        source: has the values.
        address: where to listen: ``tcp://host:port``, ``tls://host:port`` (port 0: any) or ``inproc://``.
        security: certificates and secret.
        host_id: see ``host_identity``; peers that say the same one share memory with us.
        shared_memory: False to send bytes to processes of this machine too.
        directory: folder of the caller's for the unix socket; default the system's temporary one.
        max_connections: threads at most; the longest idle peer makes room for a new one.
        half_open: peers that may be in handshakes at one time; the oldest makes room for a new one.
        handshake_timeout: seconds a peer has to prove itself.
        idle_timeout: seconds after which a connection without requests is closed.
        stall_timeout: seconds after which a peer that makes no progress is given up.
        max_value: bytes of one value that is accepted; None: the machine's memory.

    Fields:
        address: where it listens, with the actual port. contact_address: one that peers may connect to.

    Raises ListenRefusedError where listening would be open to others, OSError where it isn't possible.
    """

    def __init__(
        self,
        source: Source,
        *,
        address: str,
        security: Security,
        host_id: str,
        shared_memory: bool = True,
        directory: str | None = None,
        max_connections: int = 256,
        half_open: int = 64,
        handshake_timeout: float = 5.0,
        idle_timeout: float = 60.0,
        stall_timeout: float = 30.0,
        max_value: int | None = None,
    ) -> None:
        self._source = source
        self._max_connections = max_connections
        self._half_open = half_open
        self._handshake_timeout = handshake_timeout
        self._idle_timeout = idle_timeout
        self._stall_timeout = stall_timeout
        self._max_value = memory_size() if max_value is None else max_value
        self._lock = threading.Lock()
        self._connections: dict[_Connection, None] = {}
        self._closing = False
        self._doors: Doors | None = None
        if address.startswith("inproc://"):
            self.address = self.contact_address = local.register(source)
            return
        self._doors = Doors(address, security, host_id, shared_memory=shared_memory, directory=directory)
        self.address = self._doors.address
        self.contact_address = self._doors.contact_address
        self._wake, self._woken = socket.socketpair()
        self._acceptor = threading.Thread(target=self._accept, name="gnomon-data-accept", daemon=True)
        self._acceptor.start()

    def close(self, timeout: float = 5.0) -> None:
        """Stop: transfers under way are broken off, threads joined (``timeout`` seconds), sockets and files removed.

        Idempotent. Not to be called from the source's methods.
        """
        with self._lock:
            if self._closing:
                return
            self._closing = True
            connections = list(self._connections)
        if self._doors is None:
            local.unregister(self.address)
            return
        deadline = time.monotonic() + timeout
        self._wake.send(b"x")
        self._acceptor.join()
        self._wake.close()
        self._woken.close()
        self._doors.close()
        for connection in connections:
            connection.abort()
        for connection in connections:
            if connection.thread is not None:
                connection.thread.join(max(0.0, deadline - time.monotonic()))

    def __enter__(self) -> DataServer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # ---- accepting ---------------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        """Body of the accepting thread."""
        assert self._doors is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._woken, selectors.EVENT_READ)
            for listener in self._doors.listeners:
                selector.register(listener, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if self._woken in ready:
                    return
                for listener in self._doors.listeners:
                    if listener in ready:
                        self._accept_from(listener)

    def _accept_from(self, listener: socket.socket) -> None:
        assert self._doors is not None
        try:
            sock, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # the peer is gone again
        except OSError as exc:
            logger.warning("%s can't accept a peer: %s", self.address, exc)
            time.sleep(0.05)  # all descriptors are in use: don't spin while they are
            return
        try:
            sock = self._doors.wrapped(sock)
        except (OSError, ValueError):
            sock.close()
            return
        self._admit(sock, by_unix=listener is self._doors.unix)

    def _admit(self, sock: socket.socket, *, by_unix: bool) -> None:
        """Start a thread for a new peer, once there is room for it."""
        connection = _Connection(sock)
        with self._lock:
            handshaking = [c for c in self._connections if c.state == "handshake"]
            if len(handshaking) >= self._half_open:
                min(handshaking, key=lambda c: c.since).abort()
            if len(self._connections) >= self._max_connections:
                idle = [c for c in self._connections if c.state == "idle"]
                if not idle:
                    sock.close()
                    return
                min(idle, key=lambda c: c.since).abort()
            self._connections[connection] = None
            connection.thread = threading.Thread(
                target=self._serve, args=(connection, by_unix), name="gnomon-data", daemon=True
            )
        try:
            connection.thread.start()
        except RuntimeError as exc:
            logger.warning("%s can't start a thread for a new peer: %s", self.address, exc)
            with self._lock:
                del self._connections[connection]
            sock.close()

    # ---- one peer ----------------------------------------------------------------------------------------------------

    def _serve(self, connection: _Connection, by_unix: bool) -> None:
        """Body of a connection's thread."""
        assert self._doors is not None
        try:
            link = welcome(
                connection.sock,
                self._doors,
                by_unix=by_unix,
                handshake_timeout=self._handshake_timeout,
                stall_timeout=self._stall_timeout,
            )
            self._converse(connection, link)
        except LinkClosedError:
            pass
        except (HandshakeError, TransferError) as exc:
            if not self._closing:
                logger.info("%s", exc)
        except ValueError as exc:
            logger.warning("a peer of %s broke the protocol and was closed: %s", self.address, exc)
        except OSError as exc:
            logger.warning("%s has no room for a value: %s", self.address, exc)
        finally:
            connection.sock.close()
            with self._lock:
                del self._connections[connection]

    def _converse(self, connection: _Connection, link: Link) -> None:
        """Answer a peer's requests until it leaves or says nothing for too long.

        Raises ValueError for a request that is none.
        """
        while not self._closing:
            connection.enter("idle")
            if not link.wait_readable(self._idle_timeout):
                return
            connection.enter("busy")
            header, fds = link.receive()
            try:
                kind = header[0] if header else None
                if kind == "get" and len(header) == 2:
                    self._answer_get(link, _checked_wanted(header[1]))
                elif kind == "put" and len(header) == 4:
                    self._answer_put(link, header, fds)
                else:
                    raise ValueError(f"an unknown request {str(kind)[:40]!r}")
            finally:
                close_fds(fds)

    def _answer_get(self, link: Link, wanted: Sequence[Wanted]) -> None:
        """Send what is asked for, in order, in one or more chunks."""
        answer = _Answer(link)
        waited = 0.0
        try:
            self._source.prepare(wanted)
            for task_id, attempt in wanted:
                begun = time.monotonic()
                held = self._get(answer, task_id, attempt)
                waited += time.monotonic() - begun
                answer.add(held)
            told = Told.of(self._source.told(), waited)
        except (TransferError, OSError):
            raise
        except Exception as exc:
            # Closing, or broken: either way there is no word on the value, and the peer should look elsewhere.
            raise TransferError(f"the source of {self.address} failed: {type(exc).__name__}: {exc}") from exc
        answer.end(told)

    def _get(self, answer: _Answer, task_id: int, attempt: int) -> Held | ErrorRecord | None:
        """One value of the source, however long its encoding takes; the peer is kept patient."""
        begun = time.monotonic()
        while True:
            try:
                return self._source.get(task_id, attempt, _SIGN_OF_LIFE)
            except ValueEncodingError as exc:
                return exc.record
            except TimeoutError as exc:
                if self._closing or time.monotonic() - begun > _PATIENCE:
                    raise TransferError(f"value {task_id} of {self.address} was not encoded in time") from exc
                answer.flush(even_empty=True)

    def _answer_put(self, link: Link, header: tuple[Any, ...], fds: list[int]) -> None:
        """Take a value. Its bytes are read before anything can fail, so that the connection stays usable."""
        _, task_id, attempt, content = header
        if type(task_id) is not int or type(attempt) is not int:
            raise ValueError("a value without a name")
        value: Held
        if type(content) is bytes:
            value = content
        else:
            (value,) = link.receive_segments([checked_layout(content, self._max_value)], fds)
        outcome: tuple[Any, ...] | None = None
        try:
            self._source.put(task_id, attempt, value)
        except Exception as exc:  # noqa: BLE001 - whatever it is, the sender is who must know
            outcome = tuple(encode_error(exc))
        link.send((outcome,))


class _Answer:
    """The answer to one ``get``, collected into chunks."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._entries: list[Any] = []
        self._segments: list[Segment] = []
        self._nbytes = 0

    def add(self, held: Held | ErrorRecord | None) -> None:
        """The next value; sends what has been collected if that is enough for a chunk."""
        if type(held) is ByReference:
            held = encode_error(SerializationError("the value can't leave its process: it is held there by reference"))
        if type(held) is bytes and len(held) > _INLINE:
            try:
                held = Segment.write([held])
            except OSError as exc:
                held = encode_error(exc)
        if isinstance(held, Segment):
            self._entries.append((held.layout,))
            self._segments.append(held)
            self._nbytes += held.nbytes
        else:
            self._entries.append(held)
            self._nbytes += len(held) if type(held) is bytes else 8
            if isinstance(held, ErrorRecord):
                self._nbytes += sum(map(len, held))  # type: ignore[arg-type]  # over the wire all its fields have one
        if self._nbytes >= _CHUNK or len(self._segments) >= MAX_FDS:
            self.flush()

    def end(self, told: Told) -> None:
        """There are no more values: send what is left, and what is to be told of all."""
        self._entries.append(tuple(told))
        self.flush()

    def flush(self, *, even_empty: bool = False) -> None:
        """Send what has been collected; an empty chunk is a sign of life."""
        if self._entries or even_empty:
            entries, segments = self._entries, self._segments
            self._entries, self._segments, self._nbytes = [], [], 0
            self._link.send(entries, segments)


def _checked_wanted(wanted: Any) -> Sequence[Wanted]:
    """What a peer asks for. Raises ValueError unless it is an array of pairs of numbers."""
    if type(wanted) is not tuple or not all(
        type(pair) is tuple and len(pair) == 2 and type(pair[0]) is int and type(pair[1]) is int for pair in wanted
    ):
        raise ValueError("a request that does not name values")
    return wanted
