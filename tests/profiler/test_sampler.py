"""The sampler: rates, shares, windows, threads that come and go, and what it leaves behind (nothing)."""

from __future__ import annotations

import gc
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import Counter

import pytest

from gnomon.profiler import Sampler, plain, regions, set_label
from gnomon.profiler.names import is_idle, module_of, modules_by_file
from gnomon.profiler.regions import region
from gnomon.profiler.session import REGION, Function

#: The rate of most tests here. Faster than the interpreter's switch interval, ticks would fall out.
FAST = {"interval": 0.00607, "budget": 0.5}


def spin(seconds):
    """Use a time of this thread's CPU, whatever else the machine does."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def wait_for(condition, seconds=10.0):
    end = time.perf_counter() + seconds
    while not condition():
        assert time.perf_counter() < end, "it did not come to pass"
        time.sleep(0.001)


def until(sampler, samples, seconds=30.0):
    """Yield until so many more samples were taken: a busy machine only makes it take longer."""
    goal, end = sampler.statistics().samples + samples, time.perf_counter() + seconds
    while sampler.statistics().samples < goal:
        assert time.perf_counter() < end, "the sampler does not sample"
        yield


def margin(session):
    """How far a share may be off by chance: three and a half standard deviations at the worst.

    Where the machine is busy, ticks fall out, and the others weigh the more: then there is more chance in it.
    """
    ticks, points = session.meta["ticks"], sum(bucket.points for bucket in session.buckets)
    return 3.5 * (0.25 / (ticks * ticks / points)) ** 0.5


def paths(session):
    """Seconds by the names of the functions from the root to the leaf."""
    names: list[tuple[str, ...]] = []
    for parent, function in zip(session.nodes.parent, session.nodes.function, strict=True):
        name = session.functions[function].name.rpartition(".")[2]
        names.append((*(names[parent] if parent >= 0 else ()), name))
    seconds: Counter = Counter()
    for node, own in enumerate(session.own_seconds()):
        if own:
            seconds[names[node]] += own
    return seconds


def share(seconds, *names):
    """The share of the paths that have all of these functions in them."""
    return sum(value for path, value in seconds.items() if set(names) <= set(path)) / sum(seconds.values())


def counts_by(session, column):
    counts: Counter = Counter()
    for number, count in zip(getattr(session.samples, column), session.samples.count, strict=True):
        counts[number] += count
    return counts


# ---------------------------------------------------------------------- rates and shares


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


def test_the_default_rate_is_near_a_hundred_but_not_in_step_with_it():
    sampler = Sampler()
    assert 95 < 1 / sampler.statistics().interval < 105
    assert (1 / sampler.statistics().interval) % 1 > 0.001


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


@pytest.mark.slow
def test_shares_at_the_default_rate_are_right_within_two_points():
    def half(seconds):
        spin(seconds)

    def third():
        spin(0.0030)

    def fifth():
        spin(0.0020)

    def elsewhere():
        half(0.0021)

    with Sampler() as sampler:
        end = time.perf_counter() + 20
        while time.perf_counter() < end:
            half(0.0029)
            third()
            elsewhere()
            fifth()
    session = sampler.session()
    seconds = paths(session)
    quiet = session.meta["missed"] < 0.1 * session.meta["ticks"]
    points = 0.02 if quiet else max(0.02, margin(session))
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


# ---------------------------------------------------------------------- windows


def test_a_run_shorter_than_a_bucket_is_not_empty():
    with Sampler(**FAST, bucket=60) as sampler:
        for _ in until(sampler, 10):
            spin(0.01)
        unfinished = sampler.session()
    assert sum(unfinished.samples.count) >= 10
    assert sum(unfinished.own_seconds()) == pytest.approx(unfinished.duration)
    assert share(paths(unfinished), "spin") > 0.7


def test_windows_show_what_happened_in_them():
    def first(sampler):
        for _ in until(sampler, 60):
            spin(0.01)

    def second(sampler):
        for _ in until(sampler, 60):
            spin(0.01)

    with Sampler(**FAST) as sampler:
        start = sampler.mark()
        first(sampler)
        middle = sampler.mark()
        second(sampler)
        stop = sampler.mark()
    before, after, both = (
        paths(sampler.session(start, middle)),
        paths(sampler.session(middle, stop)),
        paths(sampler.session(start, stop)),
    )
    assert share(before, "first") > 0.95
    assert share(after, "second") > 0.95
    assert share(both, "first") == pytest.approx((middle - start) / (stop - start), abs=0.05)
    assert sum(both.values()) == pytest.approx(stop - start)
    third = (middle - start) / 3
    inside = sampler.session(start + third, middle - third)
    assert sum(inside.own_seconds()) == pytest.approx(third, rel=0.01)
    assert inside.duration == pytest.approx(third, rel=0.01)
    assert sum(inside.samples.count) > 0
    nothing = sampler.session(start - 100, start - 99)
    assert nothing.samples.count == ()
    assert nothing.nodes.parent == ()
    assert nothing.labels == ("",)


def test_a_sampler_can_be_stopped_and_started_again():
    sampler = Sampler(**FAST)
    sampler.watch_thread()
    passed = 0.0
    for _ in range(2):
        begin = time.perf_counter()
        sampler.start()
        sampler.start()
        for _ in until(sampler, 20):
            spin(0.01)
        sampler.stop()
        sampler.stop()
        passed += time.perf_counter() - begin
        time.sleep(0.2)
    session = sampler.session()
    sampled = sampler.statistics().seconds
    assert sampled <= passed, "pauses count for nothing"
    assert sum(session.own_seconds()) == pytest.approx(sampled, rel=0.05)
    assert not sampler.statistics().running
    assert "gnomon-sampler" not in {thread.name for thread in threading.enumerate()}


# ---------------------------------------------------------------------- threads


def test_only_registered_threads_are_sampled():
    stop = threading.Event()
    other = threading.Thread(target=stop.wait)
    other.start()
    with Sampler(**FAST) as sampler:
        for _ in until(sampler, 20):
            time.sleep(0.01)
        sampler.watch_thread(other.ident, "given")
        for _ in until(sampler, 40):
            time.sleep(0.01)
        sampler.forget_thread()
        for _ in until(sampler, 20):
            time.sleep(0.01)
    stop.set()
    other.join(10)
    session = sampler.session()
    counts = counts_by(session, "thread")
    by_name = {session.threads[number].name: count for number, count in counts.items()}
    assert set(by_name) == {"MainThread", "given"}
    assert by_name["MainThread"] >= 38
    assert by_name["given"] >= 38


def test_all_threads_are_found_when_asked_for_and_never_the_sampler():
    with Sampler(**FAST, every_thread=True) as sampler:
        for n in range(8):
            done = threading.Event()
            thread = threading.Thread(target=done.wait, name=f"short {n}")
            thread.start()
            wait_for(lambda name=thread.name: name in {thread.name for thread in sampler.session().threads})
            done.set()
            thread.join(10)
        for _ in until(sampler, 4):
            time.sleep(0.001)
        watched = len(sampler._roster.watched)
    names = Counter(thread.name for thread in sampler.session().threads)
    assert "gnomon-sampler" not in names
    assert names["MainThread"] == 1
    short = {name for name in names if name.startswith("short")}
    assert len(short) == 8
    assert watched <= 3, "those that ended are forgotten"


def test_a_thread_is_renamed_in_what_was_recorded():
    with Sampler(interval=0.005, budget=1.0, bucket=0.05) as sampler:
        done = threading.Event()
        thread = threading.Thread(target=done.wait, name="before")
        thread.start()
        sampler.watch_thread(thread.ident)
        for _ in until(sampler, 10):
            time.sleep(0.01)
        thread.name = "after"
        wait_for(lambda: "after" in {thread.name for thread in sampler.session().threads})
        done.set()
        thread.join(10)
    assert {thread.name for thread in sampler.session().threads} == {"MainThread", "after"}


def test_churn_of_threads_at_full_rate_neither_hangs_nor_leaks():
    def target():
        set_label("churn")
        with region("churn"):
            spin(0.008)  # longer than the interpreter's switch interval, or no look need fall in it

    before = threading.active_count()
    collected = gc.get_threshold()
    gc.set_threshold(50)
    try:
        with Sampler(interval=0.001, budget=1.0, every_thread=True) as sampler:
            end = time.perf_counter() + 1.5
            started = 0
            while time.perf_counter() < end:
                threads = [threading.Thread(target=target) for _ in range(5)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join(10)
                started += 5
                if started % 100 == 0:
                    sampler.session()
    finally:
        gc.set_threshold(*collected)
    assert started >= 20
    session = sampler.session()
    assert 0 < sum(row.count for row in session.regions if row.name == "churn") <= started
    assert "churn" in session.labels
    assert threading.active_count() == before
    assert sum(session.samples.count) >= sampler.statistics().samples


# ---------------------------------------------------------------------- what it leaves behind


class Canary:
    pass


def test_no_frame_is_kept_alive():
    canaries = []

    def task():
        canary = Canary()
        canaries.append(weakref.ref(canary))
        spin(0.01)

    gc.disable()  # nothing may hang in a cycle either
    try:
        with Sampler(interval=0.001, budget=1.0, every_thread=True) as sampler:
            workers = [threading.Thread(target=lambda: [task() for _ in range(20)]) for _ in range(3)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join(30)
            wait_for(lambda: not any(canary() for canary in canaries), 1.0)
            assert sampler.statistics().running
    finally:
        gc.enable()
    assert len(canaries) == 60


def test_the_collectors_setting_is_left_alone():
    seen = Counter()
    with Sampler(interval=0.001, budget=1.0) as sampler:
        end = time.perf_counter() + 0.7
        while time.perf_counter() < end:
            gc.disable()
            seen["disabled", gc.isenabled()] += 1
            gc.enable()
            seen["enabled", gc.isenabled()] += 1
    assert set(seen) == {("disabled", False), ("enabled", True)}
    assert sampler.statistics().ticks > 5


@pytest.mark.parametrize("enabled", [True, False])
def test_looks_restore_the_setting_even_when_they_are_refused(enabled):
    code = f"""
