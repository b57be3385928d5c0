"""Which rounds the driver asks for, without asv: what it reads of them is made up."""

from __future__ import annotations

import numpy as np
import pytest

from asv_benchmarks.judge import driver
from asv_benchmarks.judge.comparison import BASE, CONFIRM, HEAD, SCREEN, Build, Comparison, Measured, Stage
from asv_benchmarks.judge.driver import Plan, measure
from asv_benchmarks.judge.verdict import Rules
from tests.judge.simulated import rounds, row

CALM, WILD = 1.0, 25.0


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


def told(monkeypatch, asked, noises):
    """What is read after each set of rounds has the noise of that set."""
    dice = np.random.default_rng(3)

    def stage(count, noise):
        if not count:
            return Stage({})
        base, head = rounds(dice, count, 1.0, noise=noise)
        return Stage({row(0): Measured(row(0), False, "seconds", base, head)})

    def read(folder):
        confirming = sum(count for name, _, count, _ in asked if name == CONFIRM)
        build = Build("base", "0" * 40, "compiled")
        last = stage(confirming, noises[len(asked) - 1])
        return Comparison(build, build, "made up", Stage({}), stage(9, noises[0]), last)

    monkeypatch.setattr(driver, "read_comparison", read)


@pytest.mark.parametrize(
    ("noises", "sets"), [([CALM], 0), ([WILD, CALM], 1), ([WILD, WILD, CALM], 2), ([WILD, WILD, WILD], 2)]
)
def test_what_is_too_noisy_is_measured_again_but_not_for_ever(monkeypatch, asked, tmp_path, noises, sets):
    told(monkeypatch, asked, noises)
    plan = Plan(tmp_path / "asv.conf.json", tmp_path / "rounds", "base", "head", ["time_"])
    measure(plan, Rules(), lambda text: None)
    assert asked == [(SCREEN, 0, 9, 1), *((CONFIRM, 16 * number, 16, 1) for number in range(sets))]
