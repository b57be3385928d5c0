"""Each processor on stacks that fit in a line, and what holds for all of them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from gnomon.profiler.sessions.calltree import THREAD, by_function, call_tree
from gnomon.profiler.sessions.processors import (
    below,
    drop_functions,
    fold,
    group_by_module,
    hide_library,
    invert,
    is_library,
    keep_busy,
    keep_functions,
    keep_labels,
    keep_prefix,
    keep_threads,
    keep_time,
)
from gnomon.profiler.sessions.session import Function, RegionTime
from tests.profiler.made_sessions import FUNCTIONS, T0, check, made, stacks


@pytest.fixture
def session():
    return made(
        ("main", 5),
        ("main parse:7", 10, 0, 0, "parse-csv"),
        ("main parse:8", 20, 1, 0, "parse-csv"),
        ("main parse:8 loads decode scan", 40, 1, 0, "parse-json"),
        ("main parse:8 loads decode hook check", 4, 1, 1, "load"),
        ("main engine", 1, 0, 1),
        regions=(RegionTime(0, 1, "engine.step", 7, 0.01, 0.01), RegionTime(1, 0, "engine.step", 1, 0.2, 0.2)),
    )


def test_labels(session):
    assert stacks(keep_labels(session, ["parse-csv"])) == {"MainThread|main parse:7": 10, "MainThread|main parse:8": 20}
    assert stacks(keep_labels(session, [""])) == {"MainThread|main": 5, "pool-1|main engine": 1}
    assert sum(keep_prefix(session, "parse").samples.count) == 70
    assert stacks(keep_labels(session, ["none"])) == {}


def test_threads_by_name_and_identity(session):
    by_name, by_ident = keep_threads(session, ["pool-1"]), keep_threads(session, [1001])
    assert by_name == by_ident
    assert stacks(by_name) == {"pool-1|main parse:8 loads decode hook check": 4, "pool-1|main engine": 1}
    assert [row.seconds for row in by_name.regions] == [0.01]


def test_a_window_takes_the_buckets_it_touches(session):
    early = keep_time(session, T0 - 5, T0 + 0.3)
    assert sum(early.samples.count) == 16
    assert (early.meta["start"], early.meta["stop"]) == (T0, T0 + 1)
    assert early.meta["ticks"] == 100
    assert [row.count for row in early.regions] == [7]
    late = keep_time(session, T0 + 1.0)
    assert sum(late.samples.count) == 64
    assert [(row.bucket, row.count) for row in late.regions] == [(0, 1)]
    assert late.buckets[late.samples.bucket[0]].start == T0 + 1
    assert stacks(keep_time(session, T0 + 7)) == {}
    assert keep_time(session).samples == keep_time(keep_time(session)).samples


def test_focus_and_cut(session):
    json = keep_functions(session, lambda function: function.module.startswith("jsonlib"))
    assert sum(json.samples.count) == 44
    cut = below(session, lambda function: function.name == "parse")
    assert stacks(cut) == {
        "MainThread|main": 5,
        "MainThread|parse:7": 10,
        "MainThread|parse:8": 20,
        "MainThread|parse:8 loads decode scan": 40,
        "pool-1|parse:8 loads decode hook check": 4,
        "pool-1|main engine": 1,
    }


def test_what_is_dropped(session):
    without = drop_functions(session, lambda function: function.name == "parse")
    assert stacks(without) == {"MainThread|main": 5, "pool-1|main engine": 1}


def test_waiting_is_left_out():
    wait = Function("Condition.wait", "/usr/lib/python3.11/threading.py", 300, "threading")
    session = made(("main", 3), ("main wait", 90), ("main wait hook", 2), functions={"wait": wait})
    assert stacks(keep_busy(session)) == {"MainThread|main": 3, "MainThread|main Condition.wait hook": 2}


def test_below_keeps_recursion():
    recursive = made(("main parse main parse", 3))
    assert stacks(below(recursive, lambda function: function.name == "parse")) == {"MainThread|parse main parse": 3}


def test_insides_of_libraries_are_hidden(session):
    assert stacks(hide_library(session)) == {
        "MainThread|main": 5,
        "MainThread|main parse:7": 10,
        "MainThread|main parse:8": 20,
        "MainThread|main parse:8 loads": 40,
        "pool-1|main parse:8 loads hook check": 4,
        "pool-1|main engine": 1,
    }


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (pytest.__file__, True),
        (Random.__init__.__code__.co_filename, True),
        ("<frozen importlib._bootstrap>", True),
        ("/opt/venv/lib/python3.12/site-packages/pandas/core.py", True),
        (r"C:\Users\me\venv\Lib\site-packages\pandas\core.py", True),
        ("/usr/lib/python3/dist-packages/apt/cache.py", True),
        (__file__, False),
        ("/home/me/lib/pythonic.py", False),
        ("<string>", False),
        ("", False),
    ],
)
def test_what_a_library_is(file, expected):
    assert is_library(Function("f", file, 1, "")) is expected


def test_modules(session):
    assert stacks(group_by_module(session)) == {
        "MainThread|app.main": 5,
        "MainThread|app.main app.parse": 30,
        "MainThread|app.main app.parse jsonlib jsonlib.decoder": 40,
        "pool-1|app.main app.parse jsonlib jsonlib.decoder app.main app.parse": 4,
        "pool-1|app.main engine": 1,
    }


def test_upside_down(session):
    assert stacks(invert(session)) == {
        "MainThread|main": 5,
        "MainThread|parse:7 main": 10,
        "MainThread|parse:8 main": 20,
        "MainThread|scan decode loads parse:8 main": 40,
        "pool-1|check hook decode loads parse:8 main": 4,
        "pool-1|engine main": 1,
    }
    assert stacks(invert(invert(session))) == stacks(session)


def test_small_calls_are_put_together():
    session = made(
        ("main", 900),
        ("main parse:7", 6),
        ("main parse:8", 6),
        ("main hook check", 5),
        ("main loads", 3),
        ("main engine", 80),
    )
    folded = fold(session, 0.01)
    assert stacks(folded) == {"MainThread|main": 900, "MainThread|main parse:7": 6, "MainThread|main parse:8": 6,
                              "MainThread|main (2 smaller)": 8, "MainThread|main engine": 80}  # fmt: skip
    assert stacks(fold(session, 0)) == stacks(session)
    assert stacks(fold(session, 0.95)) == {"MainThread|main": 900, "MainThread|main (4 smaller)": 100}


def test_everything_small_is_one_row_per_thread():
    session = made(("main", 1), ("parse", 1), ("hook", 1, 0, 1))
    assert stacks(fold(session, 0.5)) == {"MainThread|(3 smaller)": 2, "pool-1|(3 smaller)": 1}


def random_session(seed: int):
    rng = Random(seed)
    rows = []
    for _ in range(rng.randrange(60)):
        steps = [f"{rng.choice(list(FUNCTIONS))}:{rng.randrange(1, 4)}" for _ in range(rng.randrange(1, 9))]
        rows.append(
            (" ".join(steps), rng.randrange(1, 20), rng.randrange(2), rng.randrange(2), rng.choice(["", "a", "b"]))
        )
    joined = {}
    for stack, count, *rest in rows:
        joined[stack, *rest] = joined.get((stack, *rest), 0) + count
    return made(*((stack, count, *rest) for (stack, *rest), count in joined.items()))


SHAPERS = {
    "hide": hide_library,
    "module": group_by_module,
    "invert": invert,
    "fold": lambda session: fold(session, 0.1),
    "below": lambda session: below(session, lambda function: function.name == "parse"),
}


@pytest.mark.parametrize("seed", range(12))
def test_shapers_lose_nothing_in_any_order(seed):
    session = keep_time(random_session(seed))
    check(session)
    rng = Random(seed)
    per_bucket = [(b, t, label, n) for b, t, label, _, n in zip(*session.samples, strict=True)]
    for name in rng.choices(list(SHAPERS), k=6):
        session = SHAPERS[name](session)
        check(session)
        assert totals((b, t, label, n) for b, t, label, _, n in zip(*session.samples, strict=True)) == totals(
            per_bucket
        )


def totals(rows):
    found = {}
    for *key, count in rows:
        found[tuple(key)] = found.get(tuple(key), 0) + count
    return found


def test_an_empty_session_stays_empty():
    for shape in (*SHAPERS.values(), keep_time, lambda s: keep_labels(s, [""])):
        assert stacks(shape(made())) == {}
    assert call_tree(made()).parent == ()
    assert by_function(call_tree(made())) == []


# ------------------------------------------------------------------------------------------------------------ call tree


def test_the_tree_joins_lines_and_separates_threads(session):
    tree = call_tree(session)
    rows = {path(tree, call): (tree.own[call], tree.total[call]) for call in range(len(tree.parent))}
    assert rows["MainThread"] == pytest.approx((0, 0.75))
    assert rows["MainThread main"] == pytest.approx((0.05, 0.75))
    assert rows["MainThread main parse"] == pytest.approx((0.3, 0.7))
    assert rows["pool-1 main"] == pytest.approx((0, 0.05))
    assert rows["pool-1 main engine.step"] == pytest.approx((0.01, 0.01))
    parse = next(call for call in range(len(tree.parent)) if path(tree, call) == "MainThread main parse")
    assert tree.lines[parse] == pytest.approx({7: 0.1, 8: 0.6})
    assert tree.seconds == pytest.approx(0.8)
    assert sum(row.seconds for row in tree.samples) == pytest.approx(0.8)
    assert all(caller < call for call, caller in enumerate(tree.parent))
    assert tree.functions[tree.function[tree.children()[-1][0]]] == Function("MainThread", THREAD, 1000, "made")


def path(tree, call):
    names = []
    while call >= 0:
        names.insert(0, tree.functions[tree.function[call]].name)
        call = tree.parent[call]
    return " ".join(names)


def test_recursion_counts_once_in_a_function_s_total():
    rows = {row.function.name: row for row in by_function(call_tree(made(("main parse main parse", 10), ("main", 5))))}
    assert rows["main"][1:] == pytest.approx((0.05, 0.15))
    assert rows["parse"][1:] == pytest.approx((0.1, 0.1))


def test_seconds_follow_each_bucket_s_own_rate():
    session = made(("main", 50), ("main", 10, 1))
    slow = session.buckets[1]._replace(ticks=10)
    assert call_tree(replace(session, buckets=(session.buckets[0], slow))).seconds == pytest.approx(1.5)
