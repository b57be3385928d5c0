"""The sampler's life: threads that come and go, monitors on its ticks, and what it leaves behind (nothing)."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import Counter

import pytest

from gnomon.profiler import Sampler, set_label
from gnomon.profiler.marks import regions
from gnomon.profiler.marks.regions import region
from gnomon.profiler.reading import plain
from gnomon.profiler.reading.ticker import tick_source
from gnomon.profiler.sampling.cadence import WIDEST
from gnomon.profiler.sessions.names import is_idle, module_of, modules_by_file
from gnomon.profiler.sessions.session import Function
from tests.profiler.by_hand import HandDriven
from tests.profiler.seen import counts_by, spin
from tests.waiting import waiter

wait_until = waiter(20.0, 0.001)

#: The rate of most tests here. Faster than the interpreter's switch interval, ticks would fall out.
FAST = {"interval": 0.00607, "budget": 0.5}


def until(sampler, samples, seconds=30.0):
    """Yield until so many more samples were taken: a busy machine only makes it take longer."""
    goal, end = sampler.statistics().samples + samples, time.perf_counter() + seconds
    while sampler.statistics().samples < goal:
        assert time.perf_counter() < end, "the sampler does not sample"
        yield


# ---------------------------------------------------------------------- rates


def test_the_default_rate_is_near_a_hundred_but_not_in_step_with_it():
    sampler = Sampler()
    assert 95 < 1 / sampler.statistics().interval < 105
    assert (1 / sampler.statistics().interval) % 1 > 0.001


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
            wait_until(lambda name=thread.name: name in {thread.name for thread in sampler.session().threads})
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
        wait_until(lambda: "after" in {thread.name for thread in sampler.session().threads})
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
            end = time.perf_counter() + 60
            started = 0
            while started < 150 or "churn" not in sampler.session().labels:
                assert time.perf_counter() < end, "no look fell into a thread"
                threads = [threading.Thread(target=target) for _ in range(5)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join(60)
                started += 5
    finally:
        gc.set_threshold(*collected)
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
            wait_until(lambda: not any(canary() for canary in canaries))
            assert sampler.statistics().running
    finally:
        gc.enable()
    assert len(canaries) == 60


def test_the_collectors_setting_is_left_alone():
    seen = Counter()
    with Sampler(interval=0.001, budget=1.0) as sampler:
        for _ in until(sampler, 30):
            for _ in range(1000):
                gc.disable()
                seen["disabled", gc.isenabled()] += 1
                gc.enable()
                seen["enabled", gc.isenabled()] += 1
    assert set(seen) == {("disabled", False), ("enabled", True)}


@pytest.mark.parametrize("enabled", [True, False])
def test_looks_restore_the_setting_even_when_they_are_refused(enabled):
    code = f"""
import gc, sys
from gnomon.profiler.reading import plain
(gc.enable if {enabled} else gc.disable)()
assert plain.current_stacks() and gc.isenabled() is {enabled}
def refuse(event, args):
    if event == "sys._current_frames":
        raise PermissionError
sys.addaudithook(refuse)
for look in (plain.current_stacks, plain.current_leaves):
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
        wait_until(lambda: plain.current_stacks()[thread.ident][0][0].co_name == "wait")
        codes, lastis, frames = plain.current_stacks()[thread.ident]
        assert [code.co_name for code in codes][-4:] == ["wait", "run", "_bootstrap_inner", "_bootstrap"]
        assert len(codes) == len(lastis) == len(frames) == len(set(frames))
        assert plain.current_leaves()[thread.ident] == (codes[0], lastis[0])
        assert threading.get_ident() in plain.current_leaves()
    finally:
        stop.set()
        thread.join(10)


@pytest.mark.parametrize("look", [plain.current_stacks, plain.current_leaves])
def test_interpreted_looks_hold_no_frame_when_others_may_run(look):
    stop, counts = threading.Event(), []
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        wait_until(lambda: plain.current_leaves()[thread.ident][0].co_name == "wait")
        frame = sys._current_frames()[thread.ident]
        before = sys.getrefcount(frame)
        sys.setprofile(lambda *event: counts.append(sys.getrefcount(frame)))
        look()
        sys.setprofile(None)
    finally:
        stop.set()
        thread.join(10)
    assert set(counts) == {before}


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


