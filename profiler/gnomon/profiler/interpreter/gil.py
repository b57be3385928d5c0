"""Who waits for the GIL: contention as a thread sees it that wakes regularly, and the long waits with their holder.

The thread that ticks must take the GIL each time it wakes. The kernel counts each time that a thread goes to sleep: an
undisturbed tick sleeps once, and every wait for the GIL (which wakes each switch interval, 5 ms, to ask for it) adds
one. So waiting for the GIL is told apart from a lack of processors, a stopped process and the timer's slack, which
make a tick late as well. A tick late by more than 20 ms is a *gap*: its kind and, for the GIL, the thread that held it
are kept for the stalls of the loop.

It costs a system call of half a microsecond per tick, and some tens of microseconds four times a second.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from gnomon.profiler.clock import now
from gnomon.profiler.cost import Cost, CostMeter
from gnomon.profiler.histogram import Histogram
from gnomon.profiler.interpreter import os_thread
from gnomon.profiler.reading.looks import Leaf, Look
from gnomon.profiler.reading.ticker import Hook, Ticker, TickSource
from gnomon.profiler.reading.weighed import Frame, frames_of
from gnomon.profiler.series import Series

__all__ = ["Gap", "GapKind", "GilMonitor", "Holder"]

#: A tick later than this (seconds) is recorded one by one.
_GAP = 0.02

#: CPU seconds of one tick without a refresh, measured; too cheap to measure each time.
_TICK_COST = 2e-6

#: Seconds between two looks at the processor time of all threads.
_REFRESH = 0.25


class GapKind(StrEnum):
    """Why the ticking thread did not run."""

    GIL = "waiting for the GIL"
    NO_PROCESSOR = "no processor"
    PAGE_FAULTS = "page faults"
    STOPPED = "process stopped"


class Holder(NamedTuple):
    """A thread that probably held the GIL, and its stack when it let go, outermost frame first."""

    thread: str
    ident: int
    stack: tuple[Frame, ...]


class Gap(NamedTuple):
    """A time in which the ticking thread should have run, and did not (wall clock)."""

    start: float
    stop: float
    kind: GapKind
    holder: Holder | None


class _Clock(NamedTuple):
    name: str
    native_id: int
    cpu: float


class GilMonitor:
    """Measures contention for the GIL from the ticks of ``source``, or of a ticker of its own (20 Hz) if None.

    ``keep``: rows of the series, one a second.
    """

    def __init__(self, source: TickSource | None = None, *, keep: int = 7200) -> None:
        self._source: TickSource = Ticker(0.0497) if source is None else source
        self.has_gil = bool(getattr(sys, "_is_gil_enabled", lambda: True)())
        #: How late ticks were, whatever the reason; and waits for the GIL alone.
        self.lateness = Histogram()
        self.waits = Histogram()
        #: One row a second: share of ticks that had to wait, mean and longest wait in seconds.
        self.series = Series(("contended", "wait_mean", "wait_max"), keep)
        self.gaps: deque[Gap] = deque(maxlen=50)
        self._meter = CostMeter()
        self._running = False
        self._hooked = False
        self._followers: tuple[Hook, ...] = ()
        self._last_woke = 0.0
        self._left = 0.0  # when the last tick was done
        self._refreshed = 0.0
        self._usage = os_thread.own_usage()
        self._schedules: os_thread.ScheduleFile | None = None  # of the ticking thread
        self._schedule: os_thread.Schedule | None = None
        self._clocks: dict[int, _Clock] = {}
        self._leaves: dict[int, Leaf] = {}  # where threads were at the last tick
        self._row = now()
        self._row_ticks = self._row_contended = 0
        self._row_wait = self._row_max = 0.0

    def start(self) -> None:
        """Begin; no effect if it runs."""
        self._running = True
        self._attach()

    def stop(self) -> None:
        """Stop (once no follower needs it either); what was recorded stays."""
        self._running = False
        self._attach()

    def follow(self, hook: Hook) -> None:
        """Call ``hook`` on each tick, after the look at this tick's lateness and before any system call."""
        self._followers = (*self._followers, hook)
        self._attach()

    def unfollow(self, hook: Hook) -> None:
        """Don't call it any more."""
        self._followers = tuple(kept for kept in self._followers if kept != hook)
        self._attach()

    def _attach(self) -> None:
        wanted = self._running or bool(self._followers)
        if wanted and not self._hooked:
            self._hooked = True
            self._last_woke = 0.0  # what was before the pause is nobody's lateness
            self._refreshed = 0.0
            self._source.add_hook(self._observe)
        elif self._hooked and not wanted:
            self._hooked = False
            self._source.remove_hook(self._observe)
            schedules, self._schedules, self._schedule = self._schedules, None, None
            if schedules is not None:
                schedules.close()

    def _observe(self, due: float, woke: float, look: Look) -> bool:
        usage = os_thread.own_usage()
        if self._last_woke:
            self._count(due, woke, usage, look)
        self._last_woke, self._usage = woke, usage
        attention = False
        for follower in self._followers:
            attention |= bool(follower(due, woke, look))
        if woke - self._refreshed >= _REFRESH:
            mark = self._meter.begin()
            self._refresh(woke, look)
            self._meter.end(mark)
        self._leaves = look.leaves
        self._left = now()
        # Only now, for what this tick itself waited for is no wait of the next.
        usage = os_thread.own_usage()
        if self._left - woke >= _GAP:
            self._note_gap(woke, self._left, usage, None)
        self._usage = usage
        return attention

    def clocks(self) -> dict[int, float]:
        """Processor seconds by ident of the threads seen last, read now."""
        found = {}
        for ident, clock in self._clocks.items():
            cpu = os_thread.cpu_clock(clock.native_id)
            if cpu is not None:
                found[ident] = cpu
        return found

    def busiest(self, before: Mapping[int, float], look: Look, but: int) -> Holder | None:
        """The thread that used most processor time since ``clocks()`` gave ``before``, other than ``but`` and this."""
        used = {
            ident: cpu - before.get(ident, 0.0)
            for ident, cpu in self.clocks().items()
            if ident in look.leaves and ident not in {but, threading.get_ident()}
        }
        if not used:
            return None
        ident = max(used, key=used.__getitem__)
        if used[ident] < 0.001:
            return None
        return Holder(self._name(ident), ident, frames_of(look.stacks().get(ident)))

    def cost(self) -> Cost:
        """CPU seconds and ticks; the cheap part of a tick is estimated."""
        return Cost(self._meter.cpu + self.lateness.number * _TICK_COST, self.lateness.number)

    def statistics(self) -> dict[str, Any]:
        """Plain values: share of ticks that waited for the GIL, the waits, lateness. Seconds."""
        ticks = self.lateness.number
        return {
            "measured": self.has_gil and os_thread.measured()["usage"],
            "ticks": ticks,
            "contended": self.waits.number / ticks if ticks else 0.0,
            "wait_mean": self.waits.total / ticks if ticks else 0.0,
            "wait_p99": self.waits.quantile(0.99),
            "wait_max": self.waits.largest,
            "late_p99": self.lateness.quantile(0.99),
            "late_max": self.lateness.largest,
            "switch_interval": sys.getswitchinterval(),
        }

    def _count(self, due: float, woke: float, usage: os_thread.Usage, look: Look) -> None:
        late = max(woke - due, 0.0)
        self.lateness.add(late)
        self._row_ticks += 1
        slept = usage.voluntary - self._usage.voluntary
        if slept >= 2 and self.has_gil:
            self.waits.add(late)
            self._row_contended += 1
            self._row_wait += late
            self._row_max = max(self._row_max, late)
        # What the last tick took itself is not this one's lateness.
        start = max(due, self._left)
        if woke - start >= _GAP:
            # Who it was must be found out before the first system call, which lets the others go on.
            by_gil = self.has_gil and self._asked(usage) >= 0.3 * (woke - start)
            self._note_gap(start, woke, usage, self._who_held(woke - start, look) if by_gil else None)
        if woke - self._row >= 1.0:
            ticks = self._row_ticks
            self.series.append(woke, self._row_contended / ticks, self._row_wait / ticks, self._row_max)
            self._row = woke
            self._row_ticks = self._row_contended = 0
            self._row_wait = self._row_max = 0.0

    def _note_gap(self, start: float, stop: float, usage: os_thread.Usage, holder: Holder | None) -> None:
        """Record a gap; ``usage``: this thread's at its end."""
        late = stop - start
        schedule = self._schedules.read() if self._schedules else None
        queued = schedule.waited - self._schedule.waited if schedule and self._schedule else 0.0
        self._schedule = schedule
        kind = GapKind.STOPPED
        if self._asked(usage) >= 0.3 * late:
            kind = GapKind.GIL
        elif queued >= 0.3 * late:
            kind = GapKind.NO_PROCESSOR
        elif usage.major_faults > self._usage.major_faults:
            kind = GapKind.PAGE_FAULTS
        self.gaps.append(Gap(start, stop, kind, holder))

    def _asked(self, usage: os_thread.Usage) -> float:
        """Seconds that this thread waited for the GIL, as told by how often it woke to ask for it."""
        return max(usage.voluntary - self._usage.voluntary - 1, 0) * sys.getswitchinterval()

    def _who_held(self, late: float, look: Look) -> Holder | None:
        """The thread that moved on since the last tick and, of several, used the processor most.

        Threads that waited for the GIL like this one stand where they stood: in the call that they come back from.
        """
        # The stacks before anything else: a system call lets go of the GIL, and the threads go on.
        stacks = look.stacks()
        this = threading.get_ident()
        moved = [ident for ident, leaf in look.leaves.items() if ident != this and self._leaves.get(ident) != leaf]
        used = {}
        for ident in moved:
            clock = self._clocks.get(ident)
            cpu = os_thread.cpu_clock(clock.native_id) if clock else None
            used[ident] = cpu - clock.cpu if clock and cpu is not None else late / 2
        if used:
            ident = max(used, key=used.__getitem__)
            return Holder(self._name(ident), ident, frames_of(stacks.get(ident)))
        gone = [ident for ident in self._leaves if ident not in look.leaves and ident in self._clocks]
        return Holder(self._clocks[gone[0]].name, gone[0], ()) if gone else None

    def _name(self, ident: int) -> str:
        clock = self._clocks.get(ident)
        return clock.name if clock else _name_of(ident)

    def _refresh(self, woke: float, look: Look) -> None:
        self._refreshed = woke
        clocks = {}
        for thread in threading.enumerate():
            ident, native_id = thread.ident, thread.native_id
            if ident in look.leaves and ident is not None and native_id is not None:
                cpu = os_thread.cpu_clock(native_id)
                if cpu is not None:
                    clocks[ident] = _Clock(thread.name, native_id, cpu)
        self._clocks = clocks
        if self._schedules is None:
            self._schedules = os_thread.ScheduleFile(threading.get_native_id())
        self._schedule = self._schedules.read()


def _name_of(ident: int) -> str:
    for thread in threading.enumerate():
        if thread.ident == ident:
            return thread.name
    return f"thread {ident}"
