"""A stall of an event loop: what is recorded of one, and the evidence that is gathered while it lasts.

``Suspicion`` is filled by the ticking thread from the moment at which a loop seems stuck; with the loop thread's own
readings before and after (``Point``) and the monitors of collections and of the GIL, ``judge`` makes it a ``Stall``.
When to suspect is the loop monitor's business, and what the figures mean that of ``causes``.
"""

from __future__ import annotations

import gc
import logging
import sys
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, NamedTuple

from gnomon.profiler.clock import now
from gnomon.profiler.interpreter import os_thread
from gnomon.profiler.interpreter.gc_monitor import GcMonitor
from gnomon.profiler.interpreter.gil import Gap, GapKind, Holder
from gnomon.profiler.loops.causes import Cause, Evidence, decide
from gnomon.profiler.reading.plain import Stack
from gnomon.profiler.reading.weighed import Frame, WeighedStacks, own_code

__all__ = ["Point", "Stall", "StallLog", "Suspicion", "judge", "read_point"]

logger = logging.getLogger("gnomon.profiler.loop")


@dataclass(frozen=True, slots=True)
class Stall:
    """A time in which a loop could not turn. ``start``: wall clock; ``duration`` and ``parts``: seconds.

    ``function``, ``file`` and ``line`` name the code of the dominating stack that isn't Python's own library; in a wait
    for the GIL while the loop polled, that of the thread that held it. ``stack`` is the dominating stack of the
    loop's thread, outermost frame first. ``parts`` adds up to the duration.
    """

    start: float
    duration: float
    cause: Cause
    detail: str
    function: str
    file: str
    line: int
    stack: tuple[Frame, ...]
    parts: dict[Cause, float]
    holder: str  # the thread that held the GIL, "" if none is blamed
    holder_stack: tuple[Frame, ...]
    samples: int
    minor_faults: int
    major_faults: int

    def sentence(self) -> str:
        """What happened, for a log."""
        where = f"{self.function} ({self.file}:{self.line})" if self.function else "unknown code"
        cause = f"{self.cause}, {self.detail}" if self.detail else str(self.cause)
        by = f", held by thread {self.holder!r}" if self.holder else ""
        return f"the event loop stood still for {self.duration:.3f} s in {where}: {cause}{by}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON or msgpack."""
        return {
            "start": self.start,
            "duration": self.duration,
            "cause": str(self.cause),
            "detail": self.detail,
            "function": self.function,
            "file": self.file,
            "line": self.line,
            "stack": [list(frame) for frame in self.stack],
            "parts": {str(cause): seconds for cause, seconds in self.parts.items()},
            "holder": self.holder,
            "holder_stack": [list(frame) for frame in self.holder_stack],
            "samples": self.samples,
            "minor_faults": self.minor_faults,
            "major_faults": self.major_faults,
        }


class Point(NamedTuple):
    """What a thread had used at a moment, read by itself."""

    time: float
    usage: os_thread.Usage
    schedule: os_thread.Schedule | None


def read_point(time: float, schedule: os_thread.ScheduleFile) -> Point:
    """The calling thread's figures now; ``schedule`` is its own."""
    return Point(time, os_thread.own_usage(), schedule.read())


class Suspicion:
    """Evidence of one possible stall that began at ``start``, gathered by the ticking thread from ``woke`` on.

    ``clocks``: processor time of all threads now, to find who competed.
    """

    def __init__(
        self, start: float, woke: float, native_id: int, schedules: os_thread.ScheduleFile, clocks: dict[int, float]
    ) -> None:
        self.start = start
        self.opened = woke
        self.clocks = clocks
        self.stacks = WeighedStacks()  # in callbacks
        self.polls = WeighedStacks()  # in the poll of the loop, which it could not leave
        self.blocked: defaultdict[str, float] = defaultdict(float)
        self.wanting = 0.0
        self.reported = False
        #: What the kernel's scheduler had done with the thread when it came under suspicion.
        self.first: os_thread.Schedule | None = None
        self._native_id = native_id
        self._schedules = schedules
        self._last = start
        self._schedule: os_thread.Schedule | None = None

    def sample(self, woke: float, stack: Stack, *, polling: bool) -> None:
        """One look at the loop's thread: its stack, and what the kernel knows of it."""
        seconds = woke - self._last
        self._last = woke
        (self.polls if polling else self.stacks).add(stack, seconds)
        before, after = self._schedule, self._schedules.read()
        self._schedule = after
        if self.first is None:
            self.first = after
        elif before is not None and after is not None:
            self._look(seconds, before, after)

    def dominating(self) -> tuple[Frame, ...]:
        """The dominating stack of the callbacks, if the loop was in those for most of the time."""
        return self.stacks.dominating() if self.stacks.seconds >= self.polls.seconds else ()

    def _look(self, seconds: float, before: os_thread.Schedule, after: os_thread.Schedule) -> None:
        """What the thread did off the processor since the last look."""
        off = seconds - (after.ran - before.ran) - (after.waited - before.waited)
        if off < 0.2 * seconds:
            return
        turns = after.turns - before.turns
        place = os_thread.waiting_in(self._native_id)
        if turns == 0:
            # Asleep since before the last look. If that was the first, then from the start, as far as we know.
            self.blocked[place or "?"] += off + (self.opened - self.start if not self.blocked else 0.0)
        elif place and "futex" not in place:
            self.blocked[place] += off
        elif turns * sys.getswitchinterval() >= 0.3 * off:
            self.wanting += off


