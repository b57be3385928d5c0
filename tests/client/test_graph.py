"""What graphs mean: raw ones, task nodes, and both mixed; run entry by entry as an executor would."""

from __future__ import annotations

import pickle
from collections import namedtuple
from operator import add, getitem

import pytest

from gnomon.runtime.client import entries, graph
from gnomon.runtime.client.bundling import Wants, bundle, columns
from gnomon.runtime.client.dask_adapter import as_graph, flat_keys, node_kinds
from gnomon.runtime.messages import NO_OPTIONS
from gnomon.runtime.protocol import BundleError, loads_code, loads_index

Pair = namedtuple("Pair", "a b")


def inc(x):
    return x + 1


class State:
    """Stands for a future's state."""

    def __init__(self, key, number, value):
        self.key, self.id, self.value = key, number, value


class Marked:
    """A future of somebody's."""

    __dask_future__ = True

    def __init__(self, state):
        self.state = state
        self.key = state.key


def convert(dsk, keys, known=None):
    return graph.convert(dsk, keys, (known or {}).get, lambda future: future.state, node_kinds())


def run(dsk, keys, known=None, max_rows=1000):
    """The values of the keys, by way of pickled bundles and message columns."""
    conversion = convert(dsk, keys, known)
    numbers = iter(range(1, 1000))
    codes, task_codes, payloads = bundle(conversion.tasks, lambda: next(numbers), by_reference=False)
    outputs = {key: State(key, 1000 + i, None) for i, key in enumerate(keys) if key in conversion.tasks}
    wants = Wants(outputs, {}, NO_OPTIONS, 0.0, 0)
    temporary = iter(range(5000, 6000))
    parts, bridges = columns(conversion, task_codes, payloads, wants, lambda: next(temporary), max_rows)
    blobs = {code.number: loads_code(code.blob) for code in codes}
    by_future = {state.id: state.value for state in conversion.known.values()}
    found = {}
    named = []
    for part in parts:
        found |= zip(part.keys, values_of(part, blobs, by_future), strict=True)
        named += [number for number in part.future_ids if number]
    assert sorted(named) == sorted([*bridges, *(state.id for state in outputs.values())])
    assert not bridges or len(parts) > 1
    return [found[key] if key in found else conversion.known[key].value for key in keys], len(conversion.tasks)


def values_of(part, blobs, by_future):
    """Run one message's rows; what they are wanted as is known from then on."""
    values = {}

    def value_of(row):
        if row < 0:
            return by_future[part.externals[-1 - row]]
        if row not in values:
            needs = part.dependencies[row] if part.dependencies else ()
            entry = blobs[part.task_codes[row]][loads_index(part.payloads[row])]
            values[row] = entry.run([value_of(need) for need in needs])
        return values[row]

    found = [value_of(row) for row in range(len(part.keys))]
    by_future |= {number: found[row] for row, number in enumerate(part.future_ids) if number}
    return found


@pytest.mark.parametrize(
    ("dsk", "expected"),
    [
        ({"x": 1, "y": (inc, "x"), "k": (add, "y", 10)}, 12),
        ({("x", 0): 1, "k": (inc, ("x", 0))}, 2),
        ({("x", (0, 1)): 1, "k": (inc, ("x", (0, 1)))}, 2),
        ({"x": 1, "k": (sum, ["x", "x", 5])}, 7),
        ({"x": 1, "k": (sum, [(inc, "x"), (add, (inc, "x"), "x")])}, 5),
        ({"x": 1, "y": "x", "z": "y", "k": (add, "z", "x")}, 2),
        ({"x": 1, "y": 2, "k": ["x", ["y", 3], "nothing"]}, [1, [2, 3], "nothing"]),
        ({"x": 1, "k": "x"}, 1),
        ({"x": 1, "k": (lambda d: d["a"], {"a": "x"})}, "x"),
        ({"x": 1, "k": (tuple, ("x", "y"))}, (1, "y")),
        ({"x": 1, "k": (sorted, {"x", 5})}, [1, 5]),
        ({"x": 1, "k": (lambda p: p, Pair("x", [(inc, "x")]))}, Pair(1, [2])),
        ({1: 10, "k": (inc, 1)}, 11),
        ({"x": [1, 2], "k": (getitem, "x", 1)}, 2),
        ({"x": (dict, [["a", 1]]), "k": (getitem, "x", "a")}, 1),
        ({"x": 5, "unused": (int, "not a number"), "k": (inc, "x")}, 6),
    ],
)
def test_raw_graphs(dsk, expected):
    [value], _ = run(dsk, ["k"])
    assert value == expected
    assert type(value) is type(expected)


def test_only_what_is_needed_is_converted_and_aliases_cost_no_task():
    dsk = {"x": 1, "y": "x", "unused": 5, "k": (inc, "y"), "y2": "y"}
    assert run(dsk, ["k"]) == ([2], 2)
    assert run(dsk, ["k", "y2", "y"]) == ([2, 1, 1], 4)


def test_keys_may_come_from_futures_inside_the_graph_or_known_to_the_client():
    future = Marked(State("f", 7, 40))
    assert run({"f": future, "k": (add, "f", 2)}, ["k", "f"]) == ([42, 40], 1)
    assert run({"k": (add, future, [1][0])}, ["k"]) == ([41], 1)
    assert run({"k": (sum, [future, 2])}, ["k"]) == ([42], 1)
    known = {"far": State("far", 9, 5)}
    assert run({"a": "far"}, ["a"], known)[0] == ["far"]  # a string that is no key of the graph is a string
    with pytest.raises(KeyError, match="nowhere"):
        run({"k": 1}, ["nowhere"])


