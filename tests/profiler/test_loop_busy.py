"""The share of a loop's time that is work: timed at the poll, or estimated from looks."""

from __future__ import annotations

import asyncio
import selectors
import sys
import time
from time import perf_counter

import pytest

from gnomon.profiler.interpreter.os_thread import ScheduleFile
from gnomon.profiler.loops.monitor import LoopMonitor
from gnomon.profiler.loops.polling import PollTimer, SampledWork, is_polling
from gnomon.profiler.sampling.cadence import Cadence


def simulate(work, pause, *, blocking, tick=0.0101, seconds=20.0):
    """A loop that works and pauses in turn, looked at each tick; the looks know what a scheduler's clock would show."""
    sampled = SampledWork()
    period = work + pause
    for number in range(int(seconds / tick)):
        time = number * tick + 0.003
        whole, part = divmod(time, period)
        ran = 0.0 if blocking else whole * work + min(part, work)
        sampled.observe(time, ran, part >= work)
    return sampled.worked() / seconds


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("period", [1.3, 0.1, 0.037])
def test_work_is_estimated_within_two_points(period, blocking):
    assert simulate(0.4 * period, 0.6 * period, blocking=blocking) == pytest.approx(0.4, abs=0.02)


@pytest.mark.parametrize("period", [0.017, 0.0031, 0.0002])
def test_turns_shorter_than_a_tick_are_not_lost(period):
    assert simulate(0.4 * period, 0.6 * period, blocking=False) == pytest.approx(0.4, abs=0.02)


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.8])
@pytest.mark.parametrize("tick", [0.0101, 0.033])
def test_looks_that_find_work_by_chance_add_nothing(share, tick):
    """A loop that computes in rounds of 10 ms, and ticks at uneven distances: the thread's own time has it all."""
    sampled, cadence, period = SampledWork(), Cadence(tick, 1.0, 0.0, seed=1), 0.01
    while cadence.deadline < 200.0:
        whole, part = divmod(cadence.deadline, period)
        sampled.observe(cadence.deadline, (whole * share + min(part / period, share)) * period, part / period >= share)
        cadence.tick(cadence.deadline)
    assert sampled.worked() / 200.0 == pytest.approx(share, abs=0.01)


def test_a_loop_that_is_held_up_worked_all_the_while():
    """It runs for half of a second of work only, for it waits for another thread's locks."""
    sampled = SampledWork()
    for number in range(2000):
        time = number * 0.0101
        whole, part = divmod(time, 2.0)
        sampled.observe(time, (whole + min(part, 1.0)) * 0.5, part >= 1.0)
    assert sampled.worked() / time == pytest.approx(0.5, abs=0.01)


def test_a_stretch_that_goes_on_counts_already():
    sampled = SampledWork()
    for number in range(11):
        sampled.observe(1.0 + number * 0.01, 0.0, number == 0)
    assert sampled.worked() == pytest.approx(0.095, abs=0.001)


def test_frames_that_poll_are_known():
    with selectors.DefaultSelector() as selector:
        seen = []

        def look(frame, event, argument):
            seen.append(is_polling((frame.f_code, frame.f_lasti), None))

        sys.setprofile(look)
        try:
            selector.select(0)
        finally:
            sys.setprofile(None)
    assert seen[0] is True
    here = (sys._getframe().f_code, 10)
    assert not is_polling(here, None)
    assert is_polling(here, (here[0], 10))
    assert not is_polling(here, (here[0], 12))


def test_the_clock_at_the_poll_counts_turns_and_leaves_no_trace():
    long = []

    async def main():
        loop = asyncio.get_running_loop()
        timer = PollTimer(0.02, lambda start, stop: long.append(stop - start))
        assert timer.attach(loop)
        outside = perf_counter()
        before = timer.worked()
        inside = perf_counter()
        time.sleep(0.05)
        shortest = perf_counter() - inside
        worked = timer.worked() - before
        assert shortest <= worked <= perf_counter() - outside
        assert timer.turn_started > 0
        await asyncio.sleep(0)
        turns = timer.turns
        for _ in range(10):
            await asyncio.sleep(0)
        assert timer.turns == turns + 10
        timer.detach()
        timer.detach()
        assert "select" not in vars(loop._selector)
        await asyncio.sleep(0)
        return timer

    timer = asyncio.run(main())
    assert len(long) >= 1
    assert long[0] >= 0.05
    assert timer.lengths.largest >= 0.05


def test_a_loop_without_a_selector_is_left_alone():
    uvloop = pytest.importorskip("uvloop")
    loop = uvloop.new_event_loop()
    try:
        assert PollTimer(0.1, lambda start, stop: None).attach(loop) is False
    finally:
        loop.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["asyncio", "asyncio untimed", "uvloop"])
@pytest.mark.parametrize("blocking", [False, True], ids=["computing", "sleeping"])
def test_a_loop_that_works_forty_percent_of_the_time(kind, blocking):
    if kind == "uvloop":
        pytest.importorskip("uvloop")

    async def main():
        monitor = LoopMonitor(time_polls=kind != "asyncio untimed", log_every=None)
        monitor.start()
        while monitor.lag.number < 2:
            await asyncio.sleep(0.01)
        schedule = ScheduleFile(__import__("threading").get_native_id())
        before, queued = monitor.totals(), schedule.read()
        started = perf_counter()
        worked = 0.0
        for _ in range(40):
            began = perf_counter()
            if blocking:
                time.sleep(0.04)
            else:
                cpu = time.thread_time()
                while time.thread_time() - cpu < 0.04:
                    pass
            worked += perf_counter() - began
            # As long as it takes for the work to be 40 % of all.
            await asyncio.sleep(max(worked / 0.4 - (perf_counter() - started), 0.0))
        wall = perf_counter() - started
        after, queued_after = monitor.totals(), schedule.read()
        schedule.close()
        assert monitor.exact == (kind == "asyncio")
        monitor.stop()
        waited = queued_after.waited - queued.waited if queued else 0.0
        return worked / wall, waited / wall, (after[1] - before[1]) / (after[0] - before[0])

    true, queued, seen = run(kind, main())
    assert true == pytest.approx(0.4, abs=0.03)
    # What the monitor itself does on the loop, and a crowded machine, add to the work; nothing may be missing.
    slack = 0.02 if kind == "asyncio" else 0.05
    assert true - slack <= seen <= true + queued + slack


def run(kind, coroutine):
    if kind == "uvloop":
        import uvloop

        return uvloop.run(coroutine)
    return asyncio.run(coroutine)
