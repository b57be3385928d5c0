"""How much of its records the scheduler hands out at once: as many rows as can be made ready in a few milliseconds.

A page is made on the scheduler's loop, which decides over tasks meanwhile for nobody. What a row costs depends on the
ring and the machine, so it is learned from the pages that were made: by processor time, for what the page waited for on
a crowded machine is not what its rows cost.

Contents: Pace, Page.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

__all__ = ["Pace", "Page"]

#: Plain columns, how many rows are gone, and the number to go on with.
Page: TypeAlias = tuple[dict[str, Any], int, int]

#: Rows that are always given, so that every reader gets on; pages of fewer tell nothing of what a row costs.
_LEAST = 32

#: Seconds per row that are expected at first, of each ring that isn't like the others.
_EXPECTED = 2e-6
_UNLIKE = {"stalls": 1e-4}

#: Weight of a new measurement that is below what was known; one above it is believed at once.
_CHEAPER = 0.25


class Pace:
    """Of one scheduler. ``seconds``: what all rings of a page together may take; ``clock``: of the processor's time."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._left = seconds
        self._costs: dict[str, float] = {}

    def begin(self) -> None:
        """A new page is asked for."""
        self._left = self._seconds

    def take(self, name: str, build: Callable[[int, int], Page], number: int, limit: int) -> Page:
        """Rows of one ring from ``number`` on, at most ``limit``: within half of the time that is left for the page.

        ``build`` takes the number and how many rows to give.
        """
        expected = self._costs.get(name) or _UNLIKE.get(name, _EXPECTED)
        rows = max(_LEAST, int(self._left / 2 / expected))
        begun = self._clock()
        page, missed, after = build(number, min(limit, rows))
        took = self._clock() - begun
        self._left = max(0.0, self._left - took)
        given = after - number - missed
        if given >= _LEAST:
            cost = took / given
            self._costs[name] = cost if cost > expected else expected + _CHEAPER * (cost - expected)
        return page, missed, after
