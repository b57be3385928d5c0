"""Results as frames: a pickle stream and, beside it, the large buffers it refers to.

Buffers of ``OUT_OF_BAND`` bytes and more stay where they are when a value is encoded, and are viewed, not copied, when
it is decoded; so arrays and data frames cross memory once. Smaller ones are cheaper inside the stream.

A value leaves its process as a **payload**: up to ``SEGMENT_FROM`` bytes as bytes, above as a segment. The bytes are
the pickle stream if there is nothing else, or all frames **packed**; ``decode_payload`` tells by the first byte.

Contents: Encoded, encode_value, decode_value, encode_payload, decode_payload, sizeof, OUT_OF_BAND, SEGMENT_FROM.
"""

from __future__ import annotations

import pickle
import struct
import sys
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from gnomon.runtime.messages import ByReference
from gnomon.runtime.protocol.calls import PROTOCOL, by_value_wanted, dumps_by_value
from gnomon.runtime.protocol.segments import ALIGNMENT, Segment, image

__all__ = [
    "OUT_OF_BAND",
    "SEGMENT_FROM",
    "Encoded",
    "decode_payload",
    "decode_value",
    "encode_payload",
    "encode_value",
    "sizeof",
]

#: Bytes from which a buffer travels beside the pickle stream.
OUT_OF_BAND = 4096

#: First byte of packed frames; pickle streams begin with another.
_PACKED = b"\0"
_COUNT = struct.Struct("<I")

#: Bytes from which a value leaves as a segment. Below, a copy costs less than descriptors that many processes hold.
SEGMENT_FROM = 1 << 20


class Encoded(NamedTuple):
    """A value ready to leave.

    Fields:
        frames: the pickle stream, then its buffers, one-dimensional and of bytes. They view the value's own memory.
        nbytes: of all frames.
    """

    frames: list[bytes | memoryview]
    nbytes: int

    @property
    def layout(self) -> tuple[int, ...]:
        """Byte lengths of the frames."""
        return tuple(len(frame) for frame in self.frames)

    def packed(self) -> bytes:
        """The frames as one bytes object, for small values; ``decode_value`` takes it in place of the frames."""
        if len(self.frames) == 1:
            return bytes(self.frames[0])
        layout = self.layout
        head = _PACKED + _COUNT.pack(len(layout)) + struct.pack(f"<{len(layout)}Q", *layout)
        return b"".join([head, bytes(-len(head) % ALIGNMENT), *image(self.frames)])


class _LargeBytes:
    """Makes pickle treat bytes and bytearrays as it treats arrays: data beside the stream, not copied into it."""

    __slots__ = ("data",)

    def __init__(self, data: bytes | bytearray) -> None:
        self.data = data

    def __reduce__(self) -> tuple[type[Any], tuple[pickle.PickleBuffer]]:
        return type(self.data), (pickle.PickleBuffer(self.data),)


class _Buffers:
    """Collects what pickle offers to keep out of band."""

    __slots__ = ("frames",)

    def __init__(self) -> None:
        self.frames: list[memoryview] = []

    def __call__(self, buffer: pickle.PickleBuffer) -> bool:
        """Take a large buffer; True tells pickle to keep it in its stream."""
        try:
            raw = buffer.raw()
        except BufferError:  # not contiguous: only pickle's own copy is
            return True
        if raw.nbytes < OUT_OF_BAND:
            return True
        self.frames.append(raw)
        return False


def encode_value(obj: Any) -> Encoded:
    """The value as frames; ``nbytes`` is what they hold.
    Raises whatever the value raises when it is pickled.
    """
    if type(obj) in (bytes, bytearray) and len(obj) >= OUT_OF_BAND:
        obj = _LargeBytes(obj)
    buffers = _Buffers()
    stream: bytes | None = None
    if not by_value_wanted():
        try:
            stream = pickle.dumps(obj, PROTOCOL, buffer_callback=buffers)
        except Exception:  # noqa: BLE001 - whatever stopped pickle, cloudpickle decides
            stream = None
    if stream is None or b"__main__" in stream:
        buffers = _Buffers()
        stream = dumps_by_value(obj, buffers)
    return Encoded([stream, *buffers.frames], len(stream) + sum(map(len, buffers.frames)))


