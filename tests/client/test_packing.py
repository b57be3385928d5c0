"""Arguments, options and times as users write them."""

from __future__ import annotations

import datetime

import pytest

from gnomon.runtime.client.packing import options_of, seconds, worker_names
from gnomon.runtime.messages import NO_OPTIONS, TaskOptions


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1, 1.0),
        ("100 ms", 0.1),
        ("5s", 5.0),
        ("2 minutes", 120.0),
        ("1h", 3600.0),
        ("3", 3.0),
        (None, None),
        ("us", 1e-6),
    ],
)
def test_times(given, expected):
    assert seconds(given) == pytest.approx(expected)


def test_more_times():
    assert seconds(datetime.timedelta(minutes=1)) == 60
    for wrong in ("soon", "5 parsecs", "1 2"):
        with pytest.raises(ValueError, match=wrong):
            seconds(wrong)


def test_options():
    assert options_of() is NO_OPTIONS
    assert options_of(retries=3, workers=["a", 1]) == TaskOptions(retries=3, workers=("a", "1"))
    assert options_of(priority=2.0).priority == 2
    assert worker_names("tcp://h:1") == ("tcp://h:1",)
    for wrong in ({"priority": "x"}, {"retries": True}, {"workers": 1.5}, {"allow_other_workers": 2}):
        with pytest.raises((TypeError, ValueError)):
            options_of(**wrong)
