"""The bars of the comparison on recordings of real clusters: ten pairs of the same code, ten with one prefix slowed.

Every recording is of a cluster of its own, as two runs of a program are. The loops are pure Python of some
milliseconds, so that a recording is 1,500 tasks and some seconds long; other work on the machine disturbs it as much as
it likes. ``pytest -m slow -s`` prints how sure each comparison was, and takes some minutes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gnomon.reports import performance_report
from gnomon.reports.compare import Comparison, Sample, compare, sample, text
from gnomon.runtime import Client, LocalCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]

LOOPS = {"parse": 30_000, "clean": 24_000, "join": 42_000, "count": 18_000, "merge": 33_000}
SLOW, TASKS = "join", 300

#: Pairs of sides, and recordings of each side.
PAIRS, REPEATS = 10, 3

#: The recordings of a pair: A, once more the same code, and the code with one prefix slowed.
SIDES = ("a", "again", "slowed")


def loop(name: str, count: int) -> Callable[[int], int]:
    """A function of its own name that counts; made from text, so that workers get it by value."""
    space: dict[str, Any] = {}
    exec(f"def {name}(i):\n total = 0\n for k in range({count}):\n  total += k * k % 7\n return total", space)
    return space[name]


def record(path: Path, *, slowed: bool, seed: int) -> Sample:
    """A recording of the workload in a cluster of its own."""
    functions = {
        name: loop(name, round(count * (1.3 if slowed and name == SLOW else 1))) for name, count in LOOPS.items()
    }
    work = [(name, i) for name in LOOPS for i in range(TASKS)]
    random.Random(seed).shuffle(work)
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        client.gather([client.submit(loop("warm", 1000), i, pure=False) for i in range(50)])
        with performance_report(path, client=client) as report:
            client.gather([client.submit(functions[name], i, pure=False) for name, i in work])
    assert report.recording is not None
    return sample(report.recording, path.stem)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, list[Sample]]]:
    """Per pair the recordings of each side, taken in turns whose order changes."""
    folder = tmp_path_factory.mktemp("recordings")
    result = []
    for number in range(PAIRS):
        pair: dict[str, list[Sample]] = {side: [] for side in SIDES}
        for repeat in range(REPEATS):
            seed = REPEATS * number + repeat
            for side in random.Random(seed).sample(SIDES, len(SIDES)):
                path = folder / f"{side}-{number}-{repeat}.gnomon"
                pair[side].append(record(path, slowed=side == "slowed", seed=seed))
        result.append(pair)
    return result


def singles(pairs: Sequence[Mapping[str, list[Sample]]]) -> Iterator[dict[str, list[Sample]]]:
    """Every recording as a side of its own."""
    for pair in pairs:
        for repeat in range(REPEATS):
            yield {side: pair[side][repeat : repeat + 1] for side in SIDES}


def told(what: str, outcome: Comparison) -> Comparison:
    """The comparison, after a line of what it says of each prefix."""
    words = (
        f"{each.name} {each.relative.ratio:.3f} ({each.relative.low:.3f}-{each.relative.high:.3f})"
        for each in outcome.prefixes
        if each.relative is not None
    )
    print(f"{what:16}", "slower:", [each.name for each in outcome.slower], *words)
    return outcome


def named_first(outcome: Comparison) -> bool:
    return outcome.regressed and [each.name for each in outcome.slower][:1] == [SLOW]


def test_the_same_code_raises_no_alarm_in_ten_pairs(pairs):
    outcomes = [told("same code", compare(pair["a"], pair["again"])) for pair in pairs]
    alarms = [text(outcome) for outcome in outcomes if outcome.regressed]
    assert not alarms, "\n\n".join(alarms)


def test_the_slowed_prefix_is_named_first_in_ten_pairs(pairs):
    outcomes = [told("one slowed", compare(pair["a"], pair["slowed"])) for pair in pairs]
    failures = [text(outcome) for outcome in outcomes if not named_first(outcome)]
    assert not failures, "\n\n".join(failures)


def test_how_much_slower_it_is_lies_in_the_interval(pairs):
    judged = [compare(pair["a"], pair["slowed"]).slower[0].judged for pair in pairs]
    assert all(each is not None and each.low < 1.3 < each.high for each in judged), judged


def test_single_recordings_of_the_same_code_raise_no_alarm(pairs):
    outcomes = [told("same code, n=1", compare(each["a"], each["again"])) for each in singles(pairs)]
    alarms = [text(outcome) for outcome in outcomes if outcome.regressed]
    assert not alarms, "\n\n".join(alarms)


def test_a_single_recording_of_each_side_names_the_slowed_prefix_or_can_not_tell(pairs):
    """Two runs on a crowded machine differ by tens of percent: then the interval says so, and no other is blamed."""
    outcomes = [told("one slowed, n=1", compare(each["a"], each["slowed"])) for each in singles(pairs)]
    named = [outcome for outcome in outcomes if named_first(outcome)]
    print(f"named first in {len(named)} of {len(outcomes)}")
    for outcome in outcomes:
        change = next(each for each in outcome.prefixes if each.name == SLOW)
        assert change.judged is not None
        assert change.judged.low < 1.3 < change.judged.high, text(outcome)
        assert outcome in named or not outcome.regressed, text(outcome)
    assert len(named) > len(outcomes) // 2
