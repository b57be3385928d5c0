"""Numbered rings of columns: the last rows of something, without an object per row.

A reader asks for rows since a number and is told how many of these are gone.

Contents: Column, Ring, table.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

__all__ = ["Column", "Ring", "table"]

#: Rows of a block. Old rows leave a ring block by block, so this is also how many more than asked it may hold.
_BLOCK = 4096

_Name = TypeVar("_Name", bound=Hashable)


class Column(NamedTuple):
    """One column of a ring: an array type code, or ``O`` for a list of objects, and how many values make a row."""

    code: str
    width: int = 1


class Ring:
    """The last ``length`` rows of some columns, numbered from 0 in the order they came.

    Not safe for several threads.
    """

    __slots__ = ("_blocks", "_columns", "length", "next")

    def __init__(self, columns: Sequence[Column], length: int) -> None:
        self._columns = tuple(columns)
        self._blocks: deque[tuple[int, list[Any]]] = deque()  # number of the first row, columns
        self.length = length
        self.next = 0

    @property
    def oldest(self) -> int:
        """Number of the oldest row that can still be read."""
        return max(0, self.next - self.length)

    def extend(self, columns: Sequence[Any], rows: int) -> None:
        """Append ``rows`` rows, given as one sequence per column."""
        blocks = self._blocks
        if not blocks or self.next - blocks[-1][0] >= _BLOCK:
            if blocks:
                _seal(blocks[-1][1])
            blocks.append((self.next, [[] if column.code == "O" else array(column.code) for column in self._columns]))
        for kept, new in zip(blocks[-1][1], columns, strict=True):
            if type(new) is array and new.typecode != kept.typecode:
                new = new.tolist()  # an array takes only its own kind, but any list
            kept.extend(new)
        self.next += rows
        while len(blocks) > 1 and blocks[1][0] <= self.oldest:
            blocks.popleft()

    def read(self, number: int, limit: int) -> tuple[list[Any], int, int]:
        """Up to ``limit`` rows from ``number`` on: their columns, how many are gone, and the number to go on with."""
        begin = min(max(number, self.oldest), self.next)
        missed = max(0, begin - number)
        end = min(begin + limit, self.next)
        result: list[Any] = [[] if column.code == "O" else array(column.code) for column in self._columns]
        for position, (first, columns) in enumerate(self._blocks):
            after = self._blocks[position + 1][0] if position + 1 < len(self._blocks) else self.next
            if first >= end or after <= begin:
                continue
            low, high = max(begin, first) - first, min(end, after) - first
            for out, kept, column in zip(result, columns, self._columns, strict=True):
                out.extend(kept[low * column.width : high * column.width])
        return result, missed, end


def _seal(columns: list[Any]) -> None:
    """A block is full: the collector goes through lists each time, but lets go of plain values in a tuple for good."""
    columns[:] = [tuple(column) if type(column) is list else column for column in columns]


def table(names: Iterable[_Name]) -> tuple[list[_Name], array[int]]:
    """The distinct names, and per name its index among them."""
    index: dict[_Name, int] = {}
    rows = array("i", [index.setdefault(name, len(index)) for name in names])
    return list(index), rows
