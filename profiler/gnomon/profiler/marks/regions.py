# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Named parts of a program's work, with exact counts and times beside the samples.

::

    with region("parse"): ...            # also as a decorator

    SLOT = slot("reactor.on_tasks_finished")     # for compiled code, which makes no frames of its own
    enter(SLOT)
    ...
    leave(SLOT)

In a profile a region is a frame below the function that entered it. Its time is that of the wall clock between enter
and leave, whatever the thread did meanwhile. While no sampler runs, regions count nothing and cost next to nothing.
Each thread keeps its own books, and nobody else writes in them; samplers read them with ``rows``.
"""

from __future__ import annotations

import os
import threading
from array import array
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Any, TypeVar

from gnomon.profiler.marks.markers import Region
from gnomon.profiler.marks.threads import PerThread, new_table
from gnomon.profiler.marks.wrapping import wrapped
from gnomon.profiler.reading import plain as snapshot

__all__ = [
    "Books",
    "NamedRegion",
    "by_thread",
    "ended",
    "enter",
    "leave",
    "region",
    "rows",
    "slot",
    "slot_name",
    "unwatch",
    "watch",
]

F = TypeVar("F", bound=Callable[..., Any])

#: Names beyond this many share slot 0: a name made up for each item would fill the memory.
MAX_SLOTS = 4096

_FIRST_DEPTH = 32
_FIRST_SLOTS = 64

_watchers = 0
_epoch = 0

_lock = threading.Lock()
_marks: list[Region] = [Region("(other regions)")]
_slots: dict[str, int] = {}
_named: dict[str, NamedRegion] = {}


class Books:
    """What one thread has open, and the totals of what it closed. Times by ``perf_counter``.

    ``changes`` is odd while the thread writes: interpreted readers look again.
    """

    __slots__ = (
        "changes",
        "counts",
        "depths",
        "epoch",
        "frames",
        "last",
        "open_slots",
        "owns",
        "seconds",
        "starts",
        "top",
    )

    def __init__(self) -> None:
        self.changes = 0
        self.epoch = 0
        self.top = 0
        self.last = 0.0
        self.open_slots = array("i", bytes(4 * _FIRST_DEPTH))
        self.starts = array("d", bytes(8 * _FIRST_DEPTH))
        self.frames = array("q", bytes(8 * _FIRST_DEPTH))
        self.counts = array("q", bytes(8 * _FIRST_SLOTS))
        self.depths = array("i", bytes(4 * _FIRST_SLOTS))
        self.seconds = array("d", bytes(8 * _FIRST_SLOTS))
        self.owns = array("d", bytes(8 * _FIRST_SLOTS))

    def push(self, number: int, frame: int) -> None:
        """Enter a region in a frame (its identity)."""
        now = perf_counter()
        if self.epoch != _epoch:
            self.reset()
        top = self.top
        if top >= len(self.open_slots):
            self.deepen()
        if number >= len(self.counts):
            self.widen(number)
        self.changes += 1
        if top:
            self.owns[self.open_slots[top - 1]] += now - self.last
        self.last = now
        self.open_slots[top] = number
        self.starts[top] = now
        self.frames[top] = frame
        self.counts[number] += 1
        self.depths[number] += 1
        self.top = top + 1
        self.changes += 1

    def pop(self, number: int) -> None:
        """Leave a region: the innermost of that number. No effect if none is open since somebody watches."""
        now = perf_counter()
        top = self.top
        if self.epoch != _epoch or number >= len(self.counts):
            return
        at = top - 1
        while at >= 0 and self.open_slots[at] != number:
            at -= 1
        if at < 0:
            return
        self.changes += 1
        self.owns[self.open_slots[top - 1]] += now - self.last
        self.last = now
        self.depths[number] -= 1
        if self.depths[number] == 0:
            self.seconds[number] += now - self.starts[at]
        # Coroutines and generators may leave in another order than they entered.
        for above in range(at + 1, top):
            self.open_slots[above - 1] = self.open_slots[above]
            self.starts[above - 1] = self.starts[above]
            self.frames[above - 1] = self.frames[above]
        self.top = top - 1
        self.changes += 1

    def reset(self) -> None:
        """Forget what was open when everybody looked away: its end may have gone by unseen."""
        self.changes += 1
        self.top = 0
        for number in range(len(self.depths)):
            self.depths[number] = 0
        self.epoch = _epoch
        self.changes += 1

    def deepen(self) -> None:
        """Room for more open regions."""
        more = len(self.open_slots)
        self.open_slots = array("i", bytes(self.open_slots) + bytes(4 * more))
        self.starts = array("d", bytes(self.starts) + bytes(8 * more))
        self.frames = array("q", bytes(self.frames) + bytes(8 * more))

    def widen(self, number: int) -> None:
        """Room for the totals of more slots."""
        more = number + _FIRST_SLOTS - len(self.counts)
        self.changes += 1
        self.counts = array("q", bytes(self.counts) + bytes(8 * more))
        self.depths = array("i", bytes(self.depths) + bytes(4 * more))
        self.seconds = array("d", bytes(self.seconds) + bytes(8 * more))
        self.owns = array("d", bytes(self.owns) + bytes(8 * more))
        self.changes += 1

    def row(self, number: int, now: float) -> tuple[int, float, float]:
        """Entries, seconds and own seconds of a slot up to now, open regions included."""
        seconds = self.seconds[number]
        own = self.owns[number]
        top = self.top if self.epoch == _epoch else 0
        if top and self.depths[number]:
            for at in range(top):
                if self.open_slots[at] == number:
                    seconds += now - self.starts[at]
                    break
            if self.open_slots[top - 1] == number:
                own += now - self.last
        return self.counts[number], seconds, own

    def slots(self) -> int:
        """How many slots have room here."""
        return len(self.counts)

    def mark(self, at: int) -> object:
        """The mark of the open region number ``at`` from the outside, to be put in a stack."""
        return _marks[self.open_slots[at]]


#: The books of the threads that have any, by ident. For readers.
by_thread: dict[int, Books] = new_table()

#: Books of threads that ended not long ago, until all samplers have read them: (ident, books, when).
_ended: deque[tuple[int, Books, float]] = deque(maxlen=4096)

#: Seconds for which books of ended threads are kept.
_MOURNING = 10.0


def _end(ident: int, books: Books) -> None:
    """A thread has ended: its last totals are still to be read."""
    if _watchers:
        _ended.append((ident, books, perf_counter()))


_mine: PerThread[Books] = PerThread(Books, by_thread, _end)


def slot(name: str) -> int:
    """The number of a region, to enter and leave it by. The same name has the same number."""
    with _lock:
        number = _slots.get(name)
        if number is None:
            if len(_marks) >= MAX_SLOTS:
                return 0
            number = _slots[name] = len(_marks)
            _marks.append(Region(name))
        return number


def slot_name(number: int) -> str:
    """The name of a region by its number."""
    return _marks[number].name


def enter(number: int) -> None:
    """The calling thread enters a region."""
    if _watchers:
        _mine.record.push(number, snapshot.caller_id())


def leave(number: int) -> None:
    """The calling thread leaves a region."""
    if _watchers:
        _mine.record.pop(number)


class NamedRegion:
    """A region as context manager and decorator. May be shared, and used again while in use."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __enter__(self) -> None:
        if _watchers:
            _mine.record.push(self.number, snapshot.caller_id())

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if _watchers:
            _mine.record.pop(self.number)

    def __call__(self, function: F) -> F:
        """The function inside the region; a coroutine function from its first step to its last."""
        return wrapped(self, function)


