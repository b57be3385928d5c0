"""Tasks that have not ended in the live account: never more than there are, and sums that are exact at any moment."""

from __future__ import annotations

import random

import pytest

from gnomon.reports.dashboard.model import Model
from gnomon.reports.dashboard.pages.overview import UNDERWAY, budget
from gnomon.reports.dashboard.pages.view import View
from gnomon.reports.dashboard.underway import LIVE_PARTS
from gnomon.reports.recording import TICKS
from gnomon.runtime.instruments.demand import FETCHING, READY


@pytest.fixture
def begun(by_hand):
    """A cluster with a worker of some threads, and a model that has heard of it."""

    def make(nthreads=2):
        scheduler, model = by_hand(), Model()
        scheduler.join(1, nthreads)
        scheduler.demand(1, (scheduler.now, READY, 0))
        scheduler.feed(model)
        return scheduler, model

    return make


def parts(model, *window, exact=False):
    """Seconds by part, of those that are not 0; sums hold, and nothing is negative."""
    result = model.account(*window, exact=exact)
    assert sum(result.live_values()) == result.capacity
    assert min(result.live_values()) >= 0
    assert sum(result.underway_of.values()) == result.underway
    for each in result.workers:
        own = each.parts.values()
        assert min(own) >= 0
        assert sum(own) + result.underway_of.get(each.worker.worker_id, 0) == each.capacity
    assert sum(prefix.parts.busy for prefix in result.prefixes) == result.parts.busy
    assert result.parts.unaccounted <= result.capacity // 100
    return {name: ticks / TICKS for name, ticks in zip(LIVE_PARTS, result.live_values(), strict=True) if ticks}


def passing(scheduler, model, seconds):
    for _ in range(seconds):
        scheduler.now += 1.0
        scheduler.feed(model)


def test_a_long_task_is_a_part_of_its_own_until_it_ends(begun):
    scheduler, model = begun()
    passing(scheduler, model, 5)
    scheduler.hold(1, 1)
    passing(scheduler, model, 20)
    for exact in (False, True):
        assert parts(model, 1000.0, exact=exact) == {"underway": 20.0, "idle": 30.0}
        assert parts(model, 1010.0, 1012.0, exact=exact) == {"underway": 2.0, "idle": 2.0}
    scheduler.now += 1.0
    scheduler.hold(1, 0)
    scheduler.run(("slow", 1, 1005.0, 20.5))
    scheduler.feed(model)
    told = {"compute": 10.25, "offcpu": 6.15, "decode": 2.05, "encode": 2.05}
    for exact in (False, True):
        now = parts(model, 1000.0, exact=exact)
        assert now.pop("scheduler", 0) + now.pop("idle") == pytest.approx(52 - 20.5)
        assert now == pytest.approx(told)


def test_no_more_threads_than_tasks_and_no_more_tasks_than_threads(begun):
    scheduler, model = begun(nthreads=4)
    scheduler.hold(1, 3)
    passing(scheduler, model, 5)
    assert parts(model, 1000.0) == {"underway": 15.0, "idle": 5.0}
    scheduler.hold(1, 50)
    passing(scheduler, model, 5)
    assert parts(model, 1005.0) == {"underway": 20.0}
    assert parts(model, 1000.0)["underway"] == pytest.approx(15.0 + 20.0)
    scheduler.hold(1, 0)
    passing(scheduler, model, 1)
    assert "underway" not in parts(model, 1000.0)


def test_short_tasks_beside_a_long_one_keep_their_thread(begun):
    """Gaps between runs that are told of are no tasks, whatever the worker holds."""
    scheduler, model = begun()
    scheduler.hold(1, 2)
    for second in range(10):
        scheduler.now += 1.0
        scheduler.run(*(("short", 1, 1000.0 + second + at / 4, 0.2, 1) for at in range(4)))
        scheduler.feed(model)
    now = parts(model, 1000.0)
    assert now["underway"] == pytest.approx(10.0 + 0.05)
    assert sum(now.get(name, 0.0) for name in ("compute", "offcpu", "decode", "encode")) == pytest.approx(8.0)


