"""The call tree, the look at stacks that fills it, and the numbers of code objects: compiled and interpreted."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from array import array
from contextlib import contextmanager

import pytest

from gnomon.profiler.build import is_compiled
from gnomon.profiler.marks import regions
from gnomon.profiler.marks.markers import Marker
from gnomon.profiler.marks.regions import region
from gnomon.profiler.sampling import cadence, frames, handover, pulse, stacks, tape, tree
from gnomon.profiler.sampling.frames import Functions
from gnomon.profiler.sampling.stacks import LABEL_BITS, NODE_BITS, Look, Watched
from gnomon.profiler.sampling.tape import Tape
from gnomon.profiler.sampling.tree import Tree, heaviest
from gnomon.profiler.sessions.session import MARKER, REGION

NODE = (1 << NODE_BITS) - 1
LABEL = (1 << LABEL_BITS) - 1


class Parked:
    """A thread that stands still inside ``body`` until it is told to go on."""

    def __init__(self, body):
        self.reached, self.go, self.done = threading.Lock(), threading.Lock(), threading.Event()
        self.reached.acquire()
        self.go.acquire()
        self.thread = threading.Thread(target=self.run, args=(body,), daemon=True)
        self.thread.start()
        assert self.reached.acquire(timeout=10)

    def run(self, body):
        try:
            body(self.stand)
        finally:
            self.done.set()
            self.reached.release()

    def stand(self):
        self.reached.release(), self.go.acquire()  # one line: where it stands is one node

    def step(self):
        self.go.release()
        assert self.reached.acquire(timeout=10)

    def end(self):
        while not self.done.is_set():
            self.go.release()
            assert self.reached.acquire(timeout=10)
        self.thread.join(10)


@contextmanager
def parked(body):
    parked = Parked(body)
    try:
        yield parked
    finally:
        parked.end()


class View:
    """A tree and what it takes to sample one thread into it."""

    def __init__(self, ident, depth=128):
        self.tree = Tree(Functions())
        self.watched = (Watched(ident, 5),)
        self.labels = {"": 0}
        self.cells = {}
        self.tape = Tape()
        self.look = Look(self.tree, self.cells, regions.by_thread, self.labels, depth, self.tape)

    def __call__(self, strangers=None):
        self.tape.clear()
        return self.look.take(self.watched, strangers, threading.get_ident())

    @property
    def key(self):
        return self.tape.columns()[4][0]

    def node(self):
        assert self() == 1
        return self.key & NODE

    def path(self, node=None):
        """(function, line) from where the parked body begins down to where it stands."""
        node = self.node() if node is None else node
        found = []
        while node >= 0:
            name, file, _ = self.tree.names.keys[self.tree.functions[node]]
            found.append((name.rpartition(".")[2], self.tree.lines[node], file))
            node = self.tree.parents[node]
        found.reverse()
        names = [name for name, _, _ in found]
        start, stop = names.index("run", 3) + 1, names.index("stand")
        return found[start:stop]

    def names(self):
        return [name for name, _, _ in self.path()]


def line_of(function, offset):
    return function.__code__.co_firstlineno + offset


def leaf(stand):
    stand()
    stand()


def twice(stand):
    leaf(stand)
    leaf(stand)


def test_the_environment_chooses_the_build():
    compiled = {is_compiled(module) for module in (cadence, frames, handover, pulse, regions, stacks, tape, tree)}
    if os.environ.get("GNOMON_PURE") == "1":
        assert compiled == {False}
    elif os.environ.get("GNOMON_REQUIRE_COMPILED") == "1":
        assert compiled == {True}
    else:
        assert len(compiled) == 1, "some modules are compiled and some are not"


def test_a_node_is_a_parent_a_function_and_a_line():
    with parked(twice) as thread:
        view = View(thread.thread.ident)
        seen = [view.path()]
        nodes = [view.node()]
        for _ in range(3):
            thread.step()
            nodes.append(view.node())
            seen.append(view.path())
    file = __file__
    first, second = line_of(twice, 1), line_of(twice, 2)
    assert seen == [
        [("twice", caller, file), ("leaf", line_of(leaf, at), file)] for caller in (first, second) for at in (1, 2)
    ]
    assert len(set(nodes)) == 4


def test_the_same_stack_has_the_same_node_and_adds_none():
    with parked(leaf) as thread:
        view = View(thread.thread.ident)
        node = view.node()
        size = view.tree.size()
        for _ in range(5):
            assert view.node() == node
        view.tree.forget_codes()
        view.watched[0].forget()
        assert view.node() == node
        assert view.tree.size() == size
        assert view.tree.names.codes() == size


def one(stand):
    shared(stand)


def other(stand):
    shared(stand)


def shared(stand):
    stand()


def alternate(stand):
    for _ in range(20):
        one(stand)
        other(stand)


def test_frames_at_addresses_used_again_are_not_taken_for_the_same():
    """``shared`` is called by turns from two places: its frame is made anew, mostly where the last one was."""
    with parked(alternate) as thread:
        view = View(thread.thread.ident)
        for turn in range(40):
            assert view.names() == ["alternate", ("one", "other")[turn % 2], "shared"]
            thread.step()


def recurse(stand, n):
    if n:
        recurse(stand, n - 1)
    else:
        stand()


@pytest.mark.parametrize("n", [0, 1, 30, 62, 63, 64, 65, 200])
def test_deep_stacks_keep_root_and_leaf_and_say_what_is_cut(n):
    with parked(lambda stand: recurse(stand, n)) as thread:
        view = View(thread.thread.ident, depth=32)
        whole = View(thread.thread.ident, depth=4000)
        node = view.node()
        path = []
        while node >= 0:
            path.append(view.tree.names.keys[view.tree.functions[node]][:2])
            node = view.tree.parents[node]
        complete = whole.names()
        assert complete == ["<lambda>", *["recurse"] * (n + 1)]
        everything = len(complete) + 5  # bootstrap, bootstrap_inner, Thread.run, Parked.run, stand
        assert len(path) == min(everything, 32)
        assert path[0][0] == "Parked.stand"
        assert path[-1][0] == "Thread._bootstrap"
        assert (("(cut)", MARKER) in path) == (everything > 32)


def test_a_stack_of_any_depth_ends():
    limit = sys.getrecursionlimit()
    threading.stack_size(512 * 1024 * 1024)
    try:
        sys.setrecursionlimit(20_000)
        with parked(lambda stand: recurse(stand, 10_000)) as thread:
            view = View(thread.thread.ident, depth=4096)
            node, depth = view.node(), 0
            while node >= 0:
                root, node, depth = node, view.tree.parents[node], depth + 1
            assert depth == 4096
            assert view.tree.names.keys[view.tree.functions[root]][:2] == ("(cut)", MARKER)
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(0)


def test_labels_are_numbered_and_other_types_ignored():
    with parked(leaf) as thread:
        ident = thread.thread.ident
        view = View(ident)
        numbers = []
        for label in ("", "load", "parse", "load", 3, ["x"]):
            view.cells[ident] = [label]
            view()
            numbers.append(view.key >> NODE_BITS & LABEL)
            assert view.key >> (NODE_BITS + LABEL_BITS) == 5
    assert numbers == [0, 1, 2, 1, 0, 0]
    assert list(view.labels) == ["", "load", "parse"]


def test_labels_beyond_the_last_number_share_it():
    with parked(leaf) as thread:
        ident = thread.thread.ident
        view = View(ident)
        view.labels.update({str(n): n for n in range(1, stacks.MAX_LABELS - 1)})
        view.cells[ident] = ["new"]
        view()
        assert view.key >> NODE_BITS & LABEL == stacks.MAX_LABELS - 1
        assert "new" not in view.labels


def test_absent_threads_are_told_and_strangers_met():
    with parked(leaf) as thread, parked(leaf) as stranger:
        view = View(thread.thread.ident)
        gone = Watched(1, 6)
        view.watched = (gone, *view.watched)
        strangers = []
        assert view(strangers=strangers) == 1
        assert not gone.present
        assert view.watched[1].present
        assert stranger.thread.ident in strangers
        assert thread.thread.ident not in strangers
        assert threading.get_ident() not in strangers


def outer_region(stand):
    with region("outer"):
        inner_region(stand)


def inner_region(stand):
    with region("a"), region("b"):
        leaf(stand)


def test_a_region_is_a_frame_below_the_function_that_entered_it():
    regions.watch()
    try:
        with parked(outer_region) as thread:
            view = View(thread.thread.ident)
            path = view.path()
            thread.step()
            again = view.names()
    finally:
        regions.unwatch()
    assert [name for name, _, _ in path] == ["outer_region", "outer", "inner_region", "a", "b", "leaf"]
    assert [file == REGION for _, _, file in path] == [False, True, False, True, True, False]
    assert again == ["outer_region", "outer", "inner_region", "a", "b", "leaf"]


def generator():
    with region("suspended"):
        yield 1
        yield 2


def holds_a_generator(stand):
    steps = generator()
    next(steps)
    stand()
    steps.close()
    stand()


def test_a_region_of_a_suspended_generator_is_not_in_the_stack():
    regions.watch()
    try:
        with parked(holds_a_generator) as thread:
            view = View(thread.thread.ident)
            names = [view.names()]
            thread.step()
            names.append(view.names())
    finally:
        regions.unwatch()
    assert names == [["holds_a_generator"]] * 2


def test_lines_are_those_of_the_instruction_even_in_long_functions():
    source = "def long(stand):\n    x = 0\n" + "    x += 1\n    stand()\n" * 300
    space = {}
    exec(compile(source, "long.py", "exec"), space)
    with parked(space["long"]) as thread:
        view = View(thread.thread.ident)
        for at in range(300):
            assert view.path() == [("long", 4 + 2 * at, "long.py")]
            thread.step()


class Canary:
    pass


def test_no_frame_is_kept_after_a_view():
    alive = []

    def hold(stand):
        canary = Canary()
        alive.append(weakref.ref(canary))
        stand()
        del canary

    def body(stand):
        hold(stand)
        stand()

    gc.disable()
    try:
        with parked(body) as thread:
            view = View(thread.thread.ident)
            view()
            view(strangers=[])
            assert alive[0]() is not None
            thread.step()
            assert alive[0]() is None
    finally:
        gc.enable()


def test_code_objects_are_let_go():
    space = {}
    exec(compile("def temporary(stand): stand()", "temporary.py", "exec"), space)
    code = weakref.ref(space["temporary"].__code__)
    with parked(space.pop("temporary")) as thread:
        view = View(thread.thread.ident)
        view()
    del thread
    gc.collect()
    assert code() is not None, "the short memory keeps it, so that its address means nothing else"
    view.tree.forget_codes()
    view.watched[0].forget()
    gc.collect()
    assert code() is None
    assert ("temporary", "temporary.py", 1) in view.tree.names.keys


def test_a_function_made_again_has_the_same_number():
    names = Functions()
    codes = [compile("def f(): pass", "again.py", "exec").co_consts[0] for _ in range(3)]
    assert len({id(code) for code in codes}) == 3
    numbers = [names.code_number(code) for code in codes]
    assert len(set(numbers)) == 3
    assert len({names.function_of(number) for number in numbers}) == 1
    assert names.keys == [("f", "again.py", 1)]


def test_functions_beyond_the_limit_share_one_number():
    names = Functions(limit=2)
    for n in range(5):
        code = names.code_number(Marker(f"m{n}"))
        assert names.keys[names.function_of(code)][0] == f"m{n}", "markers are few, and always known"
    codes = [compile(f"def f{n}(): pass", "many.py", "exec").co_consts[0] for n in range(4)]
    shared = {names.keys[names.function_of(names.code_number(code))] for code in codes}
    assert shared == {("(others)", MARKER, 0)}


def test_pruning_keeps_the_heaviest_and_moves_the_rest_up():
    names = Functions()
    grown = Tree(names)
    a = grown.node(-1, 0, 0)
    heavy = grown.node(a, 1, 0)
    light = grown.node(a, 2, 0)
    below = grown.node(light, 3, 0)
    unused = grown.node(-1, 4, 0)
    moved = grown.prune({heavy: 10, light: 1, below: 2}, 2)
    assert grown.size() == 2
    assert list(grown.functions) == [0, 1]
    assert moved[heavy] == 1
    assert moved[light] == moved[below] == moved[a] == 0
    assert moved[unused] == -1
    assert grown.node(0, 1, 0) == 1, "what was kept is found again"


def test_ancestors_of_a_kept_node_are_kept():
    parents = array("i", [-1, 0, 1, 2, -1])
    flags = heaviest(parents, {3: 5, 4: 5}, 3)
    assert list(flags) == [1, 1, 1, 0, 0]
    assert list(heaviest(parents, {}, 3)) == [0] * 5


#: Parks a thread at each of some places, and prints what a look shows.
TRACE = """
import sys
sys.path.insert(0, sys.argv[1])
import test_tree as t
from gnomon.profiler.marks import regions
from gnomon.profiler.sampling import stacks
from gnomon.profiler.sampling.cadence import Cadence
regions.watch()
print(stacks.__file__.endswith(".py"))
for body in (t.twice, t.alternate, t.outer_region, t.holds_a_generator, lambda stand: t.recurse(stand, 300)):
    with t.parked(body) as thread:
        view = t.View(thread.thread.ident, depth=64)
        while not thread.done.is_set():
            print(view.node(), view.tree.size())
            thread.step()
    print(list(view.tree.parents), list(view.tree.lines), view.tree.names.keys)
cadence = Cadence(0.01, 0.01, 0.0, seed=1)
for tick in range(1000):
    print(cadence.tick(cadence.deadline + (0.03 if tick % 7 == 0 else 0.0)), round(cadence.deadline, 9))
    cadence.spent(0.0002 if tick % 3 else 0.0001, tick % 100 > 50, 0.5)
"""


def test_compiled_and_interpreted_leave_the_same_trace():
    if not is_compiled(stacks):
        pytest.skip("only the interpreted build is here")
    traces = []
    for pure in ("0", "1"):
        command = [sys.executable, "-c", TRACE, os.path.dirname(__file__)]
        done = subprocess.run(
            command, env=os.environ | {"GNOMON_PURE": pure}, capture_output=True, text=True, check=True, timeout=60
        )
        traces.append(done.stdout.splitlines())
    assert [trace[0] for trace in traces] == ["False", "True"]
    assert traces[0][1:] == traces[1][1:]
    assert len(traces[0]) > 50