import gc, sys
from gnomon.profiler import plain
(gc.enable if {enabled} else gc.disable)()
assert plain.current_stacks() and gc.isenabled() is {enabled}
def refuse(event, args):
    if event == "sys._current_frames":
        raise PermissionError
sys.addaudithook(refuse)
for look in (plain.current_stacks, plain.current_frames):
    try:
        look()
    except PermissionError:
        assert gc.isenabled() is {enabled}
    else:
        raise SystemExit("not refused")
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_interpreted_looks_see_whole_stacks_of_all_threads():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        wait_for(lambda: plain.current_stacks()[thread.ident][0][0].co_name == "wait")
        codes, lastis, frames = plain.current_stacks()[thread.ident]
        assert [code.co_name for code in codes][-4:] == ["wait", "run", "_bootstrap_inner", "_bootstrap"]
        assert len(codes) == len(lastis) == len(frames) == len(set(frames))
        frame = plain.current_frames()[thread.ident]
        assert id(frame) == frames[0]
        assert threading.get_ident() not in plain.current_frames()
    finally:
        stop.set()
        thread.join(10)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_does_not_sample_and_can_begin_anew():
    with Sampler(**FAST) as sampler:
        spin(0.05)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            verdict = b"no"
            try:
                empty = sampler.session()
                alone = threading.active_count() == 1 and not sampler.statistics().running
                sampler.watch_thread()
                with region("in the child"):
                    sampler.start()
                for _ in until(sampler, 4):
                    spin(0.01)
                sampler.stop()
                child_session = sampler.session()
                mine = child_session.meta["pid"] == os.getpid() and sum(child_session.samples.count) > 3
                if empty.samples.count == () and alone and mine:
                    verdict = b"yes"
            finally:
                os.write(writer, verdict)
                os._exit(0)
        assert os.read(reader, 10) == b"yes"
        os.waitpid(child, 0)
        for _ in until(sampler, 4):  # the parent goes on
            spin(0.01)
    os.close(reader)
    os.close(writer)


