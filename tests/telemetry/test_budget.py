"""The budget of the scheduler's loop: exclusive parts that sum up to the clock, whatever the monitor knows."""

from __future__ import annotations

import gc
import threading
from time import perf_counter

import pytest

from gnomon.profiler.marks import regions
from gnomon.runtime.instruments.looptime import LoopTime
from gnomon.runtime.scheduler.budget import PARTS, Budget, part_of


class Loop:
    """What a monitor says, and a clock; both are moved by hand, past the real clock by which regions are timed."""

    def __init__(self):
        self.known = None
        self.more = 0.0

    def time(self):
        return self.known

    def clock(self):
        return perf_counter() + self.more


def inside(name):
    """Be in a region for a little while; its own seconds."""
    books_before = own(name)
    with regions.region(name):
        until = perf_counter() + 1e-4
        while perf_counter() < until:
            pass
    return own(name) - books_before


def own(name):
    books = regions.by_thread.get(threading.get_ident())
    if books is None:
        return 0.0
    return {regions.slot_name(row[0]): row[3] for row in regions.rows(books, perf_counter())}.get(name, 0.0)


@pytest.fixture
def loop():
    return Loop()


@pytest.fixture
def budget(loop):
    budget = Budget(loop.time, loop.clock)
    budget.start()
    yield budget
    budget.stop()


def seconds(budget):
    rows = budget.rows()
    assert [row[0] for row in rows] == list(PARTS)
    return {part: seconds for part, _, seconds, _ in rows}


def test_without_a_monitor_what_is_not_marked_is_rest(loop, budget):
    brain = inside("reactor.on_tasks_finished") + inside("placement.run")
    loop.more += 10.0
    parts = seconds(budget)
    assert parts["brain"] == pytest.approx(brain, abs=1e-9)
    assert parts["resting"] == pytest.approx(10.0, abs=0.5)
    assert parts["idle"] == parts["other"] == 0.0


def test_parts_sum_up_to_the_clock(loop, budget):
    first = loop.clock()
    before = sum(seconds(budget).values())
    inside("comm.decode")
    loop.known, loop.more = LoopTime(8.0, 3.0, True, 7), 10.0
    after = seconds(budget)
    assert sum(after.values()) - before == pytest.approx(loop.clock() - first, abs=0.05)
    assert after["idle"] == pytest.approx(5.0, abs=0.5)
    assert after["resting"] == pytest.approx(2.0, abs=0.5)
    assert after["other"] == pytest.approx(3.0, abs=0.5)
    assert min(after.values()) >= 0.0


def test_sources_and_counts(loop, budget):
    inside("comm.write")
    inside("comm.write")
    loop.known = LoopTime(0.0, 0.0, True, 7)
    told = {part: (source, count) for part, source, _, count in budget.rows()}
    assert told["write"] == ("timed", 2)
    assert told["idle"] == ("timed", 7)
    assert told["other"] == told["resting"] == ("rest", 0)
    assert told["extensions"] == ("timed", 0)
    loop.known = LoopTime(0.0, 0.0, False, 9)
    told = {part: (source, count) for part, source, _, count in budget.rows()}
    assert told["idle"] == told["other"] == ("sampled", 9)


def test_a_monitor_that_is_behind_makes_no_other_work_of_the_marked(loop, budget):
    loop.known = LoopTime(1.0, 0.0, False, 1)
    budget.advance()
    marked = sum(inside("reactor.on_tasks_finished") for _ in range(20))
    budget.advance()  # it has seen none of this yet
    loop.known, loop.more = LoopTime(2.0, marked, False, 2), 1.0
    parts = seconds(budget)
    assert parts["other"] == pytest.approx(0.0, abs=1e-6)
    assert parts["brain"] == pytest.approx(marked, abs=1e-9)


def test_a_monitor_that_was_started_anew(loop, budget):
    loop.known, loop.more = LoopTime(50.0, 20.0, True, 1), 50.0
    budget.advance()
    loop.known, loop.more = LoopTime(1.0, 0.5, True, 2), 52.0
    parts = seconds(budget)
    assert parts["other"] == pytest.approx(20.5, abs=0.5)
    assert parts["resting"] == pytest.approx(1.0, abs=0.5)


def test_what_is_inside_another_part_counts_once(loop, budget):
    with regions.region("turn"):
        brain = inside("reactor.on_tasks_finished")
        gc.collect()
    shell = own("turn")
    parts = seconds(budget)
    assert parts["brain"] == pytest.approx(brain, abs=1e-9)
    assert parts["gc"] > 0.0
    assert parts["shell"] <= shell


def test_collections_of_other_threads_are_not_the_loop_s(budget):
    before = seconds(budget)["gc"]
    gc.disable()
    try:
        thread = threading.Thread(target=gc.collect)
        thread.start()
        thread.join()
        assert seconds(budget)["gc"] == before
    finally:
        gc.enable()


def test_regions_of_users_belong_to_no_part():
    assert part_of("parse") == part_of("record of mine") == ""
    assert part_of("reactor.on_anything") == "brain"
    assert part_of("events.on_compute_tasks") == "agents"


def test_nothing_was_measured_before_the_start():
    budget = Budget(lambda: None)
    assert budget.rows() == []
    budget.stop()


def test_what_was_measured_stays_after_the_end(loop):
    budget = Budget(loop.time, loop.clock)
    budget.start()
    inside("comm.encode")
    budget.stop()
    parts = seconds(budget)
    loop.more += 5.0
    assert seconds(budget) == parts
    assert parts["encode"] > 0.0
