"""The history of samples and the cadence that times them: no threads, no clock."""

from __future__ import annotations

import random

import pytest

from gnomon.profiler.sampling.cadence import WIDEST, Cadence
from gnomon.profiler.sampling.handover import Handover
from gnomon.profiler.sampling.history import History
from gnomon.profiler.sampling.tape import Tape


def add(history, now, keys, *, late=0.0, weight=1):
    """A tick."""
    tape = Tape()
    for key in keys:
        tape.key(key)
    tape.end(now, late, weight)
    history.take(tape)


def fill(history, start, seconds, *, rate=100, keys=(1,), bucket=1.0, regions=None):
    """Tick at a rate, closing buckets as a sampler does; the time after the last tick."""
    ticks = round(seconds * rate)
    if history.opened is None:
        history.open(start)
    for tick in range(1, ticks + 1):
        now = start + tick / rate
        if now - history.opened >= bucket:
            history.close(now, missed=0, cpu=0.001, regions=regions or {})
            history.open(now)
        add(history, now, keys)
    return start + seconds


def total(pieces):
    return sum(sum(piece.counts.values()) for piece in pieces)


def test_every_window_of_what_keeps_its_ticks_is_exact():
    history = History()
    fill(history, 1000.0, 30)
    for start, stop in [(1000.0, 1030.0), (1003.205, 1003.255), (1003.905, 1004.105), (1029.905, 1040.0)]:
        expected = round((min(stop, 1030.0) - start) * 100)
        pieces = history.window(start, stop)
        assert total(pieces) == sum(piece.ticks for piece in pieces) == expected
    assert history.window(900.0, 999.0) == []
    assert history.window(1031.0, 1040.0) == []


def test_a_run_shorter_than_a_bucket_is_there():
    history = History()
    fill(history, 0.0, 0.05)
    (piece,) = history.window(0.0, 0.05)
    assert piece.counts == {1: 5}
    assert (piece.start, piece.ticks) == (0.0, 5)


def test_a_tick_stands_for_its_share_of_the_window():
    history = History()
    fill(history, 0.0, 2.0)
    pieces = history.window(0.505, 1.505)
    assert sum((piece.stop - piece.start) / piece.ticks * sum(piece.counts.values()) for piece in pieces) == (
        pytest.approx(1.0, abs=0.02)
    )


def test_what_has_no_time_of_its_own_is_taken_in_proportion():
    history = History()
    fill(history, 0.0, 0.99)
    history.close(1.0, missed=8, cpu=0.4, regions={(1, 2): (10, 0.5, 0.25)})
    (piece,) = history.window(0.25, 0.5)
    assert piece.missed == pytest.approx(2)
    assert piece.cpu == pytest.approx(0.1)
    assert piece.regions == {(1, 2): (2.5, 0.125, 0.0625)}
    (whole,) = history.window(0.0, 1.0)
    assert whole.regions == {(1, 2): (10, 0.5, 0.25)}


def test_a_tick_counts_for_the_points_before_it():
    history = History()
    history.open(0.0)
    for now, weight, key in ((0.01, 1, 5), (0.41, 40, 6), (0.42, 1, 7), (0.52, 10, 5)):
        add(history, now, [key, 9], weight=weight)
    (piece,) = history.window(0.0, 1.0)
    assert piece.counts == {5: 11, 6: 40, 7: 1, 9: 52}
    assert (piece.ticks, piece.points) == (4, 52)
    (piece,) = history.window(0.415, 0.425)
    assert piece.counts == {7: 1, 9: 1}
    assert (piece.ticks, piece.points) == (1, 1)


def test_old_ticks_fold_into_counts_and_nothing_is_lost():
    history = History(samples=1000)
    fill(history, 0.0, 100, keys=(1, 2))
    pieces = history.window(0.0, 100.0)
    assert total(pieces) == 20_000
    assert len(history._ticks) < 10
    assert total(history.window(99.0, 100.0)) == pytest.approx(200, abs=4)
    assert total(history.window(20.0, 30.0)) == pytest.approx(2000, abs=200)
    inside = history.window(20.4, 20.6)
    assert [(round(piece.start), round(piece.stop)) for piece in inside] == [(20, 21)]


