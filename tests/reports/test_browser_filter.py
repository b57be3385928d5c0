"""The filter of the page in a real browser: every number follows the range and prefix exactly, and comes back."""

from __future__ import annotations

import csv
import json
import random
from array import array
from itertools import pairwise
from pathlib import Path

import pytest

from gnomon.reports.account import PARTS, account
from gnomon.reports.recording import TICKS
from gnomon.runtime.core import RunColumns
from tests.reports.conftest import T0

pytestmark = pytest.mark.browser

ACCOUNT = """([from, to, prefix, worker]) => {
    const result = gnomon.accountOf(gnomon.data, { from, to: to ?? gnomon.data.duration, prefix, worker });
    const of = (parts) => Object.values(parts);
    return { capacity: result.capacity, alongside: result.alongside, others: result.others, tasks: result.tasks,
        parts: of(result.parts),
        prefixes: result.prefixes.map((p) => [p.name, p.tasks, p.erred, p.nbytes, of(p.parts)]),
        workers: result.workers.map((w) => [w.worker.name, w.tasks, w.capacity, w.alongside, of(w.parts)]) };
}"""
PAGE_TEXT = "() => document.getElementById('whole').textContent + document.getElementById('strip').textContent"


def observed_cluster(make_cluster, length=100_000):
    """A run with all that a real one tells: time on the processor, demand, fetches, threads that overlap."""
    cluster = make_cluster(length=length)
    a, b = cluster.worker("a", 2), cluster.worker("b", 1, at=0.25)
    mark = cluster.mark()
    cluster.demand(0, [(1, True, 0.1), (1, False, 0.4), (1, True, 2.0), (1, False, 2.75)])
    cluster.demand(a, [(2, True, 0.2), (4, True, 0.9), (4, False, 1.05), (3, True, 1.6), (3, False, 1.7)])
    cluster.demand(b, [(2, True, 0.3), (2, False, 1.8), (3, True, 1.85), (4, True, 1.9), (4, False, 1.95)])
    at = 0.31
    for i in range(60):
        wide = 0.01 + 0.003 * (i % 7)
        times = (at, at + 0.002, at + 0.002 + wide, at + 0.0035 + wide)
        cluster.runs(
            [
                (
                    f"{'load' if i % 3 else 'sum'}-{i}",
                    "load" if i % 3 else "sum",
                    a if i % 2 else b,
                    i % 3,
                    *times,
                    10 * i,
                    i % 11 > 0,
                )
            ],
            cpus=[wide * (i % 4) / 4],
        )
        at += wide * 0.8 + 0.01 * (i % 5 == 0)
    cluster.fetch(a, b, 0.5, 0.75, 5000)
    cluster.fetch(b, a, 1.5, 1.52, 700)
    cluster.leave(b, 2.5)
    cluster.now = 3.0
    return cluster.record(mark)


def tangled_cluster(make_cluster, seed):
    """Runs that overlap on a thread, outnumber the threads, begin before their worker came, and end after it left."""
    cluster, chance = make_cluster(), random.Random(seed)
    workers = [cluster.worker("a", 3), cluster.worker("b", 1, at=0.5), cluster.worker("c", 2, at=0.2)]
    mark = cluster.mark()
    for i in range(300):
        at, length = chance.random() * 3, chance.expovariate(20)
        times = (at, at + 0.1 * length, at + 0.8 * length, at + length)
        row = (f"{'xyz'[i % 3]}-{i}", "xyz"[i % 3], chance.choice([*workers, 99]), chance.randrange(4), *times, i, True)
        cluster.runs([row], cpus=[chance.random() * length])
        if i % 5 == 0:
            cluster.demand(chance.choice([0, *workers]), [(chance.randrange(1, 5), chance.random() < 0.5, at)])
            cluster.fetch(workers[0], workers[1], at, at + length)
    cluster.leave(workers[2], 2.2)
    cluster.now = 3.0
    return cluster.record(mark)


