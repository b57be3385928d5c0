"""The budget of the scheduler's loop and its traffic in the live view: parts that add up, nothing that is made up."""

from __future__ import annotations

import random
from itertools import pairwise
from types import SimpleNamespace

import pytest

from gnomon.reports.dashboard.looptimes import LoopTimes
from gnomon.reports.dashboard.model import Model
from gnomon.reports.dashboard.pages import loop
from gnomon.reports.dashboard.pages.overview import counters, loop_busy
from gnomon.reports.dashboard.pages.view import View
from gnomon.reports.page.sentences import LOOP_WORDS
from gnomon.reports.recording import TICKS
from gnomon.runtime.comm.base import Counters
from gnomon.runtime.scheduler.budget import PARTS
from gnomon.runtime.scheduler.counters import Traffic


def live(scheduler, model, seconds, *, seed=1):
    """Some seconds, each shared out over all parts of the loop."""
    dice = random.Random(seed)
    for _ in range(seconds):
        cuts = sorted([0.0, *(dice.random() for _ in PARTS[1:]), 1.0])
        for part, (low, high) in zip(PARTS, pairwise(cuts), strict=True):
            scheduler.loop[part] = scheduler.loop.get(part, 0.0) + high - low
        scheduler.now += 1.0
        scheduler.feed(model)


@pytest.fixture
def told(by_hand):
    scheduler, model = by_hand(), Model()
    scheduler.join(1)
    live(scheduler, model, 100)
    return scheduler, model


def cells(panel):
    return {row[0]["t"]: [each["t"] for each in row[1:]] for row in panel["rows"]}


def test_all_parts_are_shown_and_add_up(told):
    _, model = told
    window = model.loop_times.window(model.now - 60, model.now)
    assert [part.name for part in window.parts] == list(PARTS)
    assert window.ticks == pytest.approx(60 * TICKS, abs=len(PARTS))
    table = loop.loop_parts(model, View())
    shown = cells(table)
    assert list(shown) == [LOOP_WORDS[name] for name in PARTS]
    total, share = (each["t"] for each in table["last"][1:3])
    decimals = len(total.partition(".")[2])
    assert f"{sum(float(row[0]) for row in shown.values()):.{decimals}f}" == total == f"{60:.{decimals}f}"
    assert sum(float(row[1].removesuffix(" %")) for row in shown.values()) == pytest.approx(100.0)
    assert share == "100.0 %"
    assert shown["Decoding messages"][2].startswith("timed, ") or shown["Decoding messages"][2] == "timed"
    bar = loop.loop_bar(model, View())
    assert [part[2] for part in bar["parts"]] == [float(row[1].removesuffix(" %")) for row in shown.values()]
    assert len({part[0] for part in bar["parts"]}) == len(PARTS) - 1  # waiting and resting look alike


def test_the_whole_run_is_known_from_the_first_answer_on(by_hand):
    scheduler, model = by_hand(), Model()
    scheduler.loop = {"idle": 490.0, "brain": 10.0}
    scheduler.now += 500.0
    scheduler.feed(model)
    assert model.loop_times.window(model.begin, model.now).ticks == 500 * TICKS
    scheduler.loop = {"idle": 490.0, "brain": 11.0}
    scheduler.now += 1.0
    scheduler.feed(model)
    window = model.loop_times.window(model.now - 60, model.now)  # nobody looked 60 s ago; the nearest answer is closer
    assert (window.start, window.stop) == (1500.0, 1501.0)
    assert {part.name: part.ticks for part in window.parts if part.ticks} == {"brain": TICKS}


def test_windows_of_long_runs_lose_nothing():
    times = LoopTimes(0.0)
    for second in range(1, 10_001):
        times.append(float(second), [("brain", "timed", second / 2, second)], (second, 0, 0, 0, 1, 0))
    assert len(times._all) <= 1_200
    whole, latest = times.window(0.0, 10_000.0), times.window(9_990.0, 10_000.0)
    assert (whole.ticks, whole.traffic[0]) == (5_000 * TICKS, 10_000)
    assert (latest.ticks, latest.parts[0].times, latest.traffic[0]) == (5 * TICKS, 10, 10)


def test_the_first_page_and_the_schedulers_say_the_same(told):
    _, model = told
    for view in (View(), View(span="30"), View(range=(10.0, 20.0))):
        said = loop_busy(model, view)
        assert said in counters(model, view)["items"]
        window = model.loop_times.window(*view.window(model))
        busy = sum(part.ticks for part in window.parts if part.name not in ("idle", "resting", "gc"))
        assert said[1] == f"{100 * busy / window.ticks:.1f} %"


def test_without_instruments_it_says_so(by_hand):
    scheduler, model = by_hand(), Model()
    scheduler.watching.budget.rows = list
    scheduler.join(1)
    live(scheduler, model, 3)
    assert loop.loop_bar(model, View())["text"] == loop.NOT_MEASURED
    assert loop.loop_parts(model, View())["kind"] == "text"
    assert loop_busy(model, View())[1] == "-"


def test_every_part_has_words():
    assert tuple(LOOP_WORDS)[: len(PARTS)] == PARTS


def test_traffic_is_that_of_the_window(told):
    scheduler, model = told
    wire = scheduler.workers[1].comm.counters
    wire.messages_received, wire.messages_sent, wire.bytes_received, wire.bytes_sent = 600, 1_200, 60 * 2048, 0
    live(scheduler, model, 1, seed=2)
    shown = cells(loop.traffic(model, View()))
    assert shown["messages in"] == ["10 /s", "600"]
    assert shown["messages out"] == ["20 /s", "1,200"]
    assert shown["bytes in"] == ["2.00 KiB/s", "120 KiB"]
    assert shown["transitions of tasks"] == ["-", "not measured"]
    assert "nobody counts" in loop.traffic(model, View())["note"]
    live(scheduler, model, 61, seed=3)
    assert cells(loop.traffic(model, View()))["messages in"] == ["0 /s", "0"]


def test_bytes_that_nobody_counts_are_not_zero(told):
    scheduler, model = told
    scheduler.workers[1].comm.local_address = "inproc://1"
    scheduler.workers[1].comm.counters.messages_sent = 5
    live(scheduler, model, 1, seed=2)
    shown = cells(loop.traffic(model, View()))
    assert shown["bytes out"] == ["-", "not measured"]
    assert shown["messages out"][1] == "5"


def comm():
    return SimpleNamespace(counters=Counters(), local_address="tcp://127.0.0.1:1")


def test_connections_that_closed_stay_in_the_sums():
    traffic, first, second = Traffic(), comm(), comm()
    first.counters.messages_sent, second.counters.messages_sent = 3, 4
    assert traffic.look([first, second]) == (0, 7, 0, 0, 2, 0)
    first.counters.messages_sent = 10  # and then it closed
    assert traffic.look([second]) == (0, 14, 0, 0, 1, 0)
    assert traffic.look([comm()]) == (0, 14, 0, 0, 1, 0)
