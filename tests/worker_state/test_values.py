"""Values: fetched, received, kept and dropped."""

from __future__ import annotations

from gnomon.runtime.messages import (
    DropValues,
    ErrorRecord,
    FetchReplicas,
    Holders,
    PutValues,
    ReplicasAdded,
    ReplicasMissing,
    TasksErred,
)
from gnomon.runtime.worker.state import INLINE, STORED, Fetch, events

ERROR = ErrorRecord("TypeError", "TypeError: cannot pickle")


def needs(bench, task_id, *deps, holders=("a",), **columns):
    bench.compute(task_id, dependencies=(deps,), deps=dict.fromkeys(deps, holders), **columns)


def test_a_value_is_fetched_then_the_task_runs(bench):
    needs(bench, 1, 9)
    assert bench.state(1) == "waiting"
    assert bench.fetches() == [Fetch("a", (9,), (1,), (100,))]
    assert bench.fetched("a", 9) == [True]
    assert bench.scheduler() == [ReplicasAdded((9,), (1,), (100,))]
    assert bench.handed() == [1]
    bench.finish(1)
    bench.scheduler()
    assert bench.executor() == []  # the scheduler knows of the copy and will free it
    assert bench.model.lookup(9, 1) == (STORED, None)
    bench.free(9)
    assert bench.executor() == [DropValues((9,))]


def test_a_fetch_says_since_when_its_first_value_was_wanted(bench):
    needs(bench, 1, 9)
    first = bench.now
    needs(bench, 2, 10)
    needs(bench, 3, 9, 10)  # wanted more urgently, but not earlier
    (fetch,) = bench.timed_fetches()
    assert fetch.task_ids == (9, 10)
    assert fetch.asked == first
    needs(bench, 4, 11)
    second = bench.now
    assert bench.timed_fetches() == [], "one fetch per holder at a time"
    bench.fetched("a", 9)
    bench.fetched("a", 10)
    (fetch,) = bench.timed_fetches()
    assert fetch.asked == second
    bench.scheduler()
    assert bench.handed() == [1, 2]


def test_a_small_value_fetched_is_put_when_needed(bench):
    needs(bench, 1, 9)
    bench.fetches()
    assert bench.fetched("a", 9, value=b"v") == [True]
    bench.scheduler()
    assert bench.model.lookup(9, 1) == (INLINE, b"v")
    assert bench.executor()[1] == PutValues((9,), (b"v",))


def test_values_are_fetched_in_batches_in_order_of_priority(bench):
    needs(bench, 1, 11, 12, priorities=((5,),))
    needs(bench, 2, 13, priorities=((1,),))
    needs(bench, 3, 14, priorities=((9,),))
    needs(bench, 4, 14, priorities=((0,),))
    assert bench.fetches() == [Fetch("a", (14, 13, 11, 12), (1,) * 4, (100,) * 4)]


def test_one_fetch_per_holder_and_a_limit_over_all(make_bench):
    bench = make_bench(fetch_concurrency=2)
    needs(bench, 1, 11, holders=("a",))
    needs(bench, 2, 12, holders=("b",))
    needs(bench, 3, 13, holders=("c",))
    assert [f.holder for f in bench.fetches()] == ["a", "b"]
    needs(bench, 4, 14, holders=("a",))
    assert bench.fetches() == []
    bench.fetched("b", 12)
    assert [f.holder for f in bench.fetches()] == ["c"]
    bench.fetched("a", 11)
    assert [f.holder for f in bench.fetches()] == ["a"]
    bench.scheduler()
    bench.executor()


def test_bytes_and_rows_bound_a_fetch(make_bench):
    bench = make_bench(fetch_bytes=250, fetch_rows=10)
    needs(bench, 1, *range(11, 17))
    assert bench.fetches()[0].task_ids == (11, 12)
    bench.fetched("a", 11, 12)
    bench.scheduler()
    assert bench.fetches()[0].task_ids == (13, 14)
    bench = make_bench(fetch_bytes=10, fetch_rows=2)
    needs(bench, 1, *range(11, 17))
    assert bench.fetches()[0].task_ids == (11,)  # larger than the limit: alone


def test_the_idle_holder_is_preferred(bench):
    needs(bench, 1, 11, holders=("a",))
    bench.fetches()
    needs(bench, 2, 12, holders=("a", "b"))
    assert bench.fetches() == [Fetch("b", (12,), (1,), (100,))]


