"""News of an attempt that is no longer current is dropped, whatever it says; and effects that show within a turn."""

from __future__ import annotations

from array import array

from brain_env import OOPS, BrainEnv

from gnomon.runtime.core import placement, reactor
from gnomon.runtime.messages import (
    ComputeTasks,
    ExecutorLost,
    FreeTasks,
    ReplicasAdded,
    StealReplies,
    TasksErred,
    TasksFinished,
    TasksSeceded,
)

TICKS = array("d", [0.0] * 4).tobytes()


def rescheduled():
    """A task that its worker runs under its second attempt, the executor having died during the first."""
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    future = env.submit(client, "x")
    env.lose_executor(worker, worker.id_of("x"))
    ((task_id, (attempt, _, _)),) = worker.runs.items()
    assert attempt == 2
    return env, worker, future, task_id


def test_an_old_attempts_error_secession_and_return_are_dropped():
    env, worker, future, task_id = rescheduled()
    env.step(reactor.on_tasks_erred, worker.worker_id, TasksErred((task_id,), (1,), (OOPS,), (1,), TICKS))
    env.step(reactor.on_tasks_seceded, worker.worker_id, TasksSeceded((task_id,), (1,)))
    assert not env.task("x").seceded
    env.step(reactor.on_steal_replies, worker.worker_id, StealReplies((task_id,), (1,), (True,)))
    assert env.state("x") == "processing"
    assert env.task("x").attempt == 2
    env.finish(worker)
    assert env.futures[future] == "done"


def test_an_old_attempts_value_is_freed_wherever_it_turns_up():
    env, worker, future, task_id = rescheduled()
    env.finish(worker)
    other = env.worker("b")
    env.step(reactor.on_replicas_added, other.worker_id, ReplicasAdded((task_id,), (1,), (5,)))
    assert [ws.name for ws in env.task("x").holders] == ["a"]
    env.step(reactor.on_tasks_finished, other.worker_id, TasksFinished((task_id,), (1,), (5,), (None,), (1,), TICKS))
    assert [ws.name for ws in env.task("x").holders] == ["a"]
    assert env.futures[future] == "done"


def test_tasks_on_their_way_to_a_worker_whose_executor_died_are_called_back():
    env = BrainEnv(saturation=100)
    worker, client = env.worker(), env.client()
    env.graph(client, {"x": [], "y": []})
    x, y = worker.id_of("x"), worker.id_of("y")
    reactor.on_executor_lost(env.model, env.outbox, worker.worker_id, ExecutorLost((x,), (1,), OOPS), env.now)
    ((_, messages),) = env.outbox.drain_workers()
    assert messages == [FreeTasks((x, y), (1, 1))]
    env.turn()


def test_a_task_whose_input_is_lost_before_the_pass_is_not_placed():
    env = BrainEnv()
    a, client = env.worker("a"), env.client()
    x = env.submit(client, "x")
    env.finish(a, "x")
    env.turn, turn = lambda: None, env.turn
    env.submit(client, "y", x)
    assert env.model.ready
    ((task_id, attempt),) = [(i, n) for i, n in a.values.items()]
    env.missing(a, task_id, attempt, a.address, True)
    placement.run(env.model, env.outbox, env.now)
    env.check()
    assert env.state("y") == "waiting"
    env.turn = turn
    a.values.clear()
    env.turn()
    env.run_all()
    assert env.state("y") == "memory"


def test_what_the_worker_holds_is_not_described_to_it():
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    x = env.submit(client, "x")
    env.finish(worker, "x")
    seen = []
    worker.receive = seen.append
    env.submit(client, "y", x)
    (message,) = [m for m in seen if type(m) is ComputeTasks]
    assert message.dependencies == ((env.task("x").task_id,),)
    assert message.dep_ids == ()


def test_rows_for_one_destination_merge_and_keep_their_order():
    env = BrainEnv(saturation=100)
    worker, client = env.worker(), env.client()
    futures = env.graph(client, {f"x-{i}": [] for i in range(6)})
    env.turn, turn = lambda: None, env.turn
    env.release(client, futures["x-0"])
    env.release(client, futures["x-1"])
    env.graph(client, {"y": [], "z": []})
    placement.run(env.model, env.outbox, env.now)
    env.release(client, futures["x-2"])
    ((_, messages),) = env.outbox.drain_workers()
    assert [type(m) for m in messages] == [FreeTasks, ComputeTasks, FreeTasks]
    assert [len(m.task_ids) for m in messages] == [2, 2, 1]
    env.turn = turn
    del worker
