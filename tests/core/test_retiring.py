"""Workers that leave in good order: nothing new for them, nothing lost with them."""

from __future__ import annotations

import pytest
from brain_env import BrainEnv

from gnomon.runtime.core import reactor
from gnomon.runtime.messages import FetchReplicas, FuturesPending, ScatterData, TaskOptions


def retire(env, *workers):
    """What still keeps each, by name."""
    kept = env.step(reactor.on_retire_workers, tuple(w.worker_id for w in workers))
    return {w.name: kept[w.worker_id] for w in workers}


def asked_copies(env):
    """Copies that were asked for since the last look: pairs of worker and task ids."""
    asked = [(name, message.task_ids) for name, message in env.other if type(message) is FetchReplicas]
    env.other = []
    return asked


@pytest.fixture
def two():
    env = BrainEnv()
    return env, env.worker("a"), env.client()


def test_the_only_copy_of_a_value_is_moved(two):
    env, a, client = two
    future = env.submit(client, "x")
    env.finish(a)
    b = env.worker("b")
    task_id, attempt = env.task("x").task_id, env.task("x").attempt
    assert retire(env, a) == {"a": 1}
    assert asked_copies(env) == [("b", (task_id,))]
    assert retire(env, a) == {"a": 1}
    assert asked_copies(env) == []  # it was asked for once
    env.added(b, task_id, attempt)
    assert retire(env, a) == {"a": 0}
    env.messages()
    env.lose(a, safe=True)
    assert not env.messages(FuturesPending)
    assert env.futures[future] == "done"
    assert [ws.name for ws in env.task("x").holders] == ["b"]


def test_values_go_to_the_emptiest(two):
    env, a, client = two
    env.graph(client, {f"x-{i}": [] for i in range(6)})
    env.run_all(nbytes=1000)
    b, c = env.worker("b"), env.worker("c")
    retire(env, a)
    asked = dict(asked_copies(env))
    assert {name: len(ids) for name, ids in asked.items()} == {b.name: 3, c.name: 3}


def test_small_values_and_values_with_another_copy_stay(two):
    env, a, client = two
    env.submit(client, "small")
    env.finish(a, value=b"v")
    env.submit(client, "copied")
    env.finish(a)
    b = env.worker("b")
    env.added(b, env.task("copied").task_id, env.task("copied").attempt)
    assert retire(env, a) == {"a": 0}
    assert asked_copies(env) == []


def test_tasks_not_begun_go_elsewhere_and_running_ones_may_end(two):
    env, a, client = two
    futures = env.graph(client, {"x": [], "y": []}, options=TaskOptions(workers=("a", "b")))
    assert sorted(a.keys()) == ["x", "y"]
    b = env.worker("b")
    assert retire(env, a) == {"a": 2}
    assert len(a.stolen) == 2
    stays = a.stolen.pop(0)
    env.answer_steals(a)
    assert len(b.runs) == 1
    assert retire(env, a) == {"a": 1}
    assert not a.stolen
    a.stolen = [stays]
    env.answer_steals(a, given=False)
    assert retire(env, a) == {"a": 1}
    env.finish(a)
    retire(env, a)
    env.added(b, *next((t.task_id, t.attempt) for t in env.model.by_id.values() if t.state == 5))
    assert retire(env, a) == {"a": 0}
    env.lose(a, safe=True)
    env.run_all()
    assert {env.futures[f] for f in futures.values()} == {"done"}


def test_a_retiring_worker_is_given_nothing(two):
    env, a, client = two
    x = env.submit(client, "x")
    env.finish(a)
    b = env.worker("b")
    retire(env, a)
    env.submit(client, "y", x)  # a has what it needs
    env.submit(client, "z")
    env.submit(client, "for-a", options=TaskOptions(workers=("a",)))
    env.submit(client, "rather-a", options=TaskOptions(workers=("a",), allow_other_workers=True))
    env.balance()
    assert not a.runs
    assert sorted(b.keys()) == ["rather-a", "y", "z"]
    assert env.state("for-a") == "no-worker"
    env.other = []
    _, rows = env.scatter(client, "data", copies=0)
    assert [row[2] for row in rows] == [(b.address,)]
    with pytest.raises(LookupError):
        reactor.on_scatter(
            env.model, env.outbox, client, ScatterData(2, ("more",), (999,), (10,), (None,), ("a",)), env.now
        )


def test_data_on_its_way_to_it_is_waited_for(two):
    env, a, client = two
    _, ((task_id, attempt, addresses),) = env.scatter(client, "data")
    assert addresses == (a.address,)
    b = env.worker("b")
    assert retire(env, a) == {"a": 1}
    env.added(a, task_id, attempt)
    assert retire(env, a) == {"a": 1}
    assert asked_copies(env) == [("b", (task_id,))]
    env.added(b, task_id, attempt)
    assert retire(env, a) == {"a": 0}


@pytest.mark.parametrize("end", ["reports it missing", "dies", "loses its executor"])
def test_another_takes_what_the_first_could_not(two, end):
    env, a, client = two
    env.submit(client, "x")
    env.finish(a)
    task_id, attempt = env.task("x").task_id, env.task("x").attempt
    b = env.worker("b")
    retire(env, a)
    assert asked_copies(env) == [("b", (task_id,))]
    c = env.worker("c")
    if end == "dies":
        env.lose(b)
    elif end == "loses its executor":
        env.lose_executor(b)
    else:
        env.missing(b, task_id, attempt, a.address, False)
    assert retire(env, a) == {"a": 1}
    ((name, ids),) = asked_copies(env)
    assert name in ("b", "c")
    assert ids == (task_id,)
    env.added(env.workers[name], task_id, attempt)
    assert retire(env, a) == {"a": 0}
    assert c.worker_id in env.model.workers


def test_of_two_that_hold_a_value_and_both_retire_one_moves_it(two):
    env, a, client = two
    env.submit(client, "x")
    env.finish(a)
    task_id, attempt = env.task("x").task_id, env.task("x").attempt
    b = env.worker("b")
    env.added(b, task_id, attempt)
    c = env.worker("c")
    assert retire(env, a, b) == {"a": 1, "b": 1}
    assert asked_copies(env) == [("c", (task_id,))]
    env.added(c, task_id, attempt)
    assert retire(env, a, b) == {"a": 0, "b": 0}


def test_the_last_workers_go_at_once(two):
    env, a, client = two
    env.submit(client, "x")
    env.finish(a)
    env.submit(client, "y")
    assert retire(env, a) == {"a": 0}
    env.lose(a, safe=True)
    env.worker("b")
    env.run_all()
    assert {env.state(k) for k in "xy"} == {"memory"}


def test_what_left_its_thread_keeps_nobody(two):
    env, a, client = two
    env.submit(client, "x")
    env.secede(a, "x")
    env.worker("b")
    assert retire(env, a) == {"a": 0}
