"""The whole run in a bounded number of bins: nothing is dropped, old and new alike get coarser as the run gets longer.

Contents: Bin, Ended, History.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gnomon.reports.records import TICKS

__all__ = ["Bin", "Ended", "History"]


class Bin(NamedTuple):
    """What happened between two scheduler times. Seconds; ``busy`` and ``capacity`` are of all threads together.

    ``missed``: runs that are known by their sums alone, spread evenly over the time they must have ended in.
    """

    start: float
    stop: float
    tasks: float
    erred: float
    busy: float
    nbytes: float
    capacity: float
    missed: float
    by_prefix: dict[str, float]


class Ended(NamedTuple):
    """Runs as columns of numpy. ``prefixes`` index ``names``; ``begins`` and ``ends``: ticks since the first bin."""

    names: Sequence[str]
    prefixes: Any
    begins: Any
    ends: Any
    nbytes: Any
    erred: Any


@dataclass(slots=True)
class _Cell:
    tasks: float = 0.0
    erred: float = 0.0
    busy: float = 0.0
    nbytes: float = 0.0
    capacity: float = 0.0
    missed: float = 0.0
    by_prefix: dict[str, float] = field(default_factory=dict)

    def add(self, other: _Cell) -> None:
        """Add another's amounts to these."""
        self.tasks += other.tasks
        self.erred += other.erred
        self.busy += other.busy
        self.nbytes += other.nbytes
        self.capacity += other.capacity
        self.missed += other.missed
        for name, seconds in other.by_prefix.items():
            self.by_prefix[name] = self.by_prefix.get(name, 0.0) + seconds


#: The prefix under which a bin keeps what it has no room for by name, and how many names it has room for.
_OTHER = "(other prefixes)"
_NAMES = 50


class History:
    """Bins from ``begin`` (scheduler time) on, ``width`` seconds each; never more than ``most``."""

    def __init__(self, begin: float, most: int = 1_200, width: float = 1.0) -> None:
        self.begin = begin
        self.width = width
        self._most = most - most % 2
        self._cells: list[_Cell] = []

    def add_runs(self, runs: Ended) -> None:
        """Add runs to the bins that they ended in, and their time to all bins that they lie in."""
        import numpy

        starts, stops = (numpy.maximum(0.0, times / TICKS) for times in (runs.begins, runs.ends))
        self._cell(float(stops.max(initial=0.0)))
        first, last = ((times / self.width).astype("q") for times in (starts, stops))
        # Most lie in one bin, as most others of their prefix that came with them.
        groups, group_of = numpy.unique(last * len(runs.names) + runs.prefixes, return_inverse=True)
        seconds = numpy.where(first == last, stops - starts, 0.0)
        columns = (seconds, numpy.ones(len(stops)), runs.erred, runs.nbytes)
        sums = [numpy.bincount(group_of, column, len(groups)).tolist() for column in columns]
        for group, busy, tasks, erred, nbytes in zip(groups.tolist(), *sums, strict=True):
            at, prefix = divmod(group, len(runs.names))
            cell = self._cells[at]
            cell.tasks += tasks
            cell.erred += erred
            cell.nbytes += nbytes
            _busy(cell, runs.names[prefix], busy)
        for row in numpy.flatnonzero(first != last).tolist():
            start, stop = float(starts[row]), float(stops[row])
            for cell, share in self._spread(start, stop):
                _busy(cell, runs.names[runs.prefixes[row]], share * (stop - start))

    def add_sums(self, low: int, high: int, prefixes: Mapping[str, tuple[int, ...]]) -> None:
        """Add runs without rows: sums by prefix of what ended between two times in ticks."""
        for cell, share in self._spread(max(0.0, low / TICKS), max(0.0, high / TICKS)):
            for prefix, (tasks, erred, nbytes, decode, compute, encode, *_) in prefixes.items():
                cell.tasks += share * tasks
                cell.missed += share * tasks
                cell.erred += share * erred
                cell.nbytes += share * nbytes
                _busy(cell, prefix, share * (decode + compute + encode) / TICKS)

    def add_capacity(self, start: float, stop: float, threads: int) -> None:
        """Threads that were there between two times in seconds since ``begin``."""
        for cell, share in self._spread(max(0.0, start), max(0.0, stop)):
            cell.capacity += share * threads * (stop - start)

    def bins(self, start: float | None = None, stop: float | None = None, most: int = 600) -> list[Bin]:
        """The bins of a window of scheduler time, joined until there are at most ``most``."""
        first = 0 if start is None else max(0, int((start - self.begin) / self.width))
        after = len(self._cells) if stop is None else min(len(self._cells), int((stop - self.begin) / self.width) + 1)
        step = max(1, -(-(after - first) // max(1, most)))
        result = []
        for at in range(first, after, step):
            joined = _Cell()
            for cell in self._cells[at : min(at + step, after)]:
                joined.add(cell)
            low, high = self.begin + at * self.width, self.begin + min(at + step, after) * self.width
            result.append(
                Bin(
                    low, high, joined.tasks, joined.erred, joined.busy, joined.nbytes, joined.capacity, joined.missed,
                    joined.by_prefix,
                )
            )  # fmt: skip
        return result

    def _cell(self, when: float) -> _Cell:
        """The bin of a time in seconds since ``begin``; bins are joined until it exists."""
        while when >= self._most * self.width:
            self._halve()
        at = int(when / self.width)
        while at >= len(self._cells):
            self._cells.append(_Cell())
        return self._cells[at]

    def _halve(self) -> None:
        for first, second in zip(self._cells[0::2], self._cells[1::2], strict=False):
            first.add(second)
        del self._cells[1::2]
        self.width *= 2

    def _spread(self, start: float, stop: float) -> Iterable[tuple[_Cell, float]]:
        """The bins that a time lies in, and the share of it in each; the shares sum to 1."""
        last = self._cell(stop)
        width = self.width
        first, after = int(start / width), int(stop / width)
        if first >= after:
            return [(last, 1.0)]
        length = stop - start
        found = []
        for at in range(first, after + 1):
            inside = min(stop, (at + 1) * width) - max(start, at * width)
            if inside > 0:
                found.append((self._cells[at], inside / length))
        return found


def _busy(cell: _Cell, prefix: str, seconds: float) -> None:
    cell.busy += seconds
    if prefix not in cell.by_prefix and len(cell.by_prefix) >= _NAMES:
        prefix = _OTHER
    cell.by_prefix[prefix] = cell.by_prefix.get(prefix, 0.0) + seconds