def decode_value(frames: Sequence[bytes | bytearray | memoryview]) -> Any:
    """The value of frames, or of one frame that holds several packed.

    Arrays view the frames' memory, so that lives as long as they do; packed frames are copied once, to be writable.
    Raises whatever unpickling it raises.
    """
    if len(frames) == 1 and frames[0][:1] == _PACKED:
        frames = _unpacked(frames[0])
    return pickle.loads(frames[0], buffers=frames[1:])


def _unpacked(blob: bytes | bytearray | memoryview) -> list[memoryview]:
    """The frames of a packed value, writable."""
    view = memoryview(bytearray(blob))
    try:
        count = _COUNT.unpack_from(view, 1)[0]
        head = 1 + _COUNT.size + 8 * count
        layout = struct.unpack_from(f"<{count}Q", view, 1 + _COUNT.size)
    except struct.error as exc:
        raise pickle.UnpicklingError(f"not a packed value: {exc}") from exc
    frames: list[memoryview] = []
    position = head + -head % ALIGNMENT
    for length in layout:
        frames.append(view[position : position + length])
        position += length + -length % ALIGNMENT
    if not frames or position > len(view):
        raise pickle.UnpicklingError("a packed value was cut short")
    return frames


def encode_payload(obj: Any) -> bytes | Segment:
    """The value as it leaves its process: bytes, or a segment if it is large.

    Raises whatever the value raises when it is pickled, OSError where there is no memory for a segment.
    """
    encoded = encode_value(obj)
    if encoded.nbytes >= SEGMENT_FROM:
        return Segment.write(encoded.frames)
    return encoded.packed()


def decode_payload(payload: bytes | ByReference | Segment) -> Any:
    """The value of a payload. A segment is closed; what views it stays valid.

    Raises whatever unpickling it raises, SegmentError for a segment that is not what its layout says.
    """
    if type(payload) is bytes:
        return decode_value([payload])
    if isinstance(payload, Segment):
        with payload:
            frames = Segment.frames(payload.fd, payload.layout)
        return decode_value(frames)
    assert isinstance(payload, ByReference)
    return payload.value


#: Bytes taken for one cell of a data frame: asking pandas itself costs more than many a task (100 µs and more).
_CELL = 8

#: Members of a container that are looked at, and how deep.
_SAMPLED = 4
_DEPTH = 3


def sizeof(obj: Any) -> int:
    """A cheap estimate of an object's size in bytes; never raises.

    Exact for bytes, arrays and other holders of one buffer (``nbytes``). Of data frames the cells are counted, of
    lists, tuples, sets and dicts the first members are looked at; for other objects it is their own size without what
    they refer to.
    """
    try:
        return _estimate(obj, _DEPTH)
    except Exception:  # noqa: BLE001 - the user's classes may raise anything; an estimate is all we want
        return object.__sizeof__(obj)


def _estimate(obj: Any, depth: int) -> int:
    kind = type(obj)
    if kind is bytes or kind is bytearray:
        return len(obj)
    if kind.__module__.partition(".")[0] == "pandas":
        shape = getattr(kind, "shape", None) and obj.shape
        if shape:
            return int(_CELL * shape[0] * (1 + (shape[1] if len(shape) > 1 else 1)))
    nbytes = getattr(obj, "nbytes", None)
    if type(nbytes) is int and nbytes >= 0:
        return nbytes
    if isinstance(obj, dict):
        return dict.__sizeof__(obj) + _members(obj.values(), len(obj), depth)
    if isinstance(obj, list | tuple | set | frozenset):
        return object.__sizeof__(obj) + _members(obj, len(obj), depth)
    return sys.getsizeof(obj)


def _members(members: Iterable[Any], count: int, depth: int) -> int:
    """What the members of a container take, judged by the first of them."""
    if not count or not depth:
        return 0
    sampled = [_estimate(member, depth - 1) for member in islice(members, _SAMPLED)]
    return sum(sampled) * count // len(sampled)
