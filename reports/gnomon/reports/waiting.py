"""What a worker's idle threads waited for, as steps over time.

At any moment at most one thing is named, by this order: runs that the agent had not handed over, values being fetched,
tasks that the scheduler held or that were on their way. Where a recording does not tell of demand, fetches alone are
known. The page's script has the same steps.

Contents: NAMES, Waiting, waiting.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable

from gnomon.reports.recording import Recording

__all__ = ["NAMES", "Waiting", "waiting"]

#: The parts of the account that steps name, in the order of ``Waiting.within``.
NAMES = ("handover", "transfer", "scheduler")

_NOTHING = 3
#: Positions of the counts that a sweep keeps: kinds of demand as in ``Demand``, then fetches and runs under way.
_QUEUED, _ASSIGNED, _FETCHING, _READY, _FETCHES, _RUNS = 1, 2, 3, 4, 5, 6


class Waiting:
    """Steps of one worker: from an edge on, one of ``NAMES`` or nothing."""

    __slots__ = ("_edges", "_kinds", "_sums")

    def __init__(self, changes: Iterable[tuple[int, int, int]]) -> None:
        """``changes`` are time, what changes, and by how much (demand: 1 or -1 as it comes and goes)."""
        self._edges: list[int] = []
        self._kinds: list[int] = []
        self._sums: tuple[list[int], ...] = ([], [], [], [])
        counts = [0] * 7
        for time, what, change in sorted(changes):
            counts[what] += change
            self._step(time, _kind(counts))

    def _step(self, time: int, kind: int) -> None:
        edges, kinds = self._edges, self._kinds
        if edges and edges[-1] == time:
            kinds[-1] = kind
            return
        if kinds and kinds[-1] == kind:
            return
        for number, sums in enumerate(self._sums):
            grown = time - edges[-1] if edges and kinds[-1] == number else 0
            sums.append((sums[-1] if sums else 0) + grown)
        edges.append(time)
        kinds.append(kind)

    def _until(self, time: int) -> tuple[int, int, int]:
        at = bisect_right(self._edges, time) - 1
        if at < 0:
            return 0, 0, 0
        sums = [sums[at] for sums in self._sums]
        sums[self._kinds[at]] += time - self._edges[at]
        return sums[0], sums[1], sums[2]

    def within(self, begin: int, end: int) -> tuple[int, int, int]:
        """Ticks between two times in which each of ``NAMES`` was waited for."""
        if not self._edges or end <= begin:
            return 0, 0, 0
        first, last = self._until(begin), self._until(end)
        return last[0] - first[0], last[1] - first[1], last[2] - first[2]


def _kind(counts: list[int]) -> int:
    if counts[_READY] > 0:
        return 0
    if counts[_FETCHING] > 0 or counts[_FETCHES] > 0:
        return 1
    if counts[_QUEUED] > 0 or (counts[_ASSIGNED] > 0 and counts[_RUNS] <= 0):
        return 2
    return _NOTHING


def waiting(recording: Recording) -> list[Waiting]:
    """The steps of each worker."""
    changes: list[list[tuple[int, int, int]]] = [[] for _ in recording.workers]
    transfers, runs, demand = recording.transfers, recording.runs, recording.demand
    for to, begin, length in zip(transfers.tos, transfers.begins, transfers.lengths, strict=True):
        if to >= 0 and length > 0:
            changes[to] += ((begin, _FETCHES, 1), (begin + length, _FETCHES, -1))
    if demand.known:
        for row, worker in enumerate(runs.workers):
            if worker >= 0:
                begin = runs.begins[row]
                length = runs.decodes[row] + runs.computes[row] + runs.encodes[row]
                changes[worker] += ((begin, _RUNS, 1), (begin + length, _RUNS, -1))
        state: dict[tuple[int, int], int] = {}
        for time, worker, kind, value in _changes(demand.times, demand.workers, demand.kinds, demand.values):
            if state.get((worker, kind), 0) == value or kind not in (_QUEUED, _ASSIGNED, _FETCHING, _READY):
                continue
            state[worker, kind] = value
            for each in changes if worker == -1 else changes[worker : worker + 1] if worker >= 0 else ():
                each.append((time, kind, 1 if value else -1))
    return [Waiting(each) for each in changes]


def _changes(
    times: array[int], workers: array[int], kinds: array[int], values: array[int]
) -> list[tuple[int, int, int, int]]:
    """Changes of demand by time; a worker's clock may have been corrected between two of them."""
    return sorted(zip(times, workers, kinds, values, strict=True), key=lambda change: change[0])
