"""Life of a loop monitor: started and stopped from anywhere, on any loop, leaving nothing behind; series, cost."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time

import pytest

from gnomon.profiler.clock import now
from gnomon.profiler.interpreter.gc_monitor import GcMonitor
from gnomon.profiler.interpreter.gil import GilMonitor
from gnomon.profiler.loops.monitor import LoopMonitor
from gnomon.profiler.reading.ticker import Ticker


def run(kind, coroutine):
    if kind == "uvloop":
        return pytest.importorskip("uvloop").run(coroutine)
    return asyncio.run(coroutine)


async def until(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the state was not reached in time"
        await asyncio.sleep(0.005)


def tickers():
    return [thread for thread in threading.enumerate() if thread.name == "gnomon-ticker"]


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_it_can_be_stopped_and_started_and_leaves_no_thread(kind):
    async def main():
        monitor = LoopMonitor(log_every=None)
        for _ in range(2):
            monitor.start()
            monitor.start()
            assert len(tickers()) == 1
            ticks = monitor.lag.number
            await until(lambda ticks=ticks: monitor.lag.number >= ticks + 2)
            assert monitor.totals()[0] > 0
            monitor.stop()
            monitor.stop()
            assert tickers() == []
        ticks = monitor.lag.number
        await asyncio.sleep(0.15)
        assert monitor.lag.number == ticks
        assert monitor.exact == (kind == "asyncio")

    run(kind, main())


def test_without_a_loop_it_says_so():
    with pytest.raises(RuntimeError):
        LoopMonitor().start()


@pytest.mark.parametrize("wrong", [{"tick": 0.0}, {"threshold": -1.0}])
def test_senseless_settings_are_refused(wrong):
    with pytest.raises(ValueError, match="above 0"):
        LoopMonitor(**wrong)


@pytest.mark.parametrize("kind", ["asyncio", "uvloop", "tornado"])
def test_a_loop_is_watched_from_another_thread_and_after_its_end(kind):
    made = threading.Event()
    end = []
    loops = []

    async def serve():
        loop = asyncio.get_running_loop()
        if kind == "tornado":
            loop = pytest.importorskip("tornado.ioloop").IOLoop.current()
        stop = asyncio.Event()
        end.append(stop)
        loops.append((loop, asyncio.get_running_loop()))
        made.set()
        await stop.wait()

    thread = threading.Thread(target=run, args=(kind, serve()), name="server")
    thread.start()
    assert made.wait(20)
    given, loop = loops[0]
    monitor = LoopMonitor(given, log_every=None)
    monitor.start()
    deadline = time.monotonic() + 20
    while monitor.lag.number < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    start = now()
    while not any(stall.duration > 0.15 for stall in monitor.stalls(start)):
        assert time.monotonic() < deadline
        loop.call_soon_threadsafe(time.sleep, 0.3)
        time.sleep(0.5)
    loop.call_soon_threadsafe(end[0].set)
    thread.join()
    monitor.stop()
    assert tickers() == []


def test_starts_and_stops_in_quick_succession_leave_one_watcher():
    ready = threading.Event()
    end = []

    async def serve():
        stop = asyncio.Event()
        end.append((asyncio.get_running_loop(), stop))
        ready.set()
        await stop.wait()
        assert "select" not in vars(asyncio.get_running_loop()._selector)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert ready.wait(20)
    loop, stop = end[0]
    monitor = LoopMonitor(loop, log_every=None)
    for _ in range(20):
        monitor.start()
        monitor.stop()
    monitor.start()
    deadline = time.monotonic() + 20
    while monitor.lag.number < 3:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert len(tickers()) == 1
    assert len(monitor._gil._followers) == 1
    monitor.stop()
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    assert tickers() == []


@pytest.mark.slow
def test_an_idle_loop_is_neither_busy_nor_stalled():
    async def main():
        monitor = LoopMonitor(log_every=None, threshold=5.0)
        monitor.start()
        await until(lambda: monitor.lag.number >= 5)
        monitor.stop()
        return monitor

    monitor = asyncio.run(main())
    assert monitor.stalls() == []
    assert 0 <= monitor.busy < 0.5


def test_each_second_gives_a_row():
    async def main():
        monitor = LoopMonitor(log_every=None)
        monitor.start()
        start = now()
        await until(lambda: len(monitor.series) >= 2)
        monitor.stop()
        return start, monitor

    start, monitor = asyncio.run(main())
    rows = monitor.series.window(start)
    assert len(rows["time"]) >= 2
    assert rows["time"][1] - rows["time"][0] >= 0.99
    assert all(0 <= share <= 1 for share in rows["busy"])
    assert all(low <= high for low, high in zip(rows["lag_mean"], rows["lag_max"], strict=True))
    assert json.loads(json.dumps(rows)) == rows


def test_windows_callbacks_and_counts_of_stalls(caplog):
    seen = []

    def broken(stall):
        raise KeyError("a callback's own fault")

    async def main():
        monitor = LoopMonitor(log_every=None, threshold=0.05)
        monitor.on_stall += [broken, seen.append]
        monitor.start()
        await until(lambda: monitor.lag.number >= 2)
        times = []
        for _ in range(2):
            count = len(seen)
            times.append(now())
            time.sleep(0.12)
            await until(lambda count=count: len(seen) > count)
        monitor.stop()
        return monitor, times

    with caplog.at_level(logging.ERROR, "gnomon.profiler"):
        monitor, times = asyncio.run(main())
    assert [record.message for record in caplog.records] == ["a callback for stalls failed and is removed"]
    assert monitor.stall_count == len(monitor.stalls()) == len(seen)
    assert monitor.stall_seconds == pytest.approx(sum(stall.duration for stall in seen))
    assert monitor.stalls(stop=times[0] - 100) == []
    assert all(stall in seen for stall in monitor.stalls(times[0], times[1]) + monitor.stalls(times[1]))
    assert len(monitor.stalls(times[1])) >= 1
    by_cause = monitor.statistics()["causes"]
    assert sum(row["stalls"] for row in by_cause.values()) == len(seen)


def test_it_states_what_it_costs():
    async def main():
        monitor = LoopMonitor(log_every=None)
        monitor.start()
        began = time.thread_time()
        await until(lambda: monitor.lag.number >= 3)
        used = time.thread_time() - began
        monitor.stop()
        return monitor.cost(), used

    cost, used = asyncio.run(main())
    assert cost.calls >= 3
    assert cost.cpu > 0
    assert cost.cpu < used + 0.1


def test_monitors_and_samplers_are_shared_not_owned():
    class Sampler(Ticker):
        watched = None

        def watch_thread(self, ident=None, name=None):
            self.watched = (ident, name)

        def forget_thread(self, ident=None):
            self.watched = None

    async def main():
        sampler = Sampler()
        collections, gil = GcMonitor(), GilMonitor(sampler)
        collections.start()
        gil.start()
        monitor = LoopMonitor(sampler=sampler, gc=collections, gil=gil, log_every=None)
        monitor.start()
        assert sampler.watched == (threading.get_ident(), "event loop")
        assert len(tickers()) == 1
        await until(lambda: monitor.lag.number >= 2)
        monitor.stop()
        assert sampler.watched is None
        assert collections.statistics()["running"]
        ticks = gil.lateness.number
        await until(lambda: gil.lateness.number > ticks)
        gil.stop()
        collections.stop()
        assert tickers() == []

    asyncio.run(main())


def test_plain_statistics():
    async def main():
        monitor = LoopMonitor(log_every=None)
        monitor.start()
        await until(lambda: monitor.lag.number >= 2)
        seen = monitor.statistics()
        monitor.stop()
        return seen

    seen = asyncio.run(main())
    assert json.loads(json.dumps(seen)) == seen
    assert seen["lag"]["number"] >= 2
    assert seen["turns"] > 0


def test_a_hook_that_fails_is_removed(caplog):
    ticker = Ticker(0.001)
    calls = []

    def broken(due, woke, look):
        calls.append(woke)
        raise ValueError("broken")

    def looks_on(due, woke, look):
        if len(calls) == 1 and threading.get_ident() in look.leaves:
            fine.set()

    fine = threading.Event()
    ticker.add_hook(broken)
    ticker.add_hook(looks_on)
    assert fine.wait(20)
    ticker.remove_hook(broken)
    assert len(calls) == 1
    ticker.remove_hook(looks_on)
    assert tickers() == []
    assert ticker.cost().calls >= 1
    assert [record.message for record in caplog.records] == ["a monitor failed and is switched off"]
