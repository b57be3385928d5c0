"""How right the sampler and the monitors are on a running clock: they need a machine that has time for them."""

from __future__ import annotations

import asyncio
import threading
import time
from statistics import median

import pytest

from gnomon.profiler import Sampler, set_label, watch
from gnomon.profiler.clock import now
from gnomon.profiler.interpreter.os_thread import ScheduleFile
from gnomon.profiler.loops.causes import Cause
from gnomon.profiler.marks.regions import region
from gnomon.profiler.sessions.session import REGION
from gnomon.runtime.config import InstrumentSettings
from tests.profiler.seen import counts_by, margin, paths, share, spin

pytestmark = pytest.mark.slow

#: Faster than the interpreter's switch interval, ticks would fall out.
FAST = {"interval": 0.00607, "budget": 0.5}


def until(sampler, samples, seconds=30.0):
    """Yield until so many more samples were taken: a busy machine only makes it take longer."""
    goal, end = sampler.statistics().samples + samples, time.perf_counter() + seconds
    while sampler.statistics().samples < goal:
        assert time.perf_counter() < end, "the sampler does not sample"
        yield


def test_every_tick_samples_every_thread_and_none_is_lost():
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait, name=f"waits {n}") for n in range(3)]
    busy = threading.Thread(target=lambda: [spin(0.001) for _ in iter(stop.is_set, True)], name="busy")
    sampler = Sampler(interval=0.00607, budget=1.0)
    for thread in [*threads, busy]:
        thread.start()
        sampler.watch_thread(thread.ident)
    sampler.start()
    began = time.perf_counter()
    time.sleep(1.0)
    sampler.stop()
    passed = time.perf_counter() - began
    stop.set()
    statistics, session = sampler.statistics(), sampler.session()
    points = sum(bucket.points for bucket in session.buckets)
    assert points == pytest.approx(session.duration / 0.00607, rel=0.3)
    assert statistics.ticks + statistics.missed == pytest.approx(points, rel=0.05)
    assert statistics.ticks > 20
    assert statistics.samples == 4 * statistics.ticks
    assert sum(session.samples.count) == 4 * points
    assert sum(bucket.ticks for bucket in session.buckets) == session.meta["ticks"] == statistics.ticks
    assert sum(bucket.missed for bucket in session.buckets) == statistics.missed
    assert {thread.name for thread in session.threads} == {"waits 0", "waits 1", "waits 2", "busy"}
    assert set(counts_by(session, "thread").values()) == {points}
    assert sum(session.own_seconds()) == pytest.approx(4 * session.duration)
    assert session.duration == pytest.approx(passed, rel=0.5)
    for thread in [*threads, busy]:
        thread.join(10)


def test_while_all_threads_wait_ticks_are_few_and_no_time_is_lost():
    with Sampler(interval=0.005, budget=1.0) as sampler:
        time.sleep(1.5)
        calm = sampler.statistics().interval
        begin = time.perf_counter()
        spin(0.2)
        spun = time.perf_counter() - begin
        assert sampler.statistics().interval < calm
    session = sampler.session()
    assert calm > 0.015
    assert sampler.statistics().ticks < 150
    assert sum(session.own_seconds()) == pytest.approx(session.duration)
    assert share(paths(session), "spin") == pytest.approx(spun / session.duration, abs=0.1)


def test_shares_are_those_of_the_time_spent():
    def often():
        spin(0.0041)

    def seldom():
        spin(0.0013)

    with Sampler(**FAST) as sampler:
        for _ in until(sampler, 150):
            often()
            seldom()
    session = sampler.session()
    seconds = paths(session)
    assert share(seconds, "often") == pytest.approx(0.41 / 0.54, abs=margin(session))
    assert share(seconds, "seldom") == pytest.approx(0.13 / 0.54, abs=margin(session))


@pytest.mark.parametrize("rounds", [0.1, 0.01])
def test_shares_at_the_default_rate_are_right_within_two_points(rounds):
    """Of a program whose functions run for longer than a step; where all are shorter, as right as chance allows."""

    def half(part):
        spin(part * rounds)

    def third():
        spin(0.30 * rounds)

    def fifth():
        spin(0.20 * rounds)

    def elsewhere():
        half(0.21)

    with Sampler() as sampler:
        end = time.perf_counter() + 20
        while time.perf_counter() < end:
            half(0.29)
            third()
            elsewhere()
            fifth()
    session = sampler.session()
    seconds = paths(session)
    quiet = session.meta["missed"] < 0.1 * session.meta["ticks"]
    points = 0.02 if quiet and rounds > 0.05 else max(0.02, margin(session))
    assert share(seconds, "half") == pytest.approx(0.5, abs=points)
    assert share(seconds, "half", "elsewhere") == pytest.approx(0.21, abs=points)
    assert share(seconds, "third") == pytest.approx(0.3, abs=points)
    assert share(seconds, "fifth") == pytest.approx(0.2, abs=points)


def test_labels_share_the_time_as_it_was_set():
    wanted = {"load": 0.6, "parse": 0.2, "": 0.2}
    with Sampler(**FAST) as sampler:
        for _ in until(sampler, 150):
            for label, part in wanted.items():
                set_label(label)
                spin(part / 100)
    session = sampler.session()
    assert set(session.labels) == set(wanted)
    counts = counts_by(session, "label")
    total = sum(counts.values())
    for number, label in enumerate(session.labels):
        assert counts[number] / total == pytest.approx(wanted[label], abs=margin(session))


