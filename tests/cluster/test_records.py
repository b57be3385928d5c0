"""What a real cluster's scheduler records of transfers, clocks and its own loop."""

from __future__ import annotations

from array import array

import pytest

from gnomon.runtime.client import wait
from gnomon.runtime.scheduler.budget import PARTS


def large(n):
    return [n] * 50_000


def both(a, b):
    return len(a) + len(b)


def rows(mark, name, keys):
    return {row[:keys]: row[keys:] for row in mark[name]}


def test_a_transfer_says_its_type_and_its_parts(client):
    addresses = sorted(client.scheduler_info()["workers"])
    before = client.request("telemetry_mark")
    here, there = (client.submit(large, i, workers=[addresses[i]], pure=False) for i in range(2))
    wait([here, there], timeout=60)
    assert client.submit(both, here, there, workers=[addresses[0]], pure=False).result(timeout=60) == 100_000
    after = client.request("telemetry_mark")
    ids = {row[2]: row[0] for row in after["workers"]}
    known = rows(before, "pairs", 3)
    (name,) = [name for name, row in rows(after, "pairs", 3).items() if row != known.get(name)]
    assert name[:2] == (ids[addresses[1]], ids[addresses[0]])
    seconds = rows(after, "pairs", 3)[name][2]
    wait_, hold, serialise = rows(after, "pair_parts", 3)[name]
    assert min(wait_, hold, serialise) >= 0.0
    assert hold + serialise <= seconds
    was = rows(before, "types", 1).get(("list",), (0,))
    assert rows(after, "types", 1)["list",][0] == was[0] + 1
    page = client.request("telemetry", since=before["number"])["transfers"]
    assert "list" in page["type_names"]
    assert len(array("d", page["parts"])) == 3 * len(array("q", page["froms"]))


def test_workers_of_this_machine_share_its_clock(client):
    mark = client.request("telemetry_mark")
    assert {row[0] for row in mark["workers"]} == {row[0] for row in mark["clocks"]}
    assert {row[2:] for row in mark["clocks"]} == {(0.0, 0.0, 0)}


def test_the_scheduler_s_loop_has_a_budget_that_adds_up(client):
    before = client.request("telemetry_mark")
    client.gather(client.map(large, range(20), pure=False))
    after = client.request("telemetry_mark")
    assert [row[0] for row in after["loop"]] == list(PARTS)
    first, last = rows(before, "loop", 1), rows(after, "loop", 1)
    grown = {name: row[1] - first[name][1] for name, row in last.items()}
    assert min(grown.values()) >= 0.0
    assert sum(grown.values()) == pytest.approx(after["now"] - before["now"], rel=0.2, abs=0.2)
    for part in ("brain", "shell", "telemetry", "requests"):
        assert last[part,][2] > first[part,][2], part
        assert grown[part,] > 0.0, part
