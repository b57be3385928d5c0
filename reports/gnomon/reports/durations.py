"""How long the tasks of a prefix took: count, mean, quantiles and the slowest, from the runs with details.

Contents: Durations, durations, slowest.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

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
    import numpy

    runs = recording.runs
    prefixes, computes = numpy.asarray(runs.prefixes), numpy.asarray(runs.computes)
    order = numpy.lexsort((computes, prefixes))
    edges = numpy.searchsorted(prefixes[order], range(len(runs.prefix_names) + 1))
    columns = [computes[order[low:high]] for low, high in pairwise(edges)]
    return {name: _of(column) for name, column in zip(runs.prefix_names, columns, strict=True) if len(column)}


def slowest(recording: Recording, count: int) -> list[int]:
    """Rows of the runs that computed longest, longest first."""
    import numpy

    order: list[int] = numpy.argsort(-numpy.asarray(recording.runs.computes), kind="stable")[:count].tolist()
    return order


def _of(values: Any) -> Durations:
    """Of computing times in ascending order, a column of numpy."""
    last = len(values) - 1
    return Durations(
        rows=len(values),
        mean=int(values.sum()) // len(values),
        median=int(values[last // 2]),
        p99=int(values[-(-last * 99 // 100)]),
        most=int(values[last]),
    )
