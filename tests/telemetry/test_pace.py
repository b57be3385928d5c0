"""Pages are as long as they may take, by a clock that the test drives."""

from __future__ import annotations

from array import array

import pytest

from gnomon.runtime.messages import DemandChanged
from gnomon.runtime.scheduler.pace import Pace
from gnomon.runtime.scheduler.telemetry import Telemetry


class Costly:
    """A ring of so many rows, each of which takes a while to be made ready."""

    def __init__(self, rows, seconds):
        self.rows, self.seconds, self.now = rows, seconds, 0.0

    def clock(self):
        return self.now

    def build(self, number, limit):
        given = min(limit, self.rows - number)
        self.now += given * self.seconds
        return {"rows": given}, 0, number + given


@pytest.mark.parametrize("seconds", [1e-7, 1e-6, 1e-5, 1e-4])
def test_pages_come_to_take_half_of_what_they_may(seconds):
    ring = Costly(10_000_000, seconds)
    pace = Pace(0.004, ring.clock)
    number, lengths = 0, []
    for _ in range(40):
        pace.begin()
        begun = ring.now
        _, _, number = pace.take("runs", ring.build, number, 1_000_000)
        lengths.append(ring.now - begun)
    assert lengths[-1] == pytest.approx(0.002, rel=0.7)
    assert max(lengths[1:]) <= 0.002 + 32 * seconds


def test_what_one_ring_took_the_others_have_no_more():
    ring = Costly(10_000_000, 1e-5)
    pace = Pace(0.004, ring.clock)
    for _ in range(3):
        pace.begin()
        begun = ring.now
        for name in ("runs", "transfers", "series", "demand"):
            pace.take(name, ring.build, 0, 1_000_000)
    assert ring.now - begun <= 0.004


def test_every_page_gets_on_however_slow_the_machine():
    ring = Costly(10_000, 10.0)
    pace = Pace(0.004, ring.clock)
    number, pages = 0, 0
    while number < ring.rows:
        pace.begin()
        before = number
        _, _, number = pace.take("runs", ring.build, number, 1_000_000)
        assert number > before
        pages += 1
    assert pages > 100


def test_a_reader_gets_everything_in_short_pages():
    now = 0.0

    def clock():
        nonlocal now
        now += 0.01  # whatever is done takes longer than a page may
        return now

    telemetry = Telemetry(timer=clock)
    for i in range(1000):
        telemetry.append_demand(1, DemandChanged((1,), (bool(i % 2),), (float(i),)))
    number, times, pages = (0,) * 6, [], 0
    while True:
        page = telemetry.since(number)
        times += array("d", page["demand"]["times"]).tolist()
        number, pages = page["next"], pages + 1
        if page["done"]:
            break
    assert times == [float(i) for i in range(1000)]
    assert pages > 10