def test_what_was_idle_while_fewer_tasks_were_held_stays_idle(begun):
    """A thread that was free while another's run went on is not in a task that came later."""
    scheduler, model = begun()
    scheduler.hold(1, 2)
    scheduler.run(("a", 1, 1000.0, 1.0, 0))
    passing(scheduler, model, 1)
    scheduler.hold(1, 1)
    passing(scheduler, model, 5)  # thread 1 is in a task, thread 0 is free
    scheduler.now += 1.0
    scheduler.run(("b", 1, 1000.5, 6.0, 1))
    scheduler.feed(model)  # its run has ended; another task has come
    passing(scheduler, model, 3)
    now = parts(model, 1000.0)
    assert 3.0 <= now["underway"] <= 4.0
    assert parts(model, 1001.0, 1006.0).get("underway", 0.0) == 0.0


@pytest.mark.parametrize("kind", [FETCHING, READY])
def test_a_task_whose_values_are_being_fetched_is_on_no_thread(begun, kind):
    scheduler, model = begun()
    scheduler.hold(1, 1)
    scheduler.demand(1, (1000.0, kind, 1))
    passing(scheduler, model, 5)
    assert "underway" not in parts(model, 1000.0)
    scheduler.demand(1, (1005.0, kind, 0))
    passing(scheduler, model, 5)
    assert parts(model, 1000.0)["underway"] == pytest.approx(5.0)


def test_without_demand_it_is_bounded_by_answers(by_hand):
    scheduler, model = by_hand(), Model()
    scheduler.join(1, 2)
    passing(scheduler, model, 5)
    scheduler.hold(1, 1, tell=False)
    passing(scheduler, model, 5)
    assert parts(model, 1000.0) == {"underway": 5.0, "idle": 15.0}


def test_seconds_that_were_kept_say_what_is_true_now(begun):
    """A second's account, made while a task went on, is made anew when it turns out otherwise."""
    scheduler, model = begun()
    scheduler.hold(1, 1)
    for second in range(1, 8):
        passing(scheduler, model, 1)
        assert parts(model, 1000.0) == {"underway": float(second), "idle": float(second)}
    scheduler.telemetry.worker_left(1, reason="gone", now=scheduler.now)
    del scheduler.model.workers[1]
    passing(scheduler, model, 1)
    assert "underway" not in parts(model, 1000.0)


def test_the_first_page_names_it(begun):
    scheduler, model = begun()
    scheduler.hold(1, 1)
    passing(scheduler, model, 30)
    bar = budget(model, View())
    named = {name: (word, percent) for name, word, percent, _ in bar["parts"]}
    assert named["underway"] == (UNDERWAY, 50.0)
    assert sum(percent for _, percent in named.values()) == pytest.approx(100.0)
    assert bar["closing"] == "Parts 60.000 s + unaccounted 0.000 s = capacity 60.000 s."


def test_nothing_is_said_of_time_whose_runs_are_to_come(begun):
    """Who looks again after a while is told of many runs, one answer after the other."""
    scheduler, model = begun()
    scheduler.hold(1, 2)
    passing(scheduler, model, 5)
    assert parts(model, 1000.0) == {"underway": 10.0}
    true = flood(scheduler, None, 20, load=0.9)
    done = False
    while not done:
        done = model.apply(scheduler.live(**model.question(), limit=500), scheduler.now)
        assert (model.behind == 0) == done
        assert parts(model, 1000.0).get("underway", 0.0) <= 10.0 + 0.1
        now = parts(model, 1005.0)
        assert now.get("underway", 0.0) <= 0.1
        busy = sum(now[name] for name in ("compute", "offcpu", "decode", "encode"))
        assert busy == pytest.approx(true, rel=0.01)  # by sums, as long as there are no rows
        assert model.account(1000.0).tasks == len(model.recording(1000.0).runs) + model.behind
    scheduler.now += 1.0
    scheduler.feed(model)
    assert parts(model, model.now - 1.0)["underway"] == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("seed", range(8))
