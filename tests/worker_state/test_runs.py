"""Runs: from ComputeTasks to the executor and back, freed, superseded, lost."""

from __future__ import annotations

from gnomon.runtime.messages import (
    CancelTasks,
    Codes,
    DropCodes,
    DropValues,
    ExecutorLost,
    PutValues,
    RunTasks,
    TasksErred,
    TasksFinished,
    TasksSeceded,
)
from gnomon.runtime.worker.state import INLINE, STORED, UNKNOWN, events


def test_a_run_from_compute_to_finish(bench):
    bench.compute(7, durations=(0.5,))
    codes, runs = bench.executor()
    assert codes == Codes((1,), (b"code",))
    assert runs == RunTasks((7,), (1,), ("key-7",), (1,), (b"call",), (0.5,))
    assert bench.state(7) == "executing"
    bench.finish(7, value=b"v")
    (report,) = bench.scheduler()
    assert isinstance(report, TasksFinished)
    assert report.task_ids == (7,)
    assert bench.model.lookup(7, 1) == (INLINE, b"v")
    assert bench.model.lookup(7, 2) == (UNKNOWN, None)
    bench.free(7)
    assert bench.executor() == [DropValues((7,))]
    assert bench.model.lookup(7, 1) == (UNKNOWN, None)


def test_large_values_are_in_the_executor(bench):
    bench.compute(7)
    bench.executor()
    bench.finish(7)
    bench.scheduler()
    assert bench.model.lookup(7, 1) == (STORED, None)


def test_an_error_is_passed_on(bench):
    bench.compute(7)
    bench.executor()
    bench.err(7)
    (report,) = bench.scheduler()
    assert isinstance(report, TasksErred)
    assert bench.state(7) is None


def test_code_is_sent_once_and_dropped(bench):
    bench.compute(1)
    assert [type(m) for m in bench.executor()] == [Codes, RunTasks]
    bench.compute(2)
    assert [type(m) for m in bench.executor()] == [RunTasks]
    bench.call(events.on_drop_codes, DropCodes((1, 5)))
    assert bench.executor() == [DropCodes((1,))]
    assert not bench.model.codes


def test_order_is_by_priority(bench):
    bench.compute(1, 2, 3, 4, priorities=((3,), (1,), (4,), (0,)))
    assert bench.handed() == [4, 2]
    bench.finish(4, 2)
    bench.scheduler()
    assert bench.handed() == [1, 3]


def test_the_prefetch_is_two_per_thread_for_long_runs(make_bench):
    bench = make_bench(nthreads=3)
    bench.compute(*range(1, 20), durations=(1.0,) * 19)
    assert bench.handed() == [1, 2, 3, 4, 5, 6]


def test_the_prefetch_is_by_seconds_for_short_runs(make_bench):
    bench = make_bench(prefetch_seconds=0.005)
    bench.compute(*range(1, 101), durations=(0.001,) * 100)
    assert bench.handed() == [1, 2, 3, 4, 5]
    bench.finish(1, seconds=0.0001)  # measured: shorter than expected
    bench.scheduler()
    assert 9 < len(bench.handed()) <= 50


def test_the_prefetch_is_bounded_for_runs_of_no_length(make_bench):
    bench = make_bench(prefetch_seconds=0.005, shortest_run=0.001)
    bench.compute(*range(1, 101), durations=(0.0,) * 100)
    assert len(bench.handed()) == 5


def test_nothing_runs_before_the_executor_is_ready(make_bench):
    bench = make_bench(ready=False)
    bench.compute(1)
    bench.compute(2, dependencies=((9,),), deps={9: ("h",)})
    assert bench.executor() == []
    assert bench.fetches() == []
    bench.call(events.on_executor_ready)
    assert [type(m) for m in bench.executor()] == [Codes, RunTasks]
    assert len(bench.fetches()) == 1


def test_a_freed_run_in_the_backlog_is_forgotten(bench):
    bench.compute(1, 2, 3)
    assert bench.handed() == [1, 2]
    bench.free(3)
    bench.finish(1, 2)
    bench.scheduler()
    assert bench.handed() == []
    assert bench.state(3) is None


def test_a_freed_run_with_the_executor_is_asked_back(bench):
    bench.compute(1)
    bench.executor()
    bench.free(1)
    assert bench.executor() == [CancelTasks((1,), (1,))]
    bench.returned(1)
    assert not bench.model.freed
    assert bench.model.default.handed == 0


def test_the_outcome_of_a_freed_run_is_dropped(bench):
    bench.compute(1, 2)
    bench.executor()
    bench.free(1)
    bench.executor()
    bench.returned()
    assert bench.model.default.handed == 2  # begun: it has its slot until it ends
    bench.finish(1, value=b"v")
    assert bench.executor() == [DropValues((1,))]
    bench.err(2)
    (report,) = bench.scheduler()
    assert report.task_ids == (2,)
    assert bench.model.default.handed == 0


def test_only_current_rows_are_passed_on(bench):
    bench.compute(1, 2)
    bench.executor()
    bench.free(1)
    bench.executor()
    bench.finish(1, 2)
    (report,) = bench.scheduler()
    assert report.task_ids == (2,)
    assert report.values == (None,)
    assert len(report.timings) == 32
    assert bench.executor() == [DropValues((1,))]


