"""Real stalls of real loops: length, function and cause are what the test measured around them.

The machine may be crowded: then part of a stall was spent waiting for a processor, in truth as in the record. What is
asserted of a computation is its processor time, which no neighbour changes.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import logging
import mmap
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from gnomon.profiler.clock import now
from gnomon.profiler.interpreter.gil import GapKind, GilMonitor
from gnomon.profiler.interpreter.os_thread import measured
from gnomon.profiler.loops.causes import Cause
from gnomon.profiler.loops.monitor import LoopMonitor

#: These stand or fall with the machine's own punctuality.
pytestmark = pytest.mark.slow

LOOPS = ["asyncio", "uvloop", "tornado"]
on_linux = pytest.mark.skipif(not measured()["schedule"], reason="needs Linux's account of a thread's time")

#: A C library's calls that keep the GIL.
keeping = ctypes.PyDLL(None)


def compute(seconds=0.3):
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        for _ in range(20_000):  # to read that clock is a system call
            pass


def sleep(seconds=0.3):
    time.sleep(seconds)


def wait_for_lock(seconds=0.3):
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=seconds)


def keep_the_gil(seconds=0.3):
    keeping.usleep(int(seconds * 1e6))


def run(kind, coroutine):
    if kind == "uvloop":
        return pytest.importorskip("uvloop").run(coroutine)
    return asyncio.run(coroutine)


def the_loop(kind):
    if kind == "tornado":
        return pytest.importorskip("tornado.ioloop").IOLoop.current()
    return asyncio.get_running_loop()


async def until(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the state was not reached in time"
        await asyncio.sleep(0.005)


def slack_of(kind):
    # A loop without a clock at its poll is looked at every 80 ms while it is idle: its stalls begin somewhere between.
    return 0.09 if kind in {"uvloop", "untimed"} else 0.02


class Seen:
    """A stall as recorded, beside what was measured around it."""

    def __init__(self, stall, start, stop, cpu):
        self.stall, self.start, self.stop, self.cpu = stall, start, stop, cpu
        self.duration = stop - start

    def __repr__(self):
        return f"{self.duration:.3f} s measured, {self.cpu:.3f} of processor time, beside {self.stall}"

    def check_duration(self, kind):
        slack = slack_of(kind)
        assert self.stall.duration == pytest.approx(self.duration, rel=0.1, abs=slack)
        assert self.stall.start == pytest.approx(self.start, abs=0.1 * self.duration + slack)
        assert sum(self.stall.parts.values()) == pytest.approx(self.stall.duration, abs=1e-6)


def the_one(stalls, start, stop):
    """Of all stalls (a crowded machine makes some) the one that shares most of a time."""
    return max(stalls, key=lambda each: min(each.start + each.duration, stop) - max(each.start, start))


def stalled(kind, body, **options):
    """Run ``body`` as a callback of a watched loop; the stall that it made.

    If the machine itself stood still meanwhile (virtual ones do), that is in the record too, and another try is made.
    """

    async def main():
        gil = GilMonitor()
        monitor = LoopMonitor(the_loop(kind), gil=gil, log_every=None, time_polls=kind != "untimed", **options)
        monitor.start()
        await until(lambda: monitor.lag.number >= 2)
        times = []

        def callback():
            started, cpu = now(), time.thread_time()
            body()
            times.append((started, now(), time.thread_time() - cpu))

        loop = the_loop(kind)
        for _ in range(8):
            times.clear()
            (loop.add_callback if kind == "tornado" else loop.call_soon)(callback)
            await until(lambda: times)
            start, stop, cpu = times[0]
            await until(lambda start=start, stop=stop: monitor.stalls(start, stop))
            stall = the_one(monitor.stalls(start, stop), start, stop)
            if disturbed(gil, start, stop) < 0.1 * (stop - start) and stall.samples:
                break
        monitor.stop()
        return Seen(stall, start, stop, cpu)

    return run(kind, main())


def disturbed(gil, start, stop):
    """Seconds in which a thread that should have run did not, though nobody kept the GIL from it."""
    gaps = [gap for gap in tuple(gil.gaps) if gap.kind is not GapKind.GIL]
    return sum(max(min(gap.stop, stop) - max(gap.start, start), 0.0) for gap in gaps)


@pytest.mark.parametrize("kind", [*LOOPS, "untimed"])
def test_python_code(kind):
    seen = stalled(kind, compute)
    seen.check_duration(kind)
    stall = seen.stall
    assert stall.function == "compute"
    assert stall.file == __file__
    assert stall.line in range(compute.__code__.co_firstlineno, compute.__code__.co_firstlineno + 5)
    assert stall.stack[-1].function == "compute"
    assert stall.cause in {Cause.PYTHON, Cause.NO_PROCESSOR}
    if measured()["schedule"]:
        own = stall.parts.get(Cause.PYTHON, 0.0) + stall.parts.get(Cause.PAGE_FAULTS, 0.0)
        assert own == pytest.approx(seen.cpu, abs=slack_of(kind) + 0.03)
        assert stall.parts.get(Cause.NO_PROCESSOR, 0.0) <= seen.duration - seen.cpu + 0.05


@pytest.mark.parametrize("kind", [*LOOPS, "untimed"])
@pytest.mark.parametrize(
    ("body", "detail"), [(sleep, "sleeps"), (wait_for_lock, "waits for a lock"), (keep_the_gil, "keeps the GIL")]
)
def test_blocking_calls(kind, body, detail):
    seen = stalled(kind, body)
    seen.check_duration(kind)
    assert seen.stall.cause is Cause.BLOCKING
    assert (seen.stall.function, seen.stall.file) == (body.__name__, __file__)
    if detail == "keeps the GIL" or measured()["waiting"]:
        assert seen.stall.detail == detail
    queued = seen.stall.parts.get(Cause.NO_PROCESSOR, 0.0)
    assert seen.stall.parts[Cause.BLOCKING] + queued >= 0.8 * seen.duration - slack_of(kind), seen


@on_linux
def test_a_blocking_read_of_a_socket_is_told_from_a_sleep():
    left, right = socket.socketpair()
    with left, right:

        def read():
            sender = threading.Timer(0.4, left.send, (b"x",))
            sender.start()
            right.recv(1)
            sender.join()

        seen = stalled("asyncio", read)
    assert (seen.stall.cause, seen.stall.function.rpartition(".")[2]) == (Cause.BLOCKING, "read")
    if measured()["waiting"]:
        assert seen.stall.detail == "waits for a socket"


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_garbage_collection(kind):
    live = [[] for _ in range(200_000)]

    def collect():
        deadline = time.perf_counter() + 0.3
        while time.perf_counter() < deadline:
            gc.collect()

    seen = stalled(kind, collect)
    del live
    seen.check_duration(kind)
    assert seen.stall.cause is Cause.GC
    assert seen.stall.parts[Cause.GC] == pytest.approx(seen.duration, rel=0.15, abs=0.03)
    assert seen.stall.function.rpartition(".")[2] == "collect"


@on_linux
@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_another_thread_that_keeps_the_gil_is_named(kind):
    async def main():
        monitor = LoopMonitor(log_every=None)
        monitor.start()
        await until(lambda: monitor.lag.number >= 2)
        times = []
        end = threading.Event()

        def hoard():
            start = now()
            keep_the_gil(0.5)
            times.append((start, now()))
            end.wait()

        thread = threading.Thread(target=hoard, name="hoarder")
        thread.start()
        await until(lambda: times)
        start, stop = times[0]
        await until(lambda: monitor.stalls(start, stop))
        end.set()
        thread.join()
        monitor.stop()
        return Seen(the_one(monitor.stalls(start, stop), start, stop), start, stop, 0.0)

    seen = run(kind, main())
    stall = seen.stall
    assert stall.cause is Cause.GIL
    assert stall.holder == "hoarder"
    # By the time that anybody could look it may have gone on to its next call.
    assert stall.function.rpartition(".")[2] in {"keep_the_gil", "hoard"}
    assert stall.file == __file__
    # The loop had nothing to do: it noticed when its next timer or the next look was due.
    assert seen.duration - 0.12 <= stall.duration <= seen.duration + 0.1
    assert "hoarder" in stall.sentence()


@on_linux
def test_threads_that_compete_for_the_gil():
    end = threading.Event()

    def spin():
        while not end.is_set():
            pass

    threads = [threading.Thread(target=spin, name=f"spinner {number}") for number in range(4)]

    def body():
        compute(0.1)

    for thread in threads:
        thread.start()
    try:
        seen = stalled("asyncio", body)
    finally:
        end.set()
        for thread in threads:
            thread.join()
    parts = seen.stall.parts
    assert parts[Cause.PYTHON] <= seen.cpu + 0.05, seen
    assert parts.get(Cause.GIL, 0.0) + parts.get(Cause.NO_PROCESSOR, 0.0) > parts[Cause.PYTHON]
    assert parts[Cause.GIL] > 0.1 * seen.duration
    if seen.stall.cause is Cause.GIL:
        assert seen.stall.holder.startswith("spinner")


@on_linux
def test_page_faults():
    size = 200 << 20

    def touch():
        with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
            memory.madvise(mmap.MADV_NOHUGEPAGE)
            ctypes.memset(ctypes.addressof(place := ctypes.c_char.from_buffer(memory)), 1, size)
            del place

    seen = stalled("asyncio", touch, threshold=0.02)
    assert seen.stall.minor_faults >= size // mmap.PAGESIZE
    assert seen.stall.function.rpartition(".")[2] == "touch"
    assert seen.stall.parts[Cause.PAGE_FAULTS] > 0
    assert seen.stall.parts[Cause.PAGE_FAULTS] + seen.stall.parts.get(Cause.PYTHON, 0.0) == pytest.approx(
        seen.cpu, abs=0.05
    )


CHILD = """
import asyncio, json, sys
from gnomon.profiler.interpreter.gil import GapKind, GilMonitor
from gnomon.profiler.loops.monitor import LoopMonitor

