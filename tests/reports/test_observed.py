"""What processes measured of themselves: from the scheduler's pages through a file to figures and the page."""

from __future__ import annotations

import zlib
from math import nan

import msgpack
import pytest

from gnomon.profiler import Session
from gnomon.profiler.sessions.session import Bucket, Function, Nodes, Samples, Thread
from gnomon.reports.figures import flame, resampled
from gnomon.reports.page import build_page
from gnomon.reports.recording import Recording
from gnomon.runtime.instruments.series import COLUMNS
from tests.reports.conftest import T0


def session():
    """Two functions below a root: f for 3 s in the first bucket, g for 1 s in the second, once as task "sum"."""
    return Session(
        meta={"start": T0, "stop": T0 + 4, "interval": 0.01, "samples": 400, "ticks": 400, "missed": 0, "cpu": 0.0,
              "pid": 1, "process": "executor", "python": "3"},
        functions=(Function("run", "r.py", 1, "app"), Function("f", "f.py", 1, "app"), Function("g", "g.py", 1, "app"),
                   Function("rare", "g.py", 9, "app")),
        nodes=Nodes((-1, 0, 0, 2), (0, 1, 2, 3), (5, 1, 1, 1)),
        buckets=(Bucket(T0, T0 + 3, 3000, 0, 0.0, 0.0, 0.0), Bucket(T0 + 3, T0 + 4, 1000, 0, 0.0, 0.0, 0.0)),
        threads=(Thread(1, "t", "p"),),
        labels=("", "load", "sum"),
        samples=Samples((0, 1, 1), (0, 0, 0), (1, 2, 2), (1, 2, 3), (3000, 999, 1)),
    )  # fmt: skip


def row(**values):
    return [values.get(name, nan) for name in COLUMNS]


def observed(cluster):
    w = cluster.worker("w")
    mark = cluster.mark()
    cluster.run("load-1", w, 0.5, 3.0)
    cluster.run("sum-1", w, 3.0, 3.9)
    tell = cluster.telemetry.append_report
    for second in (1.0, 2.0, 3.0):
        tell(
            0,
            {
                "series": {
                    "scheduler": (T0 + second, row(seconds=1.0, busy=25.0, cpu=30.0, memory=2**20, gc_seconds=0.01))
                }
            },
        )
        tell(w, {"series": {"executor": (T0 + second, row(seconds=1.0, cpu=100.0, memory=2**30))}})
        tell(w, {"series": {"agent": (T0 + second, row(seconds=1.0, cpu=5.0, memory=2**30))}})
    stall = {"cause": "gil", "detail": "", "function": "spin", "file": "a.py", "line": 3, "holder": "task",
             "stack": [["spin", "a.py", "3"]], "start": T0 + 1.5, "duration": 0.25}  # fmt: skip
    tell(w, {"stalls": {"agent": [stall]}})
    packed = zlib.compress(msgpack.packb(session().to_plain()))
    cluster.profiles = {"executor": {"a": packed}, "agent": {"a": b"damaged"}}
    cluster.now = 4.0
    return cluster.record(mark)


def test_they_survive_the_file(cluster):
    recording = observed(cluster)
    again = Recording.loads(recording.dumps())
    assert len(again.series) == 9
    assert list(again.series.workers) == [-1, 0, 0] * 3
    assert list(again.series.processes) == [0, 2, 1] * 3
    assert again.series.values["busy"][0] == 25.0
    assert again.series.values["lag_p99"][0] != again.series.values["lag_p99"][0]
    assert again.stalls == recording.stalls
    assert (again.stalls[0].begin, again.stalls[0].length, again.stalls[0].worker) == (15_000_000, 2_500_000, 0)
    assert [profile["kind"] for profile in again.profiles] == ["executor"]
    kept = Session.from_plain(again.profiles[0]["session"])
    assert (kept.nodes, kept.samples, kept.labels) == (session().nodes, session().samples, session().labels)


def test_a_file_of_the_first_version_is_read(busy):
    recording = busy(30)
    body = msgpack.unpackb(zlib.decompress(recording.dumps()), raw=False, strict_map_key=False)
    body["version"] = 1
    for name in ("series", "stalls", "demand", "regions", "spans", "profiles"):
        del body[name]
    for name in ("cpus", "spans", "span_names"):
        del body["runs"][name]
    for name in ("prefixes", "worker_totals"):
        body[name] = [each[:7] for each in body[name]]
    old = Recording.loads(zlib.compress(msgpack.packb(body)))
    assert old.runs.keys == recording.runs.keys
    assert not old.demand.known
    assert "Where did the time go?" in build_page(old)


def test_series_are_summed_and_gaps_are_gaps(cluster):
    lines = {title: (unit, drawn) for title, unit, drawn in resampled(observed(cluster))}
    unit, (workers, scheduler) = lines["Processor"]
    assert unit == "processors in use"
    assert max(value for value in workers.values if value == value) == pytest.approx(1.05)
    assert max(value for value in scheduler.values if value == value) == pytest.approx(0.3)
    assert workers.values[-1] != workers.values[-1]  # nothing was measured after 3 s
    assert "Loop lag, 99 %" not in lines


def test_a_flame_keeps_all_time_and_folds_what_is_small():
    tree = flame("tasks", session(), T0, share=0.01)
    assert sum(tree.seconds) == pytest.approx(4.0)
    assert [tree.names[i] for i in tree.name] == ["tasks", "run (app)", "f (app)", "g (app)"]
    assert tree.parent == [-1, 0, 1, 1]
    assert tree.hidden == 1
    assert sum(tree.seconds[i] for i, label in enumerate(tree.label) if tree.labels[label] == "sum") == pytest.approx(
        1.0
    )
    assert tree.buckets == [(0.0, 3.0), (3.0, 4.0)]


@pytest.mark.browser
def test_the_scheduler_tab_follows_the_range_and_the_prefix(visit, cluster):
    page = visit(observed(cluster), "tab=scheduler")
    assert page.locator("#table-stalls tbody tr").count() == 1
    assert "gil" in page.inner_text("#table-stalls")
    assert "25.0 %" in page.inner_text("#table-scheduler-processes")
    loop = [cell.split("\t")[2] for cell in page.locator("#table-loop tbody tr").all_inner_texts()]
    assert loop == ["24.0 %", "1.0 %", "75.0 %"]
    frames = "() => [...document.querySelectorAll('.frame')].map((f) => f.title.split('\\n').join(' '))"
    assert page.evaluate(frames)[0] == "Tasks, on all workers 4.00 s, 100.0 %"
    assert "f (app) 3.00 s, 75.0 %" in page.evaluate(frames)
    page.evaluate("() => gnomon.setRange(3e7, 3.5e7)")
    page.wait_for_function("() => document.querySelector('.frame').title.includes('500 ms')")
    assert not any(title.startswith("f (app)") for title in page.evaluate(frames))
    assert page.locator("#table-stalls tbody tr").count() == 0
    page.click("#reset")
    page.select_option("#filter [name=prefix]", "load")
    page.wait_for_function("() => document.querySelector('.frame').title.includes('3.00 s')")
    assert not any(title.startswith("g (app)") for title in page.evaluate(frames))
    page.click("#tab-memory")
    assert "1.00 GiB" in page.inner_text("#table-processes")
    page.click("#tab-timeline")
    page.wait_for_function("() => typeof Bokeh !== 'undefined' && Bokeh.documents.length && model('timeline')")
    assert page.evaluate("() => model('timeline').children.length") >= 3
    assert page.evaluate("() => model('timeline').children.every((p) => p.x_range === plot().x_range)")
