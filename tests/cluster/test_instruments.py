"""Instruments of a real cluster: records of every process, profiles, spans, regions, deep profiles, call stacks."""

from __future__ import annotations

import threading
import time
from array import array

import pytest

from gnomon.profiler.marks.regions import region
from gnomon.profiler.sessions.session import Session
from gnomon.runtime import (
    Client,
    LocalCluster,
    MemorySampler,
    config,
    get_task_metadata,
    get_task_stream,
    span,
)
from gnomon.runtime.instruments.demand import ASSIGNED, QUEUED, READY
from gnomon.runtime.instruments.series import COLUMNS

DEADLINE = 30


def spin(seconds: float) -> float:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    return seconds


def doze(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def in_regions(seconds: float) -> float:
    with region("parse"):
        spin(seconds)
    with region("check"), region("parse"):
        spin(seconds)
    return seconds


def fail_after(seconds: float) -> None:
    spin(seconds)
    raise ValueError("as it should")


def until(condition, what: str):
    """What ``condition`` gives, once that is something."""
    deadline = time.monotonic() + DEADLINE
    while not (found := condition()):
        assert time.monotonic() < deadline, f"no {what} in {DEADLINE} s"
        time.sleep(0.05)
    return found


def rows_of(client, mark):
    """(worker, process) -> rows of measurements since a mark."""
    found: dict[tuple[int, int], list[dict[str, float]]] = {}
    for page in client.records_since(mark).pages:
        series = page["series"]
        values = array("d", series["values"])
        for i, owner in enumerate(
            zip(array("q", series["workers"]), array("b", series["processes"]), strict=True),
        ):
            row = dict(zip(COLUMNS, values[len(COLUMNS) * i : len(COLUMNS) * (i + 1)], strict=True))
            found.setdefault(owner, []).append(row)
    return found


def functions(session: Session) -> set[str]:
    return {function.name for function in session.functions}


def test_every_process_tells_of_itself(client):
    mark = client.request("telemetry_mark")
    client.gather(client.map(spin, [0.05] * 10, pure=False))
    everyone = {(0, 0), *((row[0], process) for row in mark["workers"] for process in (1, 2))}
    rows = until(lambda: (found := rows_of(client, mark)) and everyone <= set(found) and found, "row of each process")
    for (_, process), found in rows.items():
        assert found[-1]["memory"] > 5e6
        assert found[-1]["cpu"] >= 0
        if process < 2:
            assert any(0 <= row["busy"] <= 100 for row in found)
            assert all(row["lag_p50"] <= row["lag_max"] for row in found if row["lag_max"] == row["lag_max"])


def test_time_on_the_processor_is_told_apart(client):
    before = {row[0]: row[1:] for row in client.request("telemetry_mark")["prefix_cpu"]}
    client.gather(client.map(spin, [0.1] * 4, pure=False) + client.map(doze, [0.1] * 4, pure=False))
    after = {row[0]: row[1:] for row in client.request("telemetry_mark")["prefix_cpu"]}
    found = {}
    for name in ("spin", "doze"):
        cpu, compute = (new - old for new, old in zip(after[name], before.get(name, (0.0, 0.0)), strict=True))
        assert compute >= 0.4
        found[name] = cpu
    assert found["spin"] == pytest.approx(0.4, abs=0.04)
    assert 0 <= found["doze"] < 0.1


def test_short_runs_are_estimated_and_long_ones_among_them_measured(client):
    def some(seconds):
        if seconds:
            time.sleep(seconds)

    with get_task_stream(client) as stream:
        client.gather(client.map(some, [0] * 50 + [0.2] + [0] * 50, pure=False))
    assert len(stream.data) == 101
    known = [row["cpu"] for row in stream.data if row["cpu"] is not None]
    assert len(known) == 101
    longest = max(stream.data, key=lambda row: row["startstops"][-1]["stop"] - row["startstops"][0]["start"])
    assert longest["cpu"] < 0.1


def test_demand_comes_and_goes(client):
    mark = client.request("telemetry_mark")
    client.gather(client.map(doze, [0.02] * 40, pure=False))
    until(lambda: not client.request("telemetry_mark")["demand"], "end of all demand")
    state: dict[tuple[int, int], int] = {}
    seen = set()
    for page in client.records_since(mark).pages:
        demand = page["demand"]
        for worker, kind, value in zip(
            array("q", demand["workers"]), array("b", demand["kinds"]), array("b", demand["values"]), strict=True
        ):
            assert state.get((worker, kind), 0) != value
            state[worker, kind] = value
            seen.add((worker, kind))
    assert (0, QUEUED) in seen
    assert {(row[0], kind) for row in mark["workers"] for kind in (ASSIGNED, READY)} <= seen
    assert not any(state.values())


def test_profiles_of_tasks_workers_and_scheduler(client):
    until(lambda: client.profile().meta["ticks"], "sampler in the executors")
    began = time.time()
    client.gather(client.map(spin, [0.2] * 4, pure=False))
    session = client.profile("spin", start=began - 5)
    assert "spin" in functions(session)
    assert "Pool._main" not in functions(session)
    assert functions(client.profile("no such prefix")) == set()
    assert functions(client.profile(start=began + 3600)) == set()
    apart = client.profile(merge_workers=False)
    assert set(apart) <= set(client.scheduler_info()["workers"])
    one = client.profile(workers=[next(iter(apart))], merge_workers=False)
    assert list(one) == [next(iter(apart))]
    assert client.profile(server=True).meta["samples"]
    assert client.profile(scheduler=True).meta["samples"]
    with pytest.raises(ValueError, match="both"):
        client.profile(server=True, scheduler=True)


def test_samples_carry_the_prefix_of_each_key(client):
    until(lambda: client.profile().meta["ticks"], "sampler in the executors")
    keys = ["alpha-1", "beta-22", "beta-23", "two-words-7", "plain", ("tuple-5f1c0e2a", 3), "alpha-x"]
    client.gather([client.submit(spin, 0.3, key=key, pure=False) for key in keys])
    assert {"alpha", "beta", "two-words", "plain", "tuple", "alpha-x"} <= set(client.profile().labels)


def test_what_rested_wakes_with_work(client):
    def all_at_rest():
        mark = client.request("telemetry_mark")
        time.sleep(1.5)
        rows = [row for (_, process), found in rows_of(client, mark).items() if process == 2 for row in found]
        return rows and all(row["samples"] == 0 for row in rows)

    until(all_at_rest, "rest")
    began = time.time()
    client.gather(client.map(spin, [0.2] * 4, pure=False))
    assert "spin" in functions(client.profile(start=began - 1))


def test_a_profile_is_written_where_it_is_asked_for(client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    client.profile(plot=True)
    assert "<html" in (tmp_path / "gnomon-profile.html").read_text()[:500]
    client.profile(filename=tmp_path / "a.txt")
    assert (tmp_path / "a.txt").exists()
    with pytest.raises(ValueError, match="ending"):
        client.profile(filename=tmp_path / "a.xyz")


def test_call_stacks_of_running_tasks(client, tmp_path):
    go = tmp_path / "go"

    def wait_for_file():
        while not go.exists():
            time.sleep(0.01)

    future = client.submit(wait_for_file, pure=False)
    try:
        stacks = until(lambda: client.call_stack([future]), "stack")
        ((by_key),) = stacks.values()
        assert "wait_for_file" in by_key[future.key][0]
        assert future.key in next(iter(client.call_stack().values()))
        assert client.call_stack(keys=["nothing"]) == {}
    finally:
        go.touch()
    future.result()


def test_regions_of_tasks_are_told_by_prefix(client):
    until(lambda: client.profile().meta["ticks"], "sampler in the executors")
    before = {row[:2]: row[2:] for row in client.request("telemetry_mark")["regions"]}
    client.gather(client.map(in_regions, [0.02] * 3, pure=False))
    after = {row[:2]: row[2:] for row in client.request("telemetry_mark")["regions"]}
    nothing = (0, 0.0, 0.0)
    (parsed, inside, own), (checked, outside, own_outside) = (
        [new - old for new, old in zip(after[name], before.get(name, nothing), strict=True)]
        for name in (("in_regions", "parse"), ("in_regions", "check"))
    )
    assert (parsed, checked) == (6, 3)
    assert inside >= 0.12
    assert own <= inside
    assert own_outside < outside


def test_spans_group_tasks(client):
    with get_task_stream(client) as stream:
        with span("load", "2026"):
            inner = client.submit(doze, 0.0, pure=False)
            with span("parse"):
                many = client.map(doze, [0.0] * 3, pure=False)
        last = client.submit(doze, 0, pure=False)
        client.gather([inner, *many, last])
    spans = {row["key"]: row["span"] for row in stream.data}
    assert spans[inner.key] == ("load", "2026")
    assert [spans[future.key] for future in many] == [("load", "2026", "parse")] * 3
    assert spans[last.key] == ()
    totals = {row[0]: row[1] for row in client.request("telemetry_mark")["spans"]}
    assert totals["load", "2026", "parse"] >= 3
    with pytest.raises(ValueError, match="names"):
        span()


def test_deep_profiles_come_with_results_and_failures(client):
    future = client.submit(spin, 0.2, profile=True, pure=False)
    assert future.key.startswith("spin-")
    assert future.result() == 0.2
    assert "spin" in functions(future.profile())
    many = client.map(spin, [0.05, 0.06], profile=True)
    assert client.gather(many) == [0.05, 0.06]
    assert all("spin" in functions(each.profile()) for each in many)
    failed = client.submit(fail_after, 0.05, profile=True)
    assert isinstance(failed.exception(), ValueError)
    assert "fail_after" in functions(failed.profile())
    without = client.submit(spin, 0.0)
    with pytest.raises(ValueError, match="profile=True"):
        without.profile()


def test_deep_profiles_of_a_coroutine_function(client):
    async def main():
        return spin(0.1)

    future = client.submit(main, profile=True)
    assert future.result() == 0.1
    assert "spin" in functions(future.profile())


def test_tasks_and_memory_of_a_block(client):
    sampler = MemorySampler()
    with sampler.sample("work", client=client), get_task_metadata(client) as tasks:
        good = client.submit(doze, 2.5, pure=False)
        bad = client.submit(fail_after, 0.0, pure=False)
        good.result()
        bad.exception()
    assert tasks.state == {good.key: "memory", bad.key: "erred"}
    assert tasks.metadata[good.key]["startstops"][-1]["action"] in ("compute", "serialize")
    assert all(nbytes > 1e6 for _, nbytes in sampler.samples["work"])
    assert sampler.samples["work"]
    assert [row["key"] for row in client.get_task_stream(count=1)] == [good.key]
    with pytest.raises(ValueError, match="process"):
        sampler.sample(measure="managed")


def test_without_instruments_everything_still_answers():
    with (
        config.set({"instruments.enabled": False}),
        LocalCluster(n_workers=1, threads_per_worker=1) as cluster,
        Client(cluster) as client,
    ):
        mark = client.request("telemetry_mark")
        assert client.submit(spin, 0.01).result() == 0.01
        assert client.profile().meta["samples"] == 0
        after = client.request("telemetry_mark")
        assert after["number"][2:] == mark["number"][2:]
        assert after["prefix_cpu"] == (("spin", 0, 0),)


def test_a_cluster_in_one_process_tells_once_and_leaves_no_thread():
    before = set(threading.enumerate())
    with LocalCluster(n_workers=2, threads_per_worker=2, processes=False) as cluster, Client(cluster) as client:
        mark = client.request("telemetry_mark")
        until(lambda: client.profile(scheduler=True).meta["ticks"], "sampler")
        client.gather(client.map(spin, [0.05] * 8, pure=False))
        assert "spin" in functions(client.profile())
        assert "spin" not in functions(client.profile(server=True))
        future = client.submit(spin, 0.05, profile=True, pure=False)
        assert future.result() == 0.05
        assert "spin" in functions(future.profile())
        until(lambda: rows_of(client, mark), "row")
        assert set(rows_of(client, mark)) == {(0, 0)}
    left = set(threading.enumerate()) - before
    for thread in left:
        thread.join(5)
    assert not [thread.name for thread in left if thread.is_alive()]
