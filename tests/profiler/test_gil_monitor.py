"""Waits for the GIL are told from other lateness, and the thread that held it is named."""

from __future__ import annotations

import ctypes
import json
import threading

import pytest

from gnomon.profiler.interpreter import os_thread
from gnomon.profiler.interpreter.gil import GapKind, GilMonitor
from gnomon.profiler.reading.looks import Look
from tests.waiting import waiter

wait_until = waiter(20.0, 0.001)

pytestmark = pytest.mark.skipif(not os_thread.measured()["usage"], reason="needs a thread's own usage")

keeping = ctypes.PyDLL(None)


def keep_the_gil(seconds):
    keeping.usleep(int(seconds * 1e6))


class Source:
    """Ticks by hand, with the usage that the ticking thread is to have."""

    def __init__(self, monkeypatch):
        self.hook = None
        self.time = 1000.0
        self.switches = 0
        self.queued = 0.0
        monkeypatch.setattr(os_thread, "own_usage", self.usage)
        monkeypatch.setattr(os_thread.ScheduleFile, "read", lambda _: os_thread.Schedule(0.0, self.queued, 0))
        monkeypatch.setattr("gnomon.profiler.interpreter.gil.now", lambda: self.time)

    def usage(self):
        return os_thread.Usage(0.0, 0.0, 0, 0, self.switches, 0)

    def add_hook(self, hook, /):
        self.hook = hook

    def remove_hook(self, hook, /):
        assert hook == self.hook
        self.hook = None

    def tick_within(self, seconds, /):
        pass

    def tick(self, late=0.0, waits=0):
        due = self.time + 0.01
        self.time = due + late
        self.switches += 1 + waits
        self.hook(due, self.time, Look())


@pytest.fixture
def source(monkeypatch):
    return Source(monkeypatch)


def test_waits_are_what_made_the_thread_sleep_again(source):
    monitor = GilMonitor(source)
    monitor.start()
    for _ in range(50):
        source.tick(late=0.0001)
    for _ in range(50):
        source.tick(late=0.005, waits=1)
    monitor.stop()
    assert source.hook is None
    seen = monitor.statistics()
    assert seen["ticks"] == 99  # the first only begins
    assert seen["contended"] == pytest.approx(50 / 99)
    assert seen["wait_mean"] == pytest.approx(0.25 / 99)
    assert seen["late_max"] == pytest.approx(0.005)
    assert json.loads(json.dumps(seen)) == seen
    assert monitor.cost().calls == 99
    rows = monitor.series.window()
    assert len(rows["time"]) >= 1


def test_lateness_for_want_of_a_processor_is_no_wait(source):
    monitor = GilMonitor(source)
    monitor.start()
    source.tick()
    source.queued += 0.1
    source.tick(late=0.1)
    source.tick(late=0.3)
    source.tick(late=0.1, waits=20)
    monitor.stop()
    assert [gap.kind for gap in monitor.gaps] == [GapKind.NO_PROCESSOR, GapKind.STOPPED, GapKind.GIL]
    assert [round(gap.stop - gap.start, 6) for gap in monitor.gaps] == [0.1, 0.3, 0.1]
    assert monitor.waits.number == 1


def test_a_pause_of_the_monitor_is_nobodys_lateness(source):
    monitor = GilMonitor(source)
    monitor.start()
    source.tick()
    source.tick()
    monitor.stop()
    source.time += 100
    monitor.start()
    source.tick()
    assert list(monitor.gaps) == []
    monitor.stop()


def test_followers_keep_it_going(source):
    monitor = GilMonitor(source)
    looks = []

    def follower(due, woke, look):
        looks.append(look)

    monitor.follow(follower)
    monitor.start()
    monitor.stop()
    source.tick()
    assert len(looks) == 1
    monitor.unfollow(follower)
    assert source.hook is None


def test_the_holder_is_named_with_its_stack():
    monitor = GilMonitor()
    monitor.start()
    wait_until(lambda: monitor.lateness.number >= 3)
    end = threading.Event()

    def hoard():
        while not end.is_set():
            keep_the_gil(0.15)
            end.wait(0.05)

    thread = threading.Thread(target=hoard, name="hoarder")
    thread.start()

    def blamed():
        return [gap for gap in tuple(monitor.gaps) if gap.holder and gap.holder.thread == "hoarder"]

    try:
        wait_until(blamed)
    finally:
        end.set()
        thread.join()
        monitor.stop()
    gap = blamed()[0]
    assert gap.kind is GapKind.GIL
    assert gap.stop - gap.start >= 0.02
    assert gap.holder.ident == thread.ident
    assert any(frame.function.endswith("hoard") for frame in gap.holder.stack)
    assert monitor.statistics()["contended"] > 0
    assert monitor.waits.largest >= 0.02
