"""The interval of a ratio, and how often it is right, on simulated timings."""

from __future__ import annotations

import math

import numpy as np
import pytest

from asv_benchmarks.judge.statistics import Logs, log_rounds, noise_floor, ratio_interval, student_quantile
from asv_benchmarks.judge.verdict import Change, Exit
from tests.judge.simulated import gate_run, rounds, row

GATE = 40


@pytest.mark.parametrize(
    ("p", "degrees", "expected"),
    [(0.975, 1, 12.706), (0.975, 2, 4.303), (0.975, 7, 2.365), (0.9995, 9, 4.781), (0.99, 3, 4.541)],
)
def test_student_quantiles_are_those_of_the_tables(p, degrees, expected):
    assert student_quantile(p, degrees) == pytest.approx(expected, abs=1e-3)


def test_interval_of_equal_rounds_is_a_point():
    interval = ratio_interval(Logs((0.0,) * 6, (math.log(1.5),) * 6), 0.01)
    assert interval == pytest.approx((1.5, 1.5, 1.5))


def test_interval_widens_with_certainty_and_holds_the_estimate():
    logs = Logs((0.01, 0.05, -0.02, 0.03, 0.02, 0.00, 0.04, 0.01), (0.02, 0.01, 0.03, -0.01, 0.04, 0.02, 0.05, 0.00))
    loose, strict = ratio_interval(logs, 0.2), ratio_interval(logs, 0.001)
    assert strict.low < loose.low < loose.ratio < loose.high < strict.high


def test_interval_is_not_moved_by_rounds_that_were_hit():
    clean = (0.01, -0.01, 0.0, 0.02, -0.02, 0.01, 0.0, -0.01, 0.005)
    hit = (*clean[:4], *(value + 0.7 for value in clean[4:8]), clean[8])
    for logs in (Logs(clean, hit), Logs(hit, clean)):
        interval = ratio_interval(logs, 0.05)
        assert interval.ratio == pytest.approx(1.0, abs=0.015)
        assert interval.high < 1.15


def test_interval_needs_rounds():
    with pytest.raises(ValueError, match="at least 4"):
        ratio_interval(Logs((0.0,) * 3, (0.0,) * 3), 0.05)


def test_drift_is_both_sides():
    base = [[1.0 * 1.1**number] for number in range(8)]
    head = [[1.2 * 1.1**number] for number in range(8)]
    assert ratio_interval(log_rounds(base, head), 0.05).ratio == pytest.approx(1.2)


def test_a_round_is_its_best_sample():
    assert log_rounds([[2.0, 1.0, 9.0]], [[4.0, 3.0]]) == Logs((0.0,), (math.log(3.0),))


@pytest.mark.parametrize(
    ("base", "head"), [([[1.0]], [[1.0], [1.0]]), ([[1.0]], [[]]), ([[0.0]], [[1.0]])], ids=["count", "empty", "zero"]
)
def test_rounds_that_make_no_ratio_are_refused(base, head):
    with pytest.raises(ValueError, match="round"):
        log_rounds(base, head)


def test_noise_floor_from_a_null_run_covers_its_offset():
    base = [[1.0], [1.01], [0.99], [1.0], [1.02], [1.0]]
    shifted = [[samples[0] * 1.08] for samples in base]
    assert noise_floor(base, shifted) == pytest.approx(1.08, abs=0.001)
    assert noise_floor(base, base) == pytest.approx(1.0)


def test_noise_floor_without_a_null_run_grows_with_the_scatter():
    calm = noise_floor([[1.0], [1.01], [1.0], [0.99], [1.0], [1.01]])
    wild = noise_floor([[1.0], [1.5], [1.0], [0.7], [1.3], [0.9]])
    assert 1.0 <= calm < 1.02 < wild


def test_interval_misses_about_as_often_as_it_says():
    rng = np.random.default_rng(5)
    missed = 0
    for _ in range(600):
        interval = ratio_interval(log_rounds(*rounds(rng, 16, 1.2)), 0.05)
        missed += not interval.low <= 1.2 <= interval.high
    assert missed <= 600 * 0.07


def test_false_alarms_of_a_whole_gate():
    codes = [gate_run(seed, [1.0] * GATE).exit for seed in range(200)]
    alarms = sum(code in (Exit.REGRESSION, Exit.IMPROVEMENT) for code in codes)
    assert alarms <= 10
    assert codes.count(Exit.NO_REGRESSION) >= 180  # it must say so, not hide behind the noise


@pytest.mark.parametrize(("slowdown", "least"), [(1.3, 95), (1.1, 90)])
def test_planted_slowdowns_are_caught_and_named(slowdown, least):
    caught = 0
    for seed in range(100):
        judgement = gate_run(5000 + seed, [slowdown] + [1.0] * (GATE - 1))
        caught += judgement.exit is Exit.REGRESSION and row(0) in [one.row for one in judgement.of(Change.REGRESSION)]
    assert caught >= least


def test_planted_speedups_are_improvements():
    caught = sum(gate_run(9000 + seed, [0.7] + [1.0] * (GATE - 1)).exit is Exit.IMPROVEMENT for seed in range(30))
    assert caught >= 27


def test_where_every_third_process_is_slower_there_are_verdicts():
    """Such is a shared machine: other work on the same core takes up to half of it, for seconds or minutes."""
    same = [gate_run(seed, [1.0] * GATE, hit=0.35).exit for seed in range(40)]
    assert same.count(Exit.NO_REGRESSION) >= 36
    assert Exit.REGRESSION not in same
    caught = [gate_run(700 + seed, [1.3] + [1.0] * (GATE - 1), hit=0.35).exit for seed in range(40)]
    assert caught.count(Exit.REGRESSION) >= 36


def test_hopeless_noise_gives_no_verdict():
    codes = [gate_run(seed, [1.0] * GATE, noise=25.0).exit for seed in range(10)]
    assert set(codes) == {Exit.NOISY}


def test_the_same_timings_give_the_same_verdict():
    assert gate_run(7, [1.1] + [1.0] * 9) == gate_run(7, [1.1] + [1.0] * 9)
