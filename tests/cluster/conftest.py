"""Real clusters for the tests of this folder: processes, sockets, files."""

from __future__ import annotations

import threading

import psutil
import pytest

from gnomon.runtime import Client, LocalCluster


@pytest.fixture(scope="module")
def cluster():
    """Two workers of one thread each, in processes of their own."""
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=30)
        yield client


@pytest.fixture(params=["processes", "threads"])
def any_client(request):
    """A client of a cluster of each kind."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=request.param == "processes") as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True, scope="module")
def nothing_left():
    """Clusters leave no process and no thread behind."""
    me = psutil.Process()
    before = {child.pid for child in me.children(recursive=True)}
    threads = set(threading.enumerate())
    yield
    left = [child for child in me.children(recursive=True) if child.pid not in before]
    _, alive = psutil.wait_procs(left, timeout=10)
    assert not alive
    new = [thread for thread in threading.enumerate() if thread not in threads]
    for thread in new:
        thread.join(5)
    assert not [thread for thread in new if thread.is_alive()]