@pytest.mark.parametrize("kind", ["plain", "observed", "lost", "tangled-1", "tangled-2"])
def test_the_script_counts_as_python_does(visit, busy, make_cluster, kind):
    if kind.startswith("tangled"):
        recording = tangled_cluster(make_cluster, kind)
    else:
        recording = busy(700) if kind == "plain" else observed_cluster(make_cluster, 20 if kind == "lost" else 1000)
    page = visit(recording)
    result = account(recording)
    counted = page.evaluate(ACCOUNT, [0, None, -1, -1])
    assert (counted["capacity"], counted["alongside"], counted["tasks"]) == (
        result.capacity,
        result.alongside,
        result.tasks,
    )
    assert counted["parts"] == result.parts.values()
    assert counted["prefixes"] == [[p.name, p.tasks, p.erred, p.nbytes, p.parts.values()] for p in result.prefixes]
    assert counted["workers"] == [
        [w.worker.name, w.tasks, w.capacity, w.alongside, w.parts.values()] for w in result.workers
    ]
    if kind == "observed":
        named = dict(zip(PARTS, counted["parts"], strict=True))
        assert all(named[part] > 0 for part in ("compute", "offcpu", "transfer", "handover", "scheduler", "idle"))


def test_ranges_add_up(visit, make_cluster):
    recording = observed_cluster(make_cluster)
    page = visit(recording)
    edges = [0, 3_500_000, 3_500_001, 9_123_456, 17_000_003, recording.duration]
    whole = page.evaluate(ACCOUNT, [0, None, -1, -1])
    pieces = [page.evaluate(ACCOUNT, [a, b, -1, -1]) for a, b in pairwise(edges)]
    assert [sum(column) for column in zip(*(piece["parts"] for piece in pieces), strict=True)] == whole["parts"]
    for piece in pieces:
        assert sum(piece["parts"]) == piece["capacity"]
        assert min(piece["parts"]) >= 0
    assert sum(piece["tasks"] for piece in pieces) == whole["tasks"]
    for prefix in (0, 1):
        one = page.evaluate(ACCOUNT, [edges[1], edges[3], prefix, -1])
        assert sum(one["parts"]) + one["others"] == one["capacity"]
    workers = [page.evaluate(ACCOUNT, [edges[1], edges[4], -1, w]) for w in (0, 1)]
    both = page.evaluate(ACCOUNT, [edges[1], edges[4], -1, -1])
    assert [sum(pair) for pair in zip(*(each["parts"] for each in workers), strict=True)] == both["parts"]


def test_a_range_counts_what_lies_in_it(visit, busy):
    recording = busy(400)
    runs = recording.runs
    low, high = recording.duration // 3, recording.duration // 2
    inside = 0
    for row in range(len(runs)):
        started = runs.begins[row] + runs.decodes[row]
        inside += max(0, min(started + runs.computes[row], high) - max(started, low))
    counted = visit(recording).evaluate(ACCOUNT, [low, high, -1, -1])
    assert counted["parts"][0] == inside
    assert counted["tasks"] == sum(
        low < begin + d + c + e <= high
        for begin, d, c, e in zip(runs.begins, runs.decodes, runs.computes, runs.encodes, strict=True)
    )


def test_the_brush_changes_everything_and_reset_brings_it_back(visit, busy):
    recording = busy(800)
    page = visit(recording)
    before = page.evaluate(PAGE_TEXT)
    box = page.locator("#minimap").bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.25, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, y, steps=4)
    page.mouse.up()
    page.wait_for_function("() => document.getElementById('scope').textContent.includes('(25%)')")
    page.wait_for_function(f"() => ({PAGE_TEXT})() !== {json.dumps(before)}")
    assert "t=" in page.url
    start, end = page.evaluate("() => [gnomon.state.from, gnomon.state.to]")
    duration = recording.duration
    assert start == pytest.approx(duration / 4, rel=0.02)
    assert end == pytest.approx(duration / 2, rel=0.02)
    capacity = page.evaluate(ACCOUNT, [start, end, -1, -1])["capacity"]
    shown = [
        round(float(text.replace(",", "")) * 1000)
        for text in page.locator("#table-account td:nth-child(2)").all_text_contents()
        if text != "-"
    ]
    assert sum(shown[:-1]) == shown[-1] == pytest.approx(capacity / TICKS * 1000, abs=1)
    assert f"capacity {shown[-1] / 1000:,.3f} s." in page.inner_text("#summary .closing")
    page.click("#tab-tasks")
    part = page.inner_text("#table-prefixes")
    page.click("#tab-timeline")
    page.wait_for_function("() => typeof Bokeh !== 'undefined' && Bokeh.documents.length && plot()")
    page.wait_for_function(f"() => Math.abs(plot().x_range.start - {start / TICKS}) < 1e-6")
    page.click("#tab-tasks")
    page.click("#reset")
    page.wait_for_function(f"() => document.getElementById('table-prefixes').innerText !== {json.dumps(part)}")
    page.click("#tab-summary")
    assert page.evaluate(PAGE_TEXT) == before
    assert page.inner_text("#scope") == "whole run"


