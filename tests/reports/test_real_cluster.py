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


def spin(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
    return bytes(200_000)


@pytest.mark.timeout(60)
def test_deep_profiles_fetches_and_the_loop_are_told(tmp_path):
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False) as cluster,
        Client(cluster) as client,
    ):
        client.submit(spin, 0.03, profile=True, key="before").result()
        with performance_report(tmp_path / "r.html", client=client) as report:
            made = [
                client.submit(spin, 0.05, profile=True, key=f"made-{i}", workers=worker, allow_other_workers=False)
                for i, worker in enumerate(client.scheduler_info()["workers"])
            ]
            client.submit(lambda *values: len(values), *made, key="joined").result()
    recording = report.recording
    assert sorted(each.key for each in recording.task_profiles) == ["made-0", "made-1"]
    for each in recording.task_profiles:
        assert "spin" in {row[0].rpartition(".")[2] for row in each.session["functions"]}
    assert sum(pair.fetches for pair in recording.pairs) == len(recording.transfers) >= 1
    for pair in recording.pairs:
        assert 0 <= pair.hold + pair.serialise <= pair.ticks
    assert sum(each.nbytes for each in recording.types) == sum(pair.nbytes for pair in recording.pairs)
    assert {clock.worker for clock in recording.clocks} == {0, 1}
    assert sum(part.ticks for part in recording.loop) == pytest.approx(recording.duration, rel=0.02, abs=TICKS // 50)
    page = build_page(recording)
    for text in ("Deep profiles of chosen tasks", "By type of value", "Clocks of the workers"):
        assert text in page
