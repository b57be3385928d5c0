"""The dashboard's model: complete sums whatever rows are gone, windows that add up, bounded memory."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from gnomon.reports.account import account
from gnomon.reports.dashboard.history import Ended, History
from gnomon.reports.dashboard.model import Model
from gnomon.reports.dashboard.states import DemandStates
from gnomon.reports.dashboard.totals import Gap, Gaps, Sums
from gnomon.reports.recording import TICKS
from gnomon.runtime.core.states import MEMORY, PROCESSING, RELEASED, WAITING
from gnomon.runtime.core.task import TaskGroup, TaskPrefix


def life(scheduler, seconds=20, *, seed=1, rate=20, feed=None, demand=False):
    """Some seconds of two workers' life, told second by second."""
    dice = random.Random(seed)
    if 1 not in scheduler.model.workers:
        scheduler.join(1)
        scheduler.join(2)
    for _ in range(seconds):
        begin = scheduler.now
        rows = []
        for _ in range(rate):
            length = dice.choice((0.01, 0.05, 1.5))
            start = max(scheduler.started, begin + dice.random() * 0.9 - length)
            rows.append((dice.choice("abc"), dice.choice((1, 2)), start, length))
        rows.sort(key=lambda row: row[2] + row[3])
        scheduler.now = begin + 1.0
        scheduler.run(*rows)
        if demand:
            scheduler.demand(
                dice.choice((0, 1, 2)), (begin + dice.random(), dice.choice((1, 2, 3)), dice.random() < 0.5)
            )
        if feed is not None:
            scheduler.feed(feed)


def everything(scheduler):
    """The sums of all runs, by prefix: tasks, bytes."""
    return {row[0]: (row[1], row[3]) for row in scheduler.telemetry.mark(scheduler.now)["prefixes"]}


def by_prefix(totals):
    return {row.name: (row.tasks, row.nbytes) for row in totals}


def test_rows_and_sums_arrive(by_hand):
    scheduler, model = by_hand(), Model()
    life(scheduler, feed=model)
    assert by_prefix(model.counters.totals.values()) == everything(scheduler)
    recording = model.recording(model.begin)
    assert len(recording.runs) == 400
    assert by_prefix(recording.prefixes) == everything(scheduler)
    assert sorted(worker.name for worker in recording.workers) == ["w1", "w2"]
    assert model.gaps == []
    assert model.now == scheduler.now


@pytest.mark.parametrize("demand", [False, True])
def test_the_account_of_a_window_is_its_seconds_account(by_hand, demand):
    """What is made second by second agrees with what a report makes at once."""
    scheduler, model = by_hand(), Model()
    life(scheduler, feed=model, demand=demand)
    live, whole = model.account(1004.0, 1012.0), account(model.recording(1004.0, 1012.0))
    assert live.capacity == whole.capacity == 8 * 4 * TICKS
    assert sum(live.parts.values()) == live.capacity
    assert sum(worker.capacity for worker in live.workers) == live.capacity
    for worker in live.workers:
        assert sum(worker.parts.values()) == worker.capacity
    assert sum(prefix.parts.busy for prefix in live.prefixes) == live.parts.busy
    # A run is laid into a slot of each second, so that few find another one, or none.
    assert live.parts.busy + live.alongside == pytest.approx(whole.parts.busy + whole.alongside, rel=1e-6)


def test_windows_count_each_run_once(by_hand):
    scheduler, model = by_hand(), Model()
    life(scheduler, feed=model)
    parts = [model.account(1000.0 + second, 1001.0 + second) for second in range(20)]
    assert sum(part.tasks for part in parts) == model.account(1000.0).tasks == 400
    assert sum(part.capacity for part in parts) == model.account(1000.0).capacity


def test_a_long_run_changes_the_seconds_behind_it(by_hand):
    scheduler, model = by_hand(), Model()
    scheduler.join(1, nthreads=1)
    scheduler.now += 10
    scheduler.feed(model)
    assert model.account(1000.0).parts.busy == 0
    scheduler.now += 1
    scheduler.run(("slow", 1, 1000.5, 10.0))
    scheduler.feed(model)
    assert model.account(1000.0).parts.busy == 10 * TICKS
    assert model.account(1003.0, 1005.0).parts.busy == 2 * TICKS


def test_sums_are_complete_when_the_ring_lost_rows(by_hand):
    scheduler, model = by_hand(length=50), Model()
    life(scheduler, seconds=5, feed=model)
    life(scheduler, seconds=10, seed=2)  # nobody looks, and the ring holds 50 of these 200
    scheduler.feed(model)
    life(scheduler, seconds=5, seed=3, feed=model)
    assert by_prefix(model.recording(model.begin).prefixes) == everything(scheduler)
    assert (
        model.recording(model.begin).ledgers["runs"].missed == model.missed["runs"] == sum(g.rows for g in model.gaps)
    )
    assert model.account(model.begin).tasks == 400
    cuts = [1000.0, 1003.3, 1007.7, 1009.1, 1014.9, model.now]
    missed = [model.recording(a, b).ledgers["runs"].missed for a, b in pairwise(cuts)]
    assert sum(missed) == model.missed["runs"]
    assert [event.kind for event in model.events].count("gap") == 1


