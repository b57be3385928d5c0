"""Collections are recorded with their length, thread and time."""

from __future__ import annotations

import gc
import json
import threading
import time

import pytest

from gnomon.profiler.clock import now
from gnomon.profiler.interpreter.gc_monitor import GcMonitor


@pytest.fixture
def monitor():
    made = GcMonitor(shortest=0.0)
    made.start()
    yield made
    made.stop()


def test_a_collection_is_as_long_as_it_was(monitor):
    before: list[float] = []
    after: list[float] = []
    earlier, later = (lambda phase, info: before.append(now())), (lambda phase, info: after.append(now()))
    gc.callbacks.insert(0, earlier)
    gc.callbacks.append(later)
    live = [[] for _ in range(300_000)]
    gc.disable()
    try:
        before.clear()
        after.clear()
        start = now()
        gc.collect()
        stop = now()
    finally:
        gc.enable()
        gc.callbacks.remove(earlier)
        gc.callbacks.remove(later)
    del live
    pause = max(monitor.pauses(start, stop), key=lambda each: each.duration)
    assert pause.generation == 2
    assert pause.thread == threading.get_ident()
    assert start <= pause.start <= pause.start + pause.duration <= stop
    assert before[1] - after[0] <= pause.duration <= after[1] - before[0]
    assert monitor.paused(start, stop) == pytest.approx(sum(each.duration for each in monitor.pauses(start, stop)))
    assert monitor.paused(start, stop, thread=-1) == 0.0
    assert monitor.paused(0.0, 1.0) == 0.0  # before there was a monitor
    half = pause.start + pause.duration / 2
    assert monitor.paused(half, stop) == pytest.approx(pause.duration / 2, rel=0.05, abs=0.001)


def test_garbage_is_counted(monitor):
    gc.collect()
    for _ in range(10):
        cycle = []
        cycle.append(cycle)
    del cycle
    start = now()
    gc.collect()
    assert sum(pause.collected for pause in monitor.pauses(start)) >= 10


def test_one_that_still_runs_counts(monitor):
    inside = []

    def look(phase, info):
        if phase == "start":
            time.sleep(0.02)
            inside.append(monitor.paused(0.0, now(), threading.get_ident()))

    gc.callbacks.append(look)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(look)
    assert inside[0] >= 0.015


def test_short_ones_are_counted_but_not_kept():
    monitor = GcMonitor(shortest=1000.0)
    monitor.start()
    gc.collect(0)
    gc.collect(2)
    monitor.stop()
    assert monitor.pauses() == []
    assert monitor.histograms[0].number >= 1
    assert monitor.histograms[2].number >= 1
    assert monitor.cost().calls == monitor.statistics()["collections"] >= 2


def test_after_its_stop_it_hears_nothing(monitor):
    monitor.start()
    gc.collect()
    monitor.stop()
    monitor.stop()
    number = monitor.statistics()["collections"]
    gc.collect()
    assert monitor.statistics()["collections"] == number
    assert not monitor.statistics()["running"]
    assert not [callback for callback in gc.callbacks if getattr(callback, "__self__", None) is monitor]


def test_statistics_are_plain(monitor):
    gc.collect()
    seen = monitor.statistics()
    assert json.loads(json.dumps(seen)) == seen
    assert seen["longest"] > 0
