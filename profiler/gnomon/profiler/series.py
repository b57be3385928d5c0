"""Measurements over time in a bounded ring: one array of doubles per column, the time first.

Rows are numbered from 0 for ever; the oldest are overwritten, and whoever asks for rows since a number is told how
many were lost to that. One thread appends, any thread reads.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

__all__ = ["Rows", "Series"]


class Rows(NamedTuple):
    """Part of a series as plain lists, ready for JSON or msgpack."""

    columns: dict[str, list[float]]
    missed: int  # rows asked for that had been overwritten
    next: int  # the number to ask from next time


class Series:
    """A ring of ``capacity`` rows with the columns "time" (seconds since the epoch) and those given."""

    def __init__(self, columns: Sequence[str], capacity: int) -> None:
        if capacity < 1:
            raise ValueError("a series needs room for one row at least")
        self.columns = ("time", *columns)
        self.capacity = capacity
        #: Rows appended so far, so the number of the next one.
        self.number = 0
        self._arrays = [array("d") for _ in self.columns]
        self._lock = Lock()

    def __len__(self) -> int:
        """Rows held."""
        return min(self.number, self.capacity)

    def append(self, time: float, *values: float) -> None:
        """Add a row: the time, and one value per column (NaN where nothing was measured)."""
        row = (time, *values)
        if len(row) != len(self.columns):
            raise ValueError(f"a row of this series has {len(self.columns)} values, not {len(row)}")
        with self._lock:
            if self.number < self.capacity:
                for column, value in zip(self._arrays, row, strict=True):
                    column.append(value)
            else:
                position = self.number % self.capacity
                for column, value in zip(self._arrays, row, strict=True):
                    column[position] = value
            self.number += 1

    def since(self, number: int = 0) -> Rows:
        """Rows from a number on, and how many of those are gone."""
        with self._lock:
            first = max(number, self.number - self.capacity, 0)
            return Rows(self._slice(first, self.number), max(first - max(number, 0), 0), self.number)

    def window(self, start: float | None = None, stop: float | None = None) -> dict[str, list[float]]:
        """Rows whose time is within ``start`` (included) and ``stop`` (excluded); None is open."""
        with self._lock:
            oldest = max(self.number - self.capacity, 0)
            first = oldest if start is None else self._find(start, oldest)
            end = self.number if stop is None else self._find(stop, oldest)
            return self._slice(first, max(first, end))

    def last(self) -> dict[str, float]:
        """The newest row; empty when there is none."""
        with self._lock:
            if not self.number:
                return {}
            position = (self.number - 1) % self.capacity
            return {name: column[position] for name, column in zip(self.columns, self._arrays, strict=True)}

    def _find(self, time: float, oldest: int) -> int:
        """Number of the first row that is not before a time (times never go back)."""
        low, high = oldest, self.number
        times = self._arrays[0]
        while low < high:
            middle = (low + high) // 2
            if times[middle % self.capacity] < time:
                low = middle + 1
            else:
                high = middle
        return low

    def _slice(self, first: int, end: int) -> dict[str, list[float]]:
        rows: dict[str, list[float]] = {}
        for name, column in zip(self.columns, self._arrays, strict=True):
            if first >= end:
                rows[name] = []
                continue
            low, high = first % self.capacity, (end - 1) % self.capacity + 1
            part = column[low:high] if low < high else column[low:] + column[:high]
            rows[name] = part.tolist()
        return rows
