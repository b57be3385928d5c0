"""What a worker's idle threads waited for, as steps over time.

At any moment at most one thing is named, by this order: runs that the agent had not handed over, values being fetched,
tasks that the scheduler held or that were on their way. Where a recording does not tell of demand, fetches alone are
known. The page's script has the same steps.

Contents: NAMES, Waiting, waiting.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from gnomon.reports.recording import Recording
from gnomon.reports.records import Demand

__all__ = ["NAMES", "Waiting", "waiting"]

#: The parts of the account that steps name, in the order of ``Waiting.within``.
NAMES = ("handover", "transfer", "scheduler")

_NOTHING = 3

#: Positions of the counts that a sweep keeps: kinds of demand as in ``Demand``, then fetches and runs under way.
_QUEUED, _ASSIGNED, _FETCHING, _READY, _FETCHES, _RUNS = 1, 2, 3, 4, 5, 6


class Waiting:
    """Steps of one worker: from an edge on, one of ``NAMES`` or nothing. All columns are arrays of numpy."""

    __slots__ = ("_edges", "_kinds", "_sums")

    def __init__(self, times: Any, matters: Any, changes: Any) -> None:
        """Columns of events: time, what changes, and by how much (demand: 1 or -1 as it comes and goes)."""
        import numpy

        order = numpy.argsort(times, kind="stable")
        times, matters, changes = times[order], matters[order], changes[order]
        last = numpy.append(times[1:] != times[:-1], True)[: len(times)]  # of the events at one time
        counts = {
            what: numpy.cumsum(numpy.where(matters == what, changes, 0))[last] for what in range(_QUEUED, _RUNS + 1)
        }
        self._edges = times[last]
        self._kinds = numpy.select(
            [
                counts[_READY] > 0,
                (counts[_FETCHING] > 0) | (counts[_FETCHES] > 0),
                (counts[_QUEUED] > 0) | ((counts[_ASSIGNED] > 0) & (counts[_RUNS] <= 0)),
            ],
            [0, 1, 2],
            _NOTHING,
        )
        lengths = numpy.diff(self._edges)
        self._sums = [
            numpy.append(0, numpy.cumsum(numpy.where(self._kinds[:-1] == kind, lengths, 0)))
            for kind in range(len(NAMES))
        ]

    def within(self, begins: Any, ends: Any) -> list[Any]:
        """Ticks between begins and ends in which each of ``NAMES`` was waited for: a column for each."""
        import numpy

        if not len(self._edges):
            return [numpy.zeros(len(begins), "q") for _ in NAMES]
        return [
            numpy.where(ends > begins, last - first, 0)
            for first, last in zip(self._until(begins), self._until(ends), strict=True)
        ]

    def _until(self, times: Any) -> list[Any]:
        import numpy

        at = numpy.searchsorted(self._edges, times, "right") - 1
        inside = times - self._edges[at]
        return [
            numpy.where(at < 0, 0, sums[at] + numpy.where(self._kinds[at] == kind, inside, 0))
            for kind, sums in enumerate(self._sums)
        ]


def waiting(recording: Recording) -> list[Waiting]:
    """The steps of each worker."""
    import numpy

    transfers, runs, demand = recording.transfers, recording.runs, recording.demand
    events: list[tuple[Any, Any, Any, int]] = []  # owners, times, changes, what
    tos, begins, lengths = (numpy.asarray(c) for c in (transfers.tos, transfers.begins, transfers.lengths))
    there = (tos >= 0) & (lengths > 0)
    events += _during(tos[there], begins[there], (begins + lengths)[there], _FETCHES)
    if demand.known:
        owners, begins = numpy.asarray(runs.workers), numpy.asarray(runs.begins)
        parts = (numpy.asarray(column) for column in (runs.decodes, runs.computes, runs.encodes))
        there = owners >= 0
        events += _during(owners[there], begins[there], (begins + sum(parts))[there], _RUNS)
        events += _changes(demand)
    owners = numpy.concatenate([each[0] for each in events])
    times = numpy.concatenate([each[1] for each in events])
    changes = numpy.concatenate([each[2] for each in events])
    matters = numpy.concatenate([numpy.full(len(each[0]), each[3]) for each in events])
    order = numpy.argsort(owners, kind="stable")
    edges = numpy.searchsorted(owners[order], range(-1, len(recording.workers) + 1))
    of_all = order[: edges[1]]
    return [
        Waiting(times[mine], matters[mine], changes[mine])
        for mine in (numpy.append(of_all, order[low:high]) for low, high in pairwise(edges[1:]))
    ]


def _during(owners: Any, begins: Any, ends: Any, what: int) -> list[tuple[Any, Any, Any, int]]:
    import numpy

    ones = numpy.ones(len(owners), "q")
    return [(owners, begins, ones, what), (owners, ends, -ones, what)]


def _changes(demand: Demand) -> list[tuple[Any, Any, Any, int]]:
    """Events of demand, by time: a worker's clock may have been corrected in between. What is not new is no event."""
    import numpy

    times, workers, kinds, values = (
        numpy.asarray(column) for column in (demand.times, demand.workers, demand.kinds, demand.values)
    )
    result = []
    for kind in (_QUEUED, _ASSIGNED, _FETCHING, _READY):
        mine = numpy.flatnonzero(kinds == kind)
        order = mine[numpy.lexsort((times[mine], workers[mine]))]
        owners, state = workers[order], values[order]
        was = numpy.where(numpy.append(True, owners[1:] != owners[:-1])[: len(owners)], 0, numpy.append(0, state)[:-1])
        new = (state != was) & (owners >= -1)
        result.append((owners[new], times[order][new], numpy.where(state[new] != 0, 1, -1), kind))
    return result
