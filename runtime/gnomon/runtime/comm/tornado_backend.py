"""Bytes moved by tornado's ``IOStream``, so that its cost can be compared with that of asyncio's transports.

A stranger who fails TLS here costs a log line of tornado's own (``tornado.general``) beside our rationed ones.

Contents: attach.
"""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl
from typing import Any

from tornado.iostream import IOStream, StreamClosedError

from gnomon.runtime.comm.stream import StreamComm

__all__ = ["attach"]


async def attach(
    sock: socket.socket, comm: StreamComm, *, tls: ssl.SSLContext | None, server_hostname: str | None
) -> None:
    """Put a connected socket under a comm, after TLS's handshake if there is a context; no name: as server.

    The caller sets the deadline. Raises OSError (of which ssl.SSLError is one); the socket is the caller's to close.
    """
    stream = IOStream(sock)
    if tls is not None:
        wrapped = stream.start_tls(server_hostname is None, tls, server_hostname)
        # start_tls took the socket out of the stream: what is cancelled or fails here must be closed from the inside.
        try:
            stream = await wrapped
        except StreamClosedError as exc:
            raise exc.real_error or ConnectionResetError("closed during TLS's handshake") from exc
        except asyncio.CancelledError:
            wrapped.add_done_callback(_close_late)
            raise
    transport = _IOStreamTransport(stream, comm)
    comm.connection_made(transport)
    transport.start()


def _close_late(wrapped: asyncio.Future[Any]) -> None:
    if not wrapped.cancelled() and wrapped.exception() is None:
        wrapped.result().close()


class _IOStreamTransport:
    """The few methods of an asyncio transport that ``StreamComm`` uses, over an ``IOStream``."""

    def __init__(self, stream: IOStream, comm: StreamComm) -> None:
        self._stream = stream
        self._comm = comm
        self._loop = asyncio.get_running_loop()
        self._queued = 0
        self._high, self._low = 1 << 16, 1 << 14
        self._paused = False
        self._closing = False
        self._reader: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to read; the task ends when the stream is closed from either side."""
        self._reader = self._loop.create_task(self._read())

    async def _read(self) -> None:
        stream, comm = self._stream, self._comm
        error: BaseException | None = None
        try:
            while True:
                count = await stream.read_into(comm.get_buffer(-1), partial=True)  # type: ignore[arg-type]  # any buffer will do
                comm.buffer_updated(count)
        except StreamClosedError as exc:
            error = exc.real_error
            if error is None and not self._closing:
                comm.eof_received()
        finally:
            stream.close()
            comm.connection_lost(error)

    def write(self, data: bytes | memoryview) -> None:
        if self._closing:
            return
        size = len(data)
        try:
            written = self._stream.write(data)
        except StreamClosedError:
            return  # the reader learns of it, and says so
        self._queued += size
        written.add_done_callback(functools.partial(self._wrote, size))
        if not self._paused and self._queued > self._high:
            self._paused = True
            self._comm.pause_writing()

    def _wrote(self, size: int, written: asyncio.Future[None]) -> None:
        self._queued -= size
        if written.cancelled() or written.exception() is not None:
            return
        if self._closing and not self._queued:
            self._stream.close()
        elif self._paused and self._queued <= self._low:
            self._paused = False
            self._comm.resume_writing()

    def get_write_buffer_size(self) -> int:
        return self._queued

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = self._high if high is None else high
        self._low = self._low if low is None else low

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            if not self._queued:
                self._stream.close()

    def abort(self) -> None:
        self._closing = True
        self._stream.close()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        sock = self._stream.socket
        if name == "ssl_object":
            return sock if isinstance(sock, ssl.SSLSocket) else default
        return {"sockname": sock.getsockname, "peername": sock.getpeername}.get(name, lambda: default)()
