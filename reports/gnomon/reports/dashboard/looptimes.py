"""The scheduler's loop and connections over time: where the loop's time went, and what was sent, in any window.

The scheduler tells both as sums since its start, with each answer. A window is the difference of two answers, those
nearest to its ends; so its parts add up to the time between the two. While nobody looks there are no answers.

Contents: LoopTimes, LoopWindow, TRAFFIC.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from gnomon.reports.collect.measurements import ticks
from gnomon.reports.records import LoopPart

__all__ = ["TRAFFIC", "LoopTimes", "LoopWindow"]

#: What is counted of connections, in the order in which the scheduler tells it.
TRAFFIC = ("messages in", "messages out", "bytes in", "bytes out")

#: Answers that are kept; of the older half every second one goes when there are more, again and again.
_KEPT = 1_200


class _Sums(NamedTuple):
    """Sums since the scheduler's start, at a time: by part of the loop source, ticks and count; messages and bytes."""

    time: float
    parts: dict[str, tuple[str, int, int]]
    traffic: tuple[int, ...]


class LoopWindow(NamedTuple):
    """What lies between two answers, ``start`` and ``stop`` in seconds; ``parts`` in the order of the budget's.

    ``traffic``: amounts in the order of ``TRAFFIC``.
    """

    start: float
    stop: float
    parts: list[LoopPart]
    traffic: tuple[int, ...]

    @property
    def ticks(self) -> int:
        """The sum of the parts."""
        return sum(part.ticks for part in self.parts)


class LoopTimes:
    """See the module. ``begin``: when the scheduler started, in seconds; all sums were 0 then."""

    def __init__(self, begin: float) -> None:
        self.connections = self.silent = 0
        self._all = [_Sums(begin, {}, (0,) * len(TRAFFIC))]

    def append(self, now: float, loop: Sequence[tuple[str, str, float, int]], traffic: Sequence[int]) -> None:
        """Take what an answer tells; ``silent`` connections count no bytes, being inside the scheduler's process."""
        *amounts, self.connections, self.silent = traffic
        parts = {name: (source, ticks(seconds), count) for name, source, seconds, count in loop}
        self._all.append(_Sums(now, parts, tuple(amounts)))
        if len(self._all) > _KEPT:
            half = _KEPT // 2
            self._all[1:half] = self._all[1:half:2]

    def window(self, low: float, high: float) -> LoopWindow | None:
        """The window between the answers that are nearest to two times; None if that is no time."""
        if len(self._all) < 2:
            return None
        stop = self._nearest(high, 1, len(self._all) - 1)
        first, last = self._all[self._nearest(low, 0, stop - 1)], self._all[stop]
        parts = []
        for name, (source, amount, count) in last.parts.items():
            _, was, counted = first.parts.get(name, ("", 0, 0))
            parts.append(LoopPart(name, source, max(0, amount - was), max(0, count - counted)))
        traffic = tuple([max(0, new - old) for new, old in zip(last.traffic, first.traffic, strict=True)])
        return LoopWindow(first.time, last.time, parts, traffic)

    def _nearest(self, time: float, least: int, most: int) -> int:
        """The place of the answer that is nearest to a time, within bounds."""
        after = bisect_right(self._all, time, key=attrgetter("time"))
        if 0 < after < len(self._all) and time - self._all[after - 1].time <= self._all[after].time - time:
            after -= 1
        return max(least, min(after, most))
