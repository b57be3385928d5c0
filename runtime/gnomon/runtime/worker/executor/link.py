"""Messages and file descriptors between an agent and its child, over a pair of unix stream sockets.

A frame is a header (bytes of the body, number of descriptors), then a batch of messages as ``gnomon.runtime.messages``
packs it; its descriptors travel with its first byte. Both ends run our code for one user, so the limits only keep
a damaged stream from being taken for a huge frame.

The child's end blocks; the agent's never does, and keeps what the socket won't take.

Contents: ChildLink, AgentLink, LinkError, frames, CRASHED.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from gnomon.runtime.messages import Limits, Message, MessageError, PutSegments, ValueEncoded, decode, encode

if TYPE_CHECKING:  # the child does without it
    import asyncio

__all__ = ["CRASHED", "AgentLink", "ChildLink", "LinkError", "frames"]

#: Exit code of a child that can't go on: an error of gnomon's own, or user code closed what was not its own.
CRASHED = 70

_HEADER = struct.Struct("<QI")

#: Descriptors that go with one frame (the kernel takes 253 with one message).
_MAX_FDS = 250

#: A message is larger than any frame of the control plane: arguments of one task may be.
_LIMITS = Limits(frame=(1 << 32) - 1, items=1 << 26)

_CHUNK = 1 << 16
_ANCILLARY = socket.CMSG_SPACE(256 * 4) if hasattr(socket, "CMSG_SPACE") else 0  # Windows has no such thing
_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class LinkError(ConnectionError):
    """The stream is damaged: what came is no frame."""


def frames(messages: Iterable[Message], fds: Sequence[int]) -> list[tuple[bytes, list[int]]]:
    """The messages as frames, each with its descriptors; one frame unless there are very many descriptors."""
    messages = list(messages)
    if len(fds) <= _MAX_FDS:
        return [_frame(messages, list(fds))]
    result = []
    batch: list[Message] = []
    taken = start = 0
    for message in _short(messages):
        count = _fds_of(message)
        if taken - start + count > _MAX_FDS:
            result.append(_frame(batch, list(fds[start:taken])))
            batch, start = [], taken
        batch.append(message)
        taken += count
    result.append(_frame(batch, list(fds[start:])))
    return result


def _frame(messages: list[Message], fds: list[int]) -> tuple[bytes, list[int]]:
    body = encode(messages)
    return _HEADER.pack(len(body), len(fds)) + body, fds


def _fds_of(message: Message) -> int:
    """How many descriptors go with a message."""
    if isinstance(message, PutSegments):
        return len(message.task_ids)
    return int(isinstance(message, ValueEncoded) and bool(message.layout))


def _short(messages: Iterable[Message]) -> Iterable[Message]:
    """The messages, those with too many segments cut up."""
    for message in messages:
        if isinstance(message, PutSegments):
            for i in range(0, len(message.task_ids), _MAX_FDS):
                yield PutSegments._make(column[i : i + _MAX_FDS] for column in message)
        else:
            yield message


class _Reader:
    """Bytes and descriptors in, messages and descriptors out."""

    def __init__(self) -> None:
        self._chunk = bytearray(_CHUNK)
        self._data = bytearray()
        self._fds: deque[int] = deque()

    def read(self, sock: socket.socket) -> bool:
        """Take what the socket has, at most one chunk; False at the end of the stream. Raises OSError, LinkError."""
        count, ancillary, flags, _ = sock.recvmsg_into([self._chunk], _ANCILLARY, _CLOEXEC)
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds = array("i", data[: len(data) - len(data) % 4])
                self._fds.extend(fds)
                if not _CLOEXEC:
                    for fd in fds:
                        os.set_inheritable(fd, False)
        if flags & socket.MSG_CTRUNC:
            raise LinkError("file descriptors were lost: this process has too many open")
        self._data += memoryview(self._chunk)[:count]
        return count > 0

    def next_frame(self) -> tuple[list[Message], list[int]] | None:
        """The next complete frame, if there is one. Raises LinkError for what is none."""
        if len(self._data) < _HEADER.size:
            return None
        length, count = _HEADER.unpack_from(self._data)
        end = _HEADER.size + length
        if length > _LIMITS.frame or count > _MAX_FDS:
            raise LinkError(f"a frame of {length} bytes and {count} descriptors")
        if len(self._data) < end:
            return None
        if len(self._fds) < count:
            raise LinkError(f"a frame misses {count - len(self._fds)} of its {count} descriptors")
        with memoryview(self._data) as view, view[_HEADER.size : end] as body:
            try:
                messages = decode(body, _LIMITS)
            except MessageError as exc:
                raise LinkError(str(exc)) from exc
        del self._data[:end]
        return messages, [self._fds.popleft() for _ in range(count)]

    def close(self) -> None:
        """Close descriptors of frames that never got complete."""
        while self._fds:
            os.close(self._fds.popleft())


def _ancillary(fds: Sequence[int]) -> list[tuple[int, int, array[int]]]:
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", fds))] if fds else []


def _close_all(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)


class ChildLink:
    """The child's end. ``send`` may be called by any thread, one at a time; ``receive`` by one."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._reader = _Reader()

    def send(self, messages: Iterable[Message], fds: Sequence[int] = ()) -> None:
        """Send all of it, and close the descriptors. Raises OSError if the agent is gone."""
        try:
            for data, some in frames(messages, fds):
                sent = self._sock.sendmsg([data], _ancillary(some))
                if sent < len(data):
                    self._sock.sendall(memoryview(data)[sent:])
        finally:
            _close_all(fds)

    def receive(self) -> tuple[list[Message], list[int]] | None:
        """Wait for the next frame; None when the agent is gone. Raises LinkError."""
        while True:
            frame = self._reader.next_frame()
            if frame is not None:
                return frame
            try:
                if not self._reader.read(self._sock):
                    return None
            except ConnectionResetError:
                return None


