"""The ring: numbers, what is gone, and pages that fit together."""

from __future__ import annotations

import gc
from array import array

import pytest

from gnomon.runtime.scheduler.ring import Column, Ring


def ring(length: int) -> Ring:
    return Ring((Column("q"), Column("O"), Column("d", 2)), length)


def fill(target: Ring, begin: int, end: int) -> None:
    numbers = range(begin, end)
    target.extend(
        (array("q", numbers), [str(n) for n in numbers], array("d", [x for n in numbers for x in (n, -n)])),
        len(numbers),
    )


def test_rows_come_back_with_their_numbers():
    r = ring(100)
    fill(r, 0, 7)
    (numbers, names, pairs), missed, after = r.read(2, 3)
    assert (numbers.tolist(), names, pairs.tolist()) == ([2, 3, 4], ["2", "3", "4"], [2, -2, 3, -3, 4, -4])
    assert (missed, after) == (0, 5)


def test_nothing_new():
    r = ring(100)
    fill(r, 0, 7)
    columns, missed, after = r.read(7, 10)
    assert [len(c) for c in columns] == [0, 0, 0]
    assert (missed, after) == (0, 7)


def test_what_fell_out_is_counted():
    r = ring(100)
    fill(r, 0, 250)
    columns, missed, after = r.read(10, 1000)
    assert columns[0].tolist() == list(range(150, 250))
    assert (missed, after) == (140, 250)


def test_a_number_from_the_future_gives_nothing():
    r = ring(100)
    fill(r, 0, 5)
    columns, missed, after = r.read(9, 10)
    assert (len(columns[0]), missed, after) == (0, 0, 5)


@pytest.mark.parametrize("chunk", [1, 7, 1000, 9999])
@pytest.mark.parametrize("page", [13, 5000, 100_000])
def test_pages_join_across_blocks(chunk, page):
    r = ring(12_345)
    total = 30_000
    for begin in range(0, total, chunk):
        fill(r, begin, min(total, begin + chunk))
    got, at, lost = [], 0, 0
    while at < total:
        columns, missed, at = r.read(at, page)
        got += columns[0].tolist()
        lost += missed
    assert lost == total - 12_345
    assert got == list(range(lost, total))


def test_memory_is_bounded():
    r = ring(1_000)
    for begin in range(0, 50_000, 100):
        fill(r, begin, begin + 100)
    assert sum(len(columns[0]) for _, columns in r._blocks) <= 1_000 + 2 * 4096


def test_arrays_of_another_kind_are_taken():
    r = ring(10)
    r.extend((array("i", [1]), ["a"], array("f", [0.5, 1.5])), 1)
    assert r.read(0, 5)[0][0].tolist() == [1]


def test_the_collector_has_nothing_to_do_with_full_blocks():
    ring = Ring((Column("O"), Column("q")), 100_000)
    for number in range(10):
        ring.extend([[f"key-{number}-{i}" for i in range(1000)], array("q", range(1000))], 1000)
    gc.collect()
    looked_at = [each for each in gc.get_objects() if type(each) in {list, tuple} and "key-3-5" in each[:8000]]
    assert looked_at == [], "rows that never change again"
    (keys, _), missed, after = ring.read(3000, 2000)
    assert keys == [f"key-{number}-{i}" for number in (3, 4) for i in range(1000)]
    assert (missed, after) == (0, 5000)