def test_tables_of_the_whole_run_are_those_of_python(visit, busy, make_cluster):
    for recording in (busy(2_500), observed_cluster(make_cluster)):
        page = visit(recording)
        names = ("account", "prefix-share", "worker-share", "prefixes", "slowest", "workers", "pairs")
        texts = (
            f"() => {json.dumps(names)}.map((name) => [...document.getElementById('table-' + name).rows].map((row) =>"
            " [...row.cells].map((td) => [td.textContent, 'v' in td.dataset ? +td.dataset.v : null, td.title])))"
        )
        before = page.evaluate(texts)
        page.evaluate("() => gnomon.drawAll()")
        assert page.evaluate(texts) == before


def test_a_prefix_filters_everywhere_in_its_colour(visit, busy):
    page = visit(busy(600), "tab=tasks")
    link = page.locator("#table-prefixes tbody tr").nth(2).locator("a.go")
    name = link.text_content()
    swatch = "(e) => getComputedStyle(e).backgroundColor"
    color = page.locator("#table-prefixes tbody tr").nth(2).locator(".swatch").evaluate(swatch)
    link.click()
    page.wait_for_function("() => document.querySelectorAll('#table-prefixes tbody tr').length === 1")
    assert page.locator("#table-slowest tbody tr").count() > 0
    assert set(page.locator("#table-slowest tbody td:nth-child(2)").all_text_contents()) == {name}
    page.click("#tab-summary")
    assert "Other tasks" in page.inner_text("#table-account")
    page.click("#tab-timeline")
    page.wait_for_function("() => gnomon.shown > 0 && source().data.slot.includes(21)")
    slots = page.evaluate("() => [...new Set(source().data.slot)]")
    assert 21 in slots
    legend = page.locator("#timeline .legend a", has_text=name).locator(".swatch").evaluate(swatch)
    assert legend == color
    drawn = page.evaluate("() => model('stream-colors').palette[source().data.slot.find((slot) => slot < 9)]")
    assert drawn == "#" + "".join(f"{int(part):02x}" for part in color[4:-1].split(","))
    page.keyboard.press("Escape")
    page.wait_for_function("() => !source().data.slot.includes(21)")


def test_a_link_reopens_the_same_view_and_back_works(visit, busy):
    page = visit(busy(500), "tab=tasks&t=0.5-1.25&prefix=parse&worker=worker-1")
    assert page.is_visible("#tasks")
    assert page.inner_text("#scope").startswith("0.50-1.25 s (")
    assert page.input_value("#filter [name=prefix]") == "parse"
    assert page.input_value("#filter [name=worker]") == "worker-1"
    assert page.input_value("#filter-from") == "0.5"
    first = page.inner_text("#tasks")
    page.click("#tab-workers")
    assert page.locator("#table-workers tbody tr").count() == 1
    page.go_back()
    page.wait_for_function("() => gnomon.state.tab === 'tasks'")
    page.reload()
    page.wait_for_function("() => document.documentElement.dataset.ready === 'yes'")
    assert page.inner_text("#tasks") == first
    page.fill("#filter-to", "1.5")
    page.press("#filter-to", "Enter")
    assert page.inner_text("#scope").startswith("0.50-1.50 s")


def test_truncation_is_said(visit, make_cluster):
    cluster = make_cluster(length=100)
    w = cluster.worker("w")
    mark = cluster.mark()
    for i in range(250):
        cluster.run(f"x-{i}", w, i, i + 0.5)
    cluster.now = 250.0
    page = visit(cluster.record(mark), "tab=run")
    assert page.inner_text("[data-head=tasks]") == "250"
    assert "Details of 100 of 250 tasks" in page.inner_text(".badges")
    row = page.locator("#ledger tr", has_text="runs").inner_text().split("\t")
    assert row == ["runs", "250", "100", "150", "150.00 to 249.50 s"]
    page.evaluate("() => gnomon.setRange(2e9, 2.1e9)")
    page.wait_for_function("() => document.querySelector('[data-head=tasks]').textContent === '≥ 10'")


