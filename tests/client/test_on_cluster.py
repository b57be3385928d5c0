"""The client on a real cluster within this process: what a scripted scheduler can't show."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from typing import Any, NamedTuple

import pytest

from gnomon.runtime.client import Client, as_completed, get_client, secede, wait, worker_client
from gnomon.runtime.deploy import LocalCluster

DEADLINE = 30


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=2, processes=False) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster, timeout=DEADLINE) as client:
        yield client


@pytest.fixture(autouse=True)
def no_thread_is_left():
    """The cluster of this module keeps its own threads."""


def inc(x):
    return x + 1


def sum_of_tasks(n):
    with worker_client() as client:
        return sum(client.gather(client.map(inc, range(n), pure=False)))


def submit_only(n):
    return get_client().submit(inc, n)


def value_of(holder):
    with worker_client():
        return holder.future.result(timeout=DEADLINE)


def seceding():
    secede()
    return get_client().submit(inc, 1, pure=False).result(timeout=DEADLINE)


class Holder:
    """Hides a future from the search for arguments."""

    def __init__(self, future):
        self.future = future


def test_trees_of_tasks(client):
    level = client.map(inc, range(64), pure=False)
    while len(level) > 1:
        level = [client.submit(lambda a, b: a + b, *level[i : i + 2], pure=False) for i in range(0, len(level), 2)]
    assert level[0].result(timeout=DEADLINE) == sum(range(1, 65))


def test_tasks_submit_tasks_and_wait_for_them_without_holding_their_threads(client):
    futures = client.map(sum_of_tasks, [3] * 8, pure=False)
    wait(futures, timeout=DEADLINE)
    assert client.gather(futures) == [6] * 8
    assert client.gather(client.map(lambda _: seceding(), range(8), pure=False)) == [2] * 8


def test_futures_travel_inside_objects_and_as_results(client):
    future = client.submit(inc, 1, pure=False)
    assert client.submit(value_of, Holder(future), pure=False).result(timeout=DEADLINE) == 2
    assert client.submit(submit_only, 5, pure=False).result(timeout=DEADLINE).result(timeout=DEADLINE) == 6


def test_large_values_come_and_go(client):
    data = list(range(200_000))
    [future] = client.scatter([data], timeout=DEADLINE)
    assert client.submit(sum, future).result(timeout=DEADLINE) == sum(data)
    spread = client.scatter({"everywhere": data}, broadcast=True, timeout=DEADLINE)
    assert len(client.who_has(spread)["everywhere"]) == 2
    assert len(client.gather(client.submit(list, future))) == len(data)


def test_a_key_that_is_cancelled_and_defined_anew_gives_the_new_value(client):
    started, go_on = threading.Event(), threading.Event()

    def slow():
        started.set()
        go_on.wait(DEADLINE)
        return "old"

    old = client.submit(slow, key="twice")
    assert started.wait(DEADLINE)
    old.cancel()
    new = client.submit(lambda: "new", key="twice")
    go_on.set()
    assert new.result(timeout=DEADLINE) == "new"
    assert old.cancelled()


def test_two_clients_share_a_key_and_one_may_leave(cluster, client):
    with Client(cluster, set_as_default=False, timeout=DEADLINE) as other:
        theirs = other.submit(inc, 41)
        mine = client.submit(inc, theirs)
        assert mine.result(timeout=DEADLINE) == 43
        shared = client.submit(inc, 41)
        assert shared.key == theirs.key
        assert theirs.result(timeout=DEADLINE) == 42
    assert shared.result(timeout=DEADLINE) == 42


def test_dask_inside_a_task(client):
    array = pytest.importorskip("dask.array")

    def inner():
        return float(array.ones((20, 20), chunks=5).sum().compute())

    assert client.gather(client.map(lambda _: inner(), range(6), pure=False)) == [400.0] * 6


def test_a_shuffle_of_dask(client):
    dask = pytest.importorskip("dask")
    pandas = pytest.importorskip("pandas")
    frame = pytest.importorskip("dask.dataframe")
    df = frame.from_pandas(pandas.DataFrame({"x": range(200), "y": [i % 13 for i in range(200)]}), npartitions=10)
    with dask.config.set({"dataframe.shuffle.method": "tasks"}):
        assert sum(df.shuffle("y").map_partitions(len).compute()) == 200


def test_asynchronous_clients_of_a_cluster_of_their_own():
    async def main():
        async with Client(asynchronous=True, n_workers=1, processes=False, timeout=DEADLINE) as client:
            assert await client.gather(client.map(inc, range(5))) == [1, 2, 3, 4, 5]
            assert sorted([r async for _, r in as_completed(client.map(inc, range(3)), with_results=True)]) == [1, 2, 3]
            assert await client.get({"x": 1, "y": (inc, "x")}, "y") == 2

    asyncio.run(main())


def seen_from_a_task():
    return get_client().scheduler_address


def test_the_client_of_tasks_goes_with_their_cluster():
    before = set(threading.enumerate())
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False) as own, Client(own) as client:
        address = client.submit(seen_from_a_task).result(timeout=DEADLINE)
        assert address == own.scheduler_address
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("gnomon"):
            thread.join(DEADLINE)
            assert not thread.is_alive(), thread.name
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False) as own, Client(own) as client:
        assert client.submit(seen_from_a_task).result(timeout=DEADLINE) != address


def test_a_program_that_ends_without_closing_leaves_quietly():
    script = """
        from gnomon.runtime import Client
        client = Client(n_workers=1, threads_per_worker=1)
        futures = client.map(abs, range(-5, 0))
        print(sum(client.gather(futures)), client.submit(__import__("os").getpid).result())
        more = client.map(abs, range(1000))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60, check=False
    )
    total, pid = done.stdout.split()
    assert (total, done.stderr, done.returncode) == ("15", "", 0)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


class Pair(NamedTuple):
    first: Any
    rest: Any


def test_futures_in_named_tuples(client):
    futures = client.map(inc, range(3))
    told = client.submit(lambda pair: (type(pair).__name__, pair.first + sum(pair.rest)), Pair(futures[0], futures[1:]))
    assert told.result(timeout=DEADLINE) == ("Pair", 6)
    assert client.gather([Pair(futures[0], futures[1:])]) == [Pair(1, [2, 3])]
    inside = client.submit(lambda pairs: pairs[0].rest[1], [Pair(None, futures[:2])])
    assert inside.result(timeout=DEADLINE) == 2


def test_futures_in_named_tuples_in_sets(client):
    one, two = client.map(inc, range(2))
    told = client.submit(sorted, {Pair(one, 0), Pair(two, 0)})
    assert told.result(timeout=DEADLINE) == [Pair(1, 0), Pair(2, 0)]
