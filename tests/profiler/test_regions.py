"""Regions: exact counts and times on each thread, the ledger that reads them, and labels."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from gnomon.profiler.marks import labels, regions
from gnomon.profiler.marks.regions import enter, leave, region, slot, slot_name
from gnomon.profiler.sampling.ledger import Ledger


@pytest.fixture
def watched():
    regions.watch()
    yield
    regions.unwatch()


def mine():
    """name -> (entries, seconds, own seconds) of the calling thread."""
    books = regions.by_thread[threading.get_ident()]
    return {slot_name(n): (count, total, own) for n, count, total, own in regions.rows(books, time.perf_counter())}


def added(before, name):
    now, then = mine()[name], before.get(name, (0, 0.0, 0.0))
    return tuple(a - b for a, b in zip(now, then, strict=True))


def spin(seconds):
    """Run for a time of the wall clock; the time it really was."""
    start = time.perf_counter()
    while True:
        passed = time.perf_counter() - start
        if passed >= seconds:
            return passed


def start():
    with region("unused, makes the books"):
        pass
    return mine()


@pytest.mark.usefixtures("watched")
def test_entries_and_seconds_are_exact():
    before = start()
    spent, whole = 0.0, 0.0
    for _ in range(10):
        begin = time.perf_counter()
        with region("exact"):
            spent += spin(0.002)
        whole += time.perf_counter() - begin
        spin(0.001)
    count, seconds, own = added(before, "exact")
    assert count == 10
    assert spent <= seconds <= whole
    assert own == pytest.approx(seconds)


@pytest.mark.usefixtures("watched")
def test_own_seconds_leave_out_what_is_nested():
    before = start()
    with region("outside"):
        first = spin(0.004)
        with region("inside"):
            inner = spin(0.006)
        second = spin(0.002)
    outside, inside = added(before, "outside"), added(before, "inside")
    assert outside[1] >= first + inner + second
    assert inside[1] == pytest.approx(inside[2])
    assert outside[1] == pytest.approx(outside[2] + inside[1], abs=1e-5)


@pytest.mark.usefixtures("watched")
def test_a_region_in_itself_counts_its_time_once():
    before = start()
    begin = time.perf_counter()

    @region("recursive")
    def recursive(n):
        spin(0.001)
        if n:
            recursive(n - 1)

    recursive(4)
    whole = time.perf_counter() - begin
    count, seconds, own = added(before, "recursive")
    assert count == 5
    assert 0.005 <= seconds <= whole
    assert own == pytest.approx(seconds, abs=1e-5)


@pytest.mark.usefixtures("watched")
def test_an_open_region_counts_up_to_now():
    before = start()
    with region("still open"):
        spin(0.003)
        count, seconds, own = added(before, "still open")
        assert count == 1
        assert seconds >= 0.003
        assert own == pytest.approx(seconds)
        spin(0.002)
        assert added(before, "still open")[1] >= 0.005


@pytest.mark.usefixtures("watched")
def test_regions_left_in_another_order_keep_their_times():
    before = start()
    first, second = slot("first in"), slot("second in")
    times = [time.perf_counter()]
    for step, number in ((enter, first), (enter, second), (leave, first), (leave, second)):
        step(number)
        times.append(time.perf_counter())
        spin(0.002)
    leave(second)  # once too often
    one, two = added(before, "first in"), added(before, "second in")
    assert (one[0], two[0]) == (1, 1)
    assert times[2] - times[1] < one[1] < times[3] - times[0]
    assert times[3] - times[2] < two[1] < times[4] - times[1]
    assert regions.by_thread[threading.get_ident()].top == 0


@pytest.mark.usefixtures("watched")
def test_an_error_leaves_the_region():
    before = start()
    with pytest.raises(KeyError), region("raises"):
        raise KeyError
    assert added(before, "raises")[0] == 1
    assert regions.by_thread[threading.get_ident()].top == 0


@pytest.mark.usefixtures("watched")
def test_many_regions_and_deep_ones_find_room():
    before = start()
    for n in range(200):
        enter(slot(f"room {n}"))
    assert regions.by_thread[threading.get_ident()].top == 200
    for n in reversed(range(200)):
        leave(slot(f"room {n}"))
    assert [added(before, f"room {n}")[0] for n in range(200)] == [1] * 200


def test_nothing_is_counted_while_nobody_watches():
    before = start() if threading.get_ident() in regions.by_thread else {}
    for _ in range(100):
        with region("unseen"):
            pass
    regions.watch()
    try:
        assert start().get("unseen", (0,)) == before.get("unseen", (0,))
        assert "unseen" not in start()
    finally:
        regions.unwatch()


def test_who_begins_to_watch_inside_a_region_sees_the_next_one():
    unseen = region("entered before anybody watched")
    unseen.__enter__()
    regions.watch()
    unseen.__exit__(None, None, None)
    with region("left when nobody watched"):
        regions.unwatch()
    regions.watch()
    try:
        before = start()
        assert regions.by_thread[threading.get_ident()].top == 0
        with region("left when nobody watched"):
            spin(0.001)
        count, seconds, _ = added(before, "left when nobody watched")
        assert count == 1
        assert seconds >= 0.001
    finally:
        regions.unwatch()


@pytest.mark.usefixtures("watched")
def test_decorated_functions_keep_their_names_and_results():
    before = start()

    @region("decorated")
    def function(a, *, b):
        """Adds."""
        return a + b

    @region("decorated coroutine")
    async def coroutine(a):
        await asyncio.sleep(0.002)
        return a

    assert (function.__name__, function.__doc__) == ("function", "Adds.")
    assert function(1, b=2) == 3
    assert asyncio.iscoroutinefunction(coroutine)
    assert asyncio.run(coroutine(5)) == 5
    assert added(before, "decorated")[0] == 1
    count, seconds, _ = added(before, "decorated coroutine")
    assert count == 1
    assert seconds >= 0.002


def test_a_name_has_one_number():
    assert slot("numbered") == slot("numbered") == region("numbered").number
    assert slot_name(slot("numbered")) == "numbered"


def test_too_many_names_share_a_number():
    code = """
