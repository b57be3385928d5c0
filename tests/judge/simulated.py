"""Timings as a shared virtual machine of two processors gives them, made up from a seed.

Per benchmark: a slow random drift and a trend over the run, a luck of its own for each process (address layout, hash
seed), bursts of other work that hit whole processes, and samples with a heavy upper tail.
"""

from __future__ import annotations

import numpy as np

from asv_benchmarks.judge.comparison import Build, Comparison, Measured, Stage
from asv_benchmarks.judge.results import Row
from asv_benchmarks.judge.verdict import Judgement, Rules, judge, suspects

SAMPLES = 5
SCREEN, CONFIRM = 9, 16  # the driver's own numbers of rounds


def row(number: int) -> Row:
    return Row(f"gate.Simulated.time_{number:02}", (), "virtualenv-py3.11")


def rounds(
    rng: np.random.Generator, count: int, slowdown: float, *, noise: float = 1.0, hit: float = 0.08
) -> tuple[list[list[float]], list[list[float]]]:
    """Samples per round of base and head, measured base-head, head-base and so on; ``hit``: the share of processes."""
    slots = 2 * count
    drift = np.zeros(slots)
    for slot in range(1, slots):
        drift[slot] = 0.7 * drift[slot - 1] + rng.normal(0, 0.012)
    drift += np.linspace(0, rng.normal(0, 0.08), slots)
    luck = rng.normal(0, 0.012, slots)
    burst = np.where(rng.random(slots) < hit, rng.uniform(0.05, 0.6, slots), 0.0)
    body = rng.normal(0, 0.015, (slots, SAMPLES))
    tail = np.where(rng.random((slots, SAMPLES)) < 0.06, rng.exponential(0.3, (slots, SAMPLES)), 0.0)
    times = 0.01 * np.exp(noise * ((drift + luck + burst)[:, None] + body + tail))
    base, head = [], []
    for number in range(count):
        first, second = times[2 * number], times[2 * number + 1]
        ours, theirs = (second, first) if number % 2 else (first, second)
        base.append(ours.tolist())
        head.append((theirs * slowdown).tolist())
    return base, head


def gate_run(
    seed: int, slowdowns: list[float], *, noise: float = 1.0, hit: float = 0.08, rules: Rules | None = None
) -> Judgement:
    """The verdict on one simulated comparison, measured in two steps as the driver does it."""
    rng = np.random.default_rng(seed)

    def measure(numbers: list[int], count: int) -> Stage:
        measured = {}
        for number in numbers:
            base, head = rounds(rng, count, slowdowns[number], noise=noise, hit=hit)
            measured[row(number)] = Measured(row(number), False, "seconds", base, head)
        return Stage(measured)

    build = Build("base", "0" * 40, "compiled")
    first = measure(list(range(len(slowdowns))), SCREEN)
    screened = Comparison(build, build, "simulated", Stage({}), first, Stage({}))
    wanted = [int(found.benchmark[-2:]) for found in suspects(screened, rules)]
    return judge(Comparison(build, build, "simulated", Stage({}), first, measure(wanted, CONFIRM)), rules)
