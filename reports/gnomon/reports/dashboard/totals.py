"""Sums over runs by name that can be added, subtracted, and cut in time without losing a tick.

Contents: AMOUNTS, Sums, sums_of, sums_of_columns, Gap, Gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gnomon.reports.collect.measurements import all_ticks, ticks, typed
from gnomon.reports.records import Totals

__all__ = ["AMOUNTS", "Gap", "Gaps", "Sums", "sums_of", "sums_of_columns"]

#: What is summed: the fields of ``Totals`` behind the name.
AMOUNTS = Totals._fields[1:]

#: Prefixes that a gap tells apart, and the name of the rest (which is also the scheduler's).
_NAMES = 2_000
_OTHER = "(other prefixes)"

_NOTHING = (0,) * len(AMOUNTS)


class Sums(dict[Any, tuple[int, ...]]):
    """Amounts (see ``AMOUNTS``) by prefix or worker id."""

    def grow(self, name: Any, amounts: Sequence[int]) -> None:
        """Add amounts under a name."""
        self[name] = tuple(map(sum, zip(self.get(name, _NOTHING), amounts, strict=True)))

    def merge(self, other: Mapping[Any, Sequence[int]]) -> None:
        """Add all of another's."""
        for name, amounts in other.items():
            self.grow(name, amounts)

    def minus(self, *others: Mapping[Any, Sequence[int]]) -> Sums:
        """What is left when others are taken away; never negative, and without names of which no run is left."""
        left = Sums()
        for name, amounts in self.items():
            rest = list(amounts)
            for other in others:
                for at, amount in enumerate(other.get(name, _NOTHING)):
                    rest[at] -= amount
            if rest[0] > 0:
                left[name] = tuple([max(0, amount) for amount in rest])
        return left

    def folded(self, most: int, other: Any) -> Sums:
        """The ``most`` names with the most tasks; the rest under ``other``."""
        if len(self) <= most:
            return self
        names = sorted(self, key=lambda name: -self[name][0])
        folded = Sums({name: self[name] for name in names[:most]})
        for name in names[most:]:
            folded.grow(other, self[name])
        return folded

    def totals(self) -> list[Totals]:
        """As rows of a recording, the most tasks first."""
        return sorted((Totals(name, *amounts) for name, amounts in self.items()), key=lambda row: -row.tasks)


def sums_of(rows: Iterable[Sequence[Any]], processor: Iterable[Sequence[Any]]) -> Sums:
    """The scheduler's rows of totals, with their time on the processor."""
    cpus = {row[0]: (ticks(row[1]), ticks(row[2])) for row in processor}
    sums = Sums()
    for name, tasks, erred, nbytes, decode, compute, encode in rows:
        sums[name] = (tasks, erred, nbytes, ticks(decode), ticks(compute), ticks(encode), *cpus.get(name, (0, 0)))
    return sums


def sums_of_columns(columns: Mapping[str, bytes], byteorder: str) -> Sums:
    """The scheduler's columns of totals (see ``gnomon.runtime.scheduler.totals``)."""
    import numpy

    names = typed("q", columns["names"], byteorder)
    whole = [typed("q", columns[name], byteorder) for name in ("count", "erred", "nbytes")]
    seconds = ("decode", "compute", "encode", "cpu", "measured")
    rest = [all_ticks(numpy.asarray(typed("d", columns[name], byteorder))).tolist() for name in seconds]
    return Sums(zip(names, zip(*whole, *rest, strict=True), strict=True))


class Gap(NamedTuple):
    """A time (in ticks) of which runs are known by their sums alone."""

    start: int
    stop: int
    prefixes: Sums
    workers: Sums

    @property
    def rows(self) -> int:
        """Runs without details."""
        return sum(amounts[0] for amounts in self.prefixes.values())

    def share(self, low: int, high: int) -> tuple[Sums, Sums]:
        """What of it falls into a window, as if it were spread evenly; the shares of adjoining windows sum to all."""
        length = max(1, self.stop - self.start)
        begin, end = max(0, min(low - self.start, length)), max(0, min(high - self.start, length))
        if begin >= end:
            return Sums(), Sums()
        if (begin, end) == (0, length):
            return self.prefixes, self.workers
        return _cut(self.prefixes, begin, end, length), _cut(self.workers, begin, end, length)


def _cut(sums: Sums, begin: int, end: int, length: int) -> Sums:
    part = Sums()
    for name, amounts in sums.items():
        cut = tuple([amount * end // length - amount * begin // length for amount in amounts])
        if any(cut):
            part[name] = cut
    return part


class Gaps:
    """All gaps, oldest first; the oldest grow together when there are more than ``most``.

    ``pending`` is one more, of runs whose rows are still to come: shared out like the others, and not among them.
    """

    def __init__(self, most: int = 200) -> None:
        self.pending: Gap | None = None
        self._most = most
        self._all: list[Gap] = []

    def __iter__(self) -> Iterator[Gap]:
        """The gaps."""
        return iter(self._all)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._all)

    def add(self, gap: Gap) -> None:
        """Add a gap; one that overlaps the last becomes part of it."""
        if not gap.rows:
            return
        self._all.append(gap._replace(prefixes=gap.prefixes.folded(_NAMES, _OTHER)))
        self._all.sort(key=lambda each: each.start)
        while len(self._all) > self._most:
            first, second, *rest = self._all
            joined = _joined(first, second)
            self._all = [joined._replace(prefixes=joined.prefixes.folded(_NAMES, _OTHER)), *rest]

    def share(self, low: int, high: int) -> tuple[Sums, Sums]:
        """What falls into a window, by prefix and by worker."""
        prefixes, workers = Sums(), Sums()
        for gap in self._all if self.pending is None else (*self._all, self.pending):
            if gap.start < high and gap.stop > low:
                of_prefixes, of_workers = gap.share(low, high)
                prefixes.merge(of_prefixes)
                workers.merge(of_workers)
        return prefixes, workers


def _joined(first: Gap, second: Gap) -> Gap:
    joined = Gap(min(first.start, second.start), max(first.stop, second.stop), Sums(), Sums())
    for gap in (first, second):
        joined.prefixes.merge(gap.prefixes)
        joined.workers.merge(gap.workers)
    return joined
