"""Processes die, at any time and of anything: what can be computed again is, and nobody waits for ever."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from gnomon.runtime import Client, LocalCluster, wait
from gnomon.runtime.errors import FutureLostError, GnomonError


def inc(x):
    return x + 1


def slow(x, seconds=0.05):
    time.sleep(seconds)
    return x


def big(i):
    return bytes([i]) * 200_000


def pid_after(seconds):
    time.sleep(seconds)
    return os.getpid()


def hold_gil(seconds):
    """Keep the interpreter's lock for a while, inside C."""
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))


def agents(cluster):
    """Process ids of the worker agents, by name."""
    with Client(cluster) as client:
        return {info["name"]: info["pid"] for info in client.scheduler_info()["workers"].values()}


@pytest.fixture
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=30)
        yield client


def test_an_executor_that_is_killed_is_replaced_and_its_results_computed_again(client):
    futures = client.map(big, range(20), pure=False)
    wait(futures, timeout=30)
    for pid in client.run(os.getpid).values():
        os.kill(pid, signal.SIGKILL)
    assert client.gather(futures) == [big(i) for i in range(20)]


def test_an_agent_that_is_killed_loses_nothing_that_can_be_computed_again(cluster, client):
    futures = client.map(big, range(20), pure=False)
    sums = client.map(len, client.map(slow, futures), pure=False)
    os.kill(next(iter(agents(cluster).values())), signal.SIGKILL)
    assert client.gather(sums) == [200_000] * 20


def test_scattered_data_that_is_lost_says_so(cluster, client):
    future = client.scatter(b"x" * 1_000_000)
    for pid in client.run(os.getpid).values():
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(GnomonError):
        client.submit(len, future).result(timeout=30)


def test_waiting_calls_end_when_the_scheduler_dies(cluster, client):
    future = client.submit(slow, 1, 60, pure=False)
    pids = [psutil.Process(pid) for pid in agents(cluster).values()]
    pids += [child for process in pids for child in process.children()]
    os.kill(client.scheduler_info()["pid"], signal.SIGKILL)
    with pytest.raises((FutureLostError, GnomonError)):
        future.result(timeout=30)
    _, alive = psutil.wait_procs(pids, timeout=30)
    assert not alive


def test_a_task_that_holds_the_gil_stops_neither_heartbeats_nor_the_other_worker(client):
    first, second = client.scheduler_info()["workers"]
    client.submit(inc, 0, workers=[first], pure=False).result(timeout=30)
    held = client.submit(hold_gil, 3.0, workers=[first], pure=False)
    started = time.monotonic()
    seen, round_trips = set(), 0
    while not held.done() and time.monotonic() - started < 30:
        assert client.submit(inc, round_trips, workers=[second], pure=False).result(timeout=2) == round_trips + 1
        seen.add(client.scheduler_info()["workers"][first]["last_seen"])
        round_trips += 1
    assert len(seen) >= 2
    assert round_trips > 10


SCRIPT = """
import time
from gnomon.runtime import Client, LocalCluster
cluster = LocalCluster(n_workers=2, threads_per_worker=1)
client = Client(cluster)
futures = [client.submit(time.sleep, 60, pure=False) for _ in range(4)]
client.submit(len, "up", pure=False)
print("ready", flush=True)
client.gather(futures)
"""


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_when_the_users_process_ends(sent, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = dict(os.environ, TMPDIR=str(tmp_path))
    process = subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) >= 5  # scheduler, two agents, two executors
    process.send_signal(sent)
    process.wait(30)
    process.stdout.close()
    _, alive = psutil.wait_procs(family, timeout=20)
    for left in alive:
        left.kill()
    assert not alive
    if sent == signal.SIGINT:
        assert sorted(path.name for path in tmp_path.iterdir()) == ["script.py"]
