"""Losses: of workers, executors, values; and what is moved for the better: stealing, replicas, scattered data."""

from __future__ import annotations

import pytest
from brain_env import OOPS, BrainEnv

from gnomon.runtime.core import queries, reactor
from gnomon.runtime.messages import (
    FuturesErred,
    FuturesPending,
    Heartbeat,
    Holders,
    RegisterWorker,
    ScatterData,
    TaskOptions,
)


def test_tasks_of_a_lost_worker_run_elsewhere_under_another_attempt():
    env = BrainEnv()
    a, client = env.worker("a"), env.client()
    future = env.submit(client, "x")
    ((task_id, (attempt, _, _)),) = a.runs.items()
    b = env.worker("b")
    env.lose(a)
    assert b.runs[task_id][0] == attempt + 1
    env.finish(b)
    assert env.futures[future] == "done"


def test_lost_results_are_recomputed_as_deep_as_needed():
    env = BrainEnv()
    a, client = env.worker("a"), env.client()
    wanted = env.graph(client, {"x": [], "y": ["x"], "z": ["y"]}, want=["z"])
    env.run_all()
    env.messages()
    b = env.worker("b")
    env.lose(a)
    assert env.messages() == [(client, FuturesPending((wanted["z"],)))]
    assert [env.state(k) for k in "xyz"] == ["processing", "waiting", "waiting"]
    env.run_all()
    assert env.futures[wanted["z"]] == "done"
    env.release(client, wanted["z"])
    env.assert_empty()
    assert not b.values


def test_dependents_wait_again_when_an_input_is_lost():
    env = BrainEnv()
    a = env.worker("a")
    client = env.client()
    x = env.submit(client, "x")
    env.finish(a, "x")
    env.submit(client, "y", x, options=TaskOptions(workers=("later",)))
    assert env.state("y") == "no-worker"
    env.worker("b")
    env.lose(a)
    assert env.state("y") == "waiting"
    env.finish(env.workers["b"], "x")
    assert env.state("y") == "no-worker"


def test_small_values_survive_their_workers():
    env = BrainEnv()
    a, client = env.worker("a"), env.client()
    future = env.submit(client, "x")
    env.finish(a, value=b"1", nbytes=28)
    env.lose(a)
    assert env.state("x") == "memory"
    b = env.worker("b")
    y = env.submit(client, "y", future)
    env.finish(b, "y")
    env.release(client, future, y)
    env.assert_empty()


def test_a_task_that_takes_workers_down_is_given_up():
    env = BrainEnv(allowed_failures=3)
    client = env.client()
    poison = env.graph(client, {"poison": [], "after": ["poison"]})
    for i in range(4):
        worker = env.worker(f"w{i}")
        assert worker.keys() == ["poison"]
        env.lose(worker)
    assert env.futures[poison["poison"]] == env.futures[poison["after"]] == "erred"
    ((_, message),) = env.messages(FuturesErred)
    assert message.errors[0].type_name.endswith("KilledWorker")
    assert "oops" in message.errors[0].text
    assert message.causes == ("poison", "poison")


def test_planned_departures_blame_nobody():
    env = BrainEnv(allowed_failures=0)
    client = env.client()
    future = env.submit(client, "x")
    for i in range(5):
        env.lose(env.worker(f"w{i}"), safe=True)
    assert env.futures[future] == "pending"


def test_tasks_that_only_waited_on_a_lost_worker_are_not_blamed():
    env = BrainEnv(allowed_failures=0, saturation=100)
    a, client = env.worker("a"), env.client()
    futures = env.graph(client, {f"x-{i}": [] for i in range(10)})
    assert len(a.runs) == 10
    env.lose(a)
    words = [env.futures[futures[f"x-{i}"]] for i in range(10)]
    assert words == ["erred"] + ["pending"] * 9


def test_a_lost_executor_takes_values_and_tasks_but_not_the_worker():
    env = BrainEnv(allowed_failures=1, saturation=100)
    a, client = env.worker("a"), env.client()
    kept = env.submit(client, "kept")
    env.finish(a)
    env.graph(client, {"x-0": [], "x-1": []})
    running = a.id_of("x-0")
    env.lose_executor(a, running)
    assert env.task("x-0").failures == 1
    assert env.task("x-1").failures == 0
    assert set(a.keys()) == {"x-0", "x-1", "kept"}
    assert len(a.codes) == 1
    assert env.futures[kept] == "pending"
    env.lose_executor(a, a.id_of("x-0"))
    assert env.state("x-0") == "erred"
    env.run_all()
    assert env.futures[kept] == "done"


