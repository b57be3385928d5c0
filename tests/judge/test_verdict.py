"""From folders of results to exit codes: what is compared, what changed, and failing closed."""

from __future__ import annotations

import json
import math
import shutil

import pytest

from asv_benchmarks.judge.__main__ import main
from asv_benchmarks.judge.comparison import read_comparison
from asv_benchmarks.judge.results import BrokenResultsError
from asv_benchmarks.judge.verdict import Change, Exit, Rules, judge, suspects
from tests.judge.folders import write_manifest, write_rounds, write_side

STEADY = {"core.time_place": [0.01, 0.011, 0.0105], "core.track_messages": 2.0}


def verdict(folder):
    return judge(read_comparison(folder))


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({}, Exit.NO_REGRESSION),
        ({"core.time_place": [0.013, 0.014, 0.0135]}, Exit.REGRESSION),
        ({"core.time_place": [0.007, 0.008, 0.0075]}, Exit.IMPROVEMENT),
        ({"core.track_messages": 3.0}, Exit.REGRESSION),
        ({"core.track_messages": 2.001}, Exit.REGRESSION),
        ({"core.track_messages": 1.0}, Exit.IMPROVEMENT),
        ({"core.track_messages": 3.0, "core.time_place": [0.007, 0.007, 0.0075]}, Exit.REGRESSION),
    ],
)
def test_changes_and_their_codes(tmp_path, changed, code):
    judgement = verdict(write_rounds(tmp_path, STEADY, STEADY | changed))
    assert judgement.exit is code
    kind = Change.REGRESSION if code is Exit.REGRESSION else Change.IMPROVEMENT
    assert {one.row.benchmark for one in judgement.of(kind)} <= set(changed)


def test_command_prints_what_changed_and_nothing_else(tmp_path, capsys):
    write_rounds(tmp_path / "r", STEADY, STEADY | {"core.time_place": [0.013, 0.014, 0.0135]})
    assert main(["verdict", str(tmp_path / "r"), "--summary", str(tmp_path / "summary.md")]) == 1
    out = capsys.readouterr().out
    assert out == (tmp_path / "summary.md").read_text()
    for said in ("## Regression", "aaaaaaaaaa", "bbbbbbbbbb", "compiled", "made up", "`core.time_place`", "1.2"):
        assert said in out
    assert "track_messages" not in out


def test_suspicion_needs_confirmation(tmp_path):
    slow = STEADY | {"core.time_place": [0.0115, 0.0125, 0.012]}
    write_rounds(tmp_path, STEADY, slow)
    assert [row.benchmark for row in suspects(read_comparison(tmp_path))] == ["core.time_place"]
    only = {"core.time_place": STEADY["core.time_place"]}
    write_rounds(tmp_path, only, only, stage="confirm")
    assert verdict(tmp_path).exit is Exit.NO_REGRESSION
    shutil.rmtree(tmp_path / "confirm")
    write_rounds(tmp_path, only, {"core.time_place": [0.0115, 0.0125, 0.012]}, stage="confirm")
    assert verdict(tmp_path).exit is Exit.REGRESSION


def test_null_run_sets_the_noise_floor(tmp_path):
    slow = STEADY | {"core.time_place": [0.0115, 0.0125, 0.012]}
    write_manifest(tmp_path, null=True)
    write_rounds(tmp_path, STEADY, slow)
    for number in range(6):
        # The base measured again is just as slow: what the head shows is noise of this machine.
        write_side(tmp_path / "screen" / f"{number:02}" / "null", "null", slow)
    judgement = verdict(tmp_path)
    assert judgement.exit is Exit.NO_REGRESSION
    assert judgement.findings[0].threshold > 1.1


def test_counters_that_vary_need_more_than_their_scatter(tmp_path):
    for number in range(6):
        write_side(tmp_path / "screen" / f"{number:02}" / "base", "base", {"core.track_wakeups": 100.0 + number % 3})
        write_side(tmp_path / "screen" / f"{number:02}" / "head", "head", {"core.track_wakeups": 101.0 - number % 2})
    write_manifest(tmp_path)
    assert verdict(tmp_path).exit is Exit.NO_REGRESSION


