"""Columns of whole numbers summed by what a row belongs to.

Contents: sums_by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["sums_by"]


def sums_by(places: Any, count: int, columns: Sequence[Any]) -> Any:
    """Exact sums of columns of numpy by place (0 to ``count``; negative: of nothing): a row for each column."""
    import numpy

    there = places >= 0
    sums = numpy.zeros((len(columns), count), "q")
    for row, column in zip(sums, columns, strict=True):
        numpy.add.at(row, places[there], column[there])
    return sums
