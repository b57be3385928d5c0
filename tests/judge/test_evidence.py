"""What goes with a regression: recordings of the suite's workload on both builds, compared."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from asv_benchmarks.judge import __main__ as command
from asv_benchmarks.judge import evidence
from asv_benchmarks.judge.driver import Plan
from asv_benchmarks.judge.results import BrokenResultsError
from tests.judge.folders import write_rounds

SUITE = Path(__file__).parents[2] / "asv_benchmarks" / "asv.conf.json"


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """Both sides are what is installed here."""
    monkeypatch.setattr(evidence, "environment_python", lambda plan, side, commit: sys.executable)
    monkeypatch.setattr(evidence, "commit_of", lambda plan, name: "c" * 40)

    def make(config):
        (tmp_path / "rounds").mkdir(exist_ok=True)
        return Plan(config=config, folder=tmp_path / "rounds", base="base", head="head", patterns=[], pure=True)

    return make


def suite_with(tmp_path, workload):
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "recorded.py").write_text(workload)
    return tmp_path / "asv.conf.json"


def test_a_suite_without_a_workload_has_no_diff(plan, tmp_path):
    assert evidence.report_diff(plan(tmp_path / "asv.conf.json")) == ""


@pytest.mark.parametrize(
    ("workload", "reason"),
    [
        ("raise SystemExit('planted')", "planted"),
        ("import sys; open(sys.argv[1], 'w').write('nonsense')", "report diff failed with 2"),
    ],
)
def test_recordings_that_fail_are_told(plan, tmp_path, workload, reason):
    with pytest.raises(BrokenResultsError, match=reason):
        evidence.report_diff(plan(suite_with(tmp_path, workload)))


def test_evidence_that_fails_leaves_the_verdict(tmp_path, monkeypatch, capsys):
    times = {"core.time_place": [0.01, 0.011, 0.0105]}

    def measure(plan, rules, tell):
        write_rounds(plan.folder, times, {"core.time_place": [0.02, 0.021, 0.0205]})

    def fail(plan):
        raise BrokenResultsError("no recording")

    monkeypatch.setattr(command, "measure", measure)
    monkeypatch.setattr(command, "report_diff", fail)
    arguments = ["compare", "base", "--config", str(tmp_path / "asv.conf.json"), "--folder", str(tmp_path / "rounds")]
    assert command.main(arguments) == 1
    assert "The diff of recordings failed: no recording" in capsys.readouterr().out
    assert command.main([*arguments, "--no-diff", "--folder", str(tmp_path / "others")]) == 1
    assert "recording" not in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_recordings_of_both_builds_are_compared(plan):
    chosen = plan(SUITE)
    text = evidence.report_diff(chosen)
    assert text.startswith("### What a cluster did")
    assert (chosen.folder / "diff.html").exists()
    assert len(list(chosen.folder.glob("*.gnomon"))) == 2 * evidence.RECORDINGS