def test_a_newer_attempt_takes_the_place_of_an_older_one(bench):
    bench.compute(1)
    bench.executor()
    bench.compute(1, attempt=2)
    cancel, runs = bench.executor()
    assert cancel == CancelTasks((1,), (1,))
    assert runs.attempts == (2,)
    bench.returned()
    bench.finish(1)  # the older one was begun
    assert bench.scheduler() == []
    bench.finish(1, attempt=2)
    assert bench.scheduler()[0].attempts == (2,)
    assert bench.model.lookup(1, 2) == (STORED, None)
    assert bench.executor() == []


def test_an_older_attempt_changes_nothing(bench):
    bench.compute(1, attempt=2)
    bench.executor()
    bench.compute(1)
    bench.free(1)
    bench.steal(1)
    assert bench.scheduler()[0].given == (False,)
    assert bench.executor() == []
    assert bench.state(1) == "executing"


def test_what_an_older_run_left_is_dropped_with_the_newer_one(bench):
    bench.compute(1)
    bench.executor()
    bench.compute(1, attempt=2)
    bench.executor()
    bench.returned()
    bench.finish(1)
    bench.err(1, attempt=2)
    bench.scheduler()
    assert bench.executor() == [DropValues((1,))]


def test_seceded_runs_give_their_slot_back(bench):
    bench.compute(1, 2, 3)
    assert bench.handed() == [1, 2]
    bench.call(events.on_tasks_seceded, TasksSeceded((1,), (1,)))
    assert bench.scheduler() == [TasksSeceded((1,), (1,))]
    assert bench.handed() == [3]
    bench.finish(1)
    bench.scheduler()
    assert bench.model.default.handed == 2
    assert bench.handed() == []


def test_the_loss_of_the_executor_loses_everything(bench):
    bench.compute(1, 2, 3)
    bench.executor()
    bench.finish(1)
    bench.scheduler()
    bench.dispatch()
    bench.lose_executor((2, 1), (99, 1))
    (report,) = bench.scheduler()
    assert report == ExecutorLost((2,), (1,), report.cause)
    assert not bench.model.runs
    assert not bench.model.values
    bench.compute(4, attempt=2)
    assert bench.executor() == []
    bench.call(events.on_executor_ready)
    assert [type(m) for m in bench.executor()] == [Codes, RunTasks]  # code again: a new incarnation
    bench.finish(2)  # a late word about the old one's run
    assert bench.scheduler() == []
    assert bench.executor() == [DropValues((2,))]


def test_runs_for_a_lost_executor_wait_to_be_freed(bench):
    bench.compute(1)
    bench.executor()
    bench.finish(1)
    bench.lose_executor()
    bench.scheduler()
    bench.call(events.on_executor_ready)
    bench.compute(2, dependencies=((1,),))  # written before the scheduler heard
    assert bench.executor() == []
    assert bench.fetches() == []
    assert bench.scheduler() == []
    bench.free(1, 2)
    assert not bench.model.runs
    assert not bench.model.values


def test_resources_are_held_while_running(make_bench):
    bench = make_bench(nthreads=4, resources=(("gpu", 2.0),))
    bench.compute(1, 2, 3, 4, resources=((("gpu", 1.0),), (("gpu", 1.0),), (("gpu", 1.0),), ()))
    assert bench.handed() == [1, 2, 4]
    assert bench.state(3) == "constrained"
    bench.free(1)
    bench.executor()
    assert bench.handed() == []  # the freed one has its resource until the executor is rid of it
    bench.returned(1)
    assert bench.handed() == [3]


def test_a_run_that_needs_much_is_not_starved(make_bench):
    bench = make_bench(nthreads=4, resources=(("gpu", 2.0), ("ssd", 1.0)))
    one, two, other = (("gpu", 1.0),), (("gpu", 2.0),), (("ssd", 1.0),)
    bench.compute(1, 2, 3, 4, resources=(one, two, one, other))
    assert bench.handed() == [1, 4]
    bench.finish(1)
    bench.scheduler()
    assert bench.handed() == [2]


def test_named_executors_have_their_own_slots(make_bench):
    bench = make_bench(nthreads=1, executors=(("gpu", 1),))
    bench.compute(*range(1, 9), executors=("", "gpu") * 4)
    _codes, runs = bench.executor()
    assert runs.task_ids == (1, 3, 2, 4)
    assert runs.executors == ("", "", "gpu", "gpu")
    bench.finish(2)
    bench.scheduler()
    assert bench.handed() == [6]


def test_small_values_go_to_the_executor_before_their_first_run(bench):
    bench.compute(2, 3, dependencies=((1,), (1, 1)), deps={1: b"one"})
    _codes, values, runs = bench.executor()
    assert values == PutValues((1,), (b"one",))
    assert runs.dependencies == ((1,), (1, 1))
    bench.finish(2)
    assert bench.executor() == []
    bench.finish(3)
    assert bench.executor() == [DropValues((1,))]  # nobody asked to hold it
    bench.scheduler()


def test_the_story_of_a_task(bench):
    bench.compute(1, 2)
    bench.executor()
    bench.finish(1)
    bench.scheduler()
    assert [(event, attempt) for _, event, attempt in bench.model.story(1)] == [
        ("compute", 1),
        ("handed", 1),
        ("finished", 1),
    ]


def test_counts(bench):
    bench.compute(1, 2, 3)
    bench.compute(4, dependencies=((9,),), deps={9: ("h",)})
    bench.executor()
    counts = bench.model.counts()
    assert counts["executing"] == 2
    assert counts["ready"] == 1
    assert counts["waiting"] == 1
    assert counts["flight"] == 1
    bench.fetches()
