"""What one loop turn sends: merged, and in an order that means the same."""

from __future__ import annotations

from gnomon.runtime.client import outgoing
from gnomon.runtime.client.outgoing import Code, Forget, Outgoing, Part, Release, Row
from gnomon.runtime.messages import (
    NO_OPTIONS,
    ForgetCodes,
    ReleaseFutures,
    Request,
    TaskOptions,
    UpdateGraph,
    decode,
    encode,
)


def row(key, number, needs=(), options=NO_OPTIONS, fifo=0.1, parent=0, payload=b"p"):
    return Row(key, 1, payload, needs, number, options, fifo, parent)


def drain(*entries):
    buffer = Outgoing()
    buffer.queue.extend(entries)
    messages = buffer.drain()
    assert decode(encode(messages)) == messages
    assert buffer.drain() == []
    return messages


def test_nothing_is_no_message():
    assert drain() == []


def test_submits_become_one_graph_with_rows_and_externals_told_apart():
    [graph] = drain(Code(1, b"code"), row("a", 11), row("b", 12, (11, 5)), row("c", 13, (5, 12)))
    assert graph.codes == ((1, b"code"),)
    assert graph.keys == ("a", "b", "c")
    assert graph.dependencies == ((), (0, -1), (-1, 1))
    assert graph.externals == (5,)
    assert graph.future_ids == (11, 12, 13)
    assert (graph.options, graph.option_rows) == ((NO_OPTIONS,), ())


def test_options_are_shared_by_rows():
    high = TaskOptions(priority=1)
    [graph] = drain(row("a", 1), row("b", 2, options=high), row("c", 3))
    assert graph.options == (NO_OPTIONS, high)
    assert graph.option_rows == (0, 1, 0)


def test_releases_are_one_message_behind_the_graph_that_may_need_them():
    graph, released = drain(row("a", 1), Release(7, "x"), row("b", 2, (1,)), Release(8, "y"), Release(1, "a"))
    assert type(graph) is UpdateGraph
    assert graph.keys == ("a", "b")
    assert released == ReleaseFutures((7, 8, 1))


def test_a_key_is_defined_anew_only_behind_its_release():
    messages = drain(row("a", 1), Release(1, "a"), row("b", 2), row("a", 3))
    assert [type(m) for m in messages] == [UpdateGraph, ReleaseFutures, UpdateGraph]
    assert [m.keys for m in messages[::2]] == [("a", "b"), ("a",)]


def test_rows_of_other_batches_and_tasks_do_not_mix():
    messages = drain(row("a", 1, fifo=1.0), row("b", 2, (1,), fifo=2.0), row("c", 3, fifo=2.0, parent=5))
    assert [(m.keys, m.fifo_timeout, m.parent_task) for m in messages] == [
        (("a",), 1.0, 0),
        (("b",), 2.0, 0),
        (("c",), 2.0, 5),
    ]
    assert messages[1].externals == (1,)


def test_other_messages_keep_their_place():
    messages = drain(row("a", 1), Request(1, "m", {}), row("b", 2), Release(9, "z"), Request(2, "m", {}))
    assert [type(m) for m in messages] == [UpdateGraph, Request, UpdateGraph, ReleaseFutures, Request]


def test_parts_are_graphs_of_their_own_and_take_the_codes_before_them():
    part = Part(("p",), (2,), (b"",), (), (), (5,), (NO_OPTIONS,), (), 0.0, 0)
    first, second, third = drain(Code(1, b"x"), row("a", 1), Code(2, b"y"), part, Forget(2))
    assert (first.keys, second.keys) == (("a",), ("p",))
    assert first.codes + second.codes == ((1, b"x"), (2, b"y"))
    assert third == ForgetCodes((2,))
    graph, _ = drain(Code(2, b"y"), part, Forget(2))
    assert graph.codes == ((2, b"y"),)
    released = drain(Release(4, "p"), part)
    assert [type(m) for m in released] == [ReleaseFutures, UpdateGraph]


def test_large_batches_are_cut(monkeypatch):
    monkeypatch.setattr(outgoing, "MAX_ROWS", 3)
    messages = drain(*[row(f"k{i}", i + 1) for i in range(7)])
    assert [len(m.keys) for m in messages] == [3, 3, 1]
    monkeypatch.setattr(outgoing, "MAX_BYTES", 100)
    messages = drain(*[row(f"k{i}", i + 1, payload=bytes(60)) for i in range(4)])
    assert [len(m.keys) for m in messages] == [2, 2]
    messages = drain(Code(1, bytes(200)), row("a", 1))
    assert [len(m.codes) for m in messages] == [1, 0]
