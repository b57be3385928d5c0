"""One connection between a fetcher and a data server: headers, images of values, file descriptors, deadlines.

A message is a header (four bytes of length, a msgpack array) and the images of the segments that it announces, one
after the other; on a unix socket their file descriptors, which travel with the header, take the place of the images.

Plain sockets block in the kernel, with its own time-outs: so ``MSG_WAITALL`` works and a large read is one system call
that takes the GIL once. TLS sockets use Python's time-outs. Either way a peer that makes no progress for
``stall_timeout`` seconds ends the connection. A link serves one thread at a time; ``abort`` may come from any.

Contents: Link, LinkClosedError, checked_layout, close_fds, MAX_FDS.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
import struct
from collections.abc import Sequence
from typing import Any

import msgpack

from gnomon.runtime.protocol import Segment, SegmentError, SegmentWriter, image, image_size
from gnomon.runtime.transfer.records import TransferError

__all__ = ["MAX_FDS", "Link", "LinkClosedError", "checked_layout", "close_fds"]

#: Bytes of one header, including the small values within.
_MAX_HEADER = 32 << 20
_MAX_ITEMS = 1 << 20

#: Descriptors sent with one header; Linux takes 253.
MAX_FDS = 64

#: Bytes read from the socket before they are written to the segment. Few enough to be still in the cache then: twice as
#: fast as reading into fresh memory of the value's size, where each page costs a fault.
_BUFFER = 512 << 10

#: Bytes handed to one TLS write, which encrypts and sends them all with the GIL released once.
_TLS_SLICE = 1 << 20

#: Pieces below this many bytes are joined before they are sent.
_JOIN_BELOW = 64 << 10
_MAX_PIECES = 512

_PREFIX = struct.Struct("!I")


class LinkClosedError(TransferError):
    """The peer closed the connection between two messages, or reset it."""


class Link:
    """A connected and authenticated socket.

    Fields:
        transport: ``shared-memory``, ``tcp`` or ``tls``.
        address: of the other end, for messages.
        sock: the socket, for its owner to close.
    """

    def __init__(self, sock: socket.socket, *, address: str, transport: str, stall_timeout: float) -> None:
        self.address = address
        self.transport = transport
        self.sock = sock
        self._tls = isinstance(sock, ssl.SSLSocket)
        self._stall_timeout = stall_timeout
        self._buffer: memoryview | None = None
        self._waitall = 0
        self._set_timeouts(stall_timeout)

    @property
    def shares_memory(self) -> bool:
        """Whether descriptors are passed instead of bytes."""
        return self.transport == "shared-memory"

    def _set_timeouts(self, seconds: float) -> None:
        if self._tls or os.name != "posix":
            self.sock.settimeout(seconds)
            return
        self.sock.settimeout(None)
        span = struct.pack("@ll", int(seconds), int(seconds % 1 * 1e6))
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, span)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, span)
        self._waitall = socket.MSG_WAITALL

    # ---- ending ------------------------------------------------------------------------------------------------------

    def abort(self) -> None:
        """End the connection from any thread: who waits on it gets an error. The socket stays to be closed."""
        with contextlib.suppress(OSError):
            # Past the SSLSocket's own, which would forget its TLS state under a thread that is using it.
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket; by the thread that uses the link, or after that has ended."""
        self.sock.close()

    # ---- waiting -----------------------------------------------------------------------------------------------------

    def wait_readable(self, timeout: float) -> bool:
        """Wait until something arrives (the end of the connection counts); False after ``timeout`` seconds."""
        if isinstance(self.sock, ssl.SSLSocket) and self.sock.pending():
            return True
        try:
            if hasattr(select, "poll"):
                poll = select.poll()
                poll.register(self.sock, select.POLLIN)
                return bool(poll.poll(timeout * 1000))
            return bool(select.select([self.sock], [], [], timeout)[0])
        except (OSError, ValueError) as exc:
            raise self._broken(exc) from exc

    def is_stale(self) -> bool:
        """Whether an idle connection can't be used any more: nothing should arrive on it but its end."""
        try:
            return self.wait_readable(0)
        except TransferError:
            return True

    # ---- sending -----------------------------------------------------------------------------------------------------

    def send(self, header: Sequence[Any], segments: Sequence[Segment] = ()) -> None:
        """Send a header, and the segments that it announces.

        Raises TransferError when the peer is gone or stalls.
        """
        try:
            data = self._packed(header)
            if not segments:
                self._send_pieces([memoryview(data)])
            elif self.shares_memory:
                self._send_with_fds(data, [segment.fd for segment in segments])
            else:
                self._send_pieces([memoryview(data)])
                for segment in segments:
                    self._send_pieces(Segment.frames(segment.fd, (image_size(segment.layout),)))
        except OSError as exc:
            raise self._broken(exc) from exc

    def send_frames(self, header: Sequence[Any], frames: Sequence[bytes | memoryview]) -> None:
        """Send a header that announces one segment, and the segment's image made of frames in our memory.

        Raises TransferError when the peer is gone or stalls.
        """
        try:
            self._send_pieces([memoryview(self._packed(header)), *image(frames)])
        except OSError as exc:
            raise self._broken(exc) from exc

    @staticmethod
    def _packed(header: Sequence[Any]) -> bytes:
        body: bytes = msgpack.packb(header, use_bin_type=True)
        return _PREFIX.pack(len(body)) + body

    def _send_with_fds(self, data: bytes, fds: list[int]) -> None:
        """The descriptors ride on the first four bytes, which the receiver reads by themselves."""
        sent = socket.send_fds(self.sock, [data], fds)
        self._send_pieces([memoryview(data)[sent:]])

    def _send_pieces(self, pieces: list[memoryview]) -> None:
        """Send everything: small pieces joined, large ones as they lie."""
        if self._tls or not hasattr(self.sock, "sendmsg"):
            for piece in _joined(pieces):
                for start in range(0, piece.nbytes, _TLS_SLICE):
                    self.sock.sendall(piece[start : start + _TLS_SLICE])
            return
        first = 0
        while first < len(pieces):
            sent = self.sock.sendmsg(pieces[first : first + _MAX_PIECES])
            while first < len(pieces) and sent >= pieces[first].nbytes:
                sent -= pieces[first].nbytes
                first += 1
            if sent:
                pieces[first] = pieces[first][sent:]

    # ---- receiving ---------------------------------------------------------------------------------------------------

    def receive(self) -> tuple[Any, list[int]]:
        """The next header, and the descriptors that came with it, which are the caller's to close.

        Raises LinkClosedError at the end of the connection, TransferError for a peer that is gone, stalls or breaks the
        protocol.
        """
        fds: list[int] = []
        try:
            length = self._receive_prefix(fds)
            if length > _MAX_HEADER:
                raise TransferError(f"{self.address} announced a header of {length} bytes")
            data = bytearray(length)
            self._receive_into(memoryview(data))
            header = msgpack.unpackb(
                data, use_list=False, raw=False, max_array_len=_MAX_ITEMS, max_map_len=0, max_ext_len=0
            )
            if type(header) is not tuple:
                raise ValueError("it is no array")
        except BaseException as exc:
            close_fds(fds)
            if isinstance(exc, OSError) and not isinstance(exc, TransferError):
                raise self._broken(exc) from exc
            if isinstance(exc, (ValueError, TypeError, RecursionError, msgpack.exceptions.UnpackException)):
                raise TransferError(f"{self.address} sent a malformed header: {exc}") from exc
            raise
        return header, fds

    def _receive_prefix(self, fds: list[int]) -> int:
        """The length of the next header; descriptors that come with it are added to ``fds``."""
        prefix = bytearray(_PREFIX.size)
        view = memoryview(prefix)
        if self.shares_memory:
            data, received, flags, _ = socket.recv_fds(
                self.sock, _PREFIX.size, MAX_FDS, getattr(socket, "MSG_CMSG_CLOEXEC", 0)
            )
            fds.extend(received)
            if flags & socket.MSG_CTRUNC:
                raise TransferError(f"descriptors from {self.address} were lost: too many files are open")
            done = len(data)
            view[:done] = data
        else:
            done = self.sock.recv_into(view)
        if done == 0:
            raise LinkClosedError(f"{self.address} closed the connection")
        self._receive_into(view[done:])
        length: int = _PREFIX.unpack(prefix)[0]
        return length

    def _receive_into(self, view: memoryview) -> None:
        """Fill the view."""
        while view.nbytes:
            count = self.sock.recv_into(view, 0, self._waitall)
            if count == 0:
                raise TransferError(f"{self.address} closed the connection in the middle of a message")
            view = view[count:]

    def receive_segment(self, layout: Sequence[int]) -> Segment:
        """A segment whose image comes next.

        Raises TransferError when the peer is gone or stalls, OSError if there is no memory for it.
        """
        if self._buffer is None:
            self._buffer = memoryview(bytearray(_BUFFER))
        buffer = self._buffer
        with SegmentWriter(layout) as writer:
            while writer.wanted:
                part = buffer[: min(writer.wanted, _BUFFER)]
                try:
                    self._receive_into(part)
                except OSError as exc:
                    raise self._broken(exc) from exc
                writer.write(part)
            return writer.seal()

    def receive_segments(self, layouts: Sequence[tuple[int, ...]], fds: list[int]) -> list[Segment]:
        """The segments announced by a header, from the descriptors that came with it or from what follows.

        Raises as ``receive_segment``; the descriptors are closed then.
        """
        if not self.shares_memory:
            return [self.receive_segment(layout) for layout in layouts]
        if len(fds) != len(layouts):
            close_fds(fds)
            raise TransferError(f"{self.address} sent {len(fds)} descriptors for {len(layouts)} values")
        try:
            return [Segment.received(fds.pop(0), layout) for layout in layouts]
        except SegmentError as exc:
            close_fds(fds)
            raise TransferError(f"{self.address} sent {exc}") from exc

    # ---- errors ------------------------------------------------------------------------------------------------------

    def _broken(self, exc: BaseException) -> TransferError:
        """The error to raise for one of the socket's."""
        if isinstance(exc, TransferError):
            return exc
        if isinstance(exc, (BlockingIOError, TimeoutError)):
            return TransferError(f"{self.address} made no progress for {self._stall_timeout:g} s")
        if isinstance(exc, (ConnectionResetError, BrokenPipeError)):
            return LinkClosedError(f"{self.address} closed the connection: {exc}")
        return TransferError(f"the connection to {self.address} broke: {exc}")


def close_fds(fds: list[int]) -> None:
    """Close descriptors that came and aren't wanted; the list is empty afterwards."""
    while fds:
        os.close(fds.pop())


def checked_layout(layout: Any, limit: int) -> tuple[int, ...]:
    """A layout that a peer announced.

    Raises ValueError unless it is an array of sizes, at most ``limit`` bytes in all.
    """
    if type(layout) is not tuple or not all(type(length) is int and length >= 0 for length in layout):
        raise ValueError("a layout that is no array of sizes")
    if image_size(layout) > limit:
        raise ValueError(f"a value of {image_size(layout)} bytes, over the limit of {limit}")
    return layout


def _joined(pieces: list[memoryview]) -> list[memoryview]:
    """The pieces with small neighbours joined, so that few TLS records are sent, and full ones."""
    joined: list[memoryview] = []
    small = bytearray()
    for piece in pieces:
        if piece.nbytes < _JOIN_BELOW:
            small += piece
        else:
            if small:
                joined.append(memoryview(small))
                small = bytearray()
            joined.append(piece)
    if small:
        joined.append(memoryview(small))
    return joined
