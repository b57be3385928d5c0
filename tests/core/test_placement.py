"""Who runs what: room and queue, locality, restrictions, resources, order of a graph."""

from __future__ import annotations

import math

import pytest
from brain_env import BrainEnv

from gnomon.runtime.core.order import depth_first
from gnomon.runtime.messages import ComputeTasks, TaskOptions


def test_unknown_tasks_are_handed_out_up_to_the_floor():
    env = BrainEnv(saturation=1.1)
    a, b = env.worker("a", nthreads=1), env.worker("b", nthreads=4)
    env.graph(env.client(), {f"x-{i}": [] for i in range(100)})
    assert len(a.runs) == 2
    assert len(b.runs) == 5
    assert env.model.queue.live == 93


def test_without_a_bound_everything_is_handed_out():
    env = BrainEnv(saturation=math.inf)
    env.worker("a")
    env.worker("b")
    env.graph(env.client(), {f"x-{i}": [] for i in range(100)})
    assert env.model.queue.live == 0
    assert {len(w.runs) for w in env.workers.values()} == {50}


@pytest.mark.parametrize(("seconds", "held"), [(0.001, 50), (0.01, 5), (1.0, 2)])
def test_measured_tasks_fill_the_backlog_by_time(seconds, held):
    env = BrainEnv(backlog_seconds=0.05)
    worker = env.worker()
    env.graph(env.client(), {f"x-{i}": [] for i in range(200)})
    env.finish(worker, *worker.keys(), seconds=seconds)
    assert abs(len(worker.runs) - held) <= 1
    keys = [env.model.by_id[i].priority for i in worker.runs]
    assert keys == sorted(keys)


def test_large_results_shrink_the_backlog_but_not_the_floor():
    env = BrainEnv(backlog_seconds=0.05, backlog_bytes=10_000_000)
    worker = env.worker()
    env.graph(env.client(), {f"x-{i}": [] for i in range(200)})
    env.finish(worker, *worker.keys(), seconds=1e-4, nbytes=1_000_000)
    assert len(worker.runs) <= 12
    env.finish(worker, *worker.keys(), seconds=1e-4, nbytes=1_000_000_000)
    assert len(worker.runs) == 2


def test_very_short_tasks_are_bounded_by_number():
    env = BrainEnv(max_backlog=20)
    worker = env.worker()
    env.graph(env.client(), {f"x-{i}": [] for i in range(200)})
    env.finish(worker, *worker.keys(), seconds=0.0)
    assert len(worker.runs) == 20


def test_the_queue_is_shared_by_threads_in_runs_of_neighbours():
    env = BrainEnv(saturation=10)
    a, b = env.worker("a", nthreads=1), env.worker("b", nthreads=3)
    env.graph(env.client(), {f"x-{i}": [] for i in range(8)})
    assert a.keys() == ["x-0", "x-1"]
    assert b.keys() == [f"x-{i}" for i in range(2, 8)]


def test_a_lone_task_goes_to_the_idle_worker():
    env = BrainEnv()
    a, b = env.worker("a"), env.worker("b")
    client = env.client()
    env.submit(client, "x")
    env.submit(client, "y")
    assert len(a.runs) == len(b.runs) == 1


def test_users_priority_goes_before_age():
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    env.graph(client, {f"low-{i}": [] for i in range(5)})
    env.graph(client, {"high": []}, options=TaskOptions(priority=1))
    env.finish(worker, "low-0")
    assert worker.runs_key("high")


def test_graphs_within_the_fifo_timeout_share_their_generation():
    env = BrainEnv()
    client = env.client()
    env.submit(client, "a", fifo_timeout=1.0)
    env.now += 0.5
    env.submit(client, "b", fifo_timeout=1.0)
    env.now += 0.6
    env.submit(client, "c", fifo_timeout=1.0)
    a, b, c = (env.task(k).priority for k in "abc")
    assert a == b < c


def test_what_a_running_task_submits_goes_before_later_graphs():
    env = BrainEnv()
    env.worker()
    client = env.client()
    env.submit(client, "parent")
    env.submit(client, "later")
    env.submit(client, "child", parent=env.task("parent").task_id)
    assert env.task("child").priority < env.task("parent").priority < env.task("later").priority


