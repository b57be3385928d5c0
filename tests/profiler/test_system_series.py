"""The ring of measurements: windows by time and by number, what was overwritten counted."""

from __future__ import annotations

import json
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.profiler.series import Series


def filled(count, capacity=10):
    series = Series(("value",), capacity)
    for number in range(count):
        series.append(100.0 + number, float(number))
    return series


@given(st.integers(0, 60), st.integers(1, 20), st.integers(-5, 70))
def test_rows_since_a_number_are_all_or_counted_as_missed(count, capacity, number):
    series = filled(count, capacity)
    rows = series.since(number)
    wanted = list(range(max(number, 0), count))
    held = [each for each in wanted if each >= count - capacity]
    assert rows.columns["value"] == held
    assert rows.missed == len(wanted) - len(held)
    assert rows.next == count
    assert series.since(rows.next).columns["value"] == []


@given(st.integers(0, 60), st.integers(1, 20), st.floats(90, 170), st.floats(90, 170))
def test_windows_have_just_the_rows_within(count, capacity, start, stop):
    series = filled(count, capacity)
    held = range(max(count - capacity, 0), count)
    assert series.window(start, stop)["value"] == [float(n) for n in held if start <= 100 + n < stop]
    assert series.window(start)["value"] == [float(n) for n in held if start <= 100 + n]
    assert series.window(stop=stop)["value"] == [float(n) for n in held if 100 + n < stop]
    assert series.window()["time"] == [100.0 + n for n in held]


def test_the_last_row_and_the_length():
    assert filled(0).last() == {}
    assert filled(25).last() == {"time": 124.0, "value": 24.0}
    assert (len(filled(3)), len(filled(25))) == (3, 10)


def test_rows_are_plain():
    msgpack = pytest.importorskip("msgpack")
    window = filled(25).window()
    assert json.loads(json.dumps(window)) == window
    assert msgpack.unpackb(msgpack.packb(window)) == window


def test_wrong_rows_and_rings_are_refused():
    with pytest.raises(ValueError, match="2 values"):
        filled(0).append(1.0, 2.0, 3.0)
    with pytest.raises(ValueError, match="one row"):
        Series(("value",), 0)


def test_what_is_not_measured_is_kept_as_such():
    series = Series(("value",), 2)
    series.append(1.0, nan)
    assert series.last()["value"] != series.last()["value"]
