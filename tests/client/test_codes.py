"""Functions as numbered code: sent once, sent anew when they changed, forgotten when there are too many."""

from __future__ import annotations

import functools
import itertools
import operator

import pytest

from gnomon.runtime.client import codes, outgoing
from gnomon.runtime.client.codes import Codes
from gnomon.runtime.errors import SerializationError


class Sent(Codes):
    """Codes whose queue is a list."""

    def __init__(self):
        self.queued = []
        super().__init__(self.queued.append, itertools.count(1).__next__)

    def number(self, func):
        return self.of(func, False).number


def define(source, **names):
    """A function as a notebook would have it."""
    namespace = {"__name__": "__main__", **names}
    exec(source, namespace)
    return namespace["f"], namespace


@pytest.fixture
def sent():
    return Sent()


def test_a_function_is_sent_once(sent):
    assert sent.number(len) == sent.number(len) == 1
    assert sent.number(operator.add) == 2
    f, _ = define("def f(x): return x")
    assert sent.number(f) == sent.number(f) == 3
    assert [type(entry) for entry in sent.queued] == [outgoing.Code] * 3


def test_what_pickles_to_the_same_bytes_is_the_same_code(sent):
    assert sent.number(functools.partial(len, [1])) == sent.number(functools.partial(len, [1]))
    assert sent.number(functools.partial(len, [2])) == 2
    text = "abc"
    assert sent.number(text.upper) == sent.number("abc".upper)


@pytest.mark.parametrize(
    ("source", "names", "change"),
    [
        ("def f(): return n", {"n": 1}, {"n": 1001}),
        ("def f(): return g()\ndef g(): return n", {"n": 1}, {"n": 2}),
        ("def f(): return (lambda: n)()", {"n": "a"}, {"n": "b"}),
    ],
)
def test_a_function_by_value_is_sent_anew_when_a_global_changed(sent, source, names, change):
    f, namespace = define(source, **names)
    first = sent.number(f)
    assert sent.number(f) == first
    namespace.update(change)
    assert sent.number(f) != first
    namespace.update(names)
    assert sent.number(f) == first


def test_a_function_by_value_with_a_mutable_global_is_looked_at_each_time(sent):
    f, namespace = define("def f(): return table['x']", table={"x": 1})
    first = sent.number(f)
    assert sent.number(f) == first
    namespace["table"]["x"] = 2
    assert sent.number(f) != first


def test_a_closure_is_sent_anew_when_its_cell_changed(sent):
    def make():
        n = 1

        def f():
            return n

        def change():
            nonlocal n
            n += 1

        return f, change

    f, change = make()
    first = sent.number(f)
    assert sent.number(f) == first
    change()
    assert sent.number(f) != first


def test_the_oldest_are_forgotten_and_may_come_back(sent, monkeypatch):
    monkeypatch.setattr(codes, "MAX_CODES", 2)
    numbers = [sent.number(f) for f in (len, abs, max)]
    assert [entry.number for entry in sent.queued if type(entry) is outgoing.Forget] == numbers[:1]
    assert sent.number(len) > numbers[-1]
    assert sent.number(max) == numbers[-1]


def test_by_reference_nothing_is_pickled(sent):
    import threading

    lock = threading.Lock()
    f = lock.acquire
    assert sent.of(f, True).number == sent.of(f, True).number
    assert sent.queued[0].blob.value is f
    with pytest.raises(SerializationError, match="function"):
        sent.number(lambda: lock)
