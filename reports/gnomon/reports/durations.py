"""How long the tasks of a prefix took: count, mean, quantiles and the slowest, from the runs with details.

Contents: Durations, durations, slowest.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Sequence
from typing import NamedTuple

from gnomon.reports.recording import Recording

__all__ = ["Durations", "durations", "slowest"]


class Durations(NamedTuple):
    """Computing times of one prefix in ticks, of the ``rows`` runs whose details are known."""

    rows: int
    mean: int
    median: int
    p99: int
    most: int


def durations(recording: Recording) -> dict[str, Durations]:
    """The durations by prefix."""
    runs = recording.runs
    columns: list[array[int]] = [array("q") for _ in runs.prefix_names]
    for prefix, ticks in zip(runs.prefixes, runs.computes, strict=True):
        columns[prefix].append(ticks)
    return {name: _of(sorted(column)) for name, column in zip(runs.prefix_names, columns, strict=True) if column}


def slowest(recording: Recording, count: int) -> list[int]:
    """Rows of the runs that computed longest, longest first."""
    computes = recording.runs.computes
    return heapq.nlargest(count, range(len(computes)), key=computes.__getitem__)


def _of(values: Sequence[int]) -> Durations:
    last = len(values) - 1
    return Durations(
        rows=len(values),
        mean=sum(values) // len(values),
        median=values[last // 2],
        p99=values[-(-last * 99 // 100)],
        most=values[last],
    )
