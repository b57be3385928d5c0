"""Where the samples go, tick by tick: functions, labels, regions, threads, windows. Threads stand still at each tick.

The same on a running clock is in ``test_accuracy``.
"""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from gnomon.profiler import set_label
from gnomon.profiler.marks.regions import region
from gnomon.profiler.sessions.names import is_idle
from gnomon.profiler.sessions.session import REGION
from tests.profiler.by_hand import Actor, HandDriven
from tests.profiler.seen import counts_by, paths, share

#: A share may be off by one tick in some hundreds: buckets end with ticks, which lie within their steps.
ONE = 0.003


@pytest.fixture
def actor():
    made = Actor()
    yield made
    made.close()


@pytest.fixture
def sampler(monkeypatch, actor):
    made = HandDriven(monkeypatch)
    made.watch_thread(actor.ident)
    made.start()
    yield made
    made.stop()


def test_every_tick_samples_every_thread_and_none_is_lost(sampler):
    others = [Actor(f"waits {n}") for n in range(3)]
    for other in others:
        sampler.watch_thread(other.ident)
    sampler.tick(100)
    sampler.tick(late=0.25)
    sampler.tick(10, late=0.001)
    for other in others:
        other.close()
    statistics, session = sampler.statistics(), sampler.session()
    assert statistics.ticks == 111
    assert statistics.missed == 25
    assert statistics.samples == 4 * 111
    assert sum(session.samples.count) == 4 * (111 + 25)
    assert sum(bucket.points for bucket in session.buckets) == 111 + 25
    assert sum(bucket.ticks for bucket in session.buckets) == session.meta["ticks"] == 111
    assert sum(bucket.missed for bucket in session.buckets) == 25
    assert {thread.name for thread in session.threads} == {"actor", "waits 0", "waits 1", "waits 2"}
    assert set(counts_by(session, "thread").values()) == {111 + 25}
    assert session.duration == pytest.approx(1.36, abs=0.02)
    assert sum(session.own_seconds()) == pytest.approx(4 * session.duration)


def test_shares_are_those_of_the_ticks(sampler, actor):
    def half():
        actor.pause()

    def third():
        actor.pause()

    def fifth():
        actor.pause()

    def elsewhere():
        half()

    for function, ticks in ((half, 29), (third, 30), (elsewhere, 21), (fifth, 20)) * 3:
        with actor.inside(function):
            sampler.tick(ticks)
    seconds = paths(sampler.session())
    assert share(seconds, "half") == pytest.approx(0.5, abs=ONE)
    assert share(seconds, "elsewhere", "half") == pytest.approx(0.21, abs=ONE)
    assert share(seconds, "third") == pytest.approx(0.3, abs=ONE)
    assert share(seconds, "fifth") == pytest.approx(0.2, abs=ONE)


def test_what_kept_the_sampler_waiting_counts_for_as_long_as_it_did(sampler, actor):
    """A call that never lets go of the GIL: the one sample that comes after it stands for all that fell out."""

    def holds():
        actor.pause()

    def rest():
        actor.pause()

    with actor.inside(rest):
        sampler.tick(50)
    with actor.inside(holds):
        sampler.tick(late=0.49)
    seconds = paths(sampler.session())
    assert share(seconds, "holds") == pytest.approx(0.5)
    assert sampler.statistics().missed == 49


def test_labels_share_the_time_as_it_was_set(sampler, actor):
    def work():
        actor.pause()

    wanted = {"load": 60, "parse": 20, "": 20}
    for label, ticks in wanted.items():
        with actor.inside(lambda label=label: (set_label(label), work())):
            sampler.tick(ticks)
    session = sampler.session()
    counts = counts_by(session, "label")
    assert {session.labels[number]: count for number, count in counts.items()} == wanted


