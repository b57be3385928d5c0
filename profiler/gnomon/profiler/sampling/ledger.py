"""What the threads' regions added up to since somebody last asked."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from gnomon.profiler.marks import regions
from gnomon.profiler.marks.regions import Books
from gnomon.profiler.sampling.history import RegionTotals

__all__ = ["Ledger"]

_Row = tuple[int, float, float]


class Ledger:
    """Remembers what each thread's books said last. ``number_of``: a thread's number by its ident, if it has one."""

    def __init__(self, number_of: Callable[[int], int | None]) -> None:
        self._number_of = number_of
        self._read: dict[int, tuple[Books, dict[int, _Row]]] = {}  # by id of the books

    def take(self) -> RegionTotals:
        """What was added since the last ``take``; open regions count up to now."""
        totals, self._read = self._totals()
        return totals

    def peek(self) -> RegionTotals:
        """The same, but the next ``take`` will count it again."""
        return self._totals()[0]

    def _totals(self) -> tuple[RegionTotals, dict[int, tuple[Books, dict[int, _Row]]]]:
        now = perf_counter()
        totals: RegionTotals = {}
        read: dict[int, tuple[Books, dict[int, _Row]]] = {}
        for ident, books in [*regions.by_thread.copy().items(), *regions.ended()]:
            rows = {slot: (count, seconds, own) for slot, count, seconds, own in regions.rows(books, now)}
            before = self._read.get(id(books), (books, {}))[1]
            read[id(books)] = (books, rows)
            number = self._number_of(ident)
            if number is None:
                continue
            for slot, (count, seconds, own) in rows.items():
                old = before.get(slot, (0, 0.0, 0.0))
                if (count, seconds, own) != old:
                    sums = totals.get((number, slot), (0, 0.0, 0.0))
                    totals[number, slot] = (
                        sums[0] + count - old[0],
                        sums[1] + seconds - old[1],
                        sums[2] + own - old[2],
                    )
        return totals, read
