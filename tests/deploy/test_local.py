"""LocalCluster with real schedulers and workers, in processes and in threads, from sync and async code."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
import time

import psutil
import pytest

from gnomon.runtime.client import Client
from gnomon.runtime.comm import Security
from gnomon.runtime.deploy import LocalCluster
from gnomon.runtime.errors import ClusterError


def inc(x):
    return x + 1


def descendants():
    return psutil.Process().children(recursive=True)


KINDS = [
    pytest.param({"processes": True}, id="processes"),
    pytest.param({"processes": False}, id="threads"),
    pytest.param({"processes": False, "protocol": "tcp"}, id="threads-tcp"),
]


@pytest.mark.parametrize("options", KINDS)
def test_runs_tasks(options):
    with LocalCluster(2, 1, **options) as cluster, Client(cluster) as client:
        assert cluster.status == "running"
        assert client.submit(inc, 1).result(timeout=30) == 2
        assert client.gather(client.map(inc, range(20))) == list(range(1, 21))
        assert sorted(cluster.workers) == ["0", "1"]
        assert len(client.nthreads()) == 2
    assert cluster.status == "closed"


@pytest.mark.parametrize("options", KINDS)
def test_async(options):
    async def main():
        async with LocalCluster(2, 1, asynchronous=True, **options) as cluster:
            assert cluster.loop is asyncio.get_running_loop()
            async with Client(cluster, asynchronous=True) as client:
                assert await client.submit(inc, 1) == 2
            await cluster.wait_for_workers(2, timeout=30)
            assert len(cluster.scheduler_info["workers"]) == 2
        assert cluster.status == "closed"
        cluster = await LocalCluster(1, asynchronous=True, **options)
        await cluster.close()
        await cluster.close()

    asyncio.run(main())


def test_processes_are_apart():
    with LocalCluster(2, 1) as cluster, Client(cluster) as client:
        children = {child.pid for child in psutil.Process().children()}
        assert len(children) == 3
        assert {unit.pid for unit in cluster.workers.values()} < children
        assert client.submit(os.getpid).result(timeout=30) not in {*children, os.getpid()}
        assert cluster.scheduler_address.startswith("tcp://127.0.0.1:")
    assert not descendants()


def test_in_process_stays_in_process():
    with LocalCluster(processes=False) as cluster, Client(cluster) as client:
        assert client.submit(os.getpid).result(timeout=30) == os.getpid()
        assert cluster.scheduler_address.startswith("inproc://")
        lock = threading.Lock()
        assert client.submit(lambda x: x, lock).result(timeout=30) is lock
        assert not descendants()


def test_tls():
    with LocalCluster(1, security=True) as cluster, Client(cluster) as client:
        assert cluster.scheduler_address.startswith("tls://")
        assert isinstance(cluster.security, Security)
        assert client.submit(inc, 1).result(timeout=30) == 2


def test_what_it_says_of_itself():
    with LocalCluster(
        2, 3, name="sundial", resources={"GPU": 2}, memory_limit="1 GB", dashboard_address=None
    ) as cluster:
        assert repr(cluster) == f"LocalCluster('sundial', '{cluster.scheduler_address}', workers=2, threads=6)"
        cluster.wait_for_workers(2, timeout=30)
        info = cluster.scheduler_info
        assert info["address"] == cluster.scheduler_address
        rows = {str(row["name"]): row for row in info["workers"].values()}
        assert sorted(rows) == ["0", "1"]
        assert rows["0"]["nthreads"] == 3
        assert dict(rows["0"]["resources"]) == {"GPU": 2}
        assert rows["0"]["memory_limit"] == 10**9
        assert cluster.worker_spec["1"]["options"]["nthreads"] == 3
    with pytest.raises(ClusterError, match="closed"):
        cluster.scale(1)


@pytest.mark.parametrize("options", KINDS)
def test_scale(options):
    with LocalCluster(1, 1, **options) as cluster, Client(cluster) as client:
        cluster.scale(3)
        cluster.wait_for_workers(3, timeout=30)
        assert sorted(cluster.workers) == ["0", "1", "2"]
        futures = client.map(inc, range(30))
        client.gather(futures)
        cluster.scale(1)
        assert sorted(cluster.workers) == ["0"]
        assert client.gather(futures) == list(range(1, 31))
        with pytest.raises(ValueError, match="-1"):
            cluster.scale(-1)


def test_get_client():
    with LocalCluster(1) as cluster, cluster.get_client() as client:
        assert client.submit(inc, 1).result(timeout=30) == 2


def test_no_workers():
    with LocalCluster(0) as cluster, Client(cluster) as client:
        future = client.submit(inc, 1)
        with pytest.raises(TimeoutError):
            cluster.wait_for_workers(1, timeout=0.1)
        cluster.scale(1)
        assert future.result(timeout=30) == 2


def test_a_killed_agent_is_replaced(wait_until, caplog):
    with LocalCluster(1) as cluster, Client(cluster) as client:
        killed = cluster.workers["0"].pid
        with caplog.at_level(logging.WARNING):
            os.kill(killed, signal.SIGKILL)
            wait_until(lambda: (unit := cluster.workers.get("0")) and unit.pid != killed and unit.address)
        assert client.submit(inc, 1).result(timeout=30) == 2
    assert "was killed by SIGKILL" in caplog.text


def test_a_killed_scheduler_is_told(wait_until, caplog):
    with LocalCluster(2) as cluster:
        pids = [child.pid for child in descendants()]
        workers = {unit.pid for unit in cluster.workers.values()}
        (scheduler,) = {child.pid for child in psutil.Process().children()} - workers
        with caplog.at_level(logging.ERROR):
            os.kill(scheduler, signal.SIGKILL)
            wait_until(lambda: cluster.status == "failed")
        wait_until(lambda: not [pid for pid in pids if psutil.pid_exists(pid)], "the end of the workers")
    assert "was killed by SIGKILL" in caplog.text


@pytest.mark.parametrize("options", KINDS)
def test_failure_to_start_leaves_nothing(options):
    with pytest.raises(ClusterError, match="could not start"):
        LocalCluster(2, host="192.0.2.1", **{**options, "protocol": "tcp"})
    assert not descendants()


def test_bad_worker_argument():
    with pytest.raises(ClusterError, match="no_such_option"):
        LocalCluster(1, no_such_option=1)
    assert not descendants()


def test_bad_arguments():
    with pytest.raises(ValueError, match="protocol"):
        LocalCluster(1, protocol="pigeon")
    with pytest.raises(ValueError, match="inproc"):
        LocalCluster(1, protocol="inproc")
    with pytest.raises(TypeError, match="async with"), LocalCluster(1, asynchronous=True):
        pass


def test_secret_stays_off_the_process_table(monkeypatch):
    secret = "a secret of the tests 0123456789"
    with LocalCluster(1, security=Security(secret=secret)) as cluster, Client(cluster) as client:
        assert client.submit(inc, 1).result(timeout=30) == 2
        children = descendants()
        assert len(children) == 3
        texts = [text for child in children for text in (*child.cmdline(), *child.environ().values())]
        hidden = (secret, secret.encode().hex())
        assert not [text for text in texts if any(form in text for form in hidden)]
        assert "GNOMON_SECRET" not in client.submit(lambda: dict(os.environ)).result(timeout=30)


def test_close_is_quick_beside_a_running_task(gone):
    with LocalCluster(1) as cluster, Client(cluster) as client:
        future = client.submit(time.sleep, 600)
        pids = [child.pid for child in descendants()]
        del future
    gone(pids, timeout=1)


def test_ctrl_c_while_it_starts(wait_until):
    started = threading.Event()

    def interrupt():
        started.wait(30)
        wait_until(descendants, "a child")
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the interrupt may come late
        started.set()
        LocalCluster(3)
        thread.join(30)
    thread.join(30)
    wait_until(lambda: not descendants(), "the end of the children")


def test_sync_cluster_from_inside_a_running_loop():
    async def main():
        with LocalCluster(1) as cluster, Client(cluster) as client:
            return client.submit(inc, 1).result(timeout=30)

    assert asyncio.run(main()) == 2


def test_on_the_loop_of_another_thread():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        with LocalCluster(1, processes=False, loop=loop) as cluster, Client(cluster) as client:
            assert cluster.loop is loop
            assert client.submit(inc, 1).result(timeout=30) == 2
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


def test_client_without_an_address():
    with Client(n_workers=1, processes=False) as client:
        assert client.submit(inc, 1).result(timeout=30) == 2


def test_shutdown_by_a_client(wait_until):
    with LocalCluster(1) as cluster:
        Client(cluster).shutdown()
        wait_until(lambda: cluster.status == "closed")
        wait_until(lambda: not descendants(), "the end of all processes")