def test_tasks_go_to_the_worker_that_holds_their_inputs():
    env = BrainEnv()
    a, b = env.worker("a"), env.worker("b")
    client = env.client()
    x, y = env.submit(client, "x"), env.submit(client, "y")
    holder = a if a.runs_key("y") else b
    env.run_all(nbytes=50_000_000)
    env.submit(client, "z", y)
    assert holder.keys() == ["z"]
    env.run_all()
    env.submit(client, "both", x, y)
    (runner,) = [w for w in (a, b) if w.runs]
    assert runner.keys() == ["both"]


def test_a_loaded_holder_loses_to_an_idle_worker_when_the_transfer_is_cheap():
    env = BrainEnv()
    a, b, client = env.worker("a"), env.worker("b"), env.client()
    x = env.submit(client, "x")
    env.finish(a, "x", nbytes=1000)
    for i in range(4):
        env.submit(client, f"y-{i}", x)
    assert len(a.runs) == len(b.runs) == 2


def test_small_values_travel_with_the_assignment():
    env = BrainEnv()
    a, b, client = env.worker("a"), env.worker("b"), env.client()
    x = env.submit(client, "x")
    env.finish(a, "x", value=b"42", nbytes=28)
    env.submit(client, "busy")
    seen = []
    b.receive, received = seen.append, b.receive
    a.receive, a_received = seen.append, a.receive
    env.submit(client, "y", x)
    del received, a_received
    message = next(m for m in seen if type(m) is ComputeTasks)
    assert message.dependencies == ((env.task("x").task_id,),)
    assert message.dep_values in ((b"42",), ())


def test_worker_restrictions_by_name_address_and_host():
    env = BrainEnv()
    workers = [env.worker("a", host="h1"), env.worker("b", host="h2"), env.worker("c", host="h2")]
    client = env.client()
    env.submit(client, "by-name", options=TaskOptions(workers=("b",)))
    assert workers[1].keys() == ["by-name"]
    env.submit(client, "by-address", options=TaskOptions(workers=(workers[2].address,)))
    assert workers[2].keys() == ["by-address"]
    env.submit(client, "by-host", options=TaskOptions(workers=("h1",)))
    assert workers[0].keys() == ["by-host"]
    env.submit(client, "by-ip", options=TaskOptions(workers=("10.0.0.2",)))
    assert workers[1].runs_key("by-ip")


def test_a_restricted_task_waits_for_an_eligible_worker():
    env = BrainEnv()
    env.worker("a")
    client = env.client()
    env.submit(client, "x", options=TaskOptions(workers=("later",)))
    assert env.state("x") == "no-worker"
    late = env.worker("later")
    assert late.keys() == ["x"]


def test_loose_restrictions_fall_back_on_any_worker():
    env = BrainEnv()
    worker, client = env.worker("a"), env.client()
    env.submit(client, "x", options=TaskOptions(workers=("nobody",), allow_other_workers=True))
    assert worker.keys() == ["x"]


def test_a_no_worker_task_can_be_released():
    env = BrainEnv()
    client = env.client()
    future = env.submit(client, "x", options=TaskOptions(workers=("nobody",)))
    env.release(client, future)
    env.assert_empty()


def test_resources_choose_workers_that_have_enough():
    env = BrainEnv()
    env.worker("a", resources=(("GPU", 1.0),))
    b = env.worker("b", resources=(("GPU", 4.0), ("RAM", 1.0)))
    client = env.client()
    env.submit(client, "x", options=TaskOptions(resources=(("GPU", 2.0),)))
    assert b.keys() == ["x"]
    env.submit(client, "y", options=TaskOptions(resources=(("GPU", 8.0),)))
    assert env.state("y") == "no-worker"


