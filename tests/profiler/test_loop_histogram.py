"""Distributions: quantiles are right within a bucket, sums exact, differences and copies consistent."""

from __future__ import annotations

import json
import random

import pytest

from gnomon.profiler.histogram import Histogram


def filled(values):
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    return histogram


def test_an_empty_one_is_zero():
    histogram = Histogram()
    assert (histogram.mean, histogram.quantile(0.5), histogram.largest, histogram.number) == (0.0, 0.0, 0.0, 0)


@pytest.mark.parametrize("share", [0.01, 0.25, 0.5, 0.9, 0.99])
def test_quantiles_are_within_five_percent(share):
    source = random.Random(7)
    values = sorted(source.lognormvariate(-6, 2) for _ in range(20_000))
    true = values[int(share * len(values)) - 1]
    assert filled(values).quantile(share) == pytest.approx(true, rel=0.055)


def test_sum_mean_and_largest_are_exact():
    histogram = filled([0.001, 0.002, 0.5])
    assert histogram.total == pytest.approx(0.503)
    assert histogram.mean == pytest.approx(0.503 / 3)
    assert histogram.quantile(1.0) == histogram.largest == 0.5


def test_values_beyond_the_range_are_counted_at_its_ends():
    histogram = filled([-1.0, 0.0, 1e-9, 1e9])
    assert histogram.number == 4
    assert histogram.largest == 1e9
    assert histogram.quantile(0.5) <= 1e-6
    assert histogram.above(100.0) == 1


def test_above_counts_longer_ones():
    assert filled([0.001] * 5 + [0.2] * 3).above(0.05) == 3


def test_what_came_since_a_copy_is_the_difference():
    histogram = filled([0.001, 1.0])
    before = histogram.copy()
    histogram.add(0.01)
    histogram.add(0.02)
    since = histogram.since(before)
    assert since.number == 2
    assert since.total == pytest.approx(0.03)
    assert since.largest == pytest.approx(0.02, rel=0.11)
    assert before.number == 2
    assert since.quantile(0.5) == pytest.approx(0.01, rel=0.06)


def test_merging_is_like_adding_all():
    one, other = filled([0.001, 0.3]), filled([0.02])
    one.merge(other)
    assert one.as_dict() == filled([0.001, 0.3, 0.02]).as_dict()


def test_it_survives_json_and_refuses_nonsense():
    histogram = filled([0.001, 0.002, 5.0])
    plain = json.loads(json.dumps(histogram.as_dict()))
    assert Histogram.from_dict(plain).as_dict() == histogram.as_dict()
    plain["buckets"] = [[10_000, 1]]
    with pytest.raises(ValueError, match="buckets"):
        Histogram.from_dict(plain)