def test_resolution_fades_with_age_and_the_number_of_buckets_is_bounded():
    history = History(samples=100, buckets=40)
    fill(history, 0.0, 5000, rate=2)
    assert history.size() <= 41
    pieces = history.window(0.0, 5000.0)
    assert total(pieces) == 10_000
    lengths = [piece.stop - piece.start for piece in pieces]
    assert max(lengths) / sum(lengths) < 0.4, "no bucket swallows the past"
    for piece in pieces[:-1]:
        assert piece.stop - piece.start <= max(3.0, 0.5 * (5000 - piece.start)), "coarse in proportion to age"


def test_counts_of_many_different_samples_are_bounded():
    rng = random.Random(3)
    history = History(samples=500, buckets=200, counts=2000)
    history.open(0.0)
    for second in range(1, 300):
        for tick in range(5):
            keys = [rng.randrange(1000) for _ in range(20)]
            add(history, second - 1 + tick / 5, keys)
        history.close(float(second), missed=0, cpu=0.0, regions={})
        history.open(float(second))
    kept = sum(len(piece.counts) for piece in history._folded)
    assert kept <= 2000 or len(history._folded) == 1
    assert total(history.window(0.0, 300.0)) == 299 * 100


def test_regions_and_late_ticks_add_up_when_buckets_join():
    history = History(samples=10, buckets=4)
    for second in range(50):
        history.open(float(second))
        add(history, second + 0.5, [1], late=0.25 if second == 7 else 0.01, weight=2)
        history.close(second + 1.0, missed=1, cpu=0.1, regions={(0, 1): (2, 0.5, 0.25), (0, second): (1, 0.1, 0.1)})
    pieces = history.window(0.0, 50.0)
    assert sum(piece.points for piece in pieces) == 100
    sums = [sum(piece.regions.get((0, 1), (0, 0, 0))[at] for piece in pieces) for at in range(3)]
    assert sums == pytest.approx([2 * 49 + 1 + 0, 0.5 * 49 + 0.1, 0.25 * 49 + 0.1])
    assert sum(piece.missed for piece in pieces) == pytest.approx(50)
    assert sum(piece.cpu for piece in pieces) == pytest.approx(5)
    assert sum(piece.late for piece in pieces) == pytest.approx(0.25 + 49 * 0.01)
    assert max(piece.late_max for piece in pieces) == 0.25


def test_a_bucket_in_which_nothing_happened_is_not_kept():
    history = History()
    history.open(0.0)
    history.close(1.0, missed=0, cpu=0.0, regions={})
    assert history.size() == 0
    history.open(1.0)
    history.close(2.0, missed=0, cpu=0.0, regions={(0, 1): (1, 0.5, 0.5)})
    assert [piece.regions for piece in history.window(0.0, 3.0)] == [{(0, 1): (1, 0.5, 0.5)}]


def test_a_copy_does_not_change_when_the_history_goes_on():
    history = History()
    fill(history, 0.0, 3.5)
    copy = history.copy()
    fill(history, 3.5, 5)
    copy.close(3.5, missed=0, cpu=0.0, regions={})
    assert total(copy.window(0.0, 100.0)) == 350
    assert total(history.window(0.0, 100.0)) == 850


def test_samples_follow_their_nodes_to_new_numbers():
    history = History(samples=100)
    mask = 0xFF
    fill(history, 0.0, 5, rate=20, keys=(0x101, 0x202, 0x303))
    assert history._folded
    assert history._ticks
    assert history.nodes(mask) == {1: 100, 2: 100, 3: 100}
    history.move([-1, 7, 7, -1], mask)
    assert history.nodes(mask) == {7: 200}
    counts = sum((piece.counts for piece in history.window(0.0, 5.0)[1:]), history.window(0.0, 5.0)[0].counts)
    assert counts == {0x107: 100, 0x207: 100}
    fill(history, 5.0, 1, rate=20, keys=(0x107,))
    assert history.nodes(mask) == {7: 220}


# ---------------------------------------------------------------------- cadence


def run(cadence, ticks, *, cost=0.0, idle=False):
    """Tick on time; what the ticks counted for."""
    points = []
    for _ in range(ticks):
        points.append(cadence.tick(cadence.deadline))
        cadence.spent(cost, idle, 1.0)
    return points