def test_it_says_what_is_true_to_an_answer(by_hand, seed):
    """Random lives of three threads: what is shown of tasks, ended or not, is at any moment what the threads did."""
    dice = random.Random(seed)
    scheduler, model = by_hand(), Model()
    scheduler.join(1, 3)
    scheduler.feed(model)
    free = [1000.0] * 3
    running = {}
    spans = []
    for _ in range(60):
        end = scheduler.now + 1.0
        done = []
        for thread in range(3):
            while free[thread] < end:
                if thread in running:
                    begin, stop = running[thread]
                    if stop > end:
                        break
                    done.append(("t", 1, begin, stop - begin, thread))
                    del running[thread]
                    free[thread] = stop
                begin = free[thread] + dice.choice((0.0, 0.0, 0.4, 5.0))
                if begin >= end:
                    free[thread] = begin
                    break
                running[thread] = begin, begin + dice.choice((0.1, 0.3, 2.0, 30.0))
                spans.append(running[thread])
                free[thread] = begin
        scheduler.run(*sorted(done, key=lambda row: row[2] + row[3]))
        scheduler.now = end
        scheduler.hold(1, len(running), tell=False)
        scheduler.feed(model)
        now = parts(model, 1000.0)
        shown = sum(now.get(name, 0.0) for name in ("compute", "offcpu", "decode", "encode", "underway"))
        true = sum(min(stop, end) - min(begin, end) for begin, stop in spans)
        assert shown >= true - 1e-5
        assert shown <= true + len(running) + 1e-5  # when a task came is known to an answer


def flood(scheduler, model, seconds, *, load, pause=1, limit=20, seed=1):
    """Two threads whose tasks are so many that rows are left out; the true time in tasks.

    A model asks every ``pause`` seconds.
    """
    dice = random.Random(seed)
    free = [scheduler.now] * 2
    true = 0.0
    for second in range(seconds):
        end, rows = scheduler.now + 1.0, []
        for thread in range(2):
            while (length := dice.choice((0.002, 0.006, 0.01))) + free[thread] <= end:
                rows.append(("a", 1, free[thread], length, thread))
                true += length
                free[thread] += length + dice.random() * 0.012 * (1 / load - 1)
            free[thread] = max(free[thread], end - 0.01)
        scheduler.run(*sorted(rows, key=lambda row: row[2] + row[3]))
        scheduler.now = end
        if model is not None and second % pause == pause - 1:
            answer = scheduler.live(**model.question(), limit=limit)
            if not model.apply(answer, 0.0):
                model.skip(answer)
    return true


@pytest.mark.parametrize("pause", [1, 4])
@pytest.mark.parametrize("load", [0.3, 0.9])
@pytest.mark.parametrize("told", [False, True])
def test_runs_without_rows_leave_nothing_unaccounted(by_hand, load, pause, told):
    """While rows are left out at every answer, too: the sums say how much was in tasks, all the time."""
    scheduler, model = by_hand(), Model()
    scheduler.join(1, 2)
    if told:
        scheduler.demand(1, (scheduler.now, READY, 0))
    scheduler.feed(model)
    true = flood(scheduler, model, 20, load=load, pause=pause)
    assert model.missed["runs"] > 1_000
    for window in ((1000.0,), (model.now - 5,), (1003.0, 1012.0)):
        for exact in (False, True):
            assert "unaccounted" not in parts(model, *window, exact=exact)
    now = parts(model, 1000.0)
    assert sum(now[name] for name in ("compute", "offcpu", "decode", "encode")) == pytest.approx(true, rel=0.01)


def test_threads_whose_rows_are_left_out_are_in_no_task_that_goes_on(begun):
    """What was between the last row and now may have been other runs: these are in the sums."""
    scheduler, model = begun()
    scheduler.hold(1, 2)
    flood(scheduler, model, 10, load=0.5)
    assert parts(model, 1000.0).get("underway", 0.0) < 0.1
