"""The monitors of a process: one set for all owners, ended with the last of them, absent in a forked child."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time

import pytest

from gnomon.runtime.config import InstrumentSettings
from gnomon.runtime.instruments.attached import Attached
from gnomon.runtime.instruments.carried import Instruments
from gnomon.runtime.instruments.demand import READY, Demand
from gnomon.runtime.instruments.offloop import off_loop
from gnomon.runtime.instruments.series import COLUMNS


@pytest.fixture(autouse=True)
def no_thread_left():
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
    assert set(threading.enumerate()) <= before


def test_owners_share_and_the_first_tells():
    first, second = Instruments("scheduler", InstrumentSettings()), Instruments("agent", InstrumentSettings())
    first.start()
    second.start()
    try:
        report = first.report(3.0)
        _, row = report["series"]["scheduler"]
        values = dict(zip(COLUMNS, row, strict=True))
        assert values["tasks"] == 3.0
        assert values["memory"] > 1e6
        assert second.report() == {}
        first.stop()
        assert "agent" in second.report()["series"]
    finally:
        first.stop()
        second.stop()
        second.stop()


def test_all_monitors_look_from_one_thread():
    async def main():
        instruments = Instruments("agent", InstrumentSettings())
        instruments.start(asyncio.get_running_loop())
        try:
            assert [name for name in threads() if name.startswith("gnomon-")] == ["gnomon-sampler"]
            deadline = time.monotonic() + 20
            while True:  # the loop's monitor and the GIL's live on the sampler's ticks
                await asyncio.sleep(0.01)
                row = dict(zip(COLUMNS, instruments.report()["series"]["agent"][1], strict=True))
                if row["gil_contended"] >= 0 and row["busy"] > 0:
                    break
                assert time.monotonic() < deadline
        finally:
            instruments.stop()

    def threads():
        return [thread.name for thread in threading.enumerate()]

    asyncio.run(main())


def test_a_process_rests_when_all_its_owners_do():
    before = threading.active_count()
    first, second = Instruments("scheduler", InstrumentSettings()), Instruments("agent", InstrumentSettings())
    first.start()
    second.start()
    try:
        running = threading.active_count()
        assert running > before
        first.rest()
        assert threading.active_count() == running
        second.rest()
        assert threading.active_count() == before
        assert first.report()["series"]
        first.wake()
        assert threading.active_count() == running
        second.wake()
        assert threading.active_count() == running
        first.rest()
        second.rest()
        third = Instruments("executor", InstrumentSettings())
        third.start()
        assert threading.active_count() == running
        third.stop()
    finally:
        first.stop()
        second.stop()


def test_switched_off_means_nothing_runs():
    before = threading.active_count()
    instruments = Instruments("agent", InstrumentSettings(enabled=False))
    instruments.start()
    assert threading.active_count() == before
    assert instruments.report() == {}
    assert instruments.session() is None
    instruments.stop()


def test_each_part_has_its_switch():
    off = InstrumentSettings(sampler=False, loop=False, gc=False, gil=False, system=False)
    instruments = Instruments("agent", off)
    instruments.start()
    try:
        _, row = instruments.report()["series"]["agent"]
        assert [name for name, value in zip(COLUMNS, row, strict=True) if value == value] == ["seconds", "own_cpu"]
    finally:
        instruments.stop()


def test_each_part_tells_what_it_cost():
    instruments = Instruments("agent", InstrumentSettings())
    instruments.start()
    try:
        gc.collect()
        _, row = instruments.report()["series"]["agent"]
        told = dict(zip(COLUMNS, row, strict=True))
        parts = [told[f"own_{name}"] for name in ("sampler", "gc", "gil", "system")]
        assert told["own_cpu"] == pytest.approx(sum(parts))
        assert told["own_gc"] > 0
        assert told["own_system"] > 0
        assert min(parts) >= 0
        assert told["own_loop"] != told["own_loop"], "there is no loop to be watched"
    finally:
        instruments.stop()


def test_attached_instruments_watch_their_loop_and_leave_it():
    async def main() -> None:
        attached = Attached("agent", InstrumentSettings())
        assert attached.report() == {}
        assert await attached.profile() == b""
        attached.start()
        deadline = time.monotonic() + 30
        while not attached.report() and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        began = time.time()
        time.sleep(0.3)
        found = []
        while not found and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
            found += attached.report().get("stalls", {}).get("agent", [])
        assert found[0]["function"].endswith("main")
        assert found[0]["start"] > began - 1
        assert await attached.profile() != b""
        attached.stop()

    asyncio.run(main())


def test_attached_instruments_stopped_at_once():
    async def main() -> None:
        attached = Attached("agent", InstrumentSettings())
        attached.start()
        attached.stop()
        await asyncio.sleep(0)
        assert attached.report() == {}

    asyncio.run(main())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_has_none():
    instruments = Instruments("executor", InstrumentSettings())
    instruments.start()
    try:
        pid = os.fork()
        if pid == 0:
            alive = [thread.name for thread in threading.enumerate()]
            other = Instruments("executor", InstrumentSettings())
            other.start()
            told = bool(other.report())
            other.stop()
            os._exit(0 if len(alive) == 1 and told else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        instruments.stop()


def test_work_off_the_loop_brings_results_and_errors():
    async def main() -> None:
        assert await off_loop(lambda: threading.current_thread().name, "gnomon-test") == "gnomon-test"
        with pytest.raises(ZeroDivisionError):
            await off_loop(lambda: 1 // 0)

    asyncio.run(main())


def test_demand_tells_changes_only():
    times = iter([1.0, 2.0])
    demand = Demand(lambda: next(times))
    demand.set(READY, False)
    assert demand.take() is None
    demand.set(READY, True)
    demand.set(READY, True)
    demand.set(READY, False)
    assert demand.take() == ((READY, READY), (True, False), (1.0, 2.0))
    assert demand.take() is None