def test_a_value_nobody_needs_any_more_is_refused(bench):
    needs(bench, 1, 9)
    bench.fetches()
    bench.free(1)
    assert not bench.model.values
    assert bench.fetched("a", 9) == [False]
    assert bench.scheduler() == []


def test_a_value_needed_again_joins_its_flight(bench):
    needs(bench, 1, 9)
    bench.fetches()
    bench.free(1)
    needs(bench, 2, 9, holders=("a", "b"))
    assert bench.fetches() == []
    assert bench.fetched("a", 9) == [True]
    assert bench.handed() == [2]
    bench.scheduler()


def test_a_flight_of_an_older_attempt_is_not_taken(bench):
    needs(bench, 1, 9)
    bench.fetches()
    columns = {
        "dep_ids": (9,),
        "dep_attempts": (2,),
        "dep_nbytes": (5,),
        "dep_values": (None,),
        "dep_holders": (("b",),),
    }
    bench.compute(2, dependencies=((9,),), **columns)
    assert bench.fetches() == []
    assert bench.fetched("a", 9) == [False]
    assert bench.fetches() == [Fetch("b", (9,), (2,), (100,))]
    assert bench.fetched("b", 9, attempt=2) == [True]
    assert bench.handed() == [1, 2]
    bench.scheduler()


def test_other_holders_are_tried_before_the_scheduler_is_told(bench):
    needs(bench, 1, 9, holders=("a", "b"))
    (fetch,) = bench.fetches()
    assert fetch.holder == "a"
    bench.fetch_failed("a", 9)
    assert bench.scheduler() == []
    (fetch,) = bench.fetches()
    assert fetch.holder == "b"
    bench.fetch_failed("b", 9, lost=True)
    assert bench.scheduler() == [ReplicasMissing((9, 9), (1, 1), ("a", "b"), (False, True))]
    assert bench.state(9) == "missing"
    bench.call(events.on_holders, Holders((9,), (1,), ((),)))
    assert bench.state(9) == "missing"
    bench.call(events.on_holders, Holders((9,), (1,), (("c",),)))
    assert bench.fetches()[0].holder == "c"
    assert bench.fetched("c", 9) == [True]
    bench.scheduler()
    assert bench.handed() == [1]


def test_an_unreachable_holder_is_given_up_in_the_end(make_bench):
    bench = make_bench(fetch_failures=3)
    needs(bench, 1, 9)
    reports = []
    for _ in range(3):
        assert bench.fetches()[0].holder == "a"
        bench.fetch_failed("a", 9)
        reports += bench.scheduler()
        bench.call(events.on_holders, Holders((9,), (1,), (("a",),)))
    bench.fetches()
    assert [r.lost for r in reports] == [(False,), (False,), (True,)]


def test_a_stale_holder_is_told_when_another_had_the_value(bench):
    needs(bench, 1, 9, holders=("a", "b"))
    bench.fetches()
    bench.fetch_failed("a", 9, lost=True)
    bench.fetches()
    bench.fetched("b", 9)
    assert bench.scheduler() == [ReplicasAdded((9,), (1,), (100,)), ReplicasMissing((9,), (1,), ("a",), (True,))]
    bench.executor()


def test_a_fetch_may_be_reported_in_parts(bench):
    needs(bench, 1, 8, 9)
    bench.fetches()
    bench.fetched("a", 8)
    assert bench.fetches() == []
    bench.fetch_failed("a", 9, lost=True)
    assert [type(m) for m in bench.scheduler()] == [ReplicasAdded, ReplicasMissing]
    assert not bench.model.flights


def test_a_dependency_without_holders_is_reported(bench):
    needs(bench, 1, 9, holders=())
    assert bench.scheduler() == [ReplicasMissing((9,), (1,), ("",), (False,))]


def test_a_freed_value_stays_while_runs_need_it(bench):
    bench.compute(1)
    bench.executor()
    bench.finish(1)
    bench.scheduler()
    bench.compute(2, dependencies=((1,),))
    bench.free(1)
    assert bench.handed() == [2]
    bench.finish(2)
    assert bench.executor() == [DropValues((1,))]
    bench.scheduler()


