"""Which rounds the driver asks for, without asv: what it reads of them is made up."""

from __future__ import annotations

import numpy as np
import pytest

from asv_benchmarks.judge import driver
from asv_benchmarks.judge.comparison import BASE, CONFIRM, HEAD, SCREEN, Build, Comparison, Measured, Stage
from asv_benchmarks.judge.driver import MOST_SUSPECTS, Plan, measure
from asv_benchmarks.judge.verdict import Rules
from tests.judge.simulated import rounds, row

CALM, ROUGH, WILD = 0.1, 6.0, 25.0


@pytest.fixture
def asked(monkeypatch):
    """Rounds by stage that were asked for: their first number, how many, and of how many benchmarks."""
    found = []
    monkeypatch.setattr(driver, "_asv", lambda *_, **__: None)
    monkeypatch.setattr(driver, "commit_of", lambda plan, name: name)

    def run_rounds(plan, stage, count, commits, patterns, tell, first=0):
        assert commits[BASE] == plan.base
        assert commits[HEAD] == plan.head
        found.append((stage, first, count, len(patterns)))

    monkeypatch.setattr(driver, "_run_rounds", run_rounds)
    return found


def told(monkeypatch, asked, noises, rows):
    """What is read after each set of rounds has the noise of that set; the last one's holds on."""
    dice = np.random.default_rng(3)

    def stage(count, noise):
        if not count:
            return Stage({})
        sides = {row(at): rounds(dice, count, 1.0, noise=noise) for at in range(rows)}
        return Stage({at: Measured(at, False, "seconds", *both) for at, both in sides.items()})

    def read(folder):
        confirming = sum(count for name, _, count, _ in asked if name == CONFIRM)
        build = Build("base", "0" * 40, "compiled")
        screening = [number for number, one in enumerate(asked) if one[0] == SCREEN]
        first = stage(9 * len(screening), noises[screening[-1]])
        last = stage(confirming, noises[min(len(asked), len(noises)) - 1])
        return Comparison(build, build, "made up", Stage({}), first, last)

    monkeypatch.setattr(driver, "read_comparison", read)


@pytest.mark.parametrize(
    ("noises", "sets"), [([CALM], 0), ([ROUGH, CALM], 1), ([WILD, WILD, CALM], 2), ([WILD, WILD, WILD], 2)]
)
def test_what_is_too_noisy_is_measured_again_but_not_for_ever(monkeypatch, asked, tmp_path, noises, sets):
    told(monkeypatch, asked, noises, rows=8)
    plan = Plan(tmp_path / "asv.conf.json", tmp_path / "rounds", "base", "head", ["time_"])
    measure(plan, Rules(), lambda text: None)
    assert [one[:3] for one in asked] == [(SCREEN, 0, 9), *((CONFIRM, 16 * number, 16) for number in range(sets))]


@pytest.mark.parametrize("noises", [[WILD, CALM], [WILD, WILD, CALM]])
def test_where_almost_all_is_too_noisy_all_is_measured_again(monkeypatch, asked, tmp_path, noises):
    told(monkeypatch, asked, noises, rows=MOST_SUSPECTS + 8)
    plan = Plan(tmp_path / "asv.conf.json", tmp_path / "rounds", "base", "head", ["time_"])
    measure(plan, Rules(), lambda text: None)
    assert asked[:2] == [(SCREEN, 0, 9, 1), (SCREEN, 9, 9, 1)]
    assert asked[2:3] == ([(CONFIRM, 0, 16, MOST_SUSPECTS)] if len(noises) == 3 else [])
