"""Real work on real clusters: results are right, whoever runs the tasks and however their data moves."""

from __future__ import annotations

import threading
import time
from operator import add

import numpy as np
import pytest

from gnomon.runtime import Client, LocalCluster, as_completed, wait


def inc(x):
    return x + 1


def double(x, factor=2):
    return x * factor


def total(values):
    return sum(values)


def make(n, seed=0):
    return np.random.default_rng(seed).integers(0, 255, n, dtype="u1")


def checksum(array):
    return int(array.sum(dtype="u8"))


def slow(x, seconds=0.05):
    time.sleep(seconds)
    return x


def test_map_and_gather_many(any_client):
    futures = any_client.map(inc, range(3000))
    assert any_client.gather(futures) == list(range(1, 3001))


def test_a_tree_of_submits(any_client):
    level = any_client.map(inc, range(256), pure=False)
    while len(level) > 1:
        level = [any_client.submit(add, *level[i : i + 2], pure=False) for i in range(0, len(level), 2)]
    assert level[0].result(timeout=60) == sum(range(1, 257))


def test_futures_anywhere_in_the_arguments(any_client):
    a, b = any_client.submit(inc, 1), any_client.submit(inc, 2)
    assert any_client.submit(total, [a, b, 10]).result(timeout=30) == 15
    assert any_client.submit(double, a, factor=b).result(timeout=30) == 6
    nested = any_client.submit(lambda d: d["x"][0] + d["y"]["z"], {"x": [a], "y": {"z": b}})
    assert nested.result(timeout=30) == 5


def test_raw_graph(any_client):
    graph = {
        "x": 1,
        "y": (inc, "x"),
        ("z", 0): (add, "y", 10),
        ("z", 1): (total, ["x", "y", ("z", 0)]),
        "alias": ("z", 1),
    }
    assert any_client.get(graph, "alias") == 15
    assert any_client.get(graph, [("z", 1), ["y", "x"]]) == [15, [2, 1]]


def test_all_to_all(any_client):
    m = 12
    graph = {("in", i): (inc, i) for i in range(m)}
    for i in range(m):
        for j in range(m):
            graph["split", i, j] = (add, ("in", i), j)
    for j in range(m):
        graph["out", j] = (total, [("split", i, j) for i in range(m)])
    expected = [sum(i + 1 + j for i in range(m)) for j in range(m)]
    assert any_client.get(graph, [("out", j) for j in range(m)]) == expected


@pytest.mark.parametrize("protocol", ["tcp", "tls"])
def test_large_arrays_move_between_workers_and_to_the_client(protocol):
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, security=protocol == "tls") as cluster,
        Client(cluster) as client,
    ):
        first, second = client.scheduler_info()["workers"]
        made = client.submit(make, 20_000_000, workers=[first], pure=False)
        there = client.submit(checksum, made, workers=[second], pure=False)
        here = made.result(timeout=60)
        assert checksum(here) == there.result(timeout=60) == checksum(make(20_000_000))
        here[0] = 1  # what arrives is the receiver's own


def test_scatter(any_client):
    small, large = any_client.scatter([7, make(5_000_000)])
    assert any_client.submit(inc, small).result(timeout=30) == 8
    assert any_client.submit(checksum, large).result(timeout=30) == checksum(make(5_000_000))
    mapping = any_client.scatter({"a": 1, "b": 2})
    assert any_client.gather(mapping) == {"a": 1, "b": 2}


def test_scatter_broadcast(client):
    future = client.scatter(make(3_000_000), broadcast=True)
    deadline = time.monotonic() + 10
    while len(client.who_has([future])[future.key]) < 2:  # each worker tells the scheduler by itself
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_as_completed_and_wait(any_client):
    futures = [any_client.submit(slow, i, 0.01 * (4 - i), pure=False) for i in range(4)]
    assert sorted(future.result() for future in as_completed(futures)) == [0, 1, 2, 3]
    done, not_done = wait(futures, timeout=10)
    assert len(done) == 4
    assert not not_done


def test_async_client():
    import asyncio

    async def work():
        async with (
            LocalCluster(n_workers=2, threads_per_worker=1, processes=False, asynchronous=True) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            future = client.submit(inc, 1)
            assert await future == 2
            return await client.gather(client.map(inc, range(50)))

    assert asyncio.run(work()) == list(range(1, 51))


def test_objects_pass_by_reference_inside_one_process():
    with LocalCluster(n_workers=1, threads_per_worker=2, processes=False) as cluster, Client(cluster) as client:
        lock = threading.Lock()
        assert client.submit(lambda held: held, lock, pure=False).result(timeout=30) is lock
        made = client.submit(threading.Lock, pure=False)
        assert client.submit(id, made, pure=False).result(timeout=30) == id(made.result(timeout=30))


def test_pure_calls_share_a_key_and_impure_ones_do_not(client):
    assert client.submit(inc, 5).key == client.submit(inc, 5).key
    assert client.submit(inc, 5, pure=False).key != client.submit(inc, 5, pure=False).key


def test_restrictions_are_kept(client):
    _, second = client.scheduler_info()["workers"]
    futures = client.map(inc, range(20), workers=[second], pure=False)
    wait(futures, timeout=30)
    assert {tuple(a) for a in client.who_has(futures).values()} == {(second,)}


def test_released_results_are_forgotten(client):
    futures = client.map(make, [1000] * 10, range(10), pure=False)
    wait(futures, timeout=30)
    del futures
    deadline = time.monotonic() + 10
    while any(client.has_what().values()):
        assert time.monotonic() < deadline, client.has_what()
        time.sleep(0.01)


def test_late_workers_get_work():
    with LocalCluster(n_workers=1, threads_per_worker=1) as cluster, Client(cluster) as client:
        futures = client.map(slow, range(100), pure=False)
        cluster.scale(2)
        client.wait_for_workers(2, timeout=30)
        wait(futures, timeout=60)
        holders = {address for addresses in client.who_has(futures).values() for address in addresses}
        assert len(holders) == 2


def test_run_calls_a_function_on_every_worker(client):
    import os

    pids = client.run(os.getpid)
    assert len(set(pids.values())) == 2


def test_tasks_can_use_the_cluster(client):
    def fan_out(n):
        from gnomon.runtime import worker_client

        with worker_client() as inner:
            return sum(inner.gather(inner.map(inc, range(n), pure=False)))

    assert client.submit(fan_out, 10, pure=False).result(timeout=60) == 55
