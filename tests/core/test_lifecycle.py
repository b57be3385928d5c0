"""A task's life: submitted, run, told, released, forgotten; by one client or several."""

from __future__ import annotations

import gc

import pytest
from brain_env import OOPS, BrainEnv

from gnomon.runtime.core import reactor
from gnomon.runtime.messages import (
    FuturesCancelled,
    FuturesDone,
    FuturesErred,
    FuturesPending,
    TaskOptions,
    TasksFinished,
    UpdateGraph,
)


def test_one_task_from_submission_to_forgetting():
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    future = env.submit(client, "inc-1")
    assert env.state("inc-1") == "processing"
    env.finish(worker, value=b"1", nbytes=28)
    assert env.messages() == [(client, FuturesDone((future,), (28,), (b"1",)))]
    assert env.state("inc-1") == "memory"
    env.release(client, future)
    env.assert_empty()


def test_a_task_waits_for_a_worker_to_join():
    env = BrainEnv()
    client = env.client()
    env.submit(client, "x")
    assert env.state("x") == "queued"
    worker = env.worker()
    assert worker.keys() == ["x"]


def test_inputs_are_released_once_used_and_forgotten_with_their_last_dependent():
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    future = env.graph(client, {"x": [], "y": ["x"]}, want=["y"])["y"]
    env.finish(worker, "x")
    assert env.state("x") == "memory"
    env.finish(worker, "y")
    assert env.state("x") == "released"
    assert len(worker.values) == 1
    env.release(client, future)
    env.assert_empty()


def test_an_input_is_kept_while_a_dependent_waits_though_nobody_wants_it():
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    x = env.submit(client, "x")
    env.finish(worker, "x")
    slow = env.submit(client, "slow")
    y = env.submit(client, "y", x, slow)
    env.release(client, x)
    assert env.state("x") == "memory"
    env.finish(worker, "slow")
    env.finish(worker, "y")
    assert env.state("x") == "released"
    env.release(client, slow, y)
    env.assert_empty()


def test_rows_that_nobody_wants_are_dropped():
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    wanted = env.graph(client, {"x": [], "y": ["x"], "z": ["x"]}, want=["y"])
    assert env.state("z") == "forgotten"
    env.run_all()
    env.release(client, *wanted.values())
    env.assert_empty()
    assert not worker.values


def test_two_clients_share_a_task():
    env = BrainEnv()
    worker, one, two = env.worker(), env.client("one"), env.client("two")
    a = env.submit(one, "x")
    b = env.submit(two, "x")
    assert len(env.model.by_id) == 1
    env.finish(worker)
    assert [m for _, m in env.messages()] == [
        FuturesDone((a,), (10_000,), (None,)),
        FuturesDone((b,), (10_000,), (None,)),
    ]
    env.release(one, a)
    assert env.state("x") == "memory"
    env.leave(two)
    env.assert_empty()
    assert set(env.model.clients) == {one}


def test_a_client_wants_a_key_that_another_brought():
    env = BrainEnv()
    worker, one, two = env.worker(), env.client(), env.client()
    a = env.submit(one, "x")
    env.finish(worker)
    env.messages()
    b, unknown = env.want(two, "x", "nonsense")
    told = env.messages()
    assert (two, FuturesDone((b,), (10_000,), (None,))) in told
    cancelled = next(m for _, m in told if type(m) is FuturesCancelled)
    assert cancelled.future_ids == (unknown,)
    assert cancelled.reason == "unknown"
    env.release(one, a)
    assert env.state("x") == "memory"
    env.release(two, b)
    env.assert_empty()


def test_one_client_with_two_futures_of_a_key():
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    a = env.submit(client, "x")
    b = env.submit(client, "x")
    env.release(client, a)
    env.finish(worker)
    assert env.messages() == [(client, FuturesDone((b,), (10_000,), (None,)))]
    env.release(client, b)
    env.assert_empty()


def test_a_client_that_leaves_stops_its_work():
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    env.graph(client, {"a": [], "b": ["a"], "c": []})
    env.leave(client)
    env.assert_empty()
    assert not worker.runs
    assert not worker.codes
    assert not env.model.clients


def test_errors_reach_dependents_with_the_key_to_blame():
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    wanted = env.graph(client, {"a": [], "b": ["a"], "c": ["b"], "other": []})
    env.fail(worker, "a")
    ((_, message),) = env.messages(FuturesErred)
    assert set(message.future_ids) == {wanted["a"], wanted["b"], wanted["c"]}
    assert set(message.causes) == {"a"}
    assert message.errors == (OOPS,)
    assert [env.state(k) for k in "abc"] == ["erred"] * 3
    later = env.submit(client, "d", wanted["c"])
    assert env.futures[later] == "erred"
    env.finish(worker, "other")
    env.release(client, later, *wanted.values())
    env.assert_empty()


