"""How the user's objects become bytes, and how they come back: code, arguments, values, errors.

Everything the user made crosses processes through this room and nowhere else, always in the threads that run or own
the user's code, never on an event loop. Plain ``pickle`` (protocol 5) does the work; ``cloudpickle`` is imported only
once an object needs it. This room opens no sockets and knows no tasks, and must only be fed bytes of authenticated
peers.

Contents:
    calls      functions and arguments; Ref, the place a dependency's value takes
    bundle     many graph tasks pickled in one go
    values     results: frames with large buffers out of band; sizes
    failures   exceptions with traceback, cause and context
    segments   frames in memory that processes share by file descriptor
"""

from __future__ import annotations

from gnomon.runtime.protocol.bundle import Bundle, BundleError, Entry, dumps_bundle, dumps_index, loads_index
from gnomon.runtime.protocol.calls import (
    Ref,
    dumps_call,
    dumps_code,
    is_named_tuple,
    loads_call,
    loads_code,
    substitute,
)
from gnomon.runtime.protocol.failures import RemoteError, decode_error, encode_error
from gnomon.runtime.protocol.segments import Segment, SegmentError, SegmentWriter, image, image_size
from gnomon.runtime.protocol.values import (
    SEGMENT_FROM,
    Encoded,
    decode_payload,
    decode_value,
    encode_payload,
    encode_value,
    sizeof,
)

__all__ = [
    "SEGMENT_FROM",
    "Bundle",
    "BundleError",
    "Encoded",
    "Entry",
    "Ref",
    "RemoteError",
    "Segment",
    "SegmentError",
    "SegmentWriter",
    "decode_error",
    "decode_payload",
    "decode_value",
    "dumps_bundle",
    "dumps_call",
    "dumps_code",
    "dumps_index",
    "encode_error",
    "encode_payload",
    "encode_value",
    "image",
    "image_size",
    "is_named_tuple",
    "loads_call",
    "loads_code",
    "loads_index",
    "sizeof",
    "substitute",
]