def test_deadlines_keep_to_their_mean_distance_whatever_the_ticks_are_late():
    cadence = Cadence(0.01, 0.5, 0.0, seed=1)
    before = now = 0.0
    for number in range(1, 2001):
        assert 0.005 < cadence.deadline - before < 0.015, "none runs into the next one"
        assert cadence.deadline == pytest.approx(number * 0.01, abs=0.03), "and none gets away"
        assert cadence.delay(now) > 0
        before, now = cadence.deadline, cadence.deadline + 0.005
        assert cadence.tick(now) == 1
        assert cadence.late == pytest.approx(0.005)
        cadence.spent(0.0, False, 1.0)
    assert cadence.missed == 0
    assert cadence.late_sum / cadence.ticks == pytest.approx(0.005)


@pytest.mark.parametrize("rounds", [0.5, 1, 2, 3, 0.618, 1.618, 1.0001, 0.99, 7.3, 100])
@pytest.mark.parametrize(("cost", "wait"), [(0.0, 0.0), (0.00013, 0.0), (0.0002, 0.0), (0.0, 0.0055)])
def test_no_program_runs_in_step_with_the_ticks(rounds, cost, wait):
    """One that does its rounds in the ticks' own time, or a simple multiple, is seen at all places of them.

    Also one that is busy, so that each tick waits as long as the interpreter's switch interval, and a little.
    """
    cadence = Cadence(0.01, 0.01, 0.0, seed=1)
    run(cadence, 500, cost=cost)
    seen = [0.0] * 10
    for _ in range(2000):
        now = cadence.deadline + wait
        place = now / (rounds * 0.01) % 1.0
        seen[int(place * 10)] += cadence.tick(now)
        cadence.spent(cost, False, 1.0)
    assert [each / sum(seen) for each in seen] == pytest.approx([0.1] * 10, abs=0.03)


def test_ticks_that_fall_out_are_counted_and_not_made_up_for():
    cadence = Cadence(0.01, 0.5, 0.0, spread=0.0)
    assert cadence.tick(0.0451) == 4, "its own, and those that were due at 0.02, 0.03 and 0.04 as well"
    assert (cadence.ticks, cadence.missed) == (1, 3)
    assert cadence.late == cadence.late_max == pytest.approx(0.0351)
    assert cadence.deadline == pytest.approx(0.05)
    assert cadence.tick(cadence.deadline) == 1
    assert (cadence.ticks, cadence.missed) == (2, 3)


def test_long_steps_leave_nothing_over_that_stops_short_ones():
    """After a calm time deadlines may be far from their mean; still each comes after the one before."""
    for seed in range(20):
        cadence = Cadence(0.01, 0.5, 0.0, seed=seed)
        run(cadence, 100, idle=True)
        for _ in range(200):
            before = cadence.deadline
            cadence.spent(0.0, False, 1.0)
            assert cadence.tick(before) <= 5
            assert cadence.deadline > before + 0.004
        assert cadence.missed == 0


@pytest.mark.parametrize(("cost", "interval"), [(50e-6, 0.01), (124e-6, 0.0124), (1e-3, 0.1), (0.5, WIDEST)])
def test_the_interval_keeps_the_cost_within_the_budget(cost, interval):
    cadence = Cadence(0.01, 0.01, 0.0, seed=1)
    run(cadence, 500, cost=cost)
    assert cadence.interval == pytest.approx(interval, rel=0.01)
    start = cadence.deadline
    points = run(cadence, 100, cost=cost)
    assert (cadence.deadline - start) / 100 == pytest.approx(interval, rel=0.02)
    assert sum(points) == pytest.approx((cadence.deadline - start) / 0.01, rel=0.02), "every count is a hundredth"
    run(cadence, 500, cost=10e-6)
    assert cadence.interval == pytest.approx(0.01), "and comes back when ticks are cheap again"
    assert cadence.missed == 0


