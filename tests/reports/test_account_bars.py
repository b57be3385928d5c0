"""The time account of real clusters adds up, for work of every kind; run with ``-s`` it prints the accounts.

These compute for half a minute each and want processors of their own.
"""

from __future__ import annotations

import calendar
import os
import time

import pytest

from gnomon.reports import performance_report
from gnomon.reports.account import PARTS, account
from gnomon.reports.page.sentences import closing
from gnomon.reports.recording import TICKS
from gnomon.runtime import Client, LocalCluster
from gnomon.runtime.cli.workloads import shuffle, stdlib
from gnomon.runtime.client import wait

#: Threads, and what share of their capacity nobody may be able to say anything about.
WORKERS, THREADS = 2, 2
UNACCOUNTED = 0.01

#: Functions of the standard library: unpickling one of our own would import the tests on the worker, within a run.
WORKLOADS = {
    "stdlib": lambda client: stdlib.submit(client, stdlib.find_files()[::4]),
    "shuffle": lambda client: shuffle.submit(client, 30).futures,
    "10k empty tasks": lambda client: client.map(bool, range(10_000)),
    "sleeping tasks": lambda client: client.map(time.sleep, [0.05] * 100, pure=False),
    "tasks that hold the lock": lambda client: client.map(sum, [range(1_500_000)] * 200, pure=False),  # one call in C
    "tasks that share the lock": lambda client: client.map(calendar.calendar, range(1800, 2000)),
}


#: Those that take long run in processes of their own alone.
CASES = [(name, True) for name in WORKLOADS] + [(name, False) for name in list(WORKLOADS)[2:]]


def told(name, result):
    """The account in lines of text."""
    lines = [f"{name}: {result.tasks} tasks, {result.threads} threads"]
    for part, ticks in zip(PARTS, result.parts.values(), strict=True):
        lines.append(f"  {part:12} {ticks / TICKS:9.3f} s {100 * ticks / result.capacity:6.2f} %")
    return "\n".join([*lines, "  " + closing(result)])


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "processes"), CASES, ids=lambda each: each if type(each) is str else ["threads", "processes"][each]
)
def test_the_account_adds_up(name, processes, tmp_path):
    if name == "shuffle" and not shuffle.is_available():
        pytest.skip("dask's data frames are not installed")
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=THREADS, processes=processes) as cluster,
        Client(cluster) as client,
    ):
        client.run(os.getpid)  # the executors are there
        with performance_report(tmp_path / "r.html", client=client) as report:
            wait(WORKLOADS[name](client), timeout=200)
    recording = report.recording
    result = account(recording)
    print("\n" + told(f"{name} ({'processes' if processes else 'threads'})", result))
    parts = result.parts.values()
    assert min(parts) >= 0
    assert sum(parts) == result.capacity
    assert result.capacity == WORKERS * THREADS * recording.duration
    for worker in result.workers:
        assert sum(worker.parts.values()) == worker.capacity
    assert sum(prefix.parts.busy for prefix in result.prefixes) == result.parts.busy
    assert result.parts.unaccounted <= UNACCOUNTED * result.capacity
    assert result.alongside <= UNACCOUNTED * result.capacity
