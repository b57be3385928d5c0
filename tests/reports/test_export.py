"""Exports: each format is well formed, and its numbers are the account's."""

from __future__ import annotations

import csv
import json
import sys

import pytest
from click.testing import CliRunner

from gnomon.reports.account import PARTS, account, percentages
from gnomon.reports.cli import report
from gnomon.reports.export import FORMATS, ExportError, export, summary
from gnomon.reports.recording import TICKS


@pytest.fixture
def recording(busy):
    return busy(400)


def ticks_of_runs(recording):
    runs = recording.runs
    return sum(runs.decodes), sum(runs.computes), sum(runs.encodes)


@pytest.mark.parametrize("name", ["chrome", "perfetto"])
def test_trace_events(recording, tmp_path, name):
    (path,) = export(recording, name, tmp_path / "t.json")
    trace = json.loads(path.read_text("utf-8"))
    events = trace["traceEvents"]
    for event in events:
        assert event["ph"] in {"M", "X", "b", "e", "i"}
        assert isinstance(event["pid"], int)
        if event["ph"] != "M":
            assert event["ts"] == event["ts"] >= 0
            assert event["name"]
    tasks = [event for event in events if event.get("cat") == "task"]
    assert len(tasks) == len(recording.runs)
    decode, compute, encode = ticks_of_runs(recording)
    assert sum(event["dur"] for event in tasks) * 10 == pytest.approx(decode + compute + encode)
    inner = {kind: sum(e["dur"] for e in events if e.get("cat") == "part" and e["name"] == kind) * 10
             for kind in ("decode", "encode")}  # fmt: skip
    assert inner == pytest.approx({"decode": decode, "encode": encode})
    assert {event["args"]["key"] for event in tasks} == set(recording.runs.keys)
    begun = {event["id"]: event for event in events if event["ph"] == "b"}
    ended = {event["id"]: event for event in events if event["ph"] == "e"}
    assert len(begun) == len(recording.transfers) > 0
    assert begun.keys() == ended.keys()
    assert all(ended[number]["ts"] >= event["ts"] for number, event in begun.items())
    assert sum(event["args"]["bytes"] for event in begun.values()) == sum(recording.transfers.nbytes)
    named = {(event["pid"]) for event in events if event["name"] == "process_name"}
    assert {event["pid"] for event in events} <= named
    lanes = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    assert {(event["pid"], event["tid"]) for event in tasks} == lanes