from gnomon.profiler.marks.regions import MAX_SLOTS, region, slot, slot_name
first = slot("first")
numbers = [slot(f"made up {n}") for n in range(MAX_SLOTS)]
assert len(set(numbers)) == MAX_SLOTS - 1 and numbers[-1] == region("one more").number == 0
assert slot_name(0) == "(other regions)" and slot("first") == first > 0
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.usefixtures("watched")
def test_each_thread_has_its_own_books_and_the_ledger_adds_what_is_new():
    numbers = {}
    ledger = Ledger(numbers.get)
    ledger.take()
    go, ready = threading.Event(), threading.Barrier(3)

    def work(n):
        numbers[threading.get_ident()] = n
        for _ in range(n):
            with region("ledger"):
                spin(0.001)
        ready.wait(10)
        go.wait(10)
        with region("ledger"):
            pass

    threads = [threading.Thread(target=work, args=(n,)) for n in (3, 5)]
    for thread in threads:
        thread.start()
    ready.wait(10)
    number = slot("ledger")
    peeked = ledger.peek()
    taken = ledger.take()
    assert {key: row[0] for key, row in taken.items()} == {(3, number): 3, (5, number): 5}
    assert {key: row[0] for key, row in peeked.items()} == {(3, number): 3, (5, number): 5}
    assert taken[3, number][1] >= 0.003
    go.set()
    for thread in threads:
        thread.join(10)
    # They have ended, and so have their books; nothing is lost.
    rest = ledger.take()
    assert {key: row[0] for key, row in rest.items()} == {(3, number): 1, (5, number): 1}
    assert ledger.take() == {}
    assert all(thread.ident not in regions.by_thread for thread in threads)


# ---------------------------------------------------------------------- labels


def test_a_label_lasts_as_long_as_its_block():
    labels.set_label("before")
    with labels.label("inside"):
        assert labels.cell() == ["inside"]
        with labels.label("further"):
            assert labels.by_thread[threading.get_ident()] == ["further"]
        assert labels.cell() == ["inside"]
    assert labels.cell() == ["before"]
    labels.set_label("")


def test_a_label_goes_with_its_thread():
    idents = []

    def work():
        labels.set_label("mine")
        idents.append(threading.get_ident())
        assert labels.by_thread[idents[0]] == ["mine"]

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    assert idents[0] not in labels.by_thread