@pytest.mark.parametrize(("share", "interval"), [(4.0, 0.0124), (1.0, 0.0124), (0.5, 0.0248), (0.01, 0.062)])
def test_a_program_that_uses_less_of_a_processor_is_looked_at_less_often(share, interval):
    cadence = Cadence(0.01, 0.01, 0.0)
    for _ in range(500):
        cadence.tick(cadence.deadline)
        cadence.spent(124e-6, False, share)
    assert cadence.interval == pytest.approx(interval, rel=0.01)


def test_one_dear_tick_does_not_blind_the_sampler():
    cadence = Cadence(0.01, 0.01, 0.0)
    cadence.spent(0.002, False, 1.0)
    assert cadence.interval <= 0.02


def test_where_nothing_goes_on_ticks_come_more_seldom_and_count_as_much():
    cadence = Cadence(0.01, 0.5, 0.0, spread=0.0)
    assert run(cadence, 10, idle=True) == [1] * 10
    run(cadence, 30, idle=True)
    assert cadence.interval == pytest.approx(0.05)
    start = cadence.deadline
    assert run(cadence, 10, idle=True) == [5] * 10
    assert cadence.deadline - start == pytest.approx(0.5, abs=0.05)
    run(cadence, 2)
    assert run(cadence, 5) == [1] * 5
    assert cadence.missed == 0


@pytest.mark.parametrize("seed", range(5))
def test_counts_add_up_to_the_time_whatever_happens(seed):
    rng = random.Random(seed)
    cadence = Cadence(0.01, 0.01, 0.0)
    now, points = 0.0, 0
    for _ in range(3000):
        now = max(now, cadence.deadline) + rng.choice([0.0, 0.0, 1e-4, 0.004, 0.0099, 0.05, 0.7])
        assert cadence.delay(now) <= 0
        points += cadence.tick(now)
        assert cadence.deadline > now
        cadence.spent(rng.choice([1e-5, 1e-4, 1e-3]), rng.random() < 0.7, 1.0)
        now += rng.choice([0.0, 1e-3, 0.02])
    assert points * 0.01 == pytest.approx(now, abs=1.0)
    assert points * 0.01 <= now + 1.0, "no more than the step that is under way"


def test_a_pause_is_nobodys_lateness():
    cadence = Cadence(0.01, 0.5, 0.0)
    cadence.restart(100.0)
    assert cadence.tick(max(100.0, cadence.deadline)) == 1
    assert cadence.missed == 0
    assert cadence.late == pytest.approx(0.0)


def test_whoever_rides_on_the_ticks_may_ask_for_more_than_the_budget_gives():
    cadence = Cadence(0.01, 0.001, 0.0)
    cadence.widest = 0.08
    for _ in range(1000):
        cadence.tick(cadence.deadline)
        cadence.spent(0.001, True, 1.0)
    assert cadence.interval == pytest.approx(0.08)


@pytest.mark.parametrize(("interval", "budget"), [(0, 0.1), (-1, 0.1), (2, 0.1), (0.01, 0), (0.01, 1.5)])
def test_settings_without_sense_are_refused(interval, budget):
    with pytest.raises(ValueError, match="is not between"):
        Cadence(interval, budget, 0.0)


# ---------------------------------------------------------------------- what others lose


def test_ticks_that_find_the_gil_free_take_nothing_from_others():
    handover = Handover()
    assert [handover.tick(waited, 0.005) for waited in (0.0, 0.0001, 0.0049)] == [0.0] * 3
    assert (handover.number, handover.seconds) == (0, 0.0)


@pytest.mark.parametrize("rounds", [1, 4])
@pytest.mark.parametrize("price", [40e-6, 100e-6, 220e-6])
def test_the_price_is_what_the_wait_leaves_beyond_the_switch_intervals(price, rounds):
    rng, handover = random.Random(1), Handover()
    for _ in range(1000):
        disturbed = rng.random() < 0.5
        handover.tick(
            rounds * 0.005 + (rng.uniform(price, 0.004) if disturbed else price * rng.uniform(0.9, 1.1)), 0.005
        )
    assert handover.price == pytest.approx(price, rel=0.2)
    assert handover.number == 1000


def test_a_machine_without_a_free_processor_does_not_stop_the_sampling():
    handover = Handover()
    for _ in range(1000):
        handover.tick(0.0545, 0.005)
    assert handover.price < 0.001
    assert handover.seconds < 1.0
