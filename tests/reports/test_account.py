"""The account adds up, whatever the recording."""

from __future__ import annotations

import random

import pytest

from gnomon.reports.account import PARTS, account, apportion, percentages
from gnomon.reports.recording import TICKS


def check(result):
    """What must hold of every account."""
    assert sum(result.parts.values()) == result.capacity
    assert all(value >= 0 for value in result.parts.values())
    assert result.alongside >= 0
    for each in result.workers:
        assert sum(each.parts.values()) == each.capacity
        assert all(value >= 0 for value in each.parts.values())
    for part in ("compute", "offcpu", "decode", "encode"):
        assert sum(getattr(each.parts, part) for each in result.prefixes) == getattr(result.parts, part)
        assert sum(getattr(each.parts, part) for each in result.workers) == getattr(result.parts, part)
    assert sum(each.capacity for each in result.workers) == result.capacity
    assert sum(each.tasks for each in result.prefixes) == result.tasks


def seconds(ticks):
    return ticks / TICKS


def test_two_tasks_on_one_thread(cluster):
    w = cluster.worker("w")
    mark = cluster.mark()
    cluster.run("a-1", w, 1.0, 2.0)
    cluster.run("b-1", w, 3.0, 5.0)
    cluster.now = 10.0
    result = account(cluster.record(mark))
    check(result)
    assert dict(zip(PARTS, map(seconds, result.parts.values()), strict=True)) == pytest.approx(
        {**dict.fromkeys(PARTS, 0.0), "compute": 2.4, "decode": 0.3, "encode": 0.3, "between": 1.0, "idle": 6.0}
    )
    assert result.unmeasured == ("offcpu", "handover", "scheduler")
    assert [(p.name, p.tasks) for p in result.prefixes] == [("b", 1), ("a", 1)]


def test_a_gap_while_data_came_is_waiting(cluster):
    a, b = cluster.worker("a"), cluster.worker("b")
    mark = cluster.mark()
    cluster.run("x-1", a, 0.0, 1.0)
    cluster.fetch(b, a, 1.25, 1.75)
    cluster.fetch(b, a, 1.5, 2.0)
    cluster.run("x-2", a, 2.0, 3.0)
    cluster.now = 4.0
    result = account(cluster.record(mark))
    check(result)
    assert seconds(result.parts.transfer) == pytest.approx(0.75)
    assert seconds(result.parts.between) == pytest.approx(0.25)
    assert seconds(result.parts.idle) == pytest.approx(5.0)


def test_overlapping_threads_stay_within_capacity(cluster):
    w = cluster.worker("w", nthreads=2)
    mark = cluster.mark()
    for thread in range(3):  # a task that left its slot runs on beside two others
        cluster.run(f"x-{thread}", w, 1.0, 3.0, thread=thread)
    cluster.now = 4.0
    result = account(cluster.record(mark))
    check(result)
    assert seconds(result.parts.busy) == pytest.approx(4.0)
    assert seconds(result.alongside) == pytest.approx(2.0)


def test_thread_numbers_do_not_matter(cluster):
    w = cluster.worker("w", nthreads=2)
    mark = cluster.mark()
    for i in range(10):  # an executor that was replaced may number its threads anew
        cluster.run(f"x-{i}", w, i, i + 0.5, thread=100 + i)
    cluster.now = 10.0
    result = account(cluster.record(mark))
    check(result)
    assert result.alongside == 0
    assert seconds(result.parts.busy) == pytest.approx(5.0)


def test_a_worker_that_left_and_one_that_came_late(cluster):
    gone = cluster.worker("gone", nthreads=2)
    mark = cluster.mark()
    cluster.run("x-1", gone, 0.0, 1.0)
    cluster.leave(gone, 2.0)
    late = cluster.worker("late", at=6.0)
    cluster.run("x-2", late, 7.0, 8.0)
    cluster.now = 10.0
    result = account(cluster.record(mark))
    check(result)
    assert [seconds(each.capacity) for each in result.workers] == pytest.approx([4.0, 4.0])


def test_workers_that_left_before_are_not_there(cluster):
    gone = cluster.worker("gone")
    cluster.leave(gone, 1.0)
    cluster.now = 2.0
    mark = cluster.mark()
    cluster.now = 3.0
    recording = cluster.record(mark)
    assert recording.workers == []
    assert account(recording).capacity == 0


def test_a_run_that_began_before_the_block_is_clipped(cluster):
    w = cluster.worker("w")
    cluster.now = 5.0
    mark = cluster.mark()
    cluster.run("x-1", w, 0.0, 10.0)
    cluster.now = 10.0
    result = account(cluster.record(mark))
    check(result)
    assert seconds(result.capacity) == seconds(result.parts.busy) == 5.0


