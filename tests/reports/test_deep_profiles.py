"""Deep profiles of chosen tasks: from the scheduler through the recording to the page."""

from __future__ import annotations

import gzip
import json

import pytest
from pyinstrument.session import Session as PyinstrumentSession

from gnomon.profiler import Session
from gnomon.reports.collect.profiles import MOST
from gnomon.reports.page import build_page
from gnomon.reports.recording import TICKS, Recording
from gnomon.reports.redaction import redacted
from gnomon.runtime.scheduler.deep_profiles import DeepProfiles
from tests.reports.conftest import T0


def packed(*records, start=T0 - 3600):
    """A deep profile as a worker sends it, whose clock is an hour late: pairs of function names and seconds."""
    frames = [
        (["main\x00<thread>\x001", *(f"{name}\x00/home/me/{name}.py\x001" for name in names)], seconds)
        for names, seconds in records
    ]
    session = PyinstrumentSession(
        frame_records=frames, start_time=start, duration=sum(seconds for _, seconds in frames), min_interval=0.001,
        max_interval=0.001, sample_count=len(frames), start_call_stack=[""], target_description="t", cpu_time=0.0,
        sys_path=[], sys_prefixes=[],
    )  # fmt: skip
    return gzip.compress(json.dumps(session.to_json()).encode())


def profiled(cluster):
    w = cluster.worker("w")
    cluster.deep_profiles.keep("before-1", "before", packed((["old"], 0.1)))
    mark = cluster.mark()
    cluster.run("parse-1", w, 1.0, 3.0)
    cluster.run("sum-1", w, 3.0, 4.0)
    cluster.deep_profiles.keep("parse-1", "parse", packed((["parse", "read"], 0.6), (["parse", "split"], 0.2)))
    cluster.deep_profiles.keep("sum-1", "sum", packed((["add"], 0.4)))
    cluster.now = 5.0
    return cluster.record(mark)


def test_the_scheduler_keeps_the_latest_within_its_limit():
    kept = DeepProfiles(100)
    for i in range(5):
        kept.keep(f"k-{i}", "k", bytes(30))
    kept.keep("large", "k", bytes(101))
    assert [kept.of(f"k-{i}") for i in range(5)] == [None, None, bytes(30), bytes(30), bytes(30)]
    assert kept.of("large") is None
    assert kept.made == 6
    kept.keep(("k", 2), "k", b"x")
    kept.keep("k-3", "k", b"y")
    first = kept.since(3, 1)
    assert [(row[0], row[1], row[3]) for row in first["rows"]] == [(4, "k-4", bytes(30))]
    rest = kept.since(first["next"], 100)
    assert [(row[0], row[1]) for row in rest["rows"]] == [(6, "('k', 2)"), (7, "k-3")]
    assert rest["next"] == kept.made == 8


def test_those_of_the_block_are_recorded_on_the_schedulers_clock(cluster):
    recording = Recording.loads(profiled(cluster).dumps())
    assert [(each.key, each.prefix) for each in recording.task_profiles] == [("parse-1", "parse"), ("sum-1", "sum")]
    session = Session.from_plain(recording.task_profiles[0].session)
    names = {function.name: seconds for function, seconds in zip(
        (session.functions[i] for i in session.nodes.function), session.own_seconds(), strict=True)}  # fmt: skip
    assert names == pytest.approx({"parse": 0.0, "read": 0.6, "split": 0.2})
    run = recording.runs
    assert session.meta["start"] == pytest.approx(T0 + (run.begins[0] + run.decodes[0]) / TICKS)
    assert recording.ledgers["task profiles"] == (2, 2)


def test_only_the_latest_are_fetched_and_the_rest_is_counted(cluster):
    mark = cluster.mark()
    for i in range(MOST + 20):
        cluster.deep_profiles.keep(f"x-{i}", "x", packed((["f"], 0.01)))
    cluster.deep_profiles.keep("bad", "x", b"no profile")
    recording = cluster.record(mark)
    assert len(recording.task_profiles) == MOST - 1
    assert recording.task_profiles[-1].key == f"x-{MOST + 19}"
    assert recording.ledgers["task profiles"] == (MOST + 21, MOST - 1)
    assert f"Details of {MOST - 1} of {MOST + 21} deep profiles" in build_page(recording)


def test_redacted_ones_are_gone(cluster):
    less = redacted(profiled(cluster))
    assert less.task_profiles == []
    assert "2 deep profiles" in build_page(less)


@pytest.mark.browser
def test_the_tasks_tab_draws_them_by_prefix(visit, cluster):
    page = visit(profiled(cluster), "tab=tasks")
    frames = "() => [...document.querySelectorAll('#deep .frame')].map((f) => f.title.split('\\n').join(' '))"
    assert page.evaluate(frames) == [
        "parse-1 800 ms, 100.0 %",
        "parse (parse) 800 ms, 100.0 %",
        "read (read) 600 ms, 75.0 %",
        "split (split) 200 ms, 25.0 %",
    ]
    assert "600 ms" in page.inner_text("#table-deep-functions")
    page.select_option("#deep-choice [name=profile]", "1")
    assert page.evaluate(frames)[1] == "add (add) 400 ms, 100.0 %"
    page.select_option("#filter [name=prefix]", "parse")
    page.wait_for_function(f"() => ({frames})().length === 4")
    page.evaluate("() => gnomon.setRange(0, 1e7)")
    page.wait_for_function("() => document.getElementById('deep-note').textContent.includes('0 s')")
    page.click("#reset")
    page.wait_for_function("() => document.querySelector('#deep .frame').title.includes('800 ms')")