def test_what_is_shown_and_what_is_saved_agree_in_every_range(visit, make_cluster):
    """Parts as shown = capacity as shown = the numbers in the download, for the whole run and for parts of it."""
    recording = observed_cluster(make_cluster)
    page = visit(recording)
    for begin, end in ((0, recording.duration), (0, 9_000_000), (7_654_321, 20_000_007), (24_000_000, 29_000_000)):
        page.evaluate("([from, to]) => gnomon.setRange(from, to)", [begin, end])
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        page.click("#tab-run")
        with page.expect_download() as download:
            page.click("[data-save=json]")
        saved = json.loads(Path(download.value.path()).read_text("utf-8"))
        page.click("#tab-summary")
        assert saved["range"] == [begin / TICKS, end / TICKS]
        page.wait_for_function(
            "(capacity) => Math.abs(document.querySelector('#table-account tfoot td:nth-child(2)').textContent"
            ".replaceAll(',', '') * (document.querySelector('#table-account th:nth-child(2)').textContent === 's' ? 1"
            " : 0.001) - capacity) <= 0.0011",
            arg=saved["capacity"],
        )
        unit = 1.0 if page.inner_text("#table-account thead th:nth-child(2)") == "s" else 0.001
        shown = {
            row[0]: float(row[1].replace(",", ""))
            for row in (r.split("\t") for r in page.locator("#table-account tbody tr").all_inner_texts())
            if row[1] != "-"
        }
        assert sum(shown.values()) * unit == pytest.approx(saved["capacity"], rel=1e-3)
        assert sum(saved["parts"].values()) == pytest.approx(saved["capacity"], rel=1e-12)
        assert shown["Computing"] * unit == pytest.approx(saved["parts"]["compute"], abs=0.0011)


def test_a_worker_whose_clock_is_wrong(visit, cluster):
    """Its times are the scheduler's in every tab; by how much they were moved is said."""
    w = cluster.worker("early")
    mark = cluster.mark()
    cluster.telemetry.clock_estimated(w, time=T0, offset=5.0, uncertainty=0.0005, samples=12)
    times = array("d", [T0 - 4.0, T0 - 4.0, T0 - 2.0, T0 - 2.0])  # from 1 to 3 s, by its own clock 5 s before
    cluster.telemetry.append_runs(
        RunColumns(["x-1"], ["x"], array("q", [w]), array("i", [0]), times, array("q", [1]), array("b", [1])), {w: 5.0}
    )
    cluster.now = 4.0
    page = visit(cluster.record(mark), "tab=run")
    assert "+5.00 s" in page.inner_text("#table-clocks")
    page.click("#tab-tasks")
    assert page.locator("#table-slowest tbody td").nth(3).inner_text() == "1.000"
    page.click("#tab-summary")
    shown = page.inner_text("#table-account")
    assert "Computing\t2.000\t50.0 %" in shown
    assert "-" not in shown.replace("-\t-\tnot measured", "").replace("on-", "")
    page.click("#tab-scheduler")
    assert "This recording holds no profile." in page.inner_text("#scheduler")


def test_downloads(visit, make_cluster, tmp_path):
    recording = observed_cluster(make_cluster)
    page = visit(recording, "tab=run")

    def saved(selector):
        with page.expect_download() as download:
            page.click(selector)
        return Path(download.value.path()).read_bytes()

    result = account(recording)
    numbers = json.loads(saved("[data-save=json]"))
    assert numbers["capacity"] == result.capacity / TICKS
    assert sum(numbers["parts"].values()) == pytest.approx(numbers["capacity"])
    assert list(numbers["parts"].values()) == [ticks / TICKS for ticks in result.parts.values()]
    shown = page.locator("#table-account tfoot td").nth(1).text_content()
    assert float(shown.replace(",", "")) == pytest.approx(numbers["capacity"], rel=1e-3)
    rows = list(csv.reader(saved("[data-save=runs]").decode().splitlines()))
    assert len(rows) == 61
    assert {len(row) for row in rows} == {11}
    trace = json.loads(saved("[data-save=trace]"))
    assert len([event for event in trace["traceEvents"] if event["ph"] == "X"]) == 60
    assert all(event["dur"] >= 0 for event in trace["traceEvents"] if event["ph"] == "X")
    scope = json.loads(saved("[data-save=speedscope]"))
    for profile in scope["profiles"]:
        at, depth = profile["startValue"], 0
        for event in profile["events"]:
            assert event["at"] >= at
            at, depth = event["at"], depth + (1 if event["type"] == "O" else -1)
            assert depth in (0, 1)
        assert profile["endValue"] >= at
    from gnomon.reports import Recording

    assert len(Recording.loads(saved("[data-save=recording]")).runs) == 60
    page.click("#tab-tasks")
    table = list(csv.reader(saved("[data-csv=prefixes]").decode().splitlines()))
    assert [row[0] for row in table] == ["prefix", *(prefix.name for prefix in result.prefixes)]
    assert float(table[1][2]) == result.prefixes[0].parts.busy / TICKS
