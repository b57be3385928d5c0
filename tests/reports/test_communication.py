"""What moving data cost: from the scheduler's records through the file to the tab, in whole and in part."""

from __future__ import annotations

import pytest

from gnomon.reports.account import account
from gnomon.reports.findings import findings
from gnomon.reports.recording import TICKS, LoopPart, Recording, TypeTotals
from tests.reports.conftest import T0


def moved(cluster):
    a, b = cluster.worker("a"), cluster.worker("b")
    cluster.fetch(a, b, 0.0, 0.1, 50, parts=(1.0, 1.0, 1.0), types=[("before", 1, 50)])
    mark = cluster.mark()
    cluster.run("x-1", a, 1.0, 4.0)
    cluster.fetch(a, b, 1.0, 2.0, 4000, parts=(0.5, 0.2, 0.3), types=[("DataFrame", 2, 4000)])
    cluster.fetch(b, a, 3.0, 3.5, 1000, parts=(0.0, 0.1, 0.1), types=[("DataFrame", 1, 250), ("list", 3, 750)])
    cluster.fetch(b, a, 4.0, 4.25, 600, by="shared-memory")
    cluster.telemetry.clock_estimated(a, time=T0, offset=-0.25, uncertainty=0.001, samples=9)
    cluster.telemetry.clock_estimated(b, time=T0, offset=0.0, uncertainty=float("nan"), samples=0)
    cluster.now = 5.0
    return Recording.loads(cluster.record(mark).dumps())