def test_counters_may_be_zero(tmp_path):
    judgement = verdict(write_rounds(tmp_path, {"core.track_losses": 0.0}, {"core.track_losses": 1.0}))
    assert judgement.exit is Exit.REGRESSION


def counted(folder, base, head, stage="count"):
    for number, (ours, theirs) in enumerate(zip(base, head, strict=True)):
        write_side(folder / stage / f"{number:02}" / "base", "base", ours)
        write_side(folder / stage / f"{number:02}" / "head", "head", theirs)
    return folder


def test_two_rounds_of_counters_are_enough(tmp_path):
    write_rounds(tmp_path, {"core.time_place": STEADY["core.time_place"]}, {"core.time_place": [0.01, 0.011, 0.0105]})
    messages = [{"core.track_messages": 2.0}] * 2
    more = [{"core.track_messages": 2.5}] * 2
    assert verdict(counted(tmp_path, messages, more)).exit is Exit.REGRESSION
    shutil.rmtree(tmp_path / "count")
    judgement = verdict(counted(tmp_path, messages, messages))
    assert judgement.exit is Exit.NO_REGRESSION
    assert len(judgement.findings) == 2


def test_counters_that_vary_where_they_should_not_are_measured_again(tmp_path):
    write_manifest(tmp_path)
    varying = [{"core.track_wakeups": 100.0}, {"core.track_wakeups": 101.0}]
    counted(tmp_path, varying, varying)
    assert [row.benchmark for row in suspects(read_comparison(tmp_path))] == ["core.track_wakeups"]
    assert verdict(tmp_path).exit is Exit.NOISY
    counted(tmp_path, varying * 4, varying * 4, stage="confirm")
    assert verdict(tmp_path).exit is Exit.NO_REGRESSION
    shutil.rmtree(tmp_path / "confirm")
    twice = [{"core.track_wakeups": 200.0}, {"core.track_wakeups": 202.0}]
    counted(tmp_path, varying * 4, twice * 4, stage="confirm")
    assert verdict(tmp_path).exit is Exit.REGRESSION


@pytest.mark.parametrize(
    ("base", "head", "code"),
    [
        ((1000.0, 1002.0), (1004.0, 1003.0), Exit.NO_REGRESSION),
        ((1000.0, 1000.0), (1020.0, 1020.0), Exit.NO_REGRESSION),
        ((1000.0, 1002.0), (1100.0, 1101.0), Exit.REGRESSION),
        ((1000.0, 1002.0), (900.0, 901.0), Exit.IMPROVEMENT),
    ],
)
@pytest.mark.parametrize("unit", ["instructions/task", "blocks held/task"])
def test_what_is_nearly_exact_is_judged_by_ranges_and_the_factor(tmp_path, base, head, code, unit):
    write_manifest(tmp_path)
    sides = [[{"core.track_instructions": value} for value in side] for side in (base, head)]
    counted(tmp_path, *sides)
    for path in tmp_path.glob("count/*/*/benchmarks.json"):
        path.write_text(path.read_text().replace('"messages"', f'"{unit}"'))
    assert not suspects(read_comparison(tmp_path))
    assert verdict(tmp_path).exit is code


def test_a_part_is_judged_as_severely_as_the_whole(tmp_path):
    write_rounds(tmp_path, STEADY, STEADY | {"core.time_place": [0.0107, 0.0117, 0.0112]})
    comparison = read_comparison(tmp_path)
    assert judge(comparison).exit is Exit.REGRESSION
    alone, among_many = [
        {found.row.benchmark: found.interval for found in judge(comparison, Rules(least_rows=rows)).findings}[
            "core.time_place"
        ]
        for rows in (0, 1_000)
    ]
    assert among_many.low < alone.low
    assert among_many.high > alone.high