def test_empty(cluster):
    result = account(cluster.record(cluster.mark()))
    check(result)
    assert (result.capacity, result.tasks, result.prefixes) == (0, 0, [])


def test_runs_without_details_count(make_cluster):
    cluster = make_cluster(length=10)
    w = cluster.worker("w")
    mark = cluster.mark()
    for i in range(40):
        cluster.run(f"{'ab'[i % 2]}-{i}", w, i, i + 0.5)
    cluster.now = 40.0
    recording = cluster.record(mark)
    result = account(recording)
    check(result)
    assert (recording.ledgers["runs"].seen, recording.ledgers["runs"].missed) == (40, 30)
    assert result.tasks == 40
    assert seconds(result.parts.busy) == pytest.approx(20.0)
    assert seconds(result.parts.unaccounted) == pytest.approx(15.0)
    assert seconds(result.parts.idle) == pytest.approx(0.5)  # after the last task, which has details
    assert [(p.name, p.tasks) for p in result.prefixes] == [("a", 20), ("b", 20)]
    assert [seconds(p.parts.busy) for p in result.prefixes] == pytest.approx([10.0, 10.0])


@pytest.mark.parametrize("seed", range(25))
def test_it_adds_up_for_any_recording(make_cluster, seed):
    rng = random.Random(seed)
    cluster = make_cluster(length=rng.choice([5, 50, 1000]), groups=rng.choice([3, 2000]))
    ids = [
        cluster.worker(f"w{i}", nthreads=rng.randrange(4), at=rng.uniform(-5, 5)) for i in range(rng.randrange(1, 5))
    ]
    cluster.now = rng.uniform(0, 2)
    mark = cluster.mark()
    for i in range(rng.randrange(200)):
        start = rng.uniform(-3, 12)
        cluster.run((f"k{i}",), rng.choice([*ids, 99]), start, start + rng.expovariate(2), thread=rng.randrange(4),
                    prefix=rng.choice("abcdef"), ok=rng.random() > 0.2)  # fmt: skip
        if rng.random() < 0.3:
            cluster.fetch(rng.choice(ids), rng.choice(ids), start - 0.3, start + 0.1)
    if rng.random() < 0.5:
        cluster.leave(rng.choice(ids), rng.uniform(2, 9))
    cluster.now += rng.uniform(0, 8)
    check(account(cluster.record(mark)))


@pytest.mark.parametrize("values", [[1], [1, 1, 1], [0, 0, 0, 7], [1, 2, 3, 5, 7, 11, 10**12], [999_999, 1]])
def test_percentages_sum_to_a_hundred(values):
    assert round(sum(percentages(values)), 6) == 100.0
    assert percentages([0, 0]) == [0.0, 0.0]
    assert sum(apportion(12_345, values)) == 12_345


def test_a_busy_cluster(busy):
    recording = busy(2_000)
    result = account(recording)
    check(result)
    assert result.tasks == 2_000
    assert result.parts.unaccounted == 0


def test_demand_tells_what_idle_threads_waited_for(cluster):
    w = cluster.worker("w", 2)
    mark = cluster.mark()
    cluster.demand(0, [(1, True, 0.0), (1, False, 1.0)])  # queued: both threads for 1 s
    cluster.demand(w, [(2, True, 1.0), (2, False, 6.0)])  # assigned until the scheduler hears of the end
    cluster.runs([("a-1", "a", w, 0, 2.0, 2.0, 5.0, 5.0, 1, True)], cpus=[1.0])
    cluster.demand(w, [(4, True, 5.0), (4, False, 5.25), (3, True, 5.5), (3, False, 5.75)])
    cluster.now = 10.0
    result = account(cluster.record(mark))
    check(result)
    parts = {name: seconds(value) for name, value in zip(PARTS, result.parts.values(), strict=True)}
    # from 1 s to 2 s and where nothing else is known until 6 s: assigned, and nothing runs
    assert parts == pytest.approx(
        {**dict.fromkeys(PARTS, 0.0), "compute": 1.0, "offcpu": 2.0, "handover": 0.5, "transfer": 0.5,
         "scheduler": 2.0 + 2.0 + 1.0, "idle": 20 - 3 - 1 - 5}
    )  # fmt: skip
    assert result.unmeasured == ("between",)


def test_demand_that_was_cut_is_not_used(make_cluster):
    cluster = make_cluster(observed=5)
    w = cluster.worker("w")
    mark = cluster.mark()
    for i in range(30):
        cluster.demand(w, [(2, True, i), (2, False, i + 0.5)])
    cluster.run("a-1", w, 1.0, 2.0)
    cluster.now = 31.0
    recording = cluster.record(mark)
    assert not recording.demand.known
    assert recording.ledgers["demand"].missed == 40
    check(account(recording))
