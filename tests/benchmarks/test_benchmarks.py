"""Every benchmark runs once, every parameter has its turn, and nothing is left behind; so that none rots."""

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
from judge.plants import PLANTS

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


def chosen():
    """Every benchmark with its first parameters, and each value of a parameter with some benchmark of its class."""
    classes = {}
    for case in found():
        cls, name = case.values
        classes.setdefault(cls, []).append((case.id, name))
    for cls, members in classes.items():
        params = getattr(cls, "params", ())
        for turn in range(max(map(len, params), default=1)):
            arguments = [choices[turn % len(choices)] for choices in params]
            for case, name in members if turn == 0 else [members[turn % len(members)]]:
                yield pytest.param(cls, name, arguments, id=f"{case}-{turn}")


@pytest.mark.parametrize(("cls", "name", "arguments"), list(chosen()))
def test_it_runs(cls, name, arguments, monkeypatch):
    # valgrind takes its time; it has a test of its own
    monkeypatch.setattr(callgrind, "available", lambda: True)
    monkeypatch.setattr(callgrind, "instructions", lambda names: dict.fromkeys(names, 1.0))
    benchmark = cls()
    assert len(arguments) == len(getattr(cls, "param_names", ()))
    if hasattr(benchmark, "setup_cache"):
        arguments = [benchmark.setup_cache(), *arguments]
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


@pytest.mark.parametrize("chosen", [*gate.TIMES, *gate.COUNTERS])
def test_the_gate_names_benchmarks_that_exist(chosen):
    assert [name for name in names() if re.match(chosen, name) and re.search(gate.pattern(), name)]


def test_every_alternative_of_the_gate_is_there():
    """A bracket of alternatives half of which are gone would still match."""
    everything = list(names())
    for chosen in gate.TIMES:
        options = [re.split(r"\|", group) for group in re.findall(r"(?<!\\)\(([^()]*\|[^()]*)(?<!\\)\)", chosen)]
        for option in itertools.chain(*options):
            assert any(re.match(chosen, name) and re.search(option, name) for name in everything), (chosen, option)


def test_parts_of_the_gate_are_apart():
    """What is counted needs few rounds and what is timed many, so that each belongs to one part."""
    times, counters = re.compile(gate.pattern(["times"])), re.compile(gate.pattern(["counters"]))
    for name in names():
        kind = name.partition("(")[0].rpartition(".")[2].partition("_")[0]
        assert not (times.search(name) and kind != "time"), name
        assert not (counters.search(name) and kind != "track"), name


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_the_gate_has_what_sees_a_planted_slowdown(plant):
    for part in gate.PARTS:
        seen = [name for name in names() if re.search(gate.pattern([part]), name) and re.search(plant.named, name)]
        assert bool(seen) == (part in plant.parts), part


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


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not callgrind.available(), reason="valgrind is not installed")
def test_instructions_are_counted():
    counted = callgrind.instructions(["map", "read frames"])
    assert 1_000 < counted["map"] < 2_000_000
    assert 100 < counted["read frames"] < 100_000


@pytest.mark.parametrize("name", list(callgrind.JOBS))
def test_what_valgrind_counts_can_be_done_twice(name):
    for _ in range(2):
        job = callgrind.JOBS[name]()
        assert job.things > 0
        job.run()
        job.close()
