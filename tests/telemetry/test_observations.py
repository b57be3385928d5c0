"""Measurements, stalls, demand and regions: what is kept, how it is paged, and what a bad report leaves behind."""

from __future__ import annotations

from array import array

import pytest

from gnomon.runtime.core import RunColumns
from gnomon.runtime.instruments.demand import ASSIGNED, FETCHING, QUEUED
from gnomon.runtime.instruments.series import AGENT, COLUMNS, EXECUTOR
from gnomon.runtime.messages import DemandChanged, RegionsTimed
from gnomon.runtime.scheduler.telemetry import Telemetry

ROW = tuple(float(i) for i in range(len(COLUMNS)))
STALL = {
    "start": 5.0,
    "duration": 0.5,
    "cause": "Python code",
    "detail": "",
    "function": "f",
    "file": "f.py",
    "line": 3,
    "stack": [["f", "f.py", 3]],
    "holder": "",
    "parts": {},
}


def page(telemetry: Telemetry):
    return telemetry.since((0,) * 6)


def test_rows_of_measurements_are_in_scheduler_time():
    telemetry = Telemetry()
    report = {"series": {"agent": (10.0, ROW), "executor": (11.0, ROW)}, "stalls": {"agent": [STALL]}}
    telemetry.append_report(7, report, 100.0)
    series = page(telemetry)["series"]
    assert array("d", series["times"]).tolist() == [110.0, 111.0]
    assert array("q", series["workers"]).tolist() == [7, 7]
    assert array("b", series["processes"]).tolist() == [AGENT, EXECUTOR]
    assert tuple(array("d", series["values"])) == ROW + ROW
    stalls = page(telemetry)["stalls"]
    assert array("d", stalls["starts"]).tolist() == [105.0]
    assert stalls["rows"][0]["function"] == "f"
    assert stalls["rows"][0]["stack"] == [["f", "f.py", "3"]]


@pytest.mark.parametrize(
    "report",
    [
        "text",
        {"series": {"agent": (1.0, (1.0,))}},
        {"series": {"somebody": (1.0, ROW)}},
        {"series": {"agent": ("noon", ROW)}},
        {"series": {"agent": (1.0, ("x",) * len(COLUMNS))}},
        {"stalls": {"agent": [{}]}},
        {"stalls": {"agent": [{**STALL, "duration": "long"}]}},
    ],
)
def test_what_is_no_report_leaves_no_half_row(report):
    telemetry = Telemetry()
    with pytest.raises((ValueError, TypeError, LookupError)):
        telemetry.append_report(1, report)
    telemetry.append_report(1, {"series": {"agent": (1.0, ROW)}, "stalls": {"agent": [STALL]}})
    both = page(telemetry)
    assert len(both["series"]["times"]) == len(both["series"]["workers"]) == 8
    assert len(both["stalls"]["starts"]) == 8
    assert len(both["stalls"]["rows"]) == 1


def test_demand_stands_in_the_mark_and_ends_with_its_worker():
    telemetry = Telemetry()
    telemetry.worker_joined(3, name="w", address="tcp://w", nthreads=1, host="h", now=0.0)
    telemetry.append_demand(0, DemandChanged((QUEUED,), (True,), (1.0,)))
    telemetry.append_demand(
        3, DemandChanged((ASSIGNED, FETCHING, FETCHING), (True, True, False), (1.0, 2.0, 3.0)), 10.0
    )
    assert telemetry.mark(4.0)["demand"] == [(0, QUEUED), (3, ASSIGNED)]
    telemetry.worker_left(3, reason="gone", now=20.0)
    assert telemetry.mark(21.0)["demand"] == [(0, QUEUED)]
    demand = page(telemetry)["demand"]
    assert array("d", demand["times"]).tolist() == [1.0, 11.0, 12.0, 13.0, 20.0]
    assert array("b", demand["values"]).tolist() == [1, 1, 1, 0, 0]


def test_an_unknown_kind_of_demand_is_refused():
    telemetry = Telemetry()
    with pytest.raises(ValueError, match="kind"):
        telemetry.append_demand(1, DemandChanged((1000,), (True,), (1.0,)))
    assert telemetry.mark(0.0)["number"] == (0, 0, 0, 0, 0, 0)


def test_regions_add_up_by_prefix_and_name():
    telemetry = Telemetry()
    for time in (1.0, 2.0):
        message = RegionsTimed(time, ("load", "load"), ("parse", "check"), (2, 1), (0.5, 0.25), (0.5, 0.125))
        telemetry.append_regions(1, message)
    assert telemetry.mark(3.0)["regions"] == [("load", "parse", 4, 1.0, 1.0), ("load", "check", 2, 0.5, 0.25)]
    regions = page(telemetry)["regions"]
    names = [regions["name_table"][i] for i in array("i", regions["names"])]
    assert names == [("load", "parse"), ("load", "check")] * 2


def columns(cpus: list[float], spans: list[tuple[str, ...]]) -> RunColumns:
    rows = len(cpus)
    return RunColumns(
        [f"k-{i}" for i in range(rows)],
        ["k"] * rows,
        array("q", [1] * rows),
        array("q", [0] * rows),
        array("d", [0.0, 1.0, 3.0, 4.0] * rows),
        array("q", [10] * rows),
        array("b", [1] * rows),
        array("d", cpus),
        spans,
    )


@pytest.mark.parametrize("second", ["k", "other"])
def test_cpu_counts_only_where_it_was_measured(second):
    telemetry = Telemetry()
    runs = columns([0.5, float("nan"), 1.5], [("a",), (), ("a", "b")])
    runs.prefixes[1] = second
    telemetry.append_runs(runs)
    mark = telemetry.mark(9.0)
    assert mark["spans"] == [(("a",), 1, 0, 10, 1.0, 2.0, 1.0), (("a", "b"), 1, 0, 10, 1.0, 2.0, 1.0)]
    measured = {name: (cpu, compute) for name, cpu, compute in mark["prefix_cpu"]}
    assert measured["k"] == (2.0, 4.0)
    runs_page = page(telemetry)["runs"]
    assert [runs_page["span_names"][i] for i in array("i", runs_page["spans"])] == [("a",), (), ("a", "b")]


def test_who_asks_for_two_rings_gets_two():
    telemetry = Telemetry()
    telemetry.append_demand(0, DemandChanged((QUEUED,), (True,), (1.0,)))
    answer = telemetry.since((0, 0))
    assert answer["next"] == (0, 0)
    assert answer["done"]
    assert "demand" not in answer
