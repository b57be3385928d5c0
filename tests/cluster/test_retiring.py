"""Fewer workers: what runs may end, what only the leaving ones hold is moved, nothing is computed twice."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gnomon.runtime import Client, LocalCluster, config, wait
from gnomon.runtime.scheduler import Scheduler
from gnomon.runtime.worker import Worker


def noted(folder, i):
    """A value that no message carries; each run leaves a file."""
    (folder / f"{i}-{uuid.uuid4().hex}").touch()
    return np.full(100_000, i)


def until_told(folder, i):
    """Runs until there is a file of the name ``go``."""
    (folder / f"{i}-{uuid.uuid4().hex}").touch()
    while not (folder / "go").exists():
        time.sleep(0.01)
    return np.full(100_000, i)


def runs(folder):
    return sorted(int(path.name.partition("-")[0]) for path in folder.iterdir() if path.name != "go")


@pytest.fixture(params=["processes", "threads", "tls"])
def cluster(request):
    options = {"processes": request.param != "threads"}
    if request.param == "tls":
        options |= {"security": True}
    with LocalCluster(n_workers=3, threads_per_worker=1, **options) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        client.wait_for_workers(3, timeout=30)
        yield client


def test_scaling_down_moves_what_only_the_leaving_hold(cluster, client, tmp_path):
    futures = client.map(noted, [tmp_path] * 30, range(30), pure=False)
    brought = client.scatter(np.arange(200_000))
    everywhere = client.scatter(np.arange(300_000), broadcast=True)
    wait(futures, timeout=30)
    cluster.scale(1)
    assert len(client.nthreads()) == 1
    assert [int(value[0]) for value in client.gather(futures)] == list(range(30))
    assert int(client.submit(np.sum, brought).result(timeout=30)) == sum(range(200_000))
    assert int(client.submit(np.sum, everywhere).result(timeout=30)) == sum(range(300_000))
    assert runs(tmp_path) == list(range(30))


def test_running_tasks_end_before_their_worker_leaves(cluster, client, tmp_path):
    futures = client.map(until_told, [tmp_path] * 12, range(12), pure=False)
    while len(runs(tmp_path)) < 3:
        time.sleep(0.01)
    leaving = list(client.nthreads())[:2]
    with ThreadPoolExecutor(1) as threads:
        retired = threads.submit(client.retire_workers, leaving)
        # What has not begun is taken from them; what runs is left to them.
        while any(len(keys) > 1 for keys in client.processing(leaving).values()):
            time.sleep(0.01)
        (tmp_path / "go").touch()
        assert set(retired.result(60)) == set(leaving)
    assert len(client.nthreads()) == 1
    assert [int(value[0]) for value in client.gather(futures)] == list(range(12))
    assert runs(tmp_path) == list(range(12))


def test_a_worker_that_closes_in_good_order_blames_no_task():
    """Even where no failure is allowed: its tasks begin again elsewhere."""

    async def main():
        scheduler = Scheduler(protocol="inproc")
        await scheduler.start()
        begun, end = threading.Event(), threading.Event()

        def task():
            begun.set()
            return end.wait(30)

        first = Worker(scheduler.address, nanny=False)
        await first.start()
        async with Client(scheduler.address, asynchronous=True, set_as_default=False) as client:
            future = client.submit(task, pure=False)
            await asyncio.to_thread(begun.wait, 30)
            second = Worker(scheduler.address, nanny=False)
            await second.start()
            await first.close()
            end.set()
            assert await future.result(timeout=30) is True
        await second.close()
        await scheduler.close()

    with config.set({"scheduler.allowed_failures": 0, "worker.close_grace": 0.1}):
        asyncio.run(main())