class AgentLink:
    """The agent's end, on its loop.

    ``on_messages`` gets what comes; ``on_end`` is called once when the stream ends or is damaged (with the reason).
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        on_messages: Callable[[list[Message], list[int]], None],
        on_end: Callable[[LinkError | None], None],
    ) -> None:
        sock.setblocking(False)
        self._loop = loop
        self._sock = sock
        self._on_messages = on_messages
        self._on_end = on_end
        self._reader = _Reader()
        self._backlog: deque[tuple[memoryview, list[int]]] = deque()
        self._reading = True
        loop.add_reader(sock.fileno(), self._readable)

    def send(self, messages: Sequence[Message], fds: Sequence[int] = ()) -> None:
        """Send, now or when the socket takes it; the descriptors are closed then. Dropped once the link is closed."""
        if self._sock.fileno() < 0:
            _close_all(fds)
            return
        waiting = bool(self._backlog)
        self._backlog.extend((memoryview(data), some) for data, some in frames(messages, fds))
        if not waiting and not self._write():
            self._loop.add_writer(self._sock.fileno(), self._writable)

    def drain(self) -> None:
        """Take what the child wrote before it died."""
        while self._reading and self._read():
            pass

    def close(self) -> None:
        """Let go of the socket and of all descriptors on their way. Idempotent."""
        self._stop_reading()
        if self._sock.fileno() >= 0:
            if self._backlog:
                self._loop.remove_writer(self._sock.fileno())
            self._sock.close()
        self._reader.close()
        while self._backlog:
            _close_all(self._backlog.popleft()[1])

    def _readable(self) -> None:
        self._read()

    def _read(self) -> bool:
        """Take one chunk of what has come; False if there was none."""
        error: LinkError | None = None
        try:
            more = self._reader.read(self._sock)
            while (frame := self._reader.next_frame()) is not None:
                self._on_messages(*frame)
        except BlockingIOError:
            return False
        except LinkError as exc:
            more, error = False, exc
        except ConnectionError:
            more = False
        if not more:
            self._stop_reading()
            self._on_end(error)
        return more

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._sock.fileno())

    def _writable(self) -> None:
        if self._write():
            self._loop.remove_writer(self._sock.fileno())

    def _write(self) -> bool:
        """Write until the socket is full; whether all is written (a child that is gone counts as such)."""
        backlog = self._backlog
        while backlog:
            data, fds = backlog[0]
            try:
                sent = self._sock.sendmsg([data], _ancillary(fds))
            except BlockingIOError:
                return False
            except OSError as exc:
                if exc.errno == errno.ETOOMANYREFS:  # as many descriptors are on their way as the kernel lets us send
                    return False
                sent = len(data)  # the child is gone; its end is noticed elsewhere
            _close_all(fds)
            if sent == len(data):
                backlog.popleft()
            else:
                backlog[0] = (data[sent:], [])
        return True
