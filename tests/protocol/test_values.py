"""Values as frames and payloads."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import pickle

import numpy as np
import pandas as pd
import pytest

from gnomon.runtime.messages import ByReference
from gnomon.runtime.protocol import (
    SEGMENT_FROM,
    Segment,
    decode_payload,
    decode_value,
    encode_payload,
    encode_value,
    sizeof,
)


class Colour(enum.Enum):
    RED = 1


Named = collections.namedtuple("Named", "a b")

PLAIN = [
    None, True, 5, 2**100, 1.5, 1j, "text", "\ud800", b"bytes", bytearray(b"array"), (), [1, [2]], {"a": {1: 2}},
    {1, 2}, frozenset({1}), range(3), slice(1, 2), Ellipsis, Colour.RED, Named(1, 2), datetime.datetime(2020, 1, 1),
    decimal.Decimal("1.1"), b"x" * 5000, bytearray(b"y" * 5000), [b"z" * 100_000], len, collections.OrderedDict(a=1),
]  # fmt: skip


@pytest.mark.parametrize("value", PLAIN, ids=lambda v: type(v).__name__)
def test_plain_values(value):
    for result in (decode_value(encode_value(value).frames), decode_payload(encode_payload(value))):
        assert type(result) is type(value)
        assert result == value


def test_lambdas():
    assert decode_value(encode_value(lambda x: x + 1).frames)(1) == 2


@pytest.mark.parametrize(
    "array",
    [
        np.arange(2_500_000.0),
        np.asfortranarray(np.arange(40_000.0).reshape(200, 200)),
        np.arange(40_000).reshape(200, 200)[::2, ::3],
        np.arange(3),
        np.empty((0, 5)),
        np.array(["a", "bc"]),
        np.array([object, None, 1], dtype=object),
        np.zeros(10_000, dtype=[("a", "i4"), ("b", "f8")]),
        np.array("2020-01-01", dtype="M8[ns]"),
    ],
    ids=["20MB", "fortran", "strided", "tiny", "empty", "text", "objects", "records", "scalar-date"],
)
def test_arrays_are_writable_after_a_segment(array):
    with Segment.write(encode_value(array).frames) as segment:
        result = decode_value(Segment.frames(segment.fd, segment.layout))
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result, array)
    if result.dtype != object and result.size:
        result[...] = np.zeros((), dtype=result.dtype)
        assert array.size == 0 or not np.shares_memory(result, array)


def test_two_readers_do_not_see_each_others_writes():
    array = np.zeros(1_000_000)
    with Segment.write(encode_value(array).frames) as segment:
        first = decode_value(Segment.frames(segment.fd, segment.layout))
        first[:] = 1
        second = decode_value(Segment.frames(segment.fd, segment.layout))
    assert second.sum() == 0
    assert first.sum() == 1_000_000


def test_frames_view_the_array_and_decoding_copies_nothing():
    array = np.arange(100_000.0)
    encoded = encode_value(array)
    assert len(encoded.frames) == 2
    assert encoded.nbytes == sum(encoded.layout) >= array.nbytes
    assert np.shares_memory(np.frombuffer(encoded.frames[1]), array)
    assert np.shares_memory(decode_value(encoded.frames), array)


def test_large_bytes_are_not_copied_into_the_stream():
    value = b"x" * 1_000_000
    encoded = encode_value(value)
    assert len(encoded.frames[0]) < 200
    assert encoded.frames[1].obj is value


def test_read_only_arrays_stay_read_only():
    array = np.arange(10_000)
    array.flags.writeable = False
    assert not decode_value(encode_value(array).frames).flags.writeable


def test_pandas():
    frame = pd.DataFrame({"x": np.arange(300_000), "y": np.linspace(0, 1, 300_000), "s": ["a", "b", "c"] * 100_000})
    payload = encode_payload(frame)
    assert isinstance(payload, Segment)
    result = decode_payload(payload)
    pd.testing.assert_frame_equal(result, frame)
    result.loc[0, "x"] = 5
    assert frame.loc[0, "x"] == 0


def test_payloads_are_bytes_or_a_segment_by_size():
    small = encode_payload(np.arange(10_000))
    assert type(small) is bytes
    result = decode_payload(small)
    np.testing.assert_array_equal(result, np.arange(10_000))
    result[0] = 5
    large = encode_payload(bytes(SEGMENT_FROM))
    assert isinstance(large, Segment)
    assert decode_payload(large) == bytes(SEGMENT_FROM)
    assert large.fd == -1


def test_packed_values():
    value = [np.arange(5000), b"x" * 10, np.zeros(0), np.arange(600.0)]
    blob = encode_value(value).packed()
    for copy in (blob, bytearray(blob), memoryview(blob)):
        result = decode_value([copy])
        for got, sent in zip(result, value, strict=True):
            np.testing.assert_array_equal(got, sent)
        result[0][:] = 1
    assert decode_value([blob])[0][4999] == 4999
    assert encode_value("text").packed() == pickle.dumps("text", 5)


@pytest.mark.parametrize("blob", [b"", b"\0", b"\0\x05", b"\0\xff\xff\xff\xff", b"\0\0\0\0\0"])
def test_packed_values_cut_short(blob):
    with pytest.raises((pickle.UnpicklingError, EOFError)):
        decode_value([blob])
    whole = encode_value(np.arange(5000)).packed()
    with pytest.raises(pickle.UnpicklingError):
        decode_value([whole[:-100]])


def test_by_reference():
    value = object()
    assert decode_payload(ByReference(value)) is value


def test_unpicklable_values_raise():
    import threading

    with pytest.raises(TypeError, match="lock"):
        encode_value([threading.Lock()])


class Evil:
    @property
    def nbytes(self):
        raise SystemError("no")


def test_sizeof():
    assert sizeof(b"x" * 10_000) == 10_000
    assert sizeof(np.zeros(1000)) == 8000
    frame = pd.DataFrame({"x": np.zeros(1000)})
    assert 8000 <= sizeof(frame) < 20_000
    assert 8000 <= sizeof(frame["x"]) < 20_000
    assert 2 * 8000 <= sizeof({"a": frame, "b": frame}) < 2 * 20_000
    assert 100 * 8000 <= sizeof([(np.zeros(1000),)] * 100) < 101 * 8200
    assert sizeof([]) < 100
    assert sizeof(Evil()) > 0
    assert sizeof(np.ndarray) > 0  # a class has descriptors in place of values
    assert sizeof(pd.DataFrame) > 0
