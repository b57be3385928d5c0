"""How long the scheduler's loop is blocked while a report of a million tasks is collected; ``-s`` prints it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gnomon.reports import performance_report
from gnomon.runtime import Client
from tests.reports.full_scheduler import RUNS, FullScheduler

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

#: Seconds that a turn of the scheduler's loop may compute.
LONGEST = 0.010


def told(what: str, lengths: list[float]) -> None:
    ordered = sorted(1e3 * length for length in lengths)
    middle, high = ordered[len(ordered) // 2], ordered[99 * len(ordered) // 100]
    print(f"{len(ordered)} turns {what}: median {middle:.2f} ms, 99 % {high:.2f} ms, longest {ordered[-1]:.2f} ms")


def test_no_turn_is_long_while_a_million_tasks_are_collected(tmp_path: Path) -> None:
    with FullScheduler() as scheduler, Client(scheduler.address) as client:
        with performance_report(tmp_path / "million.gnomon", client=client) as report:
            scheduler.fill()
        turns = scheduler.turns()
    assert report.recording is not None
    assert len(report.recording.runs) == RUNS
    told("by the clock", [turn.wall for turn in turns])
    told("on the processor", [turn.cpu for turn in turns])
    told("collecting garbage", [turn.collecting for turn in turns])
    # By the clock, another program that takes the processor would be the scheduler's fault.
    assert max(turn.cpu for turn in turns) < LONGEST