def test_what_was_skipped_is_in_the_sums(by_hand):
    """Rows that come faster than they may be asked for are left out, and counted."""
    scheduler, model = by_hand(), Model()
    life(scheduler, seconds=3, feed=model)
    life(scheduler, seconds=5, seed=2, rate=200)
    answer = scheduler.live(**model.question(), limit=100)
    assert not model.apply(answer, 0.0)
    model.skip(answer)
    life(scheduler, seconds=2, seed=3, feed=model)
    assert by_prefix(model.recording(model.begin).prefixes) == everything(scheduler)
    assert model.missed["runs"] == 1000 - len(answer["page"]["runs"]["keys"]) == sum(gap.rows for gap in model.gaps)
    assert model.account(model.begin).tasks == 3 * 20 + 5 * 200 + 2 * 20


def test_rows_that_are_too_many_leave_their_sums(by_hand):
    scheduler, model = by_hand(), Model(limit=100)
    life(scheduler, seconds=60, feed=model)
    recording = model.recording(model.begin)
    assert 80 <= len(recording.runs) <= 120
    assert model.kept_from > model.begin
    assert by_prefix(recording.prefixes) == everything(scheduler)
    assert len(recording.runs.begins) == len(recording.runs.keys) == len(recording.runs.cpus)
    latest = model.recording(model.now - 2.0)
    assert latest.ledgers["runs"].missed == 0
    assert len(latest.runs) >= 40


def test_the_history_holds_the_whole_run(by_hand):
    scheduler, model = by_hand(length=50), Model(limit=100)
    life(scheduler, seconds=30, feed=model)
    life(scheduler, seconds=30, seed=2)
    scheduler.feed(model)
    bins = model.history.bins()
    assert sum(each.tasks for each in bins) == pytest.approx(1200)
    assert sum(each.missed for each in bins) == pytest.approx(550)
    assert sum(each.capacity for each in bins) == pytest.approx(60 * 4)
    busy = sum(totals.decode + totals.compute + totals.encode for totals in model.counters.totals.values())
    assert sum(each.busy for each in bins) == pytest.approx(busy / TICKS, rel=1e-3)
    assert len(model.history.bins(most=10)) <= 10
    assert sum(each.tasks for each in model.history.bins(most=10)) == pytest.approx(1200)