def test_the_records_survive_the_file(cluster):
    recording = moved(cluster)
    fetches = recording.transfers
    assert [fetches.type_names[i] for i in fetches.types] == ["DataFrame", "(several)", ""]
    assert list(fetches.waits) == [5_000_000, 0, -1]
    assert list(fetches.holds) == [2_000_000, 1_000_000, -1]
    assert list(fetches.serialises) == [3_000_000, 1_000_000, -1]
    pairs = {(pair.from_id, pair.to_id, pair.transport): pair[3:] for pair in recording.pairs}
    assert pairs[1, 2, "tcp"] == (1, 4000, TICKS, 5_000_000, 2_000_000, 3_000_000)
    assert pairs[2, 1, "tcp"] == (1, 1000, TICKS // 2, 0, 1_000_000, 1_000_000)
    assert recording.types == [
        TypeTotals("DataFrame", 3, 4250, 11_250_000, 5_000_000, 2_250_000, 3_250_000),
        TypeTotals("list", 3, 750, 3_750_000, 0, 750_000, 750_000),
        TypeTotals("", 0, 0, 2_500_000, 0, 0, 0),
    ]
    assert [(clock.worker, clock.offset, clock.samples) for clock in recording.clocks] == [(0, -0.25, 9), (1, 0.0, 0)]


def test_an_older_scheduler_is_read(cluster):
    w = cluster.worker("a")
    answer, new = cluster.request, ("pair_parts", "types", "clocks", "loop", "span_cpu", "task_profiles")

    def old(method, **arguments):
        told = answer(method, **arguments)
        if method == "telemetry":
            told["transfers"] = {
                k: v for k, v in told["transfers"].items() if k not in ("parts", "types", "type_names")
            }
        return {name: value for name, value in told.items() if name not in new}

    cluster.request = old
    mark = cluster.mark()
    cluster.fetch(w, w, 1.0, 2.0, parts=(0.5, 0.2, 0.3), types=[("list", 1, 1)])
    cluster.now = 3.0
    recording = cluster.record(mark)
    assert recording.pairs[0][6:] == (-1, -1, -1)
    assert (len(recording.transfers), len(recording.transfers.types)) == (1, 0)
    assert recording.types == recording.clocks == recording.loop == []


def test_what_fetches_waited_for_is_a_finding(cluster):
    a, b = cluster.worker("a"), cluster.worker("b")
    mark = cluster.mark()
    cluster.run("x-1", a, 0.0, 1.0)
    cluster.fetch(a, b, 1.0, 3.0, 100 << 20, parts=(2.0, 1.0, 0.4), types=[("ndarray", 1, 100 << 20)])
    cluster.now = 4.0
    recording = cluster.record(mark)
    said = " ".join(finding.text for finding in findings(recording, account(recording), most=20))
    assert "50% was waiting to begin, 25% the holder's threads being busy, 10% serialising, 15% the wire" in said


def rows(page, name):
    return [row.split("\t") for row in page.locator(f"#table-{name} tbody tr").all_inner_texts()]


@pytest.mark.browser
def test_the_tab_splits_the_time_and_follows_range_and_worker(visit, cluster):
    page = visit(moved(cluster), "tab=communication")
    assert [row[:3] for row in rows(page, "fetching")] == [
        ["Waiting to begin", "500 ms", "22.2 %"], ["Holder busy", "300 ms", "13.3 %"],
        ["Serialising", "400 ms", "17.8 %"], ["On the wire", "1.05 s", "46.7 %"],
    ]  # fmt: skip
    assert page.locator("#table-fetching tfoot").inner_text().split("\t")[1] == "2.25 s"
    assert [row[:3] for row in rows(page, "types")] == [
        ["DataFrame", "3", "4.15 KiB"], ["list", "3", "750 B"], ["(not known)", "0", "0 B"],
    ]  # fmt: skip
    assert [row[:2] for row in rows(page, "transports")] == [["tcp", "2"], ["shared-memory", "1"]]
    assert page.locator("#matrix table caption").count() == 1
    page.evaluate("() => gnomon.setRange(2.5e7, 4.1e7)")
    page.wait_for_function("() => document.querySelectorAll('#table-types tbody tr').length === 1")
    assert rows(page, "types")[0][:3] == ["(several)", "1", "1000 B"]
    assert rows(page, "fetching")[3][:2] == ["On the wire", "300 ms"]
    page.evaluate("() => gnomon.setRange(3.8e7, 5e7)")
    page.wait_for_function("() => document.querySelectorAll('#table-fetching tbody tr').length === 0")
    assert "Not told of 1 of 1 fetches." in page.inner_text("#note-fetching")
    assert rows(page, "pairs")[0][7:] == ["-"] * 4
    page.click("#reset")
    page.select_option("#filter [name=prefix]", "x")
    page.wait_for_function("() => document.getElementById('note-fetching').textContent.includes('not told by prefix')")
    page.click("#tab-run")
    assert [row[:4] for row in rows(page, "clocks")] == [
        ["a", "-250 ms", "±1.00 ms", "9"], ["b", "-", "-", "0"],
    ]  # fmt: skip


@pytest.mark.browser
def test_the_loops_budget_is_shown_in_parts(visit, cluster):
    from tests.reports.test_observed import observed

    recording = observed(cluster)
    recording.loop = [
        LoopPart("idle", "sampled", 20_000_000, 40), LoopPart("resting", "rest", 0, 0),
        LoopPart("brain", "timed", 15_000_000, 120), LoopPart("gc", "timed", 1_000_000, 3),
        LoopPart("other", "rest", 4_000_000, 0),
    ]  # fmt: skip
    page = visit(recording, "tab=scheduler")
    assert rows(page, "loop") == [
        ["Waiting for messages", "2.00 s", "50.0 %", "sampled, 40 looks"],
        ["Transitions and placement", "1.50 s", "37.5 %", "timed, 120 times"],
        ["Collecting garbage", "100 ms", "2.5 %", "timed, 3 times"],
        ["Other: the loop itself, receiving", "400 ms", "10.0 %", "the rest"],
    ]
    assert page.inner_text("[data-head=loop]") == "47.5 %"
    page.evaluate("() => gnomon.setRange(1e7, 3.5e7)")
    page.wait_for_function("() => document.getElementById('note-loop').textContent.includes('whole run only')")
    assert [row[0] for row in rows(page, "loop")][-1] == "Waiting for messages"