def test_an_error_frees_inputs_that_only_the_failed_needed():
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    wanted = env.graph(client, {"in": [], "bad": ["in"], "top": ["bad"]}, want=["top"])
    env.finish(worker, "in")
    env.fail(worker, "bad")
    assert env.futures[wanted["top"]] == "erred"
    assert not worker.values
    env.release(client, wanted["top"])
    env.assert_empty()


def test_retries_run_again_before_an_error_counts():
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    future = env.submit(client, "x", options=TaskOptions(retries=2))
    env.fail(worker)
    env.fail(worker)
    assert env.state("x") == "processing"
    assert env.task("x").attempt == 3
    env.fail(worker)
    assert env.futures[future] == "erred"


def test_retry_of_an_erred_task_runs_what_it_needs_again():
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    wanted = env.graph(client, {"a": [], "b": ["a"], "c": ["a"]}, want=["b", "c"])
    env.fail(worker, "a")
    env.messages()
    env.retry(client, wanted["b"])
    ((_, message),) = env.messages(FuturesPending)
    assert set(message.future_ids) >= {wanted["b"]}
    env.run_all()
    assert env.futures[wanted["b"]] == "done"


def test_retry_when_the_failed_input_is_wanted_too():
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    wanted = env.graph(client, {"a": [], "b": ["a"], "c": ["a"]})
    env.fail(worker, "a")
    env.retry(client, wanted["b"])
    env.run_all()
    assert [env.futures[wanted[k]] for k in "abc"] == ["done"] * 3


def test_cancel_stops_unstarted_work_and_what_is_made_from_it():
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    wanted = env.graph(client, {"a": [], "b": ["a"]})
    env.cancel(client, wanted["a"], reason="why", message="because")
    told = [m for _, m in env.messages(FuturesCancelled)]
    assert {f for m in told for f in m.future_ids} == set(wanted.values())
    assert {(m.reason, m.message) for m in told} == {("why", "because")}
    assert not worker.runs
    env.assert_empty()


def test_cancel_leaves_other_clients_alone_unless_forced():
    env = BrainEnv()
    worker, one, two = env.worker(), env.client(), env.client()
    a = env.submit(one, "x")
    b = env.submit(two, "x")
    env.cancel(one, a)
    assert env.futures[a] == "cancelled"
    assert env.futures[b] == "pending"
    assert worker.keys() == ["x"]
    c = env.submit(one, "x")
    env.cancel(one, c, force=True)
    assert env.futures[b] == env.futures[c] == "cancelled"
    env.assert_empty()


def test_a_cancelled_key_submitted_anew_never_gives_the_old_value():
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    old = env.submit(client, "x", code=b"old")
    ((old_id, (attempt, _, _)),) = worker.runs.items()
    env.cancel(client, old)
    new = env.submit(client, "x", code=b"new")
    assert env.task("x").task_id != old_id
    env.finished(worker, [old_id], [attempt])
    assert env.futures[new] == "pending"
    env.finish(worker, "x")
    assert env.futures[new] == "done"


def test_a_cancelled_key_that_others_need_gives_way_to_another_definition():
    env = BrainEnv()
    worker, one, two = env.worker(), env.client(), env.client()
    old = env.submit(one, "x", code=b"old")
    other = env.submit(two, "x", code=b"old")
    env.cancel(one, old)
    new = env.submit(one, "x", code=b"new")
    assert len(env.model.by_id) == 2
    env.finish(worker)
    assert env.futures[other] == env.futures[new] == "done"
    env.release(one, new)
    assert env.state("x") == "forgotten"
    env.release(two, other)
    env.assert_empty()


def test_a_live_key_keeps_its_first_definition():
    env = BrainEnv()
    env.worker()
    client = env.client()
    env.submit(client, "x", code=b"one")
    env.submit(client, "x", code=b"two")
    assert len(env.model.by_id) == 1


@pytest.mark.parametrize("same", [True, False])
def test_an_erred_key_gives_way_to_another_definition_only(same):
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    old = env.submit(client, "x", code=b"one")
    env.fail(worker)
    new = env.submit(client, "x", code=b"one" if same else b"two")
    assert env.futures[new] == ("erred" if same else "pending")
    if not same:
        env.finish(worker)
        assert env.futures[new] == "done"
        assert env.futures[old] == "erred"
    env.release(client, old, new)
    env.assert_empty()


def test_a_dependency_that_is_no_more_loses_what_is_made_from_it():
    env = BrainEnv()
    client = env.client()
    wanted = env.graph(client, {"a": [12345], "b": ["a"], "c": []})
    assert env.futures[wanted["a"]] == env.futures[wanted["b"]] == "cancelled"
    assert env.futures[wanted["c"]] == "pending"