# ---------------------------------------------------------------------- monitors on its ticks


class Monitor:
    def __init__(self, sampler):
        self.sampler = sampler
        self.calls = []
        self.threads = set()

    def hook(self, due, woke, look):
        self.calls.append((due, woke))
        self.threads.add(threading.current_thread().name)
        assert threading.get_ident() in look.leaves
        return self.sampler is None


def test_monitors_are_shown_each_tick_while_it_samples():
    sampler = Sampler(**FAST)
    sampler.watch_thread()
    first, second = Monitor(sampler), Monitor(sampler)
    sampler.add_hook(first.hook)
    assert first.calls == []
    with sampler:
        wait_until(lambda: len(first.calls) >= 5)
        sampler.add_hook(second.hook)
        wait_until(lambda: len(second.calls) >= 5)
        sampler.remove_hook(first.hook)
        before = len(first.calls)
        count = len(second.calls)
        wait_until(lambda: len(second.calls) > count + 2)
        assert len(first.calls) == before
    after = len(second.calls)
    assert after <= sampler.statistics().ticks
    assert first.threads == second.threads == {"gnomon-sampler"}
    assert all(due <= woke for due, woke in second.calls)
    assert [due for due, _ in second.calls] == sorted({due for due, _ in second.calls})
    with sampler:  # they come back with it
        wait_until(lambda: len(second.calls) > after)
    sampler.remove_hook(second.hook)


def test_while_monitors_ride_on_it_ticks_are_as_close_as_they_ask_for(monkeypatch):
    sampler = HandDriven(monkeypatch)
    hook = Monitor(sampler).hook
    assert sampler._cadence.widest == WIDEST
    sampler.add_hook(hook)
    assert sampler._cadence.widest == WIDEST, "unless one asks for more"
    assert tick_source(sampler, threshold=0.1) is sampler
    assert sampler._cadence.widest == pytest.approx(0.08, abs=0.001)
    assert tick_source(sampler, threshold=0.05) is sampler
    assert sampler._cadence.widest == pytest.approx(0.04)
    assert tick_source(sampler, threshold=1.0) is sampler
    assert sampler._cadence.widest == pytest.approx(0.04)
    sampler.remove_hook(hook)
    assert sampler._cadence.widest == WIDEST


def test_a_monitor_that_fails_is_taken_out_and_the_sampler_goes_on(caplog):
    calls = []

    def broken(due, woke, look):
        calls.append(due)
        raise ValueError("broken")

    with Sampler(**FAST) as sampler:
        sampler.add_hook(broken)
        wait_until(lambda: calls)
        for _ in until(sampler, 5):
            time.sleep(0.001)
    assert len(calls) == 1
    assert [record.message for record in caplog.records] == ["a monitor failed and is switched off"]


def test_a_removed_monitor_is_not_being_called_any_more():
    entered, leave, removed = threading.Event(), threading.Event(), threading.Event()

    def slow(due, woke, look):
        entered.set()
        assert leave.wait(60)
        assert not removed.is_set()

    with Sampler(**FAST) as sampler:
        sampler.add_hook(slow)
        assert entered.wait(60)
        remover = threading.Thread(target=lambda: (sampler.remove_hook(slow), removed.set()))
        remover.start()
        assert sampler.session().duration >= 0, "sessions don't wait for monitors"
        leave.set()
        remover.join(60)
    assert removed.is_set()


# ---------------------------------------------------------------------- bounds


@pytest.mark.parametrize("settings", [{"depth": 2}, {"depth": 10**6}, {"bucket": 0}, {"interval": 0}, {"budget": 0}])
def test_settings_without_sense_are_refused(settings):
    with pytest.raises(ValueError, match="is not"):
        Sampler(**settings)


# ---------------------------------------------------------------------- names


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