def test_names_of_living_workers_are_unique():
    env = BrainEnv()
    worker = env.worker("a", address="tcp://1.1.1.1:5")
    message = RegisterWorker("a", "tcp://1.1.1.1:6", 1, 0, (), "h", 1, {})
    with pytest.raises(ValueError, match="named"):
        reactor.on_add_worker(env.model, env.outbox, message, 0.0)
    with pytest.raises(ValueError, match="thread"):
        reactor.on_add_worker(env.model, env.outbox, message._replace(name="b", nthreads=0), 0.0)
    again = env.worker("b", address="tcp://1.1.1.1:5")
    env.lose(worker)
    assert env.model.addresses["tcp://1.1.1.1:5"].worker_id == again.worker_id
    back = env.worker("a")
    assert back.worker_id not in (worker.worker_id, again.worker_id)


def test_a_late_joiner_gets_work_by_stealing():
    env = BrainEnv(saturation=100)
    a, client = env.worker("a"), env.client()
    futures = env.graph(client, {f"x-{i}": [] for i in range(10)})
    b = env.worker("b")
    assert not b.runs
    assert env.model.stealing_useful
    env.balance()
    assert 3 <= len(a.stolen) <= 5
    asked = len(a.stolen)
    env.balance()
    assert len(a.stolen) == asked, "asked twice"
    env.answer_steals(a)
    assert len(b.runs) == asked
    assert len(a.runs) == 10 - asked
    env.run_all()
    assert {env.futures[f] for f in futures.values()} == {"done"}


def test_a_task_that_has_begun_stays():
    env = BrainEnv(saturation=100)
    a, client = env.worker("a"), env.client()
    env.graph(client, {f"x-{i}": [] for i in range(4)})
    b = env.worker("b")
    env.balance()
    env.answer_steals(a, given=False)
    assert not b.runs
    assert len(a.runs) == 4
    env.balance()
    assert a.stolen


def test_stealing_when_the_thief_or_victim_is_gone():
    env = BrainEnv(saturation=100)
    a, client = env.worker("a"), env.client()
    futures = env.graph(client, {f"x-{i}": [] for i in range(6)})
    b = env.worker("b")
    env.balance()
    env.lose(b)
    env.answer_steals(a)
    c = env.worker("c")
    env.balance()
    env.lose(a)
    assert len(c.runs) == 6
    env.run_all()
    assert {env.futures[f] for f in futures.values()} == {"done"}


def test_a_released_task_that_was_being_stolen_is_gone():
    env = BrainEnv(saturation=100)
    a, client = env.worker("a"), env.client()
    futures = env.graph(client, {f"x-{i}": [] for i in range(6)})
    env.worker("b")
    env.balance()
    stolen = list(a.stolen)
    env.release(client, *futures.values())
    assert stolen
    env.answer_steals(a)
    env.assert_empty()


def test_very_short_tasks_are_not_stolen_for_a_small_difference():
    env = BrainEnv(backlog_seconds=0.02)
    a, client = env.worker("a"), env.client()
    env.graph(client, {f"x-{i}": [] for i in range(30)})
    env.finish(a, *a.keys(), seconds=1e-4)
    env.worker("b")
    env.balance()
    assert not a.stolen


def test_short_tasks_stuck_behind_a_long_one_are_stolen():
    env = BrainEnv()
    a, client = env.worker("a"), env.client()
    env.graph(client, {f"x-{i}": [] for i in range(30)})
    env.finish(a, *a.keys(), seconds=1e-4)
    env.worker("b")
    env.now += 5
    env.balance()
    assert a.stolen


def test_restricted_tasks_are_stolen_by_eligible_workers_only():
    env = BrainEnv()
    a, client = env.worker("a"), env.client()
    env.graph(client, {f"x-{i}": [] for i in range(6)}, options=TaskOptions(workers=("a", "c")))
    env.worker("b")
    env.balance()
    assert not a.stolen
    c = env.worker("c")
    env.balance()
    env.answer_steals(a)
    assert c.runs


