"""Frames on a byte stream, sans-IO: a four-byte big-endian length, then that many bytes. An empty frame says goodbye.

Contents: FrameReader, FrameSizeError, GOODBYE, encode_batches, prefix.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from gnomon.runtime.errors import FrameTooLargeError, PeerError
from gnomon.runtime.messages import Message, encode

__all__ = ["GOODBYE", "PREFIX_SIZE", "USUAL_BUFFER", "FrameReader", "FrameSizeError", "encode_batches", "prefix"]

_PREFIX = struct.Struct("!I")
PREFIX_SIZE = _PREFIX.size

#: The frame after which its sender sends nothing more.
GOODBYE = _PREFIX.pack(0)

#: Bytes of the buffer of a stranger, who has nothing to say but his handshake.
_FIRST_BUFFER = 4 << 10
#: Bytes of the buffer of a connection that receives small batches.
USUAL_BUFFER = 64 << 10
#: A buffer larger than this is given back as soon as it is empty.
_KEPT_BUFFER = 1 << 20


class FrameSizeError(PeerError):
    """The peer announced a frame over the limit. ``start`` is the four bytes it sent instead of a sane length."""

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(f"announced a frame of {length} bytes, over the limit of {limit}")
        self.start = _PREFIX.pack(length)


class FrameReader:
    """Cuts what arrives into frames. The transport reads straight into its buffer; frames are views of that.

    The buffer starts small, and grows as bytes of a large frame arrive, never by its announced length alone.

    Fields:
        limit: bytes a frame may have; may be changed at any time.
        usual: bytes of the buffer while frames are small; may be changed at any time.
    """

    __slots__ = ("_buffer", "_end", "_start", "_wanted", "limit", "usual")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.usual = _FIRST_BUFFER
        self._buffer = bytearray(_FIRST_BUFFER)
        self._start = 0
        self._end = 0
        self._wanted = PREFIX_SIZE

    def get_buffer(self) -> memoryview:
        """Where the next bytes go; never empty. Frames handed out before must not be used any more.

        Only here is the buffer exchanged: a transport may be reading into the last one that it was given.
        """
        size = len(self._buffer)
        if self._start == self._end:
            self._start = self._end = 0
            if size > _KEPT_BUFFER or size < self.usual:
                self._buffer = bytearray(self.usual)
        elif self._end == size or (self._start and size - self._end < size // 4):
            self._make_room()
        return memoryview(self._buffer)[self._end :]

    def _make_room(self) -> None:
        """The buffer is (nearly) full to its end: move what is unread to the front, of a larger one if that is full."""
        unread = self._end - self._start
        if unread * 2 > len(self._buffer):
            larger = bytearray(max(min(self._wanted, len(self._buffer) * 4), len(self._buffer) + 4096))
            larger[:unread] = memoryview(self._buffer)[self._start : self._end]
            self._buffer = larger
        else:
            self._buffer[:unread] = self._buffer[self._start : self._end]
        self._start, self._end = 0, unread

    def advance(self, count: int) -> None:
        """So many bytes were put into the buffer."""
        self._end += count

    def next_frame(self) -> memoryview | None:
        """The next whole frame, without its prefix; None if more bytes are needed.

        Raises FrameSizeError.
        """
        start = self._start + PREFIX_SIZE
        if start > self._end:
            self._wanted = PREFIX_SIZE
            return None
        (length,) = _PREFIX.unpack_from(self._buffer, self._start)
        if length > self.limit:
            raise FrameSizeError(length, self.limit)
        if start + length > self._end:
            self._wanted = PREFIX_SIZE + length
            return None
        self._start = start + length
        return memoryview(self._buffer)[start : start + length]


def prefix(body: bytes) -> bytes:
    """The bytes that go before a frame's body."""
    return _PREFIX.pack(len(body))


def encode_batches(messages: Sequence[Message], limit: int) -> list[bytes]:
    """The messages as bodies of frames, in order; one unless that would be over the limit.

    Raises FrameTooLargeError if a single message is over it, TypeError if one has a value that no wire carries.
    """
    body = encode(messages)
    if len(body) <= limit:
        return [body]
    if len(messages) == 1:
        raise FrameTooLargeError(
            f"a {type(messages[0]).__name__} of {len(body)} bytes is over comm.max_frame ({limit}); large data "
            "belongs into scattered or returned values, or raise the limit on every side"
        )
    del body
    half = len(messages) // 2
    return encode_batches(messages[:half], limit) + encode_batches(messages[half:], limit)