def test_optional_columns_are_filled_up_when_a_row_needs_them():
    env = BrainEnv(saturation=10)
    worker, client = env.worker(), env.client()
    seen = []
    worker.receive = seen.append
    plain = env.outbox.to_worker(worker.worker_id)
    del plain
    env.graph(client, {"x": [], "y": []})
    env.graph(client, {"z": []}, options=TaskOptions(executor="gpu", resources=()))
    messages = [m for m in seen if type(m) is ComputeTasks]
    assert [m.executors for m in messages] == [(), ("gpu",)]
    assert all(m.dependencies == () and m.resources == () for m in messages)


def test_seceded_tasks_leave_their_slot():
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    env.graph(client, {f"x-{i}": [] for i in range(4)})
    assert len(worker.runs) == 2
    env.secede(worker, "x-0")
    assert len(worker.runs) == 3
    env.finish(worker, "x-0")
    assert len(worker.runs) == 2
    env.run_all()


def peak_memory(env, worker):
    """Run everything, one task at a time in order of priority; the most values held at once."""
    peak = 0
    while worker.runs:
        first = min(worker.runs, key=lambda i: worker.order[i])
        env.finish(worker, worker.runs[first][1])
        peak = max(peak, len(worker.values))
    return peak


def branches(n, width):
    """``n`` branches of ``width`` inputs each, reduced to one value, and these to a total."""
    tasks = {}
    for i in range(n):
        for j in range(width):
            tasks[f"load-{i}-{j}"] = []
            tasks[f"clean-{i}-{j}"] = [f"load-{i}-{j}"]
        tasks[f"sum-{i}"] = [f"clean-{i}-{j}" for j in range(width)]
    level = [f"sum-{i}" for i in range(n)]
    depth = 0
    while len(level) > 1:
        depth += 1
        merged = []
        for k in range(0, len(level), 2):
            tasks[f"total-{depth}-{k}"] = level[k : k + 2]
            merged.append(f"total-{depth}-{k}")
        level = merged
    return tasks, level[0]


@pytest.mark.parametrize("mixed", [False, True])
def test_a_graph_of_many_branches_holds_few_inputs_at_once(mixed):
    env = BrainEnv()
    worker, client = env.worker(), env.client()
    tasks, top = branches(32, 4)
    if mixed:  # rows in the order that is worst: all inputs first
        tasks = dict(sorted(tasks.items(), key=lambda item: item[0], reverse=True))
    env.graph(client, tasks, want=[top])
    assert peak_memory(env, worker) <= 4 + 2 + 8


def test_order_goes_down_the_deepest_branch_first():
    n = 20
    # row i: load i; row n + i: sum of load i and of the sum before it, named after the load
    dependencies = [() for _ in range(n)] + [(i, n + i - 1) if i else (0,) for i in range(n)]
    sequence = depth_first(tuple(dependencies), 0)
    place = {row: k for k, row in enumerate(sequence)}
    for i in range(1, n):
        assert place[i] > place[n + i - 2 if i > 1 else 0], "a load came long before it is used"


def test_order_lets_consumers_follow_while_an_input_is_in_memory():
    # loads 0..9, each used by two reductions of all
    n = 10
    low = [(i,) for i in range(n)]
    dependencies = [() for _ in range(n)] + low + low + [tuple(range(n, 2 * n)), tuple(range(2 * n, 3 * n))]
    sequence = depth_first(tuple(dependencies), 0)
    place = {row: k for k, row in enumerate(sequence)}
    for i in range(n - 1):
        assert max(place[n + i], place[2 * n + i]) < place[i + 1]


def test_order_keeps_pairs_together_under_common_roots():
    # two roots, each with many dependents; sums of pairs
    n = 30
    dependencies = [(), ()] + [(0,)] * n + [(1,)] * n + [(2 + i, 2 + n + i) for i in range(n)]
    sequence = depth_first(tuple(dependencies), 0)
    held = peak = 0
    for row in sequence:
        if 2 <= row < 2 + 2 * n:
            held += 1
        elif row >= 2:
            held -= 2
        peak = max(peak, held)
    assert peak <= 2


def test_order_of_rows_without_dependencies_among_them_is_theirs():
    assert depth_first(((), (-1,), ()), 1) is None
    with pytest.raises(ValueError, match="cycle"):
        depth_first(((1,), (2,), (0,)), 0)
