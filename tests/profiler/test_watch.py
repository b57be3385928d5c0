"""One line for a service: everything runs, is reported with its cost, and ends without a trace."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time

import pytest

import gnomon.profiler
from gnomon.profiler import watching
from gnomon.profiler.clock import now
from gnomon.profiler.sampling.sampler import Sampler
from gnomon.profiler.sessions.session import Session


def run(kind, coroutine):
    if kind == "uvloop":
        return pytest.importorskip("uvloop").run(coroutine)
    return asyncio.run(coroutine)


async def until(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the state was not reached in time"
        await asyncio.sleep(0.005)


def ours():
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("gnomon-")}


def stall_here():
    time.sleep(0.3)


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_a_service_is_watched_by_one_line(kind, caplog, tmp_path):
    caplog.set_level(logging.WARNING, "gnomon.profiler")

    async def main():
        watched = watching.watch()
        await until(lambda: watched.loops[0].lag.number >= 2)
        start = now()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:  # where the machine stands still too, that may be the larger part of a stall
            stall_here()
            await until(lambda: any(stall.start + stall.duration > now() - 1 for stall in watched.stalls(start)))
            if any(stall.function == "stall_here" for stall in watched.stalls(start)):
                break
        await until(lambda: watched.system.series.number)
        watched.stop()
        watched.stop()
        return watched, start

    watched, start = run(kind, main())
    assert ours() == set()
    assert any(stall.function == "stall_here" for stall in watched.stalls(start)), watched.stalls(start)
    assert any("stall_here" in message for message in caplog.messages)
    seen = watched.statistics()
    assert json.loads(json.dumps(seen)).keys() == seen.keys()
    costs = watched.cost()
    assert set(costs) == {"sampler", "loop", "gc", "gil", "system"}
    assert costs["loop"].cpu > 0
    assert costs["system"].calls > 0
    text = watched.report()
    for word in ("event loop", "stalls:", "GIL", "GC", "system: CPU", "own cost", "stall_here"):
        assert word in text
    path = tmp_path / "samples.json.gz"
    watched.save(path)
    session = Session.load(path)
    assert any(function.name == "stall_here" for function in session.functions)


def test_without_a_loop_threads_are_watched_and_a_loop_can_follow():
    watched = watching.watch(log_every=None)
    assert watched.loops == []
    began = threading.Event()
    end = []

    async def serve():
        stop = asyncio.Event()
        end.append((asyncio.get_running_loop(), stop))
        began.set()
        await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert began.wait(20)
    loop, stop = end[0]
    with watched:
        monitor = watched.watch_loop(loop)
        deadline = time.monotonic() + 20
        while monitor.lag.number < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        loop.call_soon_threadsafe(stop.set)
        thread.join()
    assert ours() == set()
    assert watched.session().duration > 0


def test_all_can_be_switched_off():
    async def main():
        with watching.watch(gc=False, gil=False, system=False, log_every=None) as watched:
            await until(lambda: watched.loops[0].lag.number >= 2)
        return watched

    watched = asyncio.run(main())
    assert (watched.gc, watched.gil, watched.system) == (None, None, None)
    assert set(watched.cost()) == {"sampler", "loop"}
    assert "GIL" not in watched.report()
    assert watched.statistics()["system"] is None
    assert ours() == set()


def test_a_sampler_of_ones_own_goes_on():
    with Sampler() as sampler:
        watched = watching.watch(sampler=sampler, system=False)
        watched.stop()
        assert sampler.statistics().running


def test_the_public_name_is_the_function():
    assert gnomon.profiler.watch is watching.watch
