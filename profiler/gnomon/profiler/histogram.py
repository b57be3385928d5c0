"""Distributions of durations: counts in logarithmic buckets, a tenth apart from a microsecond to a quarter of an hour.

Adding costs a logarithm and two additions; a quantile is right within 5 %. Two histograms of the same kind can be
added, and an earlier copy subtracted from a later one to see what came between. No locking: one thread adds.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from math import exp, log
from typing import Any

__all__ = ["Histogram"]

_SMALLEST = 1e-6  # seconds; everything below is in bucket 0
_SCALE = 1 / log(1.1)
_BUCKETS = int(log(1000.0 / _SMALLEST) * _SCALE) + 2
_OFFSET = -log(_SMALLEST) * _SCALE + 1


class Histogram:
    """How often which duration was seen. All durations in seconds."""

    __slots__ = ("counts", "largest", "number", "total")

    def __init__(self) -> None:
        self.counts = array("Q", bytes(8 * _BUCKETS))
        self.number = 0
        self.total = 0.0
        self.largest = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration; negative ones count as nothing."""
        if seconds <= _SMALLEST:
            index = 0
            seconds = max(seconds, 0.0)
        else:
            index = min(int(log(seconds) * _SCALE + _OFFSET), _BUCKETS - 1)
        self.counts[index] += 1
        self.number += 1
        self.total += seconds
        if seconds > self.largest:
            self.largest = seconds

    @property
    def mean(self) -> float:
        """Mean duration, exact; 0 when empty."""
        return self.total / self.number if self.number else 0.0

    def quantile(self, share: float) -> float:
        """The duration that ``share`` (0 to 1) of all are not above; 0 when empty."""
        if not self.number:
            return 0.0
        if share >= 1.0:
            return self.largest
        wanted = share * self.number
        seen = 0
        for index, count in enumerate(self.counts):
            seen += count
            if count and seen >= wanted:
                return min(_middle(index), self.largest)
        return self.largest

    def above(self, seconds: float) -> int:
        """How many were longer, to the precision of a bucket."""
        first = 0 if seconds <= _SMALLEST else min(int(log(seconds) * _SCALE + _OFFSET) + 1, _BUCKETS)
        return sum(self.counts[first:])

    def copy(self) -> Histogram:
        """One that no longer changes with this."""
        other = Histogram()
        other.counts = self.counts[:]
        other.number, other.total, other.largest = self.number, self.total, self.largest
        return other

    def merge(self, other: Histogram) -> None:
        """Add everything that another one counted."""
        for index, count in enumerate(other.counts):
            if count:
                self.counts[index] += count
        self.number += other.number
        self.total += other.total
        self.largest = max(self.largest, other.largest)

    def since(self, earlier: Histogram) -> Histogram:
        """What was added after ``earlier`` was copied from this. Its largest is known to a bucket only."""
        other = Histogram()
        last = -1
        for index, count in enumerate(self.counts):
            difference = count - earlier.counts[index]
            if difference:
                other.counts[index] = difference
                last = index
        other.number = self.number - earlier.number
        other.total = self.total - earlier.total
        if last >= 0:
            other.largest = min(_upper(last), self.largest)
        return other

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON or msgpack: only buckets that are not empty, as pairs of index and count."""
        buckets = [[index, count] for index, count in enumerate(self.counts) if count]
        return {"number": self.number, "total": self.total, "largest": self.largest, "buckets": buckets}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Histogram:
        """The histogram that ``as_dict`` described. Raises ValueError when a bucket is out of range."""
        made = cls()
        for index, count in plain["buckets"]:
            if not 0 <= index < _BUCKETS:
                raise ValueError(f"a histogram has {_BUCKETS} buckets, this names number {index}")
            made.counts[index] = count
        made.number, made.total, made.largest = plain["number"], plain["total"], plain["largest"]
        return made


def _middle(index: int) -> float:
    return exp((index - _OFFSET + 0.5) / _SCALE) if index else _SMALLEST / 2


def _upper(index: int) -> float:
    return exp((index - _OFFSET + 1) / _SCALE) if index else _SMALLEST