def test_a_region_is_a_frame_below_the_function_that_entered_it(sampler, actor):
    def task():
        with region("a part of it"):
            actor.pause()

    def rest():
        actor.pause()

    for _ in range(4):
        with actor.inside(task):
            sampler.tick(10)
        with actor.inside(rest):
            sampler.tick(30)
    session = sampler.session()
    rows = [row for row in session.regions if row.name == "a part of it"]
    assert sum(row.count for row in rows) == 4
    assert {row.bucket for row in rows} == {0, 1}, "in each bucket what passed in it"
    seconds = paths(session)
    assert share(seconds, "a part of it") == pytest.approx(0.25, abs=ONE)
    inside = [path for path in seconds if "a part of it" in path]
    assert all(path[path.index("a part of it") - 1] == "task" for path in inside)
    assert any(function.file == REGION for function in session.functions)


def test_a_run_shorter_than_a_bucket_is_not_empty(monkeypatch, actor):
    sampler = HandDriven(monkeypatch, bucket=60.0)
    sampler.watch_thread(actor.ident)
    sampler.start()
    with actor.inside(actor.pause):
        sampler.tick(10)
    unfinished = sampler.session()
    sampler.stop()
    assert sum(unfinished.samples.count) == 10
    assert sum(unfinished.own_seconds()) == pytest.approx(unfinished.duration) == pytest.approx(0.1, abs=0.01)
    assert share(paths(unfinished), "pause") == 1


def test_windows_show_what_happened_in_them(sampler, actor):
    def first():
        actor.pause()

    def second():
        actor.pause()

    start = sampler.mark()
    with actor.inside(first):
        sampler.tick(300)
    middle = sampler.mark()
    with actor.inside(second):
        sampler.tick(100)
    stop = sampler.mark()
    assert share(paths(sampler.session(start, middle)), "first") == 1
    assert share(paths(sampler.session(middle, stop)), "second") == 1
    both = paths(sampler.session(start, stop))
    assert share(both, "first") == pytest.approx(0.75, abs=ONE)
    assert sum(both.values()) == pytest.approx(stop - start)
    inside = sampler.session(start + 1.0, middle - 1.0)
    assert sum(inside.own_seconds()) == pytest.approx(inside.duration) == pytest.approx(1.0, abs=0.011)
    nothing = sampler.session(start - 100, start - 99)
    assert nothing.samples.count == ()
    assert nothing.nodes.parent == ()
    assert nothing.labels == ("",)


def test_the_call_tree_is_pruned_and_what_is_heavy_stays(monkeypatch, actor):
    def recursive(n):
        if n:
            other(n - 1)
        else:
            actor.pause()

    def other(n):
        recursive(n)

    def heavy():
        actor.pause()

    sampler = HandDriven(monkeypatch, bucket=0.1, depth=256, nodes=150)
    sampler.watch_thread(actor.ident)
    sampler.start()
    for depth in range(20, 140, 10):
        with actor.inside(lambda depth=depth: recursive(depth)):
            sampler.tick(2)
        with actor.inside(heavy):
            sampler.tick(10)
    sampler.stop()
    assert 10 < sampler.statistics().nodes <= 150
    session = sampler.session()
    assert share(paths(session), "heavy") == pytest.approx(10 / 12, abs=ONE)
    assert sum(session.samples.count) == 12 * 12


def test_idle_threads_are_told_from_busy_ones_when_shown(sampler, actor):
    def work():
        while not stop:
            pass

    stop = []
    busy = threading.Thread(target=work, name="busy")
    busy.start()
    sampler.watch_thread(busy.ident)
    while not any(function.name.endswith("work") for function in sampler.session().functions):
        sampler.tick()
    begin = sampler.mark()
    sampler.tick(50)
    end = sampler.mark()
    stop.append(True)
    busy.join(60)
    session = sampler.session(begin, end)
    waits = [is_idle(session.functions[function]) for function in session.nodes.function]
    counts: Counter = Counter()
    for thread, node, count in zip(session.samples.thread, session.samples.node, session.samples.count, strict=True):
        counts[session.threads[thread].name, waits[node]] += count
    assert set(counts) == {("actor", True), ("busy", False)}
    assert counts["busy", False] == counts["actor", True] >= 50