def test_cycles_are_refused():
    with pytest.raises(ValueError, match="cycle"):
        run({"a": (inc, "b"), "b": (inc, "a")}, ["a"])
    with pytest.raises(ValueError, match="cycle"):
        run({"a": "b", "b": "a", "k": (inc, "a")}, ["k"])


def test_a_task_that_cannot_be_pickled_is_named():
    import threading

    with pytest.raises(BundleError, match="'bad'"):
        run({"good": (inc, 1), "bad": (inc, threading.Lock())}, ["good", "bad"])


def test_bundles_with_much_data_are_split():
    dsk = {i: (len, bytes([i]) * 100_000) for i in range(20)}
    conversion = convert(dsk, list(dsk))
    numbers = iter(range(1, 1000))
    codes, task_codes, _ = bundle(conversion.tasks, lambda: next(numbers), by_reference=False)
    assert len(codes) > 5
    assert max(len(code.blob) for code in codes) <= 256 << 10
    assert task_codes == sorted(task_codes)
    assert run(dsk, list(dsk))[0] == [100_000] * 20


def test_very_large_graphs_travel_in_parts_that_name_tasks_of_earlier_ones(monkeypatch):
    monkeypatch.setattr(graph, "MAX_ROWS", 3)
    dsk = {f"k{i}": (add, f"k{i - 1}", f"k{max(0, i - 5)}") for i in range(19, 0, -1)} | {"k0": 1}
    expected, rows = run(dsk, ["k19", "k7"])
    assert run(dsk, ["k19", "k7"], max_rows=3) == (expected, rows)


def test_wire_keys():
    numpy = pytest.importorskip("numpy")
    assert graph.wire_key(("x", numpy.int64(3), (numpy.int32(1), "y"))) == ("x", 3, (1, "y"))
    assert type(graph.wire_key(("x", numpy.int64(3)))[1]) is int
    assert graph.wire_key(5) == 5
    with pytest.raises(TypeError, match="key"):
        graph.wire_key(["x"])
    with pytest.raises(TypeError, match="key"):
        graph.wire_key(("x", object()))


def test_entries_survive_pickle_alone():
    entry = entries.Entry((entries.NESTED, entries.Nested(add, [entries.place(0), 300])))
    assert pickle.loads(pickle.dumps(entry)).run([1]) == 301
    assert entries.place(300).index == 300


def test_flat_keys():
    assert flat_keys("x") == ["x"]
    assert flat_keys([["a", ("b", 0)], [["c"]]]) == ["a", ("b", 0), "c"]
    with pytest.raises(TypeError, match="graph"):
        as_graph(5)


class TestNodes:
    """dask's task nodes."""

    @pytest.fixture(autouse=True)
    def spec(self):
        self.spec = pytest.importorskip("dask._task_spec")

    def test_tasks_aliases_data_and_containers(self):
        spec = self.spec
        ref = spec.TaskRef
        dsk = {
            "x": spec.DataNode("x", 1),
            "a": spec.Alias("a", "x"),
            "flat": spec.Task("flat", inc, ref("a")),
            "kw": spec.Task("kw", dict, y=ref("x")),
            "list": spec.Task("list", sum, spec.List(ref("x"), ref("flat"), 5)),
            "nested": spec.Task("nested", add, spec.Task(None, inc, ref("x")), ref("flat")),
            "dict": spec.Task("dict", getitem, spec.Dict({"k": ref("x")}), "k"),
            "deepkw": spec.Task("deepkw", dict, y=spec.List(ref("x"), ref("a"))),
            "top": spec.List(ref("x"), spec.Set(ref("x")), spec.Tuple(ref("flat"), 2)),
        }
        keys = ["flat", "kw", "list", "nested", "dict", "deepkw", "top", "a"]
        values, _ = run(dsk, keys)
        assert values == [2, {"y": 1}, 8, 4, 1, {"y": [1, 1]}, [1, {1}, (2, 2)], 1]

    def test_fused_tasks(self):
        spec = self.spec
        a = spec.Task("a", inc, spec.TaskRef("x"))
        b = spec.Task("b", inc, spec.TaskRef("a"))
        fused = spec.GraphNode.fuse(a, b)
        assert run({"x": spec.DataNode("x", 1), "b": fused}, ["b"])[0] == [3]

    def test_both_dialects_in_one_graph(self):
        spec = self.spec
        dsk = {"x": spec.DataNode("x", 1), "y": (inc, "x"), "z": spec.Task("z", add, spec.TaskRef("y"), 1)}
        assert run({**dsk, "k": (sum, ["z", spec.TaskRef("y"), spec.Task(None, inc, spec.TaskRef("x"))])}, ["k"])[
            0
        ] == [7]

    def test_an_alias_to_itself_is_a_future_that_the_client_knows(self):
        spec = self.spec
        dsk = {"f": spec.Alias("f"), "k": spec.Task("k", inc, spec.TaskRef("f"))}
        assert run(dsk, ["k"], {"f": State("f", 3, 1)})[0] == [2]
        dsk = {"k": spec.Task("k", inc, spec.TaskRef("f"))}
        assert run(dsk, ["k"], {"f": State("f", 3, 1)})[0] == [2]
