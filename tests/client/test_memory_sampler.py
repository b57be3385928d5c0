"""Memory over a block, from the rows that processes tell of themselves."""

from __future__ import annotations

import sys
from array import array
from math import nan

import pytest

from gnomon.runtime import MemorySampler
from gnomon.runtime.client.records import Records
from gnomon.runtime.instruments.series import COLUMNS


class Told:
    """A client whose scheduler has these rows: time, worker, kind of process and resident bytes."""

    def __init__(self, rows):
        self._rows = rows

    def request(self, method):
        return {"number": (0, 0, 0)}

    def records_since(self, mark):
        values = [nbytes if name == "memory" else nan for *_, nbytes in self._rows for name in COLUMNS]
        series = {
            "columns": COLUMNS,
            "times": array("d", [row[0] for row in self._rows]).tobytes(),
            "workers": array("q", [row[1] for row in self._rows]).tobytes(),
            "processes": array("b", [row[2] for row in self._rows]).tobytes(),
            "values": array("d", values).tobytes(),
        }
        return Records([{"byteorder": sys.byteorder, "series": series}], {"workers": []})


ROWS = [
    (0.0, 1, 2, 100.0),
    (0.0, 0, 0, 7.0),
    (0.1, 2, 2, 50.0),
    (0.3, 1, 2, 120.0),
    (0.6, 2, 2, nan),
    (0.7, 2, 2, 60.0),
]


@pytest.mark.parametrize(
    ("interval", "pairs"),
    [
        (0, [(0.0, 100.0), (0.1, 150.0), (0.3, 170.0), (0.7, 180.0)]),
        (0.5, [(0.3, 170.0), (0.7, 180.0)]),
        ("10 s", [(0.7, 180.0)]),
    ],
)
def test_workers_are_added_up_once_per_interval(interval, pairs):
    sampler = MemorySampler()
    with sampler.sample("a", client=Told(ROWS), interval=interval):
        pass
    assert sampler.samples == {"a": pairs}


def test_only_resident_memory_is_recorded():
    with pytest.raises(ValueError, match="process"):
        MemorySampler().sample(client=Told([]), measure="managed")
