"""Rows that come in stretches, are looked up by time, and leave at the front: the index beside a table of columns.

A stretch is what one answer of the scheduler brought. Its rows are in no particular order, but it knows the earliest
and the latest time in it, so that a window is found without a look at every row.

Contents: Stretch, Stretches, take.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

__all__ = ["Stretch", "Stretches", "take"]


class Stretch(NamedTuple):
    """Rows ``first`` up to ``after`` (counted from the first there ever was), all within ``low`` to ``high``."""

    first: int
    after: int
    low: int
    high: int


class Stretches:
    """The stretches of one table; ``dropped`` rows have left it at the front."""

    def __init__(self) -> None:
        self._all: deque[Stretch] = deque()
        self.dropped = 0
        self.after = 0

    def __len__(self) -> int:
        """Rows in the table."""
        return self.after - self.dropped

    def __iter__(self) -> Iterator[Stretch]:
        """The stretches, in the order they came."""
        return iter(self._all)

    def append(self, rows: int, low: int, high: int) -> None:
        """Rows were appended to the table."""
        if rows:
            self._all.append(Stretch(self.after, self.after + rows, low, high))
            self.after += rows

    def drop(self, limit: int) -> list[Stretch]:
        """Forget whole stretches at the front until at most ``limit`` rows are left (but never the last one)."""
        gone = []
        while len(self) > limit and len(self._all) > 1:
            gone.append(self._all.popleft())
            self.dropped = gone[-1].after
        return gone

    def within(
        self, low: int, high: int, inside: Callable[[int], bool] | None = None
    ) -> list[tuple[int, int] | list[int]]:
        """Where in the table the rows of a window stand: pairs of first and after, or lists of rows.

        ``inside`` decides on a row of a stretch that lies partly in the window; without it all of them are taken.
        """
        parts: list[tuple[int, int] | list[int]] = []
        for stretch in self._all:
            if stretch.low >= high or stretch.high <= low:
                continue
            first, after = stretch.first - self.dropped, stretch.after - self.dropped
            if inside is None or (stretch.low >= low and stretch.high <= high):
                parts.append((first, after))
            else:
                parts.append([row for row in range(first, after) if inside(row)])
        return parts


def take(column: Any, parts: Sequence[tuple[int, int] | list[int]]) -> Any:
    """A new column of the same kind, of the rows that ``Stretches.within`` named."""
    result = array(column.typecode) if isinstance(column, array) else []
    for part in parts:
        if isinstance(part, tuple):
            result.extend(column[part[0] : part[1]])
        elif column:
            result.extend([column[row] for row in part])
    return result
