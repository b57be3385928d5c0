"""How much of an event loop's time is work, and how much is waiting in its poll.

Two ways. ``PollTimer`` stands before the selector of an asyncio loop and reads the clock on the way in and out: exact,
half a microsecond per turn, and every turn's length is known. Loops that poll in C (uvloop) can't be asked that way:
``SampledWork`` joins the thread's processor time, which is exact, with what a sampler sees of it, for the time in which
the loop is held up without using the processor.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from types import CodeType
from typing import Any

from gnomon.profiler.clock import now
from gnomon.profiler.histogram import Histogram
from gnomon.profiler.reading.looks import Leaf

__all__ = ["PollTimer", "SampledWork", "is_polling"]

#: Turns shorter than this (seconds) are counted, but not in the histogram.
_NOTABLE = 1e-3

#: Share of a stretch below which a thread hardly ran.
_HARDLY = 0.2

#: How probable it is at most that looks find a loop at work each time by chance, for it to be held up all the while.
_BY_CHANCE = 0.001


class PollTimer:
    """Times the turns of one asyncio loop. A turn is all that happens between two polls.

    ``on_long(start, stop)`` is called at the end of each turn longer than ``long`` seconds, on the loop's thread.
    """

    def __init__(self, long: float, on_long: Callable[[float, float], None]) -> None:
        self.long = long
        self._on_long = on_long
        self._selector: Any = None
        # Work done before the present turn, and when that began (wall clock; 0 in a poll). One value, for another
        # thread must not see the end of a turn twice or not at all.
        self._state = (0.0, 0.0)
        #: Turns since the start, and the lengths of those above a millisecond.
        self.turns = 0
        self.lengths = Histogram()

    def attach(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Begin, on the loop's thread. False if this loop has no selector to stand before."""
        selector = getattr(loop, "_selector", None)
        if not isinstance(selector, selectors.BaseSelector):
            return False
        original = selector.select
        self._selector = selector
        self._state = (0.0, now())

        def select(timeout: float | None = None) -> Any:
            worked, began = self._state
            stop = now()
            length = stop - began
            worked += length
            self._state = (worked, 0.0)
            self.turns += 1
            if length > _NOTABLE:
                self._note(began, stop)
            try:
                return original(timeout)
            finally:
                self._state = (worked, now())

        self._select = select
        selector.select = select  # type: ignore[method-assign]
        return True

    def detach(self) -> None:
        """Take the clock away again, on the loop's thread or after the loop's end."""
        selector, self._selector = self._selector, None
        if selector is not None and vars(selector).get("select") is self._select:
            del selector.select

    @property
    def turn_started(self) -> float:
        """When the present turn began (wall clock); 0 while the loop polls."""
        return self._state[1]

    def worked(self) -> float:
        """Seconds since the start that weren't spent polling, the present turn included."""
        worked, began = self._state
        return worked + (now() - began if began else 0.0)

    def _note(self, start: float, stop: float) -> None:
        self.lengths.add(stop - start)
        if stop - start > self.long:
            self._on_long(start, stop)


class SampledWork:
    """Estimates the working time of a loop that polls in C, from ticks of another thread.

    Between two looks that both see it polling, the time that its thread ran or wanted to run is its work: exact even
    for turns far shorter than a tick. A stretch of looks that see it working is work from half-way to half-way if it
    hardly ran in that (a blocking call), else what it ran. But if a loop that works no longer than it ran would not be
    found at work by so many looks in a row, it is all between them, whatever held it up.
    """

    def __init__(self) -> None:
        self._worked = 0.0
        self._woke = 0.0
        self._ran = 0.0
        self._polling = True
        self._edges = 0.0  # seconds of the intervals at both ends of a stretch
        self._edges_ran = 0.0
        self._inside = 0.0
        self._inside_ran = 0.0
        self._looks = 0

    def observe(self, woke: float, ran: float, polling: bool) -> None:
        """One look: the time, the seconds that the thread ran or wanted to run so far, and whether it was polling.

        Where the system doesn't tell the second, it is 0 for all: then work is what looks see.
        """
        if self._woke:
            self._interval(woke - self._woke, min(ran - self._ran, woke - self._woke), polling)
        self._woke, self._ran, self._polling = woke, ran, polling

    def worked(self) -> float:
        """Seconds since the first look, a stretch that goes on included."""
        return self._worked + (0.0 if self._polling else self._inside + self._edges / 2)

    def _interval(self, seconds: float, ran: float, polling: bool) -> None:
        if self._polling and polling:
            self._worked += ran
        elif self._polling:
            self._edges, self._edges_ran, self._inside, self._inside_ran, self._looks = seconds, ran, 0.0, 0.0, 1
        elif not polling:
            self._inside += seconds
            self._inside_ran += ran
            self._looks += 1
        else:
            edges, edges_ran = self._edges + seconds, self._edges_ran + ran
            inside = self._inside
            if edges_ran + self._inside_ran < (inside + edges / 2) * _HARDLY:
                self._worked += inside + edges / 2
            else:
                held_up = inside and (self._inside_ran / inside) ** self._looks < _BY_CHANCE
                self._worked += edges_ran + (inside if held_up else self._inside_ran)


def is_polling(leaf: Leaf, driver: Leaf | None) -> bool:
    """Whether a loop's thread waits for events: in a selector, or in the C code that ``driver`` called to run the loop.

    ``driver``: code and instruction of the call that runs a loop written in C.
    """
    return leaf[0] in _SELECTS or leaf == driver


def _select_codes() -> frozenset[CodeType]:
    found = set()
    for kind in vars(selectors).values():
        if isinstance(kind, type) and issubclass(kind, selectors.BaseSelector):
            for name in ("select", "_select"):
                code = getattr(getattr(kind, name, None), "__code__", None)
                if code is not None:
                    found.add(code)
    proactor = getattr(asyncio, "IocpProactor", None)
    if proactor is not None:
        found.add(proactor._poll.__code__)
    return frozenset(found)


_SELECTS = _select_codes()
