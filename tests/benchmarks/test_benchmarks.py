"""Every benchmark runs once, with its first parameters, and leaves nothing behind; so that none rots."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import pkgutil
import re
import threading
from pathlib import Path

import benchmarks
import psutil
import pytest
from benchmarks import callgrind, gate, sizes
from benchmarks.graphs import SHAPES, frame_shuffle, graph, message_of
from benchmarks.growth import exponent

FOLDER = Path(benchmarks.__file__).parent
KINDS = ("time_", "track_")


def found():
    """Benchmark classes and the names of their benchmarks, as asv finds them."""
    for info in pkgutil.iter_modules(benchmarks.__path__):
        module = importlib.import_module(f"benchmarks.{info.name}")
        for cls in vars(module).values():
            if inspect.isclass(cls) and cls.__module__ == module.__name__ and not cls.__name__.startswith("_"):
                for name in dir(cls):
                    if name.startswith(KINDS):
                        yield pytest.param(cls, name, id=f"{info.name}.{cls.__name__}.{name}")


def names():
    """Full names with parameters, as asv's ``--bench`` sees them."""
    for case in found():
        cls = case.values[0]
        params = getattr(cls, "params", None)
        if not params:
            yield case.id
        else:
            for chosen in itertools.product(*params):
                yield f"{case.id}({', '.join(map(repr, chosen))})"


@pytest.fixture(autouse=True)
def nothing_left():
    """No process and no thread outlives a benchmark."""
    me = psutil.Process()
    children = {child.pid for child in me.children(recursive=True)}
    threads = set(threading.enumerate())
    yield
    _, alive = psutil.wait_procs([child for child in me.children(recursive=True) if child.pid not in children], 10)
    assert not alive
    new = [thread for thread in threading.enumerate() if thread not in threads]
    for thread in new:
        thread.join(5)
    assert not [thread for thread in new if thread.is_alive()]


@pytest.mark.parametrize(("cls", "name"), list(found()))
def test_it_runs(cls, name, monkeypatch):
    if hasattr(cls, "setup_cache"):  # valgrind takes its time; it has a test of its own
        monkeypatch.setattr(callgrind, "available", lambda: True)
        monkeypatch.setattr(callgrind, "instructions_per_task", lambda shapes: dict.fromkeys(shapes, 1.0))
    benchmark = cls()
    arguments = [choices[0] for choices in getattr(cls, "params", ())]
    assert len(arguments) == len(getattr(cls, "param_names", ()))
    if hasattr(benchmark, "setup_cache"):
        arguments.insert(0, benchmark.setup_cache())
    setup, teardown = (getattr(benchmark, hook, lambda *_: None) for hook in ("setup", "teardown"))
    setup(*arguments)
    try:
        result = getattr(benchmark, name)(*arguments)
    finally:
        teardown(*arguments)
    if name.startswith("track_"):
        assert isinstance(result, int | float)
        assert result == result, "not a number"
        assert getattr(cls, name).unit
    else:
        assert result is None


def test_counters_are_the_same_every_time():
    from benchmarks.core import Counters

    counted = []
    for _ in range(2):
        one = Counters()
        one.setup("random")
        counted.append([one.track_messages("random"), one.track_bytes("random"), one.track_transitions("random")])
    assert counted[0] == counted[1]


@pytest.mark.parametrize("chosen", [*gate.GATE, *gate.COUNTERS])
def test_the_gate_names_benchmarks_that_exist(chosen):
    assert [name for name in names() if re.match(chosen, name) and re.search(gate.pattern(), name)]


def test_every_alternative_of_the_gate_is_there():
    """A bracket of alternatives half of which are gone would still match."""
    everything = list(names())
    for chosen in gate.GATE:
        options = [re.split(r"\|", group) for group in re.findall(r"(?<!\\)\(([^()]*\|[^()]*)(?<!\\)\)", chosen)]
        for option in itertools.chain(*options):
            assert any(re.match(chosen, name) and re.search(option, name) for name in everything), (chosen, option)


def test_large_parameters_wait_to_be_asked_for(monkeypatch):
    monkeypatch.setattr(sizes, "FULL", False)
    assert sizes.and_large([1, 10], 100) == [1, 10]
    monkeypatch.setattr(sizes, "FULL", True)
    assert sizes.and_large([1, 10], 100) == [1, 10, 100]


def test_no_private_name_is_used():
    wrong = []
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                wrong += [f"{path.name}: {alias.name}" for alias in node.names if alias.name.startswith("_")]
                if not (node.module or "").startswith(("gnomon", "benchmarks")) and node.level:
                    wrong.append(f"{path.name}: relative import")
    assert not wrong


@pytest.mark.parametrize("shape", list(SHAPES))
def test_graphs_have_about_as_many_tasks_as_asked_for(shape):
    made = graph(shape, 1_000)
    assert 900 <= len(made.keys) <= 1_010
    assert len(set(made.keys)) == len(made.keys)
    assert made == graph(shape, 1_000)
    for row, needs in enumerate(made.dependencies):
        assert all(0 <= other < row for other in needs)
    assert len(message_of(made).future_ids) == len(made.keys)


@pytest.mark.parametrize(("partitions", "branches"), [(9, 3), (7, 3), (4, 8), (27, 3)])
def test_a_frame_shuffle_brings_all_to_all(partitions, branches):
    made = frame_shuffle(partitions, branches)
    reached = []
    for key, needs in zip(made.keys, made.dependencies, strict=True):
        own = {key[1]} if key[0].startswith("read") else set()
        reached.append(own.union(*[reached[row] for row in needs]))
    assert len(made.wanted) == partitions
    assert all(reached[row] == set(range(partitions)) for row in made.wanted)


def test_a_year_of_hours_takes_three_stages():
    assert {key[0] for key in frame_shuffle(8_760).keys} >= {"group-0", "group-1", "group-2", "join-2"}


def test_exponents():
    assert exponent([1, 10, 100], [5, 50, 500]) == pytest.approx(1)
    assert exponent([10, 100], [3, 3]) == pytest.approx(0)
    assert exponent([1, 2, 4], [7, 28, 112]) == pytest.approx(2)
    with pytest.raises(ValueError, match="two sizes"):
        exponent([10, 10], [1, 2])


@pytest.mark.skipif(not callgrind.available(), reason="valgrind is not installed")
def test_instructions_are_counted():
    assert 1_000 < callgrind.instructions_per_task(["map"])["map"] < 2_000_000