def test_bins_get_coarser_and_lose_nothing():
    history = History(0.0, most=10)
    for second in range(1000):
        begin, one = np.array([second * TICKS]), np.array([1])
        history.add_runs(Ended(["a"], one - 1, begin, begin + TICKS // 2, one, one - 1))
    bins = history.bins()
    assert len(bins) <= 10
    assert sum(each.tasks for each in bins) == 1000
    assert sum(each.busy for each in bins) == pytest.approx(500)
    assert sum(each.by_prefix["a"] for each in bins) == pytest.approx(500)


def test_names_without_rows_are_forgotten(by_hand, monkeypatch):
    """A prefix for each task must not make the model grow for ever."""
    monkeypatch.setattr("gnomon.reports.dashboard.rolling._NAMES", 150)
    scheduler, model = by_hand(groups=50), Model(limit=100)
    scheduler.join(1)
    for second in range(40):
        scheduler.run(*((f"p{second}x{each}", 1, scheduler.now, 0.01) for each in range(20)))
        scheduler.now += 1.0
        scheduler.feed(model)
    recording = model.recording(model.begin)
    assert sum(row.tasks for row in recording.prefixes) == 800
    assert len(recording.runs.prefix_names) <= 170
    assert recording.runs.prefix_names[recording.runs.prefixes[-1]] == "p39x19"


def test_gaps_stay_few_and_name_the_greatest(monkeypatch):
    monkeypatch.setattr("gnomon.reports.dashboard.totals._NAMES", 10)
    gaps = Gaps(most=4)
    for at in range(50):
        sums = Sums({f"p{at}x{each}": (1 + each, 0, 0, 0, 0, 0, 0, 0) for each in range(20)})
        gaps.add(Gap(at * 100, at * 100 + 100, sums, Sums()))
    assert len(gaps) == 4
    assert sum(gap.rows for gap in gaps) == 50 * 210
    assert max(len(gap.prefixes) for gap in gaps) == 11
    assert [(gap.start, gap.stop) for gap in gaps] == [(0, 4700), (4700, 4800), (4800, 4900), (4900, 5000)]
    prefixes, _ = gaps.share(4750, 5000)
    assert sum(amounts[0] for amounts in prefixes.values()) == pytest.approx(2.5 * 210, abs=11)


def test_another_scheduler_begins_anew(by_hand):
    scheduler, model = by_hand(), Model()
    life(scheduler, feed=model)
    other = by_hand()
    other.id, other.started, other.now = "Scheduler-2", 2000.0, 2000.0
    life(other, seconds=3, seed=5, feed=model)
    assert model.scheduler_id == "Scheduler-2"
    assert by_prefix(model.recording(model.begin).prefixes) == everything(other)
    assert len(model.recording(model.begin).runs) == 60
    assert model.missed == {}


def test_workers_come_and_go(by_hand):
    scheduler, model = by_hand(), Model()
    life(scheduler, seconds=4, feed=model)
    scheduler.telemetry.worker_left(1, reason="worker w1 left", now=scheduler.now)
    del scheduler.model.workers[1]
    scheduler.now += 2
    scheduler.join(3, nthreads=5)
    scheduler.feed(model)
    assert sorted(model.counters.workers) == [2, 3]
    assert [row.name for row in model.departed] == ["w1"]
    assert [event.kind for event in model.events] == ["join", "join", "leave", "join"]
    assert {w.name: w.left for w in model.recording(1000.0).workers}["w1"] == 4 * TICKS
    assert [worker.name for worker in model.recording(1004.5).workers] == ["w2"]
    scheduler.now += 1
    scheduler.feed(model)
    assert sum(each.capacity for each in model.history.bins()) == pytest.approx(7 * 2 + 4 * 2 + 2 * 0 + 1 * 5, abs=4.1)


def test_progress_and_rates(by_hand):
    scheduler, model = by_hand(), Model()
    assert model.rates()["tasks"] != model.rates()["tasks"]  # not known yet
    life(scheduler, seconds=10, feed=model)
    assert model.rates(5.0)["tasks"] == pytest.approx(20)
    assert model.progress() == []  # nothing lives


def test_tasks_whose_results_were_let_go_are_done(by_hand):
    """Such as the leaves of a tree of which the root is still to come."""
    scheduler, model = by_hand(), Model()
    scheduler.join(1)
    group = scheduler.model.groups["leaf-1"] = TaskGroup("leaf-1", TaskPrefix("leaf"))
    for state, number in ((RELEASED, 5), (MEMORY, 2), (PROCESSING, 1), (WAITING, 2)):
        group.counts[state] = number
    scheduler.feed(model)
    (row,) = model.progress()
    assert (row.prefix, row.done, row.total_known, row.processing, row.waiting) == ("leaf", 7, 10, 1, 2)


def test_demand_of_a_window_is_that_of_a_replay():
    dice = random.Random(4)
    states, rows = DemandStates(), []
    for batch in range(60):
        new = []
        for worker in (0, 1, 2, 3):
            times = sorted(dice.uniform(batch - dice.choice((0, 0, 3)), batch + 1) for _ in range(dice.randrange(3)))
            last = max((row[0] for row in rows if row[1] == worker), default=-9)
            new += [(int(t * 1000), worker, dice.choice((1, 2)), dice.randrange(2)) for t in times if t * 1000 > last]
        dice.shuffle(new)
        new.sort(key=lambda row: row[1])
        states.append(*zip(*new, strict=True)) if new else None
        rows += new
    ids = {1: 0, 2: 1, 3: 2}
    for low, high in ((0, 60_000), (10_500, 20_250), (59_000, 61_000), (30_000, 30_001)):
        held = set()
        for time, worker, kind, value in sorted(rows, key=lambda row: row[0]):
            if time <= low:
                (held.add if value else held.discard)((worker, kind))
        demand = states.window(low, high, ids)
        begun = {
            (worker, kind)
            for time, worker, kind in zip(demand.times, demand.workers, demand.kinds, strict=True)
            if time == 0
        }
        assert begun == {(ids.get(worker, -1), kind) for worker, kind in held}
        rows_of = zip(demand.times, demand.workers, demand.kinds, demand.values, strict=True)
        changes = [row for row in rows_of if row[0]]
        wanted = [(t - low, ids.get(w, -1), k, v) for t, w, k, v in rows if low < t < high]
        assert sorted(changes) == sorted(wanted)


def test_missing_demand_is_said(by_hand):
    scheduler, model = by_hand(observed=5), Model()
    life(scheduler, seconds=5, feed=model, demand=True)
    assert model.recording(1000.0).demand.known
    life(scheduler, seconds=100, seed=7, demand=True)  # the ring holds 20 changes
    scheduler.feed(model)
    life(scheduler, seconds=5, seed=8, feed=model, demand=True)
    assert not model.recording(1000.0).demand.known
    assert model.recording(model.now - 3.0).demand.known


def test_an_hour_without_viewers_is_not_a_stall(by_hand):
    """The model reads the whole ring when somebody looks again, and then only what is new."""
    scheduler, model = by_hand(), Model()
    life(scheduler, seconds=3, feed=model)
    life(scheduler, seconds=30, seed=2, rate=50)
    answers = 0
    while True:
        answers += 1
        if model.apply(scheduler.live(**model.question(), limit=500), scheduler.now):
            break
    assert answers >= 3
    assert model.missed == {}
    again = scheduler.live(**model.question())
    assert again["page"]["runs"]["keys"] == ()
    assert again["facts"] == ()