def test_benchmarks_new_in_the_head_are_listed(tmp_path, capsys):
    write_rounds(tmp_path, STEADY | {"new.time_it": math.nan}, STEADY | {"new.time_it": [0.1, 0.2]})
    assert main(["verdict", str(tmp_path)]) == 0
    assert "New in the head" in capsys.readouterr().out


def test_a_skip_on_both_sides_is_no_result(tmp_path):
    both = STEADY | {"new.time_it": math.nan}
    assert len(verdict(write_rounds(tmp_path, both, both)).findings) == 2


def spoil_nothing_measured(folder):
    shutil.rmtree(folder / "screen")


def spoil_side_missing(folder):
    shutil.rmtree(folder / "screen" / "03" / "head")


def spoil_result_missing(folder):
    shutil.rmtree(folder / "screen" / "03" / "head")
    write_side(folder / "screen" / "03" / "head", "head", {"core.track_messages": 2.0})


def spoil_failed(folder):
    shutil.rmtree(folder / "screen" / "02" / "head")
    write_side(folder / "screen" / "02" / "head", "head", STEADY | {"core.time_place": None})


def spoil_gone_in_head(folder):
    for path in (folder / "screen").glob("*/head"):
        shutil.rmtree(path)
        write_side(path, "head", STEADY | {"core.time_place": math.nan})


def spoil_samples(folder):
    _edit(folder, lambda data: data["results"]["core.time_place"].__setitem__(6, None))


def spoil_machine(folder):
    _edit(folder, lambda data: data["params"].__setitem__("cpu", "another"))


def spoil_variables(folder):
    _edit(folder, lambda data: data["env_vars"].__setitem__("GNOMON_PURE", "1"))


def spoil_commit(folder):
    _edit(folder, lambda data: data.__setitem__("commit_hash", "c" * 40))


def spoil_format(folder):
    _edit(folder, lambda data: data.__setitem__("version", 3))


def spoil_version(folder):
    _edit(folder, lambda data: data["results"]["core.time_place"].__setitem__(2, "2"))


def spoil_build(folder):
    write_manifest(folder, compiled=("compiled", "pure Python"))


def spoil_manifest(folder):
    (folder / "manifest.json").unlink()


def spoil_json(folder):
    next((folder / "screen" / "01" / "head" / "bench").glob("b*.json")).write_text("{")


def spoil_rounds(folder):
    for number in range(2, 6):
        shutil.rmtree(folder / "screen" / f"{number:02}")


def _edit(folder, change):
    path = next((folder / "screen" / "04" / "head" / "bench").glob("b*.json"))
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


@pytest.mark.parametrize(
    "spoil",
    [value for name, value in sorted(globals().items()) if name.startswith("spoil_")],
    ids=lambda spoil: spoil.__name__,
)
def test_whatever_is_wrong_is_broken_never_a_verdict(tmp_path, spoil, capsys):
    write_rounds(tmp_path, STEADY, STEADY)
    spoil(tmp_path)
    assert main(["verdict", str(tmp_path)]) == 3
    assert "Broken environment" in capsys.readouterr().out


def test_empty_rows_are_broken(tmp_path):
    skipped = {"core.time_place": math.nan}
    with pytest.raises(BrokenResultsError, match="no benchmark"):
        verdict(write_rounds(tmp_path, skipped, skipped))


def test_wrong_command_lines_are_broken(capsys):
    with pytest.raises(SystemExit) as left:
        main(["verdict"])
    assert left.value.code == 3
    assert "usage" in capsys.readouterr().err


def test_too_few_rounds_are_refused_before_anything_runs(tmp_path, capsys):
    assert main(["compare", "HEAD", "--rounds", "3", "--bench", "x", "--folder", str(tmp_path / "rounds")]) == 3
    assert "at least 4" in capsys.readouterr().out
    assert not (tmp_path / "rounds").exists()
