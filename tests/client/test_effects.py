"""One coroutine, two drivers."""

from __future__ import annotations

import asyncio
import threading

import pytest

from gnomon.runtime.client.effects import Signal, drive, drive_async, pause, work


async def body(signal, log, timeout=None):
    try:
        log.append(await work(lambda: threading.current_thread() is threading.main_thread()))
        await pause(signal, timeout)
        return "done"
    finally:
        log.append("cleaned")


def later(signal):
    threading.Timer(0.01, signal.fire).start()
    return signal


def test_the_sync_driver_works_and_waits_in_the_calling_thread():
    log = []
    assert drive(body(later(Signal()), log)) == "done"
    assert log == [True, "cleaned"]


def test_the_async_driver_works_in_another_thread_and_keeps_the_loop_free():
    async def main():
        log = []
        ticks = []
        task = asyncio.create_task(drive_async(body(later(Signal()), log)))
        while not task.done():
            ticks.append(1)
            await asyncio.sleep(0)
        assert await task == "done"
        assert log == [False, "cleaned"]
        assert len(ticks) > 1

    asyncio.run(main())


def test_a_signal_may_fire_before_during_and_again():
    signal = Signal()
    signal.fire()
    signal.fire()
    assert drive(body(signal, [])) == "done"
    assert asyncio.run(drive_async(body(signal, []))) == "done"
    for _ in range(50):
        signal = Signal()
        thread = threading.Thread(target=signal.fire)
        thread.start()
        assert drive(body(signal, [], 20)) == "done"
        thread.join()
        signal.fire()


def test_deadlines_and_errors_reach_the_coroutine():
    log = []
    with pytest.raises(TimeoutError, match=r"0\.01 s"):
        drive(body(Signal(), log, 0.01))
    with pytest.raises(TimeoutError, match=r"0\.01 s"):
        asyncio.run(drive_async(body(Signal(), log, 0.01)))
    assert log.count("cleaned") == 2

    async def failing():
        with pytest.raises(ZeroDivisionError):
            await work(lambda: 1 / 0)
        return 5

    assert drive(failing()) == 5
    assert asyncio.run(drive_async(failing())) == 5


def test_cancelling_the_task_cleans_up():
    log = []

    async def main():
        task = asyncio.create_task(drive_async(body(Signal(), log)))
        while not log:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert log == [False, "cleaned"]
