"""Batches of messages from the wire: what is no batch, or too much of one, is refused before anyone sees it."""

from __future__ import annotations

import tracemalloc
from array import array

import msgpack
import pytest

from gnomon.runtime import messages
from gnomon.runtime.messages import (
    ComputeTasks,
    ErrorRecord,
    FreeTasks,
    FuturesErred,
    Heartbeat,
    Limits,
    MessageError,
    Request,
    Response,
    ScatterData,
    TaskOptions,
    TasksErred,
    TasksFinished,
    UpdateGraph,
    WantKeys,
    decode,
    encode,
)
from gnomon.runtime.messages.codec import _TYPES

TIMES = array("d", [0.0] * 4).tobytes()


@pytest.mark.parametrize(
    "message",
    [
        UpdateGraph(
            ((1, b"code"),),
            ("a", ("b", 1, (2, 0.5))),
            (1, 1),
            (b"x", b"y"),
            ((), (0, -1)),
            (7,),
            (0, 3),
            (TaskOptions(workers=("w",), resources=(("GPU", 1.0),)),),
            (0, 0),
            1.5,
            4,
        ),
        ComputeTasks(
            (1,),
            (2,),
            ("k",),
            (3,),
            (b"",),
            ((0, 1, 2),),
            (-1.0,),
            ((5,),),
            ((("GPU", 2.0),),),
            ("aux",),
            (5,),
            (1,),
            (9,),
            (None,),
            (("tcp://h:1",),),
        ),
        TasksFinished((1,), (1,), (3,), (None,), (0,), TIMES),
        TasksErred((1,), (1,), (ErrorRecord("E", "text", b"x", b"y"),), (0,), TIMES),
        FuturesErred((1, 2), (0, 0), ("k", 5), (ErrorRecord("E", "text"),)),
        Heartbeat(1.0, {"cpu": 1, "report": {"rows": ((1, 2.0), ("x",))}}),
        Response(3, ((("a", 1), ("tcp://h:1",)), None, b"bytes", True)),
    ],
    ids=lambda message: type(message).__name__,
)
def test_messages_come_out_as_they_went_in(message):
    (back,) = decode(encode([message]))
    assert back == message
    assert type(back) is type(message)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (FreeTasks(("1",), (1,)), "FreeTasks.task_ids holds"),
        (FreeTasks((1 << 63,), (1,)), "64-bit"),
        (FreeTasks((None,), (1,)), "FreeTasks.task_ids holds"),
        (TasksFinished((1,), (1,), (3,), ("text",), (0,), TIMES), "TasksFinished.values holds a str"),
        (WantKeys((None,), (1,)), "WantKeys.keys holds a NoneType"),
        (WantKeys(({"a": 1},), (1,)), "WantKeys.keys holds a dict"),
        (ScatterData(1, ("k",), (1,), (1,), (None,), (1,)), "ScatterData.workers holds a int"),
        (ComputeTasks((1,), (1,), ("k",), (1,), (b"",), (5,), (1.0,)), "ComputeTasks.priorities holds something else"),
        (ComputeTasks((1,), (1,), ("k",), (1,), (b"",), (("x",),), (1.0,)), "ComputeTasks.priorities holds"),
        (FreeTasks((1, 2), (1,)), "rows"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, tuple) else value[:20],
)
def test_what_a_column_holds_is_checked(message, why):
    with pytest.raises(MessageError, match=why):
        decode(encode([message]))


def nested(depth, leaf=1):
    for _ in range(depth):
        leaf = (leaf,)
    return leaf


@pytest.mark.parametrize(
    "make",
    [
        lambda depth: WantKeys((nested(depth),), (1,)),
        lambda depth: Response(1, nested(depth)),
        lambda depth: Request(1, "who_has", {"keys": nested(depth - 1)}),
        lambda depth: Response(1, ({"a": (0, 0, nested(depth - 3))},)),
    ],
    ids=["key", "result", "arguments", "inside"],
)
def test_nesting_is_bounded(make):
    limit = Limits().depth
    assert decode(encode([make(limit)])) == [make(limit)]
    with pytest.raises(MessageError, match="nested too deep"):
        decode(encode([make(limit + 1)]))
    with pytest.raises(MessageError):
        decode(encode([make(400)]))


@pytest.mark.parametrize("byte", [b"\x80", b"\x90", b"\xc0"], ids=["maps", "arrays", "nothing"])
def test_few_bytes_do_not_become_many_objects(byte):
    count = 3_000_000
    bomb = b"\x91\x93\x01\x01\xdd" + count.to_bytes(4, "big") + byte * count
    tracemalloc.start()
    try:
        with pytest.raises(MessageError, match="more than 1000000 objects"):
            decode(bomb, Limits(objects=1_000_000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < count * 8 + (1 << 20) + 1_000_000 * 64


def test_one_array_or_map_is_bounded_before_it_is_made():
    for head in (b"\xdd", b"\xdf"):
        with pytest.raises(MessageError, match="not a batch"):
            decode(b"\x91\x93\x01\x01" + head + b"\xff\xff\xff\xff" + bytes(64))


def test_large_batches_of_honest_size_pass():
    rows = 100_000
    batch = [FreeTasks(tuple(range(rows)), (1,) * rows)] * 3
    assert decode(encode(batch)) == batch
    assert len(encode(batch)) > 1 << 20


@pytest.mark.parametrize("kind", _TYPES, ids=lambda kind: kind.__name__)
def test_every_message_is_exported_and_refuses_wrong_fields(kind):
    assert getattr(messages, kind.__name__) is kind
    wrong = msgpack.packb([[_TYPES.index(kind), *[{1: 2}] * len(kind._fields)]])
    with pytest.raises(MessageError):
        decode(wrong)
