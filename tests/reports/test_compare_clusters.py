"""The bars of the comparison on recordings of real clusters: ten pairs of the same code, ten with one prefix slowed.

The loops are pure Python of about two milliseconds, so that a recording is 600 tasks and a second long; other work on
the machine disturbs it as much as it likes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from gnomon.reports import Recording, performance_report
from gnomon.reports.compare import compare, sample, text
from gnomon.runtime import Client, LocalCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

LOOPS = {"parse": 30_000, "clean": 24_000, "join": 42_000, "count": 18_000, "merge": 33_000}
SLOW, PAIRS, TASKS = "join", 10, 120


def loop(name: str, count: int) -> Callable[[int], int]:
    """A function of its own name that counts; made from text, so that workers get it by value."""
    space: dict[str, Any] = {}
    exec(f"def {name}(i):\n total = 0\n for k in range({count}):\n  total += k * k % 7\n return total", space)
    return space[name]


def record(client: Client, path: Any, *, slowed: bool, seed: int) -> Recording:
    functions = {
        name: loop(name, round(count * (1.3 if slowed and name == SLOW else 1))) for name, count in LOOPS.items()
    }
    work = [(name, i) for name in LOOPS for i in range(TASKS)]
    random.Random(seed).shuffle(work)
    with performance_report(path, client=client) as report:
        client.gather([client.submit(functions[name], i, pure=False) for name, i in work])
    assert report.recording is not None
    return report.recording


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """Per round, in a cluster of its own: twice the same code, and once with a slowed prefix, in changing order."""
    folder = tmp_path_factory.mktemp("recordings")
    rounds = []
    for number in range(PAIRS):
        with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster) as client:
            client.wait_for_workers(2, timeout=60)
            client.gather([client.submit(loop("warm", 1000), i, pure=False) for i in range(50)])
            order = ["a", "again", "slowed"]
            random.Random(number).shuffle(order)
            made = {
                name: record(client, folder / f"{name}-{number}.gnomon", slowed=name == "slowed", seed=number)
                for name in order
            }
        rounds.append({name: sample(made[name], f"{name}-{number}") for name in made})
    return rounds


def test_the_same_code_raises_no_alarm_in_ten_pairs(recordings):
    alarms = [text(outcome) for each in recordings if (outcome := compare([each["a"]], [each["again"]])).regressed]
    assert not alarms, "\n\n".join(alarms)


def test_the_slowed_prefix_is_named_first_in_ten_pairs(recordings):
    for each in recordings:
        outcome = compare([each["a"]], [each["slowed"]])
        assert [change.name for change in outcome.slower][:1] == [SLOW], text(outcome)


def test_across_clusters(recordings):
    """The pairs above share a cluster; these do not."""
    for number, each in enumerate(recordings):
        other = recordings[(number + 1) % PAIRS]
        assert not compare([each["a"]], [other["again"]]).regressed
        assert [change.name for change in compare([each["a"]], [other["slowed"]]).slower][:1] == [SLOW]


def test_several_recordings_of_each_side(recordings):
    sides = {name: [each[name] for each in recordings[:5]] for name in ("a", "again", "slowed")}
    assert not compare(sides["a"], sides["again"]).regressed
    outcome = compare(sides["a"], sides["slowed"])
    assert outcome.slower[0].name == SLOW
    assert outcome.slower[0].judged.ratio == pytest.approx(1.3, abs=0.1)