def test_speedscope(recording, tmp_path):
    (path,) = export(recording, "speedscope", tmp_path / "s.json")
    content = json.loads(path.read_text("utf-8"))
    assert content["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = content["shared"]["frames"]
    assert all(set(frame) == {"name"} for frame in frames)
    total = 0.0
    for profile in content["profiles"]:
        assert profile["type"] == "evented"
        assert profile["unit"] == "seconds"
        stack, at = [], profile["startValue"]
        for event in profile["events"]:
            assert event["at"] >= at
            at = event["at"]
            if event["type"] == "O":
                stack.append(event)
            else:
                opened = stack.pop()
                assert opened["frame"] == event["frame"] < len(frames)
                total += (event["at"] - opened["at"]) if not stack else 0.0
        assert stack == []
        assert at <= profile["endValue"]
    assert len(content["profiles"]) == len(set(zip(recording.runs.workers, recording.runs.threads, strict=True)))
    assert total * TICKS == pytest.approx(sum(ticks_of_runs(recording)))


def test_speedscope_nests_runs_that_overlap(cluster):
    from gnomon.reports.export.speedscope import speedscope

    w = cluster.worker("w")
    mark = cluster.mark()
    cluster.run("a-1", w, 1.0, 3.0)
    cluster.run("b-1", w, 2.0, 4.0)
    cluster.run("c-1", w, 3.1, 3.9)
    cluster.now = 5.0
    content = speedscope(cluster.record(mark))
    (profile,) = content["profiles"]
    times = [event["at"] for event in profile["events"]]
    assert times == sorted(times)
    assert "1 runs" in content["name"]


def test_csv(recording, tmp_path):
    paths = export(recording, "csv", tmp_path / "tables")
    tables = {}
    for path in paths:
        with path.open(encoding="utf-8", newline="") as file:
            tables[path.stem] = list(csv.DictReader(file))
    assert {name: len(rows) for name, rows in tables.items()} == {
        "runs": len(recording.runs),
        "transfers": len(recording.transfers),
        "prefixes": len(recording.prefixes),
    }
    assert [row["key"] for row in tables["runs"]] == recording.runs.keys
    assert [round(float(row["compute"]) * TICKS) for row in tables["runs"]] == list(recording.runs.computes)
    assert [round(float(row["begin"]) * TICKS) for row in tables["runs"]] == list(recording.runs.begins)
    assert sum(int(row["tasks"]) for row in tables["prefixes"]) == account(recording).tasks
    assert sum(int(row["nbytes"]) for row in tables["transfers"]) == sum(recording.transfers.nbytes)
    assert {row["wait"] for row in tables["transfers"]} == {""}  # not measured here
    assert {row["worker"] for row in tables["runs"]} <= {worker.label for worker in recording.workers}


def test_parquet(recording, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    paths = export(recording, "parquet", tmp_path / "tables")
    tables = {path.stem: parquet.read_table(path) for path in paths}
    assert tables["runs"].num_rows == len(recording.runs)
    assert str(tables["runs"].schema.field("ok").type) == "bool"
    computes = tables["runs"].column("compute").to_pylist()
    assert [round(value * TICKS) for value in computes] == list(recording.runs.computes)
    assert tables["prefixes"].column("tasks").to_pylist() == [totals.tasks for totals in recording.prefixes]
    assert tables["transfers"].num_rows == len(recording.transfers)


def test_parquet_of_nothing_has_columns(cluster, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    mark = cluster.mark()
    cluster.now = 1.0
    for path in export(cluster.record(mark), "parquet", tmp_path / "t"):
        table = parquet.read_table(path)
        assert table.num_rows == 0
        assert table.num_columns > 4


def test_parquet_without_pyarrow_says_what_to_do(recording, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ExportError, match="pip install pyarrow"):
        export(recording, "parquet", tmp_path / "t")
    path = recording.save(tmp_path / "r.gnomon")
    result = CliRunner().invoke(report, ["export", str(path), "--format", "parquet"])
    assert result.exit_code == 2
    assert "pip install pyarrow" in result.output
    assert not (tmp_path / "r-parquet").exists()


def test_json_has_the_numbers_of_the_account(recording, tmp_path):
    (path,) = export(recording, "json", tmp_path / "s.json")
    content = json.loads(path.read_text("utf-8"), parse_constant=pytest.fail)
    assert content == json.loads(json.dumps(summary(recording), default=str))
    result = account(recording)
    parts = content["account"]["parts"]
    assert {name: round(value * TICKS) for name, value in parts.items()} == dict(
        zip(PARTS, result.parts.values(), strict=True)
    )
    assert sum(round(value * TICKS) for value in parts.values()) == round(content["account"]["capacity"] * TICKS)
    assert list(content["account"]["percent"].values()) == percentages(result.parts.values())
    assert [each["prefix"] for each in content["prefixes"]] == [each.name for each in result.prefixes]
    assert sum(each["tasks"] for each in content["workers"]) == content["tasks"] == result.tasks
    assert content["records"]["runs"] == {"seen": 400, "kept": 400}


def test_parts_of_transfers_are_exported(cluster, tmp_path):
    a, b = cluster.worker("a"), cluster.worker("b")
    mark = cluster.mark()
    cluster.fetch(a, b, 1.0, 2.0, parts=(0.5, 0.25, 0.125), types=[("list", 2, 1000)])
    cluster.now = 3.0
    recording = cluster.record(mark)
    export(recording, "csv", tmp_path / "t")
    (row,) = csv.DictReader((tmp_path / "t" / "transfers.csv").read_text("utf-8").splitlines())
    assert (row["type"], float(row["wait"]), float(row["hold"]), float(row["serialise"])) == ("list", 0.5, 0.25, 0.125)
    (path,) = export(recording, "json", tmp_path / "s.json")
    told = json.loads(path.read_text("utf-8"))
    parts = {"wait": 0.5, "hold": 0.25, "serialise": 0.125}
    assert told["transfers"][0].items() >= parts.items()
    assert told["types"] == [{"type": "list", "values": 2, "bytes": 1000, "time": 1.0, **parts}]


def test_empty_recordings_export(cluster, tmp_path):
    mark = cluster.mark()
    cluster.now = 1.0
    recording = cluster.record(mark)
    for name in FORMATS:
        if name == "parquet":
            continue
        for path in export(recording, name, tmp_path / name):
            if path.suffix != ".csv":
                json.loads((tmp_path / name).read_text("utf-8"), parse_constant=pytest.fail)


def test_unknown_format(recording, tmp_path):
    with pytest.raises(ExportError, match="known are chrome, perfetto"):
        export(recording, "xls", tmp_path / "x")


def test_command_writes_beside_the_file_by_default(recording, tmp_path):
    path = recording.save(tmp_path / "r.gnomon")
    for name, expected in (("perfetto", "r.trace.json"), ("json", "r.json"), ("csv", "r-csv/runs.csv"),
                           ("speedscope", "r.speedscope.json")):  # fmt: skip
        result = CliRunner().invoke(report, ["export", str(path), "--format", name])
        assert result.exit_code == 0, result.output
        assert (tmp_path / expected).exists()
        assert f"wrote {tmp_path / expected}" in result.output
    result = CliRunner().invoke(report, ["export", str(path), "--format", "json", "-o", str(tmp_path / "else.json")])
    assert result.exit_code == 0
    assert (tmp_path / "else.json").exists()
    assert CliRunner().invoke(report, ["export", str(tmp_path / "no"), "--format", "json"]).exit_code == 2
