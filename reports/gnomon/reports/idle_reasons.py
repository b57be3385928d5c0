"""What workers' idle threads waited for.

At any moment at most one thing is named, by this order: runs on the worker that no thread had begun, values being
fetched, tasks that the scheduler held or that were on their way. Where a recording does not tell of demand, fetches
alone are known. The page's script names the same.

Contents: NAMES, name_gaps.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from gnomon.reports.recording import Recording
from gnomon.reports.records import Demand
from gnomon.runtime.instruments.demand import ASSIGNED, FETCHING, QUEUED, READY

__all__ = ["NAMES", "name_gaps"]

#: The parts of the account that gaps are named by, in the order of the columns that ``name_gaps`` gives.
NAMES = ("handover", "transfer", "scheduler")

_NOTHING = 3

#: What is counted beside kinds of demand: fetches and runs under way.
_FETCHES, _RUNS = 5, 6

#: Events of workers that are looked at together. What holds for the whole cluster is an event of each of them.
_TOGETHER = 1_000_000


class _Events(NamedTuple):
    """Columns: whose (-1: the whole cluster's), when, of what, and by how much that changes."""

    owners: Any
    times: Any
    kinds: Any
    changes: Any

    def of(self, owners: Any, rows: Any) -> _Events:
        """Some of them, with other owners."""
        return _Events(owners, self.times[rows], self.kinds[rows], self.changes[rows])


def name_gaps(recording: Recording, workers: Any, begins: Any, ends: Any) -> Any:
    """Ticks of gaps in which each of ``NAMES`` was waited for, a row for each; gaps by worker, begin and end."""
    import numpy

    count, events = len(recording.workers), _all_events(recording)
    order = numpy.argsort(events.owners, kind="stable")
    edges = numpy.searchsorted(events.owners[order], numpy.arange(count + 1))
    of_all, by_worker = order[: edges[0]], numpy.argsort(workers, kind="stable")
    gap_edges = numpy.searchsorted(workers[by_worker], numpy.arange(count + 1))
    result = numpy.zeros((len(NAMES), len(workers)), "q")
    for first, after in _blocks(numpy.diff(edges) + len(of_all) + 1):
        own, here = order[edges[first] : edges[after]], numpy.arange(after - first)
        rows = numpy.append(own, numpy.tile(of_all, after - first))
        owners = numpy.append(events.owners[own] - first, numpy.repeat(here, len(of_all)))
        steps = _Steps(after - first, recording.duration, events.of(owners, rows))
        gaps = by_worker[gap_edges[first] : gap_edges[after]]
        result[:, gaps] = steps.within(workers[gaps] - first, begins[gaps], ends[gaps])
    return result


def _blocks(sizes: Any) -> Iterator[tuple[int, int]]:
    """First and after of consecutive workers whose sizes are, together, not much more than ``_TOGETHER``."""
    import numpy

    numbers = numpy.cumsum(sizes) // _TOGETHER
    edges = numpy.flatnonzero(numpy.append(True, numbers[1:] != numbers[:-1])[: len(sizes)])
    return pairwise([*edges.tolist(), len(sizes)])


class _Steps:
    """From an edge on, one of ``NAMES`` or nothing. The times of all workers lie one behind the other on one axis."""

    __slots__ = ("_duration", "_edges", "_kinds", "_sums")

    def __init__(self, workers: int, duration: int, events: _Events) -> None:
        import numpy

        self._duration = duration
        here = numpy.arange(workers)
        # Every worker's times begin with an edge at which nothing changes: so there is one before any time.
        places = numpy.append(self._place(here, -1), self._place(events.owners, events.times))
        order = numpy.argsort(places, kind="stable")
        places = places[order]
        kinds = numpy.append(numpy.zeros(workers, "q"), events.kinds)[order]
        changes = numpy.append(numpy.zeros(workers, "q"), events.changes)[order]
        heads = numpy.searchsorted(places, self._place(here, -1))
        last = numpy.flatnonzero(numpy.append(places[1:] != places[:-1], True)[: len(places)])  # of those at one time
        head_of = heads[numpy.searchsorted(heads, last, "right") - 1]
        counts = {}
        for kind in (QUEUED, ASSIGNED, FETCHING, READY, _FETCHES, _RUNS):
            sums = numpy.append(0, numpy.cumsum(numpy.where(kinds == kind, changes, 0)))
            counts[kind] = sums[last + 1] - sums[head_of]
        self._edges = places[last]
        self._kinds = numpy.select(
            [
                counts[READY] > 0,
                (counts[FETCHING] > 0) | (counts[_FETCHES] > 0),
                (counts[QUEUED] > 0) | ((counts[ASSIGNED] > 0) & (counts[_RUNS] <= 0)),
            ],
            [0, 1, 2],
            _NOTHING,
        )
        lengths = numpy.diff(self._edges)
        self._sums = [
            numpy.append(0, numpy.cumsum(numpy.where(self._kinds[:-1] == kind, lengths, 0)))
            for kind in range(len(NAMES))
        ]

    def _place(self, workers: Any, times: Any) -> Any:
        """Where times of workers lie on the axis. Those outside of the recording come right before it or behind it."""
        import numpy

        return workers * (self._duration + 3) + numpy.clip(times, -1, self._duration + 1) + 1

    def within(self, workers: Any, begins: Any, ends: Any) -> list[Any]:
        """Ticks between begins and ends in which each of ``NAMES`` was waited for: a column for each."""
        import numpy

        firsts, lasts = self._until(self._place(workers, begins)), self._until(self._place(workers, ends))
        return [numpy.where(ends > begins, last - first, 0) for first, last in zip(firsts, lasts, strict=True)]

    def _until(self, places: Any) -> list[Any]:
        import numpy

        at = numpy.searchsorted(self._edges, places, "right") - 1
        inside = places - self._edges[at]
        return [sums[at] + numpy.where(self._kinds[at] == kind, inside, 0) for kind, sums in enumerate(self._sums)]


def _all_events(recording: Recording) -> _Events:
    import numpy

    transfers, runs, demand = recording.transfers, recording.runs, recording.demand
    tos, begins, lengths = (numpy.asarray(c) for c in (transfers.tos, transfers.begins, transfers.lengths))
    there = (tos >= 0) & (lengths > 0)
    events = [*_during(tos[there], begins[there], (begins + lengths)[there], _FETCHES)]
    if demand.known:
        owners, begins, ends = (numpy.asarray(column) for column in (runs.workers, runs.begins, runs.ends()))
        there = owners >= 0
        events += _during(owners[there], begins[there], ends[there], _RUNS)
        events.append(_changes(demand))
    return _Events(*map(numpy.concatenate, zip(*events, strict=True)))


def _during(owners: Any, begins: Any, ends: Any, kind: int) -> tuple[_Events, _Events]:
    import numpy

    ones = numpy.ones(len(owners), "q")
    return _Events(owners, begins, kind * ones, ones), _Events(owners, ends, kind * ones, -ones)


def _changes(demand: Demand) -> _Events:
    """Demand as it comes and goes, by time: clocks may have been corrected in between. What is not new is no event."""
    import numpy

    times, workers, kinds, values = (
        numpy.asarray(column) for column in (demand.times, demand.workers, demand.kinds, demand.values)
    )
    order = numpy.lexsort((times, workers, kinds))
    times, owners, kinds, values = times[order], workers[order], kinds[order], values[order]
    first = numpy.append(True, (owners[1:] != owners[:-1]) | (kinds[1:] != kinds[:-1]))[: len(order)]
    was = numpy.where(first, 0, numpy.append(0, values)[: len(order)])
    new = (values != was) & (owners >= -1)
    return _Events(owners[new], times[new], kinds[new].astype("q"), numpy.where(values[new] != 0, 1, -1))
