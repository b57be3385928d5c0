"""What idle threads waited for, compared with a look at every moment."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gnomon.reports import idle_reasons
from gnomon.reports.idle_reasons import NAMES, name_gaps
from gnomon.reports.recording import Recording, Worker
from gnomon.runtime.instruments.demand import ASSIGNED, FETCHING, QUEUED, READY

LENGTH = 60


def recorded(dice, workers, *, known):
    """A recording of few ticks, so that events meet; some of them lie outside of it."""
    recording = Recording(0.0, LENGTH)
    recording.workers = [Worker(i, f"w{i}", "", 1, "", 0, None, "") for i in range(workers)]
    runs, transfers, demand = recording.runs, recording.transfers, recording.demand
    for _ in range(6 * workers):
        runs.workers.append(dice.randrange(-1, workers))
        runs.begins.append(dice.randrange(-10, LENGTH + 10))
        runs.decodes.append(dice.randrange(3))
        runs.computes.append(dice.randrange(5))
        runs.encodes.append(dice.randrange(3))
    for _ in range(2 * workers):
        transfers.tos.append(dice.randrange(-1, workers))
        transfers.begins.append(dice.randrange(-10, LENGTH + 10))
        transfers.lengths.append(dice.randrange(6))
    demand.known = known
    for _ in range(12 * workers):
        demand.times.append(dice.randrange(LENGTH))
        owner = dice.randrange(-2, workers)
        demand.workers.append(owner)
        demand.kinds.append(QUEUED if owner == -1 else dice.choice((ASSIGNED, FETCHING, READY)))
        demand.values.append(dice.randrange(2))
    return recording


def at(recording, worker, moment):
    """What was waited for right after a moment."""
    runs, transfers, demand = recording.runs, recording.transfers, recording.demand
    holds, latest = {}, {}
    if demand.known:
        rows = zip(demand.times, demand.workers, demand.kinds, demand.values, strict=True)
        for when, owner, kind, value in rows:
            if when <= moment and when >= latest.get((owner, kind), 0):
                latest[owner, kind], holds[owner, kind] = when, bool(value)
    fetches = any(
        to == worker and begin <= moment < begin + length
        for to, begin, length in zip(transfers.tos, transfers.begins, transfers.lengths, strict=True)
    )
    columns = (runs.workers, runs.begins, runs.decodes, runs.computes, runs.encodes)
    running = any(
        owner == worker and begin <= moment < begin + sum(lengths)
        for owner, begin, *lengths in zip(*columns, strict=True)
    )
    if holds.get((worker, READY)):
        return "handover"
    if holds.get((worker, FETCHING)) or fetches:
        return "transfer"
    if holds.get((-1, QUEUED)) or (holds.get((worker, ASSIGNED)) and not running):
        return "scheduler"
    return ""


@pytest.mark.parametrize("together", [1, 100, 1_000_000])
@pytest.mark.parametrize("seed", range(5))
def test_gaps_are_named_as_every_moment_of_them(seed, together, monkeypatch):
    monkeypatch.setattr(idle_reasons, "_TOGETHER", together)
    dice = random.Random(seed)
    workers = dice.randrange(1, 6)
    recording = recorded(dice, workers, known=seed % 4 > 0)
    gaps = [(dice.randrange(workers), *sorted(dice.choices(range(LENGTH + 1), k=2))) for _ in range(12)]
    columns = (np.array(column) for column in zip(*gaps, strict=True))
    told = name_gaps(recording, *columns)
    seen = [[at(recording, worker, moment) for moment in range(begin, end)] for worker, begin, end in gaps]
    assert told.tolist() == [[moments.count(name) for moments in seen] for name in NAMES]
    assert any(told.sum(axis=1)) or not recording.demand.known


def test_without_workers_there_is_nothing_to_name():
    none = np.zeros(0, "q")
    assert name_gaps(Recording(0.0, LENGTH), none, none, none).shape == (len(NAMES), 0)
