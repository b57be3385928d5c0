"""How a worker's clock is estimated from its heartbeats: the quickest round trip says most."""

from __future__ import annotations

from math import isnan

from gnomon.runtime.messages import Heartbeat
from gnomon.runtime.scheduler.streams import WorkerStream


class Comm:
    class peer:
        name = "w"


def beat(stream, sent, now, round_trip=None):
    stream.on_heartbeat(Heartbeat(sent, {} if round_trip is None else {"round_trip": round_trip}), now)


def test_nothing_is_known_before_a_round_trip():
    stream = WorkerStream(Comm)
    beat(stream, 1.0, 2.0)
    assert stream.clock_offset == 0.0
    assert isnan(stream.clock_uncertainty)
    assert stream.clock_samples == 0


def test_the_quickest_round_trip_counts_and_says_how_sure_it_is():
    stream = WorkerStream(Comm)
    beat(stream, 100.0, 205.0, 8.0)
    assert (stream.clock_offset, stream.clock_uncertainty, stream.clock_time) == (101.0, 4.0, 205.0)
    beat(stream, 110.0, 211.0, 1.0)
    assert (stream.clock_offset, stream.clock_uncertainty, stream.clock_time) == (100.5, 0.5, 211.0)
    beat(stream, 120.0, 260.0, 60.0)
    assert (stream.clock_offset, stream.clock_uncertainty, stream.clock_time) == (100.5, 0.5, 211.0)
    assert stream.clock_samples == 3


def test_an_old_estimate_gives_way_for_clocks_drift():
    stream = WorkerStream(Comm)
    beat(stream, 0.0, 10.0, 1.0)
    for i in range(1, 12):
        beat(stream, float(i), 20.0 + i, 1.1)
    assert stream.clock_offset == 20.0 - 0.55
    assert stream.clock_uncertainty == 0.55


def test_on_one_machine_there_is_one_clock():
    stream = WorkerStream(Comm)
    stream.share_clock(3.0)
    beat(stream, 1.0, 2.0, 0.5)
    assert (stream.clock_offset, stream.clock_uncertainty, stream.clock_time, stream.clock_samples) == (
        0.0,
        0.0,
        3.0,
        0,
    )
