"""The sampler's tick: what it writes on, when it leaves the interpreter, and what holds it off."""

from __future__ import annotations

import threading
import time
from array import array

import pytest

from gnomon.profiler import Sampler, clock
from gnomon.profiler.marks import labels, regions
from gnomon.profiler.sampling.cadence import Cadence
from gnomon.profiler.sampling.frames import Functions
from gnomon.profiler.sampling.pulse import Pulse
from gnomon.profiler.sampling.roster import Roster
from gnomon.profiler.sampling.stacks import Look
from gnomon.profiler.sampling.tape import Tape
from gnomon.profiler.sampling.tree import Tree
from tests.waiting import waiter

wait_until = waiter(20.0, 0.001)


class Beating:
    """A pulse on a thread of its own, which looks at the test's."""

    def __init__(self, *, interval=0.001, every_thread=False):
        self.tape, self.roster = Tape(), Roster()
        self.roster.watch(threading.get_ident())
        self.cadence = Cadence(interval, 1.0, clock.now(), seed=1)
        look = Look(Tree(Functions()), labels.by_thread, regions.by_thread, {"": 0}, 128, self.tape)
        self.pulse = Pulse(self.cadence, look, self.roster, every_thread=every_thread)
        self.attended, self.rode = [], []
        self.thread = threading.Thread(target=self.pulse.run, args=(self.attend, self.ride))

    def attend(self, at):
        self.attended.append((at, self.tape.ticks))
        self.tape.clear()

    def ride(self, due, woke):
        self.rode.append((due, woke))
        return True

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exception):
        self.pulse.stop()
        self.thread.join(30)
        assert not self.thread.is_alive()


# ---------------------------------------------------------------------- tape


def test_a_tape_keeps_what_was_written_until_it_is_cleared():
    tape = Tape(room=3)
    for tick in range(3):
        assert not tape.full()
        for key in range(tick * 40):
            assert tape.key(key + (tick << 50)) == tape.samples
        assert tape.end(1000.0 + tick, tick / 8, tick + 1) == tick + 1
    assert tape.full()
    times, lates, weights, ends, keys = tape.columns()
    assert times == array("d", [1000.0, 1001.0, 1002.0])
    assert lates == array("d", [0.0, 0.125, 0.25])
    assert weights == array("q", [1, 2, 3])
    assert ends == array("q", [0, 40, 120])
    assert list(keys) == [*(key + (1 << 50) for key in range(40)), *(key + (2 << 50) for key in range(80))]
    with pytest.raises(IndexError, match="full"):
        tape.end(1003.0, 0.0, 1)
    tape.clear()
    tape.key(7)
    tape.end(1004.0, 0.5, 1)
    assert [list(column) for column in tape.columns()] == [[1004.0], [0.5], [1], [1], [7]]
    assert list(keys)[:1] == [1 << 50], "what was read stays"


# ---------------------------------------------------------------------- pulse


def test_who_is_to_attend_is_called_when_the_tape_is_full_or_it_is_time():
    with Beating() as beating:
        beating.pulse.attend_at = float("inf")
        wait_until(lambda: 128 in {ticks for _, ticks in beating.attended}, "a full tape")
        beating.pulse.attend_at = 0.0
        before = len(beating.attended)
        wait_until(lambda: len(beating.attended) >= before + 5)
    assert {ticks for _, ticks in beating.attended[-3:]} == {1}, "at each tick when it is time"
    assert beating.pulse.samples >= 128
    assert beating.rode == []
    assert beating.pulse.cpu > 0.0


def test_who_rides_is_told_when_a_tick_was_due_and_when_it_came():
    with Beating() as beating:
        beating.pulse.hooked = True
        wait_until(lambda: len(beating.rode) >= 20)
        beating.pulse.hooked = False
    assert all(due <= woke for due, woke in beating.rode)
    dues = [due for due, _ in beating.rode]
    assert dues == sorted(set(dues))
    assert clock.now() - 60 < dues[0] < clock.now()


@pytest.mark.parametrize("every_thread", [False, True])
def test_there_is_no_tick_while_the_pulse_is_held(every_thread):
    with Beating(every_thread=every_thread) as beating:
        wait_until(lambda: beating.cadence.ticks > 3)
        for _ in range(20):
            with beating.pulse, beating.pulse:
                with beating.pulse:
                    ticks, samples = beating.cadence.ticks, beating.pulse.samples
                time.sleep(0.005)
                assert (beating.cadence.ticks, beating.pulse.samples) == (ticks, samples), "nested"
        ticks = beating.cadence.ticks
        wait_until(lambda: beating.cadence.ticks > ticks + 3)


def test_a_stop_ends_the_longest_sleep_at_once():
    beating = Beating(interval=1.0)
    with beating:
        wait_until(beating.thread.is_alive)
        begin = beating.cadence.ticks
    assert beating.cadence.ticks <= begin + 1
    beating.pulse.stop()  # before it runs: then it ends as soon as it is begun
    again = threading.Thread(target=beating.pulse.run, args=(beating.attend, beating.ride))
    again.start()
    again.join(30)
    assert not again.is_alive()


def test_sessions_hold_what_was_seen_since_the_last_bucket():
    """Ticks lie on the tape until a bucket ends; who asks before gets them all, and none twice."""
    with Sampler(interval=0.002, budget=1.0, bucket=600.0) as sampler:
        for number in (20, 40, 300):
            wait_until(lambda number=number: sampler.statistics().ticks >= number)
            with sampler._pulse:
                ticks = sampler.statistics().ticks
                assert sampler.session().meta["ticks"] == ticks
    assert sampler.session().meta["ticks"] == sampler.statistics().ticks