def test_a_program_that_forgets_to_stop_ends_quietly():
    code = """
import threading, time
from gnomon.profiler import Sampler
sampler = Sampler(interval=0.001, every_thread=True)
sampler.start()
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
time.sleep(0.1)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr == ""


def test_a_signal_handler_may_ask_for_a_session():
    sessions = []
    with Sampler(**FAST) as sampler:
        before = signal.signal(signal.SIGALRM, lambda *_: sessions.append(sampler.session()))
        try:
            for _ in range(10):
                signal.setitimer(signal.ITIMER_REAL, 0.005)
                arrived = len(sessions)
                while len(sessions) == arrived:
                    sampler.session()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    assert len(sessions) == 10


# ---------------------------------------------------------------------- bounds


def test_the_call_tree_is_pruned_and_what_is_heavy_stays():
    def recursive(n):
        if n:
            other(n - 1)
        else:
            spin(0.004)

    def other(n):
        recursive(n)

    def heavy():
        spin(0.012)

    with Sampler(interval=0.001, budget=1.0, bucket=0.1, depth=256, nodes=150) as sampler:
        for _ in until(sampler, 150):
            recursive(140)
            heavy()
    assert 40 < sampler.statistics().nodes <= 150, "the recursion alone would have made 140"
    session = sampler.session()
    assert share(paths(session), "heavy") > 0.3
    assert sum(session.samples.count) >= sampler.statistics().samples


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


@pytest.mark.parametrize("settings", [{"depth": 2}, {"depth": 10**6}, {"bucket": 0}, {"interval": 0}, {"budget": 0}])
def test_settings_without_sense_are_refused(settings):
    with pytest.raises(ValueError, match="is not"):
        Sampler(**settings)


# ---------------------------------------------------------------------- names


def test_idle_threads_are_told_from_busy_ones_when_shown():
    stop = threading.Event()
    line = queue.Queue()
    idle = [
        threading.Thread(target=stop.wait, name="idle event"),
        threading.Thread(target=line.get, name="idle queue"),
    ]
    busy = threading.Thread(target=lambda: [spin(0.01) for _ in iter(stop.is_set, True)], name="busy")
    with Sampler(**FAST) as sampler:
        sampler.forget_thread()
        for thread in [*idle, busy]:
            thread.start()
            sampler.watch_thread(thread.ident)
        for _ in until(sampler, 150):
            time.sleep(0.01)
        stop.set()
        line.put(None)
        for thread in [*idle, busy]:
            thread.join(10)
    session = sampler.session()
    waits = [is_idle(session.functions[function]) for function in session.nodes.function]
    counts: Counter = Counter()
    for thread, node, count in zip(session.samples.thread, session.samples.node, session.samples.count, strict=True):
        counts[session.threads[thread].name, waits[node]] += count
    for name in ("idle event", "idle queue"):
        assert counts[name, True] / (counts[name, True] + counts[name, False]) > 0.9
    assert counts["busy", False] / (counts["busy", True] + counts["busy", False]) > 0.95


def test_modules_are_found_by_their_files():
    known = modules_by_file()
    assert module_of(threading.__file__, known) == "threading"
    assert module_of(threading.__file__, {}) == "threading"
    assert module_of(regions.__file__.partition("regions")[0] + "regions.py", {}).endswith("regions")
    assert module_of("<frozen importlib._bootstrap>", known) == "importlib._bootstrap"
    assert module_of("<string>", known) == ""
    assert is_idle(Function("EpollSelector.select", "/x/selectors.py", 1, "selectors"))
    assert not is_idle(Function("select", "/x/mine.py", 1, "mine"))


def test_modules_are_found_without_running_their_code():
    class Lazy(type(sys)):
        def __getattribute__(self, name):
            raise AssertionError("its code was run")

    sys.modules["lazy_one"] = Lazy("lazy_one")
    try:
        modules_by_file()
    finally:
        del sys.modules["lazy_one"]