def region(name: str) -> NamedRegion:
    """A region by its name: ``with region("parse"): ...`` or ``@region("parse")``."""
    found = _named.get(name)
    if found is None:
        found = NamedRegion(slot(name))
        if found.number:
            _named[name] = found
    return found


def watch() -> None:
    """Somebody samples: regions count from now on."""
    global _watchers, _epoch
    with _lock:
        if not _watchers:
            _epoch += 1
        _watchers += 1


def unwatch() -> None:
    """The end of what ``watch`` began."""
    global _watchers
    with _lock:
        _watchers -= 1


def _after_fork() -> None:
    """In a forked child nobody samples yet."""
    global _watchers, _lock
    _watchers = 0
    _lock = threading.Lock()
    _ended.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def rows(books: Books, now: float) -> list[tuple[int, int, float, float]]:
    """(slot, entries, seconds, own seconds) of a thread's regions up to now (``perf_counter``), open ones included."""
    found: list[tuple[int, int, float, float]] = []
    for _ in range(8):
        before = books.changes
        found = []
        for number in range(books.slots()):
            count, seconds, own = books.row(number, now)
            if count:
                found.append((number, count, seconds, own))
        if books.changes == before and not before & 1:
            break
    return found


def ended() -> list[tuple[int, Books]]:
    """(ident, books) of threads that have ended within the last seconds."""
    too_old = perf_counter() - _MOURNING
    while _ended and _ended[0][2] < too_old:
        try:
            _ended.popleft()
        except IndexError:  # another reader was faster
            break
    return [(ident, books) for ident, books, _ in list(_ended)]