def test_a_value_made_anew_takes_the_place_of_a_copy(bench):
    needs(bench, 1, 8, 9)
    bench.fetches()
    bench.fetched("a", 9)
    bench.scheduler()
    bench.compute(9, attempt=2)  # its holder died before the scheduler heard of the copy
    assert bench.handed() == [9]
    bench.finish(9, attempt=2)
    bench.scheduler()
    bench.free(9)  # meant for the copy
    assert bench.model.lookup(9, 2) == (STORED, None)
    assert bench.handed() == []
    bench.fetched("a", 8)
    assert bench.handed() == [1]
    bench.scheduler()


def test_a_copy_is_not_dropped_over_the_head_of_a_run_that_makes_it_anew(bench):
    needs(bench, 1, 9)
    bench.fetches()
    bench.fetched("a", 9)
    bench.scheduler()
    assert bench.handed() == [1]
    bench.free(9)  # stays while the run needs it
    bench.compute(9, attempt=2)
    assert bench.handed() == [9]
    bench.finish(1)  # by now the store may have the newer value
    assert bench.executor() == []
    bench.err(9, attempt=2)  # but it hasn't
    assert bench.executor() == [DropValues((9,))]
    bench.scheduler()


def test_copies_on_request(bench):
    bench.call(events.on_fetch_replicas, FetchReplicas((9,), (1,), (100,), (("a",),)))
    assert bench.fetches() == [Fetch("a", (9,), (1,), (100,))]
    bench.fetched("a", 9)
    assert bench.scheduler() == [ReplicasAdded((9,), (1,), (100,))]
    bench.call(events.on_fetch_replicas, FetchReplicas((9,), (1,), (100,), (("a",),)))
    assert bench.scheduler() == [ReplicasAdded((9,), (1,), (100,))]
    bench.free(9)
    assert bench.executor() == [DropValues((9,))]


def test_a_copy_that_cannot_be_had(bench):
    bench.call(events.on_fetch_replicas, FetchReplicas((9,), (1,), (100,), (("a",),)))
    bench.fetches()
    bench.fetch_failed("a", 9)
    assert bench.scheduler() == [ReplicasMissing((9,), (1,), ("a",), (False,))]
    assert not bench.model.values


def test_a_copy_no_longer_wanted(bench):
    bench.call(events.on_fetch_replicas, FetchReplicas((9,), (1,), (100,), (("a",),)))
    bench.free(9)
    assert bench.fetches() == []


def test_a_value_that_cannot_leave_its_holder_fails_its_tasks(bench):
    needs(bench, 1, 8, 9)
    needs(bench, 2, 9)
    bench.call(events.on_fetch_replicas, FetchReplicas((9,), (1,), (100,), (("a",),)))
    assert bench.fetches()[0].task_ids == (8, 9)
    bench.call(events.on_fetch_unusable, "a", 9, 1, ERROR)
    missing, report = bench.scheduler()
    assert missing == ReplicasMissing((9,), (1,), ("a",), (False,))
    assert report == TasksErred((1, 2), (1, 1), (ERROR, ERROR), (0, 0), report.timings)
    assert not bench.model.runs
    assert not bench.model.values
    assert bench.fetched("a", 8) == [False]


def test_scattered_values(make_bench):
    bench = make_bench(ready=False)
    assert bench.call(events.on_value_received, 9, 1, 50) is False
    bench.call(events.on_executor_ready)
    assert bench.call(events.on_value_received, 9, 1, 50) is True
    assert bench.scheduler() == [ReplicasAdded((9,), (1,), (50,))]
    bench.compute(1, dependencies=((9,),))
    assert bench.handed() == [1]


def test_fetches_outlive_the_executor_but_their_values_dont(bench):
    needs(bench, 1, 9)
    bench.fetches()
    bench.lose_executor()
    bench.scheduler()
    bench.call(events.on_executor_ready)
    needs(bench, 2, 8)
    assert bench.fetches() == []  # the holder is still busy with the old fetch
    assert bench.fetched("a", 9) == [False]
    assert bench.fetches()[0].task_ids == (8,)


def test_a_segment_that_arrives_without_an_executor_is_fetched_again(bench):
    needs(bench, 1, 9)
    bench.fetches()
    bench.lose_executor()
    bench.scheduler()
    needs(bench, 2, 9)
    assert bench.fetched("a", 9) == [False]
    bench.call(events.on_executor_ready)
    assert bench.fetches()[0].task_ids == (9,)
