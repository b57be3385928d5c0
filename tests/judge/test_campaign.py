"""The campaign that judges the judge: its plants still apply, it goes on where it stopped, its table counts right."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from asv_benchmarks.judge import campaign
from asv_benchmarks.judge.__main__ import main
from asv_benchmarks.judge.campaign import SAME, Campaign, Outcome, run, table
from asv_benchmarks.judge.plants import PLANTS, Edit, Plant, apply_plant
from asv_benchmarks.judge.results import BrokenResultsError
from asv_benchmarks.judge.verdict import Exit, Rules
from tests.judge.folders import write_rounds

ROOT = Path(__file__).parents[2]
STEADY = {"core.time_place": [0.01, 0.011, 0.0105], "core.track_messages": 2.0}
SLOW = STEADY | {"core.time_place": [0.013, 0.014, 0.0135]}


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_plants_apply_to_this_very_code(plant, tmp_path):
    for edit in plant.edits:
        name = Path(edit.file).name
        for root in ("runtime", "profiler", "reports"):
            for path in (ROOT / root).rglob(name):
                copy = tmp_path / path.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, copy)
    apply_plant(plant, tmp_path)
    for path in tmp_path.rglob("*.py"):
        ast.parse(path.read_text())


def test_a_plant_that_no_longer_fits_is_refused(tmp_path):
    (tmp_path / "runtime").mkdir()
    (tmp_path / "runtime" / "one.py").write_text("a = 1\na = 1\n")
    for edit in (Edit("runtime/one.py", "a = 1", "a = 2"), Edit("runtime/one.py", "b", "c"), Edit("two.py", "a", "b")):
        with pytest.raises(ValueError, match="planted"):
            apply_plant(Plant("planted", "", (edit,), "."), tmp_path)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with what a plant edits, and rounds made up: a plant is slow, a comment is not."""
    origin = tmp_path / "origin"
    for name, text in (
        ("asv_benchmarks/asv.conf.json", "{}"),
        (
            "asv_benchmarks/benchmarks/gate.py",
            "import sys; print({'times': '^(.*time_|other)', 'counters': '^(.*track_)'}[sys.argv[1]])",
        ),
        ("runtime/gnomon/runtime/build.py", "# built\n"),
        ("runtime/gnomon/runtime/core/one.py", "a = 1\n"),
    ):
        (origin / name).parent.mkdir(parents=True, exist_ok=True)
        (origin / name).write_text(text)
    git = ["git", "-C", str(origin), "-c", "user.name=t", "-c", "user.email=t@localhost"]
    subprocess.run(["git", "init", "-q", "-b", "main", str(origin)], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "first"], check=True)
    measured = []

    def measure(plan, rules, tell):
        measured.append((plan, rules))
        source = subprocess.run(
            ["git", "-C", str(plan.config.parent), "show", f"{plan.head}:runtime/gnomon/runtime/core/one.py"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        shutil.rmtree(plan.folder, ignore_errors=True)
        write_rounds(plan.folder, STEADY, SLOW if "a = 2" in source else STEADY)

    monkeypatch.setattr(campaign, "measure", measure)
    plant = Plant(
        "planted", "twice the work", (Edit("core/one.py", "a = 1", "a = 2"),), r"^core\.time_place", ("times",)
    )
    monkeypatch.setattr(campaign, "PLANTS", (plant,))
    return Campaign(origin / "asv_benchmarks" / "asv.conf.json", tmp_path / "campaign", runs=2), measured


def test_every_kind_is_compared_as_often_as_asked_for(repository):
    chosen, measured = repository
    outcomes = run(chosen, Rules(), print)
    assert [(one.trial, one.number, one.exit) for one in outcomes] == [
        (SAME, 0, Exit.NO_REGRESSION),
        (SAME, 1, Exit.NO_REGRESSION),
        ("planted", 0, Exit.REGRESSION),
        ("planted", 1, Exit.REGRESSION),
    ]
    assert {plan.head_environment for plan, _ in measured} == {"env-same", "env-planted"}
    assert {plan.base for plan, _ in measured} == {outcomes[0].base}
    assert len({plan.head for plan, _ in measured}) == 2, "a commit is made once, and built once"
    text = table(outcomes)
    assert "2 comparisons of a commit with itself, 4 rows: 0 false alarms (0.00 %)" in text
    assert "| twice the work | 2 of 2 | 1.30 by `core.time_place` | none |" in text


def test_it_goes_on_where_it_stopped(repository):
    chosen, measured = repository
    run(chosen, Rules(), print)
    lines = (chosen.folder / "outcomes.jsonl").read_text().splitlines()
    (chosen.folder / "outcomes.jsonl").write_text("\n".join(lines[:3]) + "\n" + lines[3][:20])
    measured.clear()
    outcomes = run(chosen, Rules(), print)
    assert [(one.trial, one.number) for one in outcomes] == [(SAME, 0), (SAME, 1), ("planted", 0), ("planted", 1)]
    assert len(measured) == 1
    (chosen.folder / "outcomes.jsonl").write_text("")
    run(chosen, Rules(), print)
    assert len({plan.head for plan, _ in measured}) == 2


def test_plants_are_compared_by_a_part_and_judged_as_by_the_whole(repository):
    chosen, measured = repository
    run(replace(chosen, runs=1), Rules(), print)
    (whole, _), (part, rules) = measured
    assert (list(whole.patterns), list(whole.counters)) == (["^(.*time_|other)"], ["^(.*track_)"])
    (times,) = part.patterns
    assert not part.counters
    assert re.search(times, "core.time_place")
    assert not re.search(times, "core.time_other"), "in the gate, but not what has to see it"
    assert not re.search(times, "core.track_place"), "has to see it, but is no time"
    assert rules.least_rows == 1, "as many as were timed in the comparison without a change"
    measured.clear()
    run(replace(chosen, runs=2, whole=True, only=["planted"]), Rules(), print)
    assert list(measured[0][0].patterns) == list(whole.patterns)


def test_what_breaks_is_neither_a_miss_nor_a_pass(repository, monkeypatch):
    chosen, _ = repository

    def fail(plan, rules, tell):
        raise BrokenResultsError("no compiler")

    monkeypatch.setattr(campaign, "measure", fail)
    outcomes = run(chosen, Rules(), print)
    assert {one.exit for one in outcomes} == {Exit.BROKEN}
    text = table(outcomes)
    assert "No comparison of a commit with itself." in text
    assert "0 of 2" in text
    assert "Broken: same 1: no compiler" in text


def outcome(trial, number, code, **changed):
    rows = {name.replace("__", "."): found for name, found in changed.items()}
    return Outcome(trial, number, "b" * 40, int(code), 60.0, 100, 30, rows)


def test_the_table_counts_alarms_and_names():
    outcomes = [
        outcome(SAME, 0, Exit.NO_REGRESSION),
        outcome(SAME, 1, Exit.REGRESSION, worker__time_it=("slower", 1.1)),
        outcome(SAME, 2, Exit.NOISY, worker__time_it=("too noisy", 1.3)),
        outcome("framing", 0, Exit.REGRESSION, comm__Framing__time_read=("slower", 1.3)),
        outcome("framing", 1, Exit.REGRESSION, worker__time_it=("slower", 1.3)),
        outcome("framing", 2, Exit.NO_REGRESSION),
    ]
    text = table(outcomes)
    assert "3 comparisons of a commit with itself, 300 rows: 1 false alarms (0.33 %), 1 rows too noisy" in text
    assert "- 1 times: `worker.time_it` slower" in text
    assert "| 1 of 3 | 1.30 by `comm.Framing.time_read` | `worker.time_it` 1 | 60 |" in text


def test_an_unknown_plant_is_broken(repository, capsys):
    chosen, _ = repository
    arguments = ["campaign", "--config", str(chosen.config), "--folder", str(chosen.folder), "--only", "nothing"]
    assert main(arguments) == 3
    assert "no plant is called nothing" in capsys.readouterr().out