async def main():
    if sys.argv[1] == "uvloop":
        import uvloop
        assert isinstance(asyncio.get_running_loop(), uvloop.Loop)
    monitor = LoopMonitor(log_every=None)
    monitor.start()
    while monitor.lag.number < 2:
        await asyncio.sleep(0.01)
    print("ready", flush=True)
    while not any(str(stall.cause) == "process stopped" for stall in monitor.stalls()):
        await asyncio.sleep(0.01)
    print(json.dumps([stall.as_dict() for stall in monitor.stalls()]), flush=True)
    monitor.stop()

if sys.argv[1] == "uvloop":
    import uvloop
    uvloop.run(main())
else:
    asyncio.run(main())
"""


@on_linux
@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_a_stopped_process(kind):
    if kind == "uvloop":
        pytest.importorskip("uvloop")
    with subprocess.Popen([sys.executable, "-c", CHILD, kind], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            os.kill(child.pid, signal.SIGSTOP)
            assert os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT) is not None
            start = time.monotonic()
            time.sleep(0.4)
            os.kill(child.pid, signal.SIGCONT)
            duration = time.monotonic() - start
            stalls = json.loads(child.stdout.readline())
        finally:
            child.kill()
    stall = max((each for each in stalls if each["cause"] == "process stopped"), key=lambda each: each["duration"])
    assert stall["duration"] == pytest.approx(duration, rel=0.1, abs=0.12)
    assert stall["function"] == ""


def test_a_stall_that_goes_on_is_logged_before_it_ends(caplog):
    caplog.set_level(logging.WARNING, "gnomon.profiler.loop")

    async def main():
        monitor = LoopMonitor(threshold=0.05, lasting=0.2)
        monitor.start()
        await until(lambda: monitor.lag.number >= 2)
        seen_inside = []

        def stuck():
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline and not seen_inside:
                time.sleep(0.01)
                seen_inside.extend(text for text in caplog.messages if "has stood still" in text)

        stuck()
        await asyncio.sleep(0)
        await until(monitor.stalls)
        monitor.stop()
        return seen_inside

    assert "stuck" in asyncio.run(main())[0]


def test_warnings_are_limited_and_say_what_they_left_out(caplog):
    caplog.set_level(logging.WARNING, "gnomon.profiler.loop")

    async def main():
        monitor = LoopMonitor(threshold=0.05, log_every=3600)
        monitor.start()
        for number in range(1, 4):
            sleep(0.1)
            await until(lambda number=number: sum(stall.function == "sleep" for stall in monitor.stalls()) >= number)
        monitor.stop()
        # Time goes by, and the next one may be logged again.
        monitor._log.interval, monitor._log._next = 0.0, 0.0
        monitor._log.write(monitor.stalls()[-1])
        return len(monitor.stalls())

    number = asyncio.run(main())
    first, last = [text for text in caplog.messages if "stood still for" in text]
    assert "in sleep (" in first or number > 3  # a crowded machine makes stalls of its own
    assert f"and {number - 1} more" in last


def test_a_stall_is_plain_data():
    msgpack = pytest.importorskip("msgpack")
    stall = stalled("asyncio", sleep, threshold=0.05).stall
    plain = stall.as_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert msgpack.unpackb(msgpack.packb(plain)) == plain
    assert plain["cause"] == "blocking call"
    assert "sleep" in stall.sentence()
    assert f"{stall.duration:.3f} s" in stall.sentence()