def two_holders(env, client):
    """A value that both workers hold; its future."""
    a, b = env.worker("a"), env.worker("b")
    x = env.submit(client, "x", options=TaskOptions(workers=("a",)))
    env.finish(a, "x")
    ts = env.task("x")
    env.added(b, ts.task_id, ts.attempt, 10_000)
    return a, b, x, ts


def test_copies_are_counted_and_freed():
    env = BrainEnv()
    client = env.client()
    a, b, x, ts = two_holders(env, client)
    assert queries.who_has(env.model, ["x"]) == {"x": [a.address, b.address]}
    assert queries.has_what(env.model) == {a.address: ["x"], b.address: ["x"]}
    assert queries.locate(env.model, client, [x, 999]) == [
        (x, ts.task_id, ts.attempt, (a.address, b.address), None),
        (999, 0, 0, (), None),
    ]
    env.lose(a)
    assert env.state("x") == "memory"
    env.release(client, x)
    env.assert_empty()


def test_a_copy_of_what_is_no_more_is_freed_at_once():
    env = BrainEnv()
    client = env.client()
    _, b, x, ts = two_holders(env, client)
    task_id, attempt = ts.task_id, ts.attempt
    env.release(client, x)
    env.added(b, task_id, attempt)
    assert not b.values


def test_another_holder_is_named_when_one_lost_the_value():
    env = BrainEnv()
    client = env.client()
    a, b, _, ts = two_holders(env, client)
    c = env.worker("c")
    env.missing(c, ts.task_id, ts.attempt, a.address, True)
    assert env.other == [("c", Holders((ts.task_id,), (ts.attempt,), ((b.address,),)))]
    assert queries.who_has(env.model, ["x"]) == {"x": [b.address]}


@pytest.mark.parametrize("lost", [True, False])
def test_a_value_that_nobody_has_is_recomputed(lost):
    env = BrainEnv(missing_limit=2)
    a, b, client = env.worker("a"), env.worker("b"), env.client()
    x = env.submit(client, "x", options=TaskOptions(workers=("a",)))
    env.finish(a, "x")
    y = env.submit(client, "y", x, options=TaskOptions(workers=("b",)))
    ts = env.task("x")
    for _ in range(1 if lost else 3):
        assert env.state("x") == "memory"
        env.missing(b, ts.task_id, ts.attempt, a.address, lost)
    assert env.futures[x] == "pending"
    assert env.state("x") == "processing"
    assert not b.runs
    env.run_all()
    assert env.futures[x] == env.futures[y] == "done"


def test_a_task_whose_inputs_can_never_be_fetched_errs():
    env = BrainEnv(missing_limit=2)
    a, b, client = env.worker("a"), env.worker("b"), env.client()
    x = env.submit(client, "x", options=TaskOptions(workers=("a",)))
    env.finish(a, "x")
    y = env.submit(client, "y", x, options=TaskOptions(workers=("b",)))
    for _ in range(20):
        if env.futures[y] == "erred":
            break
        ts = env.task("x")
        if a.runs:
            env.finish(a)
        env.missing(b, ts.task_id, ts.attempt, a.address, False)
    assert env.futures[y] == "erred"
    env.run_all()
    assert env.futures[x] == "done"


def test_a_value_recomputed_meanwhile_places_the_task_anew():
    env = BrainEnv()
    a, b, client = env.worker("a"), env.worker("b"), env.client()
    x = env.submit(client, "x", options=TaskOptions(workers=("a", "c")))
    env.finish(a, "x")
    env.submit(client, "y", x, options=TaskOptions(workers=("b",)))
    old = env.task("x").attempt
    env.worker("c")
    env.lose(a)
    assert env.state("y") == "processing"  # it may have its input already
    env.missing(b, env.task("x").task_id, old, a.address, False)
    assert env.state("y") == "waiting"
    env.run_all()
    assert env.state("y") == "memory"


def test_a_client_reports_a_missing_value():
    env = BrainEnv()
    a, client = env.worker("a"), env.client()
    x = env.submit(client, "x")
    env.finish(a)
    ts = env.task("x")
    env.step(reactor.on_values_missing, client, (ts.task_id,), (ts.attempt,), a.address, True)
    assert env.futures[x] == "pending"
    env.run_all()
    assert env.futures[x] == "done"