def judge(
    start: float,
    stop: float,
    *,
    before: Point,
    after: Point,
    suspicion: Suspicion | None,
    gaps: list[Gap],
    collections: GcMonitor,
    ident: int,
    competitor: Holder | None,
) -> Stall:
    """The record of a stall. ``gaps``: late ticks that reach into it; ``competitor``: who else used the processor."""
    evidence = _evidence(start, stop, before, after, suspicion, gaps, collections, ident)
    verdict = decide(evidence)
    by_gil = [gap for gap in gaps if gap.kind is GapKind.GIL]
    stack = _stack(suspicion, verdict.cause)
    if verdict.cause is Cause.GC:
        stack = _without_gc_callbacks(stack)
    frame = own_code(stack)
    holder: Holder | None = None
    if verdict.cause is Cause.GIL:
        held = _held_by_others(by_gil, ident)
        holder = max(held, key=lambda gap: gap.stop - gap.start).holder if held else competitor
        if holder and (not stack or 2 * _overlap(held, GapKind.GIL, start, stop) > stop - start):
            frame = own_code(holder.stack) or frame
    detail = verdict.detail
    if verdict.cause is Cause.BLOCKING and 2 * sum(gap.stop - gap.start for gap in by_gil) > stop - start:
        detail = "keeps the GIL"
    return Stall(
        start=start,
        duration=stop - start,
        cause=verdict.cause,
        detail=detail,
        function=frame.function if frame else "",
        file=frame.file if frame else "",
        line=frame.line if frame else 0,
        stack=stack,
        parts=verdict.parts,
        holder=holder.thread if holder else "",
        holder_stack=holder.stack if holder else (),
        samples=suspicion.stacks.number + suspicion.polls.number if suspicion else 0,
        minor_faults=evidence.minor_faults,
        major_faults=evidence.major_faults,
    )


def _evidence(
    start: float,
    stop: float,
    before: Point,
    after: Point,
    suspicion: Suspicion | None,
    gaps: list[Gap],
    collections: GcMonitor,
    ident: int,
) -> Evidence:
    user = after.usage.user - before.usage.user
    system = after.usage.system - before.usage.system
    cpu, queued = user + system, 0.0
    if before.schedule and after.schedule:
        cpu = after.schedule.ran - before.schedule.ran
        queued = after.schedule.waited - before.schedule.waited
        first = suspicion.first if suspicion else None
        if suspicion and first:
            # What the thread did between the reading before and the start counts for at most the time since the start.
            age = suspicion.opened - start
            cpu = after.schedule.ran - first.ran + min(first.ran - before.schedule.ran, age)
            queued = after.schedule.waited - first.waited + min(first.waited - before.schedule.waited, age)
    return Evidence(
        duration=stop - start,
        cpu=cpu,
        system_share=system / (user + system) if user + system > 0 else 0.0,
        queued=queued,
        minor_faults=after.usage.minor_faults - before.usage.minor_faults,
        major_faults=after.usage.major_faults - before.usage.major_faults,
        voluntary=after.usage.voluntary - before.usage.voluntary,
        collecting=collections.paused(start, stop),
        collecting_here=collections.paused(start, stop, ident),
        stopped=_overlap(gaps, GapKind.STOPPED, start, stop),
        paged=_overlap(gaps, GapKind.PAGE_FAULTS, start, stop),
        blocked=dict(suspicion.blocked) if suspicion else {},
        wanting=suspicion.wanting if suspicion else 0.0,
        held_elsewhere=_overlap(_held_by_others(gaps, ident), GapKind.GIL, start, stop),
        switch_interval=sys.getswitchinterval(),
    )


def _held_by_others(gaps: list[Gap], ident: int) -> list[Gap]:
    return [gap for gap in gaps if gap.holder and gap.holder.ident != ident]


def _overlap(gaps: list[Gap], kind: GapKind, start: float, stop: float) -> float:
    return sum(max(min(gap.stop, stop) - max(gap.start, start), 0.0) for gap in gaps if gap.kind is kind)


def _stack(suspicion: Suspicion | None, cause: Cause) -> tuple[Frame, ...]:
    """Where the loop was. A loop in C runs a callback in C where it polls."""
    if suspicion is None:
        return ()
    stack = suspicion.dominating()
    return stack if stack or cause in _FROM_OUTSIDE else suspicion.polls.dominating()


def _without_gc_callbacks(stack: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """The part of a stack that was collected in: others' callbacks of the collector are where one can look into it."""
    codes = [getattr(callback, "__code__", None) for callback in gc.callbacks]
    names = {(code.co_qualname, code.co_filename) for code in codes if code is not None}
    for depth, frame in enumerate(stack):
        if frame[:2] in names:
            return stack[:depth]
    return stack


#: Causes that hold up a loop that has nothing to do as well.
_FROM_OUTSIDE = {Cause.GIL, Cause.GC, Cause.STOPPED, Cause.NO_PROCESSOR}


class StallLog:
    """Warns of stalls in the log, a line in ``interval`` seconds at most (None: never), counting what it holds back."""

    def __init__(self, interval: float | None) -> None:
        self.interval = interval
        self._next = 0.0
        self._held = 0
        self._held_seconds = 0.0

    def write(self, stall: Stall) -> None:
        """Log a stall, or hold it back."""
        if self.interval is None:
            return
        time = now()
        if time < self._next:
            self._held += 1
            self._held_seconds += stall.duration
            return
        self._next = time + self.interval
        more = f" (and {self._held} more since the last such line, {self._held_seconds:.1f} s)" if self._held else ""
        self._held, self._held_seconds = 0, 0.0
        logger.warning("%s%s", stall.sentence(), more)

    def write_lasting(self, seconds: float, stack: tuple[Frame, ...]) -> None:
        """Log that a stall goes on; never held back, for the loop may never turn again."""
        if self.interval is None:
            return
        frame = own_code(stack)
        logger.warning("the event loop has stood still for %.1f s now, in %s", seconds, frame or "unknown code")
