"""Metrics: they parse, say what is true, are all documented, and the Grafana board asks for none that isn't there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gnomon.reports.dashboard import metrics
from gnomon.reports.dashboard.context import Context
from gnomon.reports.dashboard.feed import Feed
from gnomon.reports.dashboard.model import Model

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def context(by_hand):
    """Of a scheduler with something of everything."""
    scheduler = by_hand()
    scheduler.join(1)
    scheduler.join(2)
    scheduler.run(("a", 1, 1000.0, 1.0), ('quo"te\\\n', 2, 1000.0, 3.0))
    scheduler.telemetry.append_report(0, report("scheduler"))
    scheduler.telemetry.append_report(1, report("executor"))
    transfer(scheduler)
    scheduler.now += 5
    scheduler.model.group_of("b-1").counts[4] = 7
    model = Model()
    scheduler.feed(model)
    return Context(Feed("tcp://nowhere", model=model))


def report(process):
    from gnomon.runtime.instruments.series import COLUMNS

    row = [0.5] * len(COLUMNS)
    row[COLUMNS.index("cpu")] = 40.0
    return {"series": {process: (1001.0, row)}}


def transfer(scheduler):
    from gnomon.runtime.messages import TransfersDone

    done = TransfersDone(("tcp://127.0.0.1:9002",), (4096,), (1000.0,), (1000.5,), ("tcp",))
    scheduler.telemetry.append_transfers(1, done, {"tcp://127.0.0.1:9002": 2}, offset=0.0)


def families(context, age=0.5):
    return {each.name: each for each in text_string_to_metric_families(metrics.exposition(context, age).decode())}


def samples(context):
    """Values by name and labels, these in the reverse order of their names: worker before host."""
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels, reverse=True))): sample.value
        for family in families(context).values()
        for sample in family.samples
    }


def test_they_say_what_is_true(context):
    found = samples(context)
    assert found["gnomon_up",] == 1
    assert found["gnomon_data_age_seconds",] == 0.5
    assert found["gnomon_runs_total", "a"] == 1
    assert found["gnomon_runs_total", 'quo"te\\\n'] == 1
    assert found["gnomon_run_seconds_total", "a", "compute"] == pytest.approx(0.8)
    assert found["gnomon_worker_run_seconds_total", "w2", "here"] == pytest.approx(3.0)
    assert found["gnomon_worker_threads", "w1", "here"] == 2
    assert found["gnomon_worker_cpu_percent", "w1", "here"] == 40
    assert ("gnomon_worker_cpu_percent", "w2", "here") not in found  # not known is not 0
    assert found["gnomon_scheduler_cpu_percent",] == 40
    assert found["gnomon_transfer_bytes_total", "tcp"] == 4096
    assert found["gnomon_prefix_tasks", "processing", "b"] == 7
    assert found["gnomon_scheduler_start_time_seconds",] == 1000


def test_without_data_nothing_is_claimed():
    found = samples(Context(Feed("tcp://nowhere")))
    assert found["gnomon_up",] == 0
    assert "gnomon_scheduler_workers" not in {name for name, *_ in found}


def documented():
    rows = re.findall(r"^\| `(gnomon_\w+)` \| (\w+) \| ([^|]*)\|", (DOCS / "dashboard.md").read_text(), re.MULTILINE)
    return {name: (kind, {label.strip() for label in labels.split(",")} - {""}) for name, kind, labels in rows}


def test_all_are_documented_with_kind_and_labels(context):
    context.feed.model.pairs or pytest.fail("no transfers")
    found = {}
    for family in families(context).values():
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                found[sample.name] = (family.type, set(sample.labels))
    assert found == documented()


def test_the_board_asks_for_what_there_is():
    board = json.loads((DOCS / "grafana" / "gnomon.json").read_text())
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"]) >= 15
    for panel in board["panels"]:
        assert panel["title"]
        for target in panel["targets"]:
            asked = re.findall(r"\bgnomon_\w+", target["expr"])
            assert asked
            for name in asked:
                kind, labels = documented()[name]
                assert ("rate(" in target["expr"]) == (kind == "counter") or panel["type"] == "stat", target["expr"]
                assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= labels or "sum by" in target["expr"]
    places = [tuple(panel["gridPos"].values()) for panel in board["panels"]]
    assert all(x + w <= 24 for x, y, w, h in places)
    assert len({(x, y) for x, y, _, _ in places}) == len(places)