def test_small_scattered_data_is_done_at_once_and_survives():
    env = BrainEnv()
    client = env.client()
    (future,), ((task_id, attempt, addresses),) = env.scatter(client, "data", value=b"v", nbytes=1)
    assert attempt == 1
    assert addresses == ()
    assert env.futures[future] == "done"
    worker = env.worker()
    y = env.submit(client, "y", future)
    env.finish(worker, "y")
    env.release(client, future, y)
    env.assert_empty()
    assert task_id


def test_scattered_data_goes_to_the_named_workers():
    env = BrainEnv()
    a, b, client = env.worker("a"), env.worker("b"), env.client()
    (f1, f2), rows = env.scatter(client, "d-1", "d-2", nbytes=100)
    assert {r[2] for r in rows} == {(a.address,), (b.address,)}
    y = env.submit(client, "y", f1)
    assert env.state("y") == "waiting"
    (holder,) = [w for w in (a, b) if rows[0][2] == (w.address,)]
    env.added(holder, rows[0][0], rows[0][1], 100)
    assert env.futures[f1] == "done"
    assert holder.keys() == ["y"]
    (f3,), ((_, _, addresses),) = env.scatter(client, "d-3", copies=0)
    assert set(addresses) == {a.address, b.address}
    (f4,), ((_, _, addresses),) = env.scatter(client, "d-4", workers=("b",))
    assert addresses == (b.address,)
    with pytest.raises(LookupError):
        env.scatter(client, "d-5", workers=("nobody",))
    with pytest.raises(ValueError, match="twice"):
        reactor.on_scatter(env.model, env.outbox, client, ScatterData(1, ("z",), (f1,), (1,), (b"",)), 0.0)
    env.run_all()
    env.release(client, f1, f2, f3, f4, y)
    env.assert_empty()


def test_scattered_data_that_is_lost_is_said_to_be():
    env = BrainEnv()
    a, client = env.worker("a"), env.client()
    (future,), ((task_id, attempt, _),) = env.scatter(client, "data")
    env.added(a, task_id, attempt)
    env.worker("b")
    wait = env.submit(client, "wait", options=TaskOptions(workers=("nobody",)))
    y = env.submit(client, "y", future, wait)
    env.lose(a)
    assert env.futures[future] == env.futures[y] == "cancelled"
    assert env.futures[wait] == "pending"
    env.release(client, wait)
    env.assert_empty()


def test_scattered_data_on_its_way_to_a_worker_that_dies_is_lost():
    env = BrainEnv()
    a, client = env.worker("a"), env.client()
    (future,), _ = env.scatter(client, "data")
    y = env.submit(client, "y", future)
    env.lose(a)
    assert env.futures[future] == env.futures[y] == "cancelled"
    env.assert_empty()


def test_a_result_made_from_lost_data_is_lost_with_its_last_copy():
    env = BrainEnv()
    a, client = env.worker("a"), env.client()
    (future,), ((task_id, attempt, _),) = env.scatter(client, "data")
    env.added(a, task_id, attempt)
    y = env.submit(client, "y", future)
    env.finish(a, "y")
    env.release(client, future)
    env.lose(a)
    assert env.futures[y] == "cancelled"
    env.assert_empty()


def test_queries_on_a_small_cluster():
    env = BrainEnv()
    a, client = env.worker("a", nthreads=3), env.client("me")
    env.graph(client, {"inc-1": [], "inc-2": []})
    reactor.on_heartbeat(env.model, a.worker_id, Heartbeat(1.0, {"cpu": 5}), env.now)
    assert queries.nthreads(env.model) == {a.address: 3}
    assert queries.processing(env.model, ["a"]) == {a.address: ["inc-1", "inc-2"]}
    assert queries.counts(env.model)["processing"] == 2
    assert queries.groups(env.model)["inc"]["processing"] == 2
    identity = queries.identity(env.model)
    assert identity["workers"][a.address]["metrics"] == {"cpu": 5}
    assert identity["clients"] == ["me"]
    assert queries.resolve_workers(env.model, ["a"]) == [a.worker_id]
    story = queries.story(env.model, "inc-1")
    assert [(before, after) for _, _, before, after, _, _ in story] == [
        ("released", "queued"),
        ("queued", "processing"),
    ]
    assert queries.who_has(env.model) == {}
    assert OOPS.text