def test_what_holds_the_gil_counts_for_as_long_as_it_did():
    """A call of C code that never lets go: the one sample that comes after it stands for all that fell out."""
    numbers = list(range(1_000_000, 0, -1))

    def holds():
        for _ in range(4):
            sorted(numbers, key=(-1).__mul__)

    with Sampler(interval=0.005, budget=1.0) as sampler:
        begin = time.perf_counter()
        holds()
        held = time.perf_counter() - begin
        for _ in range(20):
            time.sleep(held / 20)
        rest = time.perf_counter() - begin - held
    seconds = paths(sampler.session())
    assert share(seconds, "holds") == pytest.approx(held / (held + rest), abs=0.15)
    assert sampler.statistics().missed > 10


def test_a_region_has_exact_times_beside_its_samples():
    spent, entries = 0.0, 0
    with Sampler(**FAST, bucket=0.3) as sampler:
        for _ in until(sampler, 150):
            with region("half of it"):
                begin = time.perf_counter()
                spin(0.003)
                spent += time.perf_counter() - begin
            entries += 1
            spin(0.003)
    session = sampler.session()
    rows = [row for row in session.regions if row.name == "half of it"]
    assert sum(row.count for row in rows) == entries
    assert spent <= sum(row.seconds for row in rows) < session.duration
    assert len({row.bucket for row in rows}) >= len(session.buckets) - 1 >= 1, "in each bucket what passed in it"
    seconds = paths(session)
    assert share(seconds, "half of it") == pytest.approx(0.5, abs=margin(session))
    inside = [path for path in seconds if "half of it" in path]
    assert all(path[path.index("half of it") - 1].startswith("test_a_region") for path in inside)
    assert any(function.file == REGION for function in session.functions)


def test_the_sampler_widens_its_interval_to_keep_to_its_budget():
    def deep(n):
        if n:
            deep(n - 1)
        else:
            time.sleep(1.0)

    with Sampler(interval=0.001, budget=0.002) as sampler:
        deep(200)
    statistics = sampler.statistics()
    assert statistics.interval > 0.002
    assert statistics.cpu / statistics.seconds < 0.03
    assert statistics.ticks > 5
    seconds = sum(sampler.session().own_seconds())
    assert seconds == pytest.approx(statistics.seconds, rel=0.1), "seconds are right at any interval"


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_a_loop_that_is_busy_for_two_fifths_of_the_time_and_then_stands_still(kind):
    def work():
        spin(0.04)  # a turn itself takes up to 0.3 ms of the loop, which is work that isn't counted here

    def stand_still():
        spin(2.0)

    async def main():
        with watch(log_every=None) as watched:
            monitor = watched.loops[0]
            while monitor.lag.number < 2:
                await asyncio.sleep(0.01)
            schedule = ScheduleFile(threading.get_native_id())
            queued, before = schedule.read(), monitor.totals()
            began, worked = time.perf_counter(), 0.0
            while time.perf_counter() - began < 20:
                begin = time.perf_counter()
                work()
                worked += time.perf_counter() - begin
                await asyncio.sleep(max(worked / 0.4 - (time.perf_counter() - began), 0.0))
            passed = time.perf_counter() - began
            after, queued_after = monitor.totals(), schedule.read()
            schedule.close()
            start = now()
            stand_still()
            length = now() - start
            end = time.perf_counter() + 20
            while not any(stall.duration > 1 for stall in watched.stalls(start)):
                assert time.perf_counter() < end
                await asyncio.sleep(0.01)
            stall = max(watched.stalls(start), key=lambda each: each.duration)
        waited = queued_after.waited - queued.waited if queued else 0.0
        return worked / passed, waited / passed, (after[1] - before[1]) / (after[0] - before[0]), length, stall

    if kind == "uvloop":
        true, queued, seen, length, stall = pytest.importorskip("uvloop").run(main())
    else:
        true, queued, seen, length, stall = asyncio.run(main())
    print(f"{kind}: busy {true:.4f}, seen {seen:.4f}; stood still {length:.3f} s, seen {stall.sentence()}")
    # A crowded machine adds to the work: what the loop waits for a processor is no time in its poll.
    assert true - 0.02 <= seen <= true + queued + 0.02
    assert stall.duration == pytest.approx(length, rel=0.1)
    assert (stall.function.rpartition(".")[2], stall.file) in {
        ("stand_still", __file__),
        ("spin", spin.__code__.co_filename),
    }
    assert stall.cause in {Cause.PYTHON, Cause.NO_PROCESSOR}


def test_a_busy_thread_loses_no_more_than_a_hundredth_at_the_rate_of_clusters():
    """It reads the clock without a pause: what is missing between two readings it did not have.

    Its speed would tell nothing so small, for a machine's own goes up and down by several hundredths.
    """

    def missing(seconds):
        lost, last = 0.0, time.perf_counter()
        end = last + seconds
        while last < end:
            now = time.perf_counter()
            if now - last > 30e-6:
                lost += now - last
            last = now
        return lost / seconds

    settings = InstrumentSettings()
    sampler = Sampler(interval=settings.sampling_interval, budget=settings.sampling_budget)
    sampler.watch_thread()
    losses = []
    for _ in range(10):
        without = missing(2.0)
        sampler.start()
        missing(0.3)  # the interval has been widened by then
        losses.append(missing(2.0) - without)
        sampler.stop()
    statistics = sampler.statistics()
    print(f"median loss {median(losses):.2%} ({min(losses):.2%} to {max(losses):.2%}) at {statistics.interval:.4f} s")
    assert median(losses) <= 0.01
