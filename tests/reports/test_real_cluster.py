"""A report of a cluster that really runs: what it says agrees with what the tasks themselves counted."""

from __future__ import annotations

import time

import pytest

from gnomon.reports import performance_report
from gnomon.reports.account import account
from gnomon.reports.page import build_page
from gnomon.reports.recording import TICKS
from gnomon.runtime import Client, LocalCluster


def rest(_):
    began = time.perf_counter()
    time.sleep(0.05)
    return time.perf_counter() - began


@pytest.mark.timeout(60)
def test_sleeping_tasks_are_off_the_processor(tmp_path):
    with (
        LocalCluster(n_workers=2, threads_per_worker=2, processes=False) as cluster,
        Client(cluster) as client,
        performance_report(tmp_path / "r.html", client=client) as report,
    ):
        counted = sum(client.gather(client.map(rest, range(100))))
    recording = report.recording
    result = account(recording)
    assert result.tasks == 100
    assert sum(result.parts.values()) == result.capacity
    assert "offcpu" not in result.unmeasured
    assert (result.parts.compute + result.parts.offcpu) / TICKS == pytest.approx(counted, rel=0.02)
    assert result.parts.offcpu / TICKS == pytest.approx(counted, rel=0.02)
    assert result.parts.unaccounted <= 0.01 * result.capacity
    assert "Where did the time go?" in build_page(recording)
