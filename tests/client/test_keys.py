"""Names by content, names that are never used twice, and names of functions."""

from __future__ import annotations

import functools
import sys
import threading

import pytest

from gnomon.runtime.client.keys import digest, is_plain, name_of, token_of, unique_keys


class Point:
    def __init__(self, x):
        self.x = x


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 1.0),
        (1, True),
        ("1", 1),
        (b"a", "a"),
        ((1, 2), [1, 2]),
        (None, "None"),
        ({"a": 1}, {"a": 2}),
        ([1, [2]], [[1], 2]),
    ],
)
def test_different_content_has_different_names(a, b):
    assert token_of(a) != token_of(b)


def test_equal_content_has_one_name_whatever_is_shared():
    text = "".join(["ab", "cd"])
    assert token_of((text, text)) == token_of(("abcd", "".join(["abc", "d"])))
    assert token_of(Point(1)) == token_of(Point(1))
    assert token_of(Point(1)) != token_of(Point(2))


def test_arrays_are_named_by_content_type_and_shape():
    numpy = pytest.importorskip("numpy")
    a = numpy.arange(1000)
    assert token_of(a) == token_of(a.copy())
    tokens = {token_of(x) for x in (a, a + 1, a.astype("f8"), a.reshape(10, 100), a.view("u8"))}
    assert len(tokens) == 5


def test_what_has_no_content_to_name_has_a_name_of_its_own(monkeypatch):
    monkeypatch.delitem(sys.modules, "dask.tokenize", raising=False)
    lock = threading.Lock()
    assert token_of(lock) != token_of(lock)
    assert token_of((lambda: 1), lambda obj: b"given") == digest(b"given")


def test_only_exact_plain_types_are_plain():
    class Text(str):
        __slots__ = ()

    assert is_plain((1, "a", [None, {"k": (b"x", 1.5)}]))
    assert not is_plain(Text("a"))
    assert not is_plain([Text("a")])
    assert not is_plain({1, 2})


def test_dask_names_what_it_knows_once_it_is_loaded():
    dask = pytest.importorskip("dask")
    assert "dask.tokenize" in sys.modules

    class Named:
        def __dask_tokenize__(self):
            return "same"

    assert token_of(Named()) == token_of(Named()) == dask.base.tokenize(Named())


def test_running_names_do_not_repeat():
    one, two = unique_keys(), unique_keys()
    names = {source() for source in (one, two) for _ in range(1000)}
    assert len(names) == 2000
    assert all(len(name) == 32 and int(name, 16) >= 0 for name in names)


def test_functions_have_readable_names():
    assert name_of(len) == "len"
    assert name_of(lambda: 1) == "lambda"
    assert name_of(functools.partial(functools.partial(len), [])) == "len"
    assert name_of(Point) == "Point"
    assert name_of(Point(1)) == "Point"