def test_late_and_unknown_news_is_dropped():
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    future = env.submit(client, "x")
    ((task_id, (attempt, _, _)),) = worker.runs.items()
    env.finished(worker, [task_id], [attempt + 1])
    env.finished(worker, [999], [1])
    assert env.futures[future] == "pending"
    assert env.records is None
    env.step(reactor.on_tasks_finished, 77, TasksFinished((), (), (), (), (), b""))
    env.finish(worker)
    assert env.futures[future] == "done"
    assert env.records.keys == ["x"]
    assert list(env.records.ok) == [1]


def test_records_have_one_row_for_each_accepted_run():
    env = BrainEnv()
    worker, client = env.worker(nthreads=4), env.client()
    env.graph(client, {"inc-1": [], "inc-2": []})
    ids = list(worker.runs)
    attempts = [worker.runs[i][0] for i in ids]
    env.finished(worker, [ids[0], 999, ids[1]], [attempts[0], 1, attempts[1]], nbytes=5)
    records = env.records
    assert records.keys == ["inc-1", "inc-2"]
    assert records.prefixes == ["inc", "inc"]
    assert list(records.worker_ids) == [worker.worker_id] * 2
    assert list(records.nbytes) == [5, 5]
    assert len(records.timings) == 8


@pytest.mark.parametrize(
    ("timings", "nbytes"),
    [(b"", (1,)), (b"\0" * 31, (1,)), (b"\0" * 64, (1,)), (b"\0" * 32, (2**70,)), (b"\0" * 32, (1, 2))],
)
def test_malformed_results_raise(timings, nbytes):
    env = BrainEnv()
    worker = env.worker()
    with pytest.raises(ValueError, match=r"timings|column"):
        reactor.on_tasks_finished(
            env.model, env.outbox, worker.worker_id, TasksFinished((1,), (1,), nbytes, (None,), (1,), timings), 0.0
        )
    env.check()


@pytest.mark.parametrize(
    "change",
    [
        {"task_codes": (9, 1)},
        {"keys": ("x", "x")},
        {"keys": ("x", ["y"])},
        {"future_ids": (5, 5)},
        {"dependencies": ((1,), (0,))},
        {"dependencies": ((7,), ())},
        {"dependencies": ((-1,), ())},
        {"dependencies": ((), (), ())},
        {"option_rows": (0, 3)},
        {"options": ()},
        {"payloads": (b"",)},
        {"codes": ((1, b""), (1, b""))},
    ],
)
def test_malformed_graphs_raise_and_change_nothing(change):
    env = BrainEnv()
    client = env.client()
    good = UpdateGraph(((1, b"code"),), ("x", "y"), (1, 1), (b"", b""), (), (), (1, 2))
    with pytest.raises(ValueError, match=r"graph|code|row|future|key"):
        reactor.on_update_graph(env.model, env.outbox, client, good._replace(**change), 0.0)
    env.assert_empty()
    assert not env.model.clients[client].codes
    env.step(reactor.on_update_graph, client, good)
    assert len(env.model.by_id) == 2


def test_code_is_sent_once_and_dropped_with_its_last_user():
    env = BrainEnv()
    worker, client = env.worker(nthreads=2), env.client()
    futures = [env.submit(client, f"x-{i}") for i in range(3)]
    assert len(worker.codes) == 1
    env.run_all()
    env.release(client, *futures)
    assert len(worker.codes) == 1  # the client may name it again
    env.leave(client)
    assert not worker.codes


def test_forgotten_tasks_are_not_kept_alive_by_anything():
    env = BrainEnv()
    client = env.client()
    gc.collect()
    kinds = [type(env.model.add_task("probe", None, b"", env.model.options_of(TaskOptions()), (0, 0, 0)))]
    probe = env.model.tasks.pop("probe")
    del env.model.by_id[probe.task_id]
    probe.group.alive -= 1
    probe.group.counts[0] -= 1
    env.model.drop_group(probe.group)
    del probe
    for _ in range(3):
        wanted = env.graph(
            client, {f"x-{i}": [] for i in range(50)} | {"top": [f"x-{i}" for i in range(50)]}, want=["top"]
        )
        env.cancel(client, wanted["top"])
    env.assert_empty()
    assert not [o for o in gc.get_objects() if type(o) in kinds]


def test_dead_dependents_of_a_long_lived_input_are_swept():
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    x = env.submit(client, "x")
    env.finish(worker)
    for i in range(200):
        y = env.submit(client, f"y-{i}", x)
        env.finish(worker)
        env.release(client, y)
    assert len(env.task("x").dependents or ()) < 100


def test_chains_of_any_length_need_no_recursion():
    env = BrainEnv()
    client = env.client()
    env.check = lambda: None
    n = 20_000
    tasks = {"t-0": []} | {f"t-{i}": [f"t-{i - 1}"] for i in range(1, n)}
    wanted = env.graph(client, tasks, want=[f"t-{n - 1}"])
    assert len(env.model.by_id) == n
    env.release(client, *wanted.values())
    env.assert_empty()
