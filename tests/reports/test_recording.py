"""Recordings: what the pages become, and the file."""

from __future__ import annotations

import zlib

import msgpack
import pytest

from gnomon.reports import Recording, RecordingError, load
from gnomon.reports.page import build_page


def test_round_trip(busy, tmp_path):
    recording = busy(3_000)
    recording.info = {"versions": {"python": "3"}, "raised": "x"}
    assert load(recording.save(tmp_path / "a.gnomon")) == recording


def test_round_trip_of_nothing(cluster):
    recording = cluster.record(cluster.mark())
    assert Recording.loads(recording.dumps()) == recording


def test_round_trip_of_odd_values(cluster):
    w = cluster.worker("w")
    mark = cluster.mark()
    nan, inf = float("nan"), float("inf")
    cluster.runs([
        ("long", "p", w, 0, 1.0, 1.0, 10_000.0, 10_000.0, 10**15, True),
        ("early", "p", w, 0, -5_000.0, -1.0, 0.0, 1.0, 0, True),
        ("backwards", "p", w, 0, 5.0, 4.0, 3.0, 2.0, 0, True),
        ("no time", "p", w, 0, nan, inf, -inf, nan, 0, False),
        ("two\nlines", "p", w, 0, 1.0, 1.0, 1.0, 1.0, 0, True),
    ])  # fmt: skip
    cluster.now = 20_000.0
    recording = cluster.record(mark)
    again = Recording.loads(recording.dumps())
    assert again.runs.begins == recording.runs.begins
    assert again.runs.keys[4] == "two␤lines"
    assert len(again.runs) == 5
    assert min(again.runs.decodes) >= 0


def test_a_report_holds_its_recording(busy, tmp_path):
    recording = busy(50)
    page = tmp_path / "page.html"
    page.write_text(build_page(recording), "utf-8")
    assert load(page) == recording


def test_details_come_in_pages_and_stop_at_the_second_mark(cluster):
    w = cluster.worker("w")
    cluster.run("before-1", w, 0.0, 0.5)
    mark = cluster.mark()
    for i in range(25_000):
        cluster.run(f"x-{i}", w, i / 1000, i / 1000 + 0.0005)
    cluster.now = 30.0
    recording = cluster.record(mark)
    assert cluster.asked.count("telemetry") >= 3
    assert (len(recording.runs), recording.runs.keys[0], recording.prefixes[0].tasks) == (25_000, "x-0", 25_000)


def test_what_happens_while_pages_are_fetched_stays_out(cluster):
    w = cluster.worker("w")
    mark = cluster.mark()
    for i in range(10):
        cluster.run(f"x-{i}", w, i, i + 0.5)
    answer = cluster.request

    def later(method, **arguments):
        result = answer(method, **arguments)
        cluster.run("late-1", w, 20.0, 21.0)
        return result

    cluster.request = later
    cluster.now = 12.0
    recording = cluster.record(mark)
    assert len(recording.runs) == recording.ledgers["runs"].seen == 10
    assert [prefix.name for prefix in recording.prefixes] == ["x"]


def test_missed_rows_are_in_the_ledger(make_cluster):
    cluster = make_cluster(length=100)
    w = cluster.worker("w")
    mark = cluster.mark()
    for i in range(250):
        cluster.run(f"x-{i}", w, i, i + 0.5)
    ledger = cluster.record(mark).ledgers["runs"]
    assert (ledger.seen, ledger.kept, ledger.missed) == (250, 100, 150)


def test_a_scheduler_that_restarted_gives_what_it_has(make_cluster):
    old, new = make_cluster(), make_cluster()
    w = old.worker("w")
    for i in range(10):
        old.run(f"x-{i}", w, i, i + 0.5)
    recording = new.record(old.mark())
    assert len(recording.runs) == 0


@pytest.mark.parametrize(
    "data", [b"", b"nonsense", zlib.compress(b"nonsense"), zlib.compress(msgpack.packb({"format": "other"})), b"<html>"]
)
def test_what_is_no_recording_is_refused(data, tmp_path):
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(RecordingError):
        load(path)


def test_a_newer_version_is_refused():
    data = zlib.compress(msgpack.packb({"format": "gnomon-recording", "version": 99}))
    with pytest.raises(RecordingError, match="version 99"):
        Recording.loads(data)
