"""Where the time of the scheduler's event loop goes, in parts that exclude each other and sum up to the wall clock.

What the loop does is marked by regions, which know their own time exactly; whether it works or waits for events its
monitor knows. So what remains of the working time is the loop's own machinery. While the monitors rest, nothing but
heartbeats happens.

Contents: Budget, PARTS, part_of.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from threading import get_ident
from time import perf_counter
from typing import Any, NamedTuple

from gnomon.profiler.marks import regions
from gnomon.profiler.marks.regions import enter, leave, slot
from gnomon.runtime.instruments.looptime import LoopTime

__all__ = ["PARTS", "Budget", "Row", "part_of"]

#: In the order in which they are told.
PARTS = (
    "idle",  # the loop waited for messages and timers
    "resting",  # likewise, and nobody watched
    "read",  # bytes that arrived cut into frames
    "decode",  # messages from bytes
    "brain",  # transitions of tasks: reactor, placement, stealing
    "shell",  # the loop turn around it: whose message this is, what is to be sent
    "encode",  # messages to bytes
    "write",  # bytes handed to connections
    "telemetry",  # records kept
    "requests",  # questions of clients and dashboards answered
    "extensions",  # what others hook in
    "agents",  # workers that live on the same loop
    "monitors",  # own measurements
    "gc",  # garbage collections on the loop's thread
    "other",  # work that is none of these: the loop's own machinery, and the system's receive
)

#: Parts of regions by their name, or by what stands before its first dot.
_BY_NAME = {
    "comm.read": "read",
    "comm.decode": "decode",
    "comm.encode": "encode",
    "comm.write": "write",
    "reactor": "brain",
    "placement": "brain",
    "stealing": "brain",
    "turn": "shell",
    "drain": "shell",
    "record": "telemetry",
    "requests": "requests",
    "extensions": "extensions",
    "events": "agents",
    "dispatch": "agents",
    "monitors": "monitors",
    "gc": "gc",
}

_GC = slot("gc")

#: ``(part, source, seconds, count)``: the source is "timed" (count: how often), "sampled" (count: looks of the
#: sampler) or "rest" (count: 0), what the others leave.
Row = tuple[str, str, float, int]


class _Times(NamedTuple):
    """Where the clocks stood: wall clock, seconds watched and worked, own seconds by part."""

    wall: float
    watched: float
    worked: float
    parts: Mapping[str, float]


class Budget:
    """Of one scheduler; all methods are called on its loop.

    ``loop_time`` tells what the loop's monitor knows, None while there is none. ``clock``: that of regions.
    """

    def __init__(self, loop_time: Callable[[], LoopTime | None], clock: Callable[[], float] = perf_counter) -> None:
        self._loop_time = loop_time
        self._clock = clock
        self._ident = 0
        self._seconds = dict.fromkeys(PARTS, 0.0)
        self._counts: dict[str, int] = {}
        self._before = _Times(0.0, 0.0, 0.0, {})
        self._ahead = 0.0  # seconds marked that the monitor has not seen worked yet
        self._exact = False
        self._looks = 0

    def start(self) -> None:
        """Begin; regions count from now on."""
        if not self._ident:
            self._ident = get_ident()
            regions.watch()
            gc.callbacks.append(self._on_collection)
            self._counts = {}
            time = self._clock()
            self._before = _Times(time, 0.0, 0.0, self._own_times(time)[0])

    def stop(self) -> None:
        """End; what was measured stays. Idempotent."""
        if self._ident:
            self.advance()
            self._ident = 0
            gc.callbacks.remove(self._on_collection)
            regions.unwatch()

    def rows(self) -> list[Row]:
        """All parts since the start, in the order of ``PARTS``; empty if nothing was ever measured."""
        if self._ident:
            self.advance()
        if not self._before.wall:
            return []
        polled = "timed" if self._exact else "sampled"
        sources = {"idle": polled, "other": "rest" if self._exact else "sampled", "resting": "rest"}
        counts = {"idle": self._looks, "other": 0 if self._exact else self._looks, "resting": 0}
        return [
            (part, sources.get(part, "timed"), self._seconds[part], counts.get(part, self._counts.get(part, 0)))
            for part in PARTS
        ]

    def advance(self) -> None:
        """Share out the time since the last call. To be called before the monitors rest, and now and then."""
        time = self._clock()
        parts, self._counts = self._own_times(time)
        known = self._loop_time()
        watched = worked = 0.0
        if known is not None:
            watched, worked, self._exact = known.watched, known.worked, known.exact
            self._looks = known.looks
        before, now = self._before, _Times(time, watched, worked, parts)
        self._before = now
        if now.watched < before.watched:  # the monitor was started anew
            before = before._replace(watched=0.0, worked=0.0)
        wall = now.wall - before.wall
        marked = 0.0
        for part, seconds in parts.items():
            more = max(0.0, seconds - before.parts.get(part, 0.0))
            self._seconds[part] += more
            marked += more
        # The monitor may be a look behind: what it is yet to see is no work beside the marked.
        unmarked = now.worked - before.worked - marked - self._ahead
        self._ahead = max(0.0, -unmarked)
        waited = max(0.0, wall - marked - max(0.0, unmarked))
        self._seconds["other"] += wall - marked - waited
        resting = min(waited, max(0.0, wall - (now.watched - before.watched)))
        self._seconds["resting"] += resting
        self._seconds["idle"] += waited - resting

    def _own_times(self, time: float) -> tuple[dict[str, float], dict[str, int]]:
        """Seconds up to ``time`` and number of entries by part, of the regions of this thread."""
        seconds: dict[str, float] = {}
        counts: dict[str, int] = {}
        books = regions.by_thread.get(self._ident)
        if books is not None:
            for number, count, _, own in regions.rows(books, time):
                part = part_of(regions.slot_name(number))
                if part:
                    seconds[part] = seconds.get(part, 0.0) + own
                    counts[part] = counts.get(part, 0) + count
        return seconds, counts

    def _on_collection(self, phase: str, info: Mapping[str, Any]) -> None:
        """Called by the collector, on the thread that collects; other threads' regions are not ours."""
        if get_ident() != self._ident:
            return
        if phase == "start":
            enter(_GC)
        else:
            leave(_GC)


def part_of(region: str) -> str:
    """The part that a region belongs to; "" for none, such as a user's own."""
    return _BY_NAME.get(region) or _BY_NAME.get(region.partition(".")[0], "")
