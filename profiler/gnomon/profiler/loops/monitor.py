"""Watches an event loop: its lag, how much of its time is work, and each time that it stood still, with the cause.

On the loop's thread there is one timer, ten times a second, that notes how late it was and what the thread has used;
and on asyncio's own loops a clock around the poll (``polling.PollTimer``). The looking is done by the thread of a
sampler: as soon as the loop shows no sign of life for half the threshold it samples the loop's stack and state, until
the loop turns again. Works with asyncio, uvloop and tornado (whose loop is asyncio's).

What may go unseen: on a loop that polls in C, stalls shorter than the threshold plus one tick of the sampler.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

from gnomon.profiler.clock import now
from gnomon.profiler.cost import Cost, CostMeter
from gnomon.profiler.histogram import Histogram
from gnomon.profiler.interpreter import os_thread
from gnomon.profiler.interpreter.gc_monitor import GcMonitor
from gnomon.profiler.interpreter.gil import Gap, GapKind, GilMonitor
from gnomon.profiler.loops.polling import PollTimer, SampledWork, is_polling
from gnomon.profiler.loops.stalls import Point, Stall, StallLog, Suspicion, judge, read_point
from gnomon.profiler.reading.looks import Leaf, Look
from gnomon.profiler.reading.ticker import tick_source
from gnomon.profiler.series import Series

__all__ = ["LoopMonitor", "ThreadSampler"]

logger = logging.getLogger("gnomon.profiler.loop")

#: CPU seconds of the clock around one turn, and of one tick in which nothing is wrong; too cheap to measure.
_TURN_COST = 5e-7
_TICK_COST = 2e-6

#: A poll isn't believed to be idle once the loop's timer is overdue by this (seconds).
_CREDIBLE = 0.005

#: Seconds for which looks stay frequent after a loop worked that can't be timed.
_STEADY = 1.0


#: A loop that runs these is waiting but for the monitors.
_MONITORS = {__file__} | {function.__code__.co_filename for function in (is_polling, judge, os_thread.own_usage)}


class ThreadSampler(Protocol):
    """Samples the threads registered with it. If it has ``add_hook`` and ``remove_hook``, its ticks are used too."""

    def watch_thread(self, ident: int | None = None, name: str | None = None) -> None:
        """Sample a thread."""

    def forget_thread(self, ident: int | None = None) -> None:
        """Sample a thread no longer."""


class _Finished(NamedTuple):
    """A time in which the loop may have stood still, reported by the loop itself at its end."""

    start: float
    stop: float
    before: Point
    after: Point


class LoopMonitor:
    """Watches one loop. Start it on the loop, or from elsewhere with the loop given.

    ``loop``: an asyncio loop (uvloop's too) or tornado's IOLoop; the running one if None. ``sampler``: registers the
    loop's thread there, and rides on its ticks; a thread of its own if None. ``gc``, ``gil``: monitors to share; its
    own if None. ``tick``: seconds between two looks at the lag; ``threshold``: shortest stall that is recorded;
    ``time_polls``: put a clock around asyncio's poll; ``log_every``: at most one line of warning in so many seconds,
    None for no log; ``lasting``: a stall is reported when it has lasted so long and goes on; ``keep``: stalls kept;
    ``history``: rows of the series, one a second.
    """

    def __init__(
        self,
        loop: Any = None,
        *,
        sampler: ThreadSampler | None = None,
        gc: GcMonitor | None = None,
        gil: GilMonitor | None = None,
        tick: float = 0.101,
        threshold: float = 0.1,
        time_polls: bool = True,
        log_every: float | None = 10.0,
        lasting: float = 5.0,
        keep: int = 1000,
        history: int = 7200,
    ) -> None:
        if tick <= 0 or threshold <= 0:
            raise ValueError("tick and threshold are seconds above 0")
        self._given = loop
        self._sampler = sampler
        self._own_gc = gc is None
        self._gc = gc if gc is not None else GcMonitor()
        self._gil = gil if gil is not None else GilMonitor(tick_source(sampler, threshold))
        self._tick = tick
        self.threshold = threshold
        self._lasting = lasting
        self._time_polls = time_polls
        self._log = StallLog(log_every)
        self._stalls: deque[Stall] = deque(maxlen=keep)
        #: Called with each stall, on the sampler's thread.
        self.on_stall: list[Callable[[Stall], None]] = []
        #: Stalls since the start, those no longer kept included, and their seconds.
        self.stall_count = 0
        self.stall_seconds = 0.0
        #: How late the loop ran its timers.
        self.lag = Histogram()
        #: One row a second: share of the time that was work, of that on the processor, mean and longest lag, stalls.
        self.series = Series(("busy", "cpu", "lag_mean", "lag_max", "stalls"), history)
        self._meter = CostMeter()  # on the loop
        self._watch_meter = CostMeter()  # on the sampler's thread
        self._ticks = 0
        self._running = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ident = 0
        self._clear()

    # On any thread

    def start(self) -> None:
        """Begin. Raises RuntimeError if no loop was given and none runs here."""
        if self._running:
            return
        loop = self._given if self._given is not None else asyncio.get_running_loop()
        self._loop = getattr(loop, "asyncio_loop", loop)
        self._running = True
        self._clear()
        try:
            running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            self._begin()
        else:
            self._loop.call_soon_threadsafe(self._begin)

    def stop(self) -> None:
        """Stop; what was recorded stays. May be called on any thread, and after the loop was closed."""
        if not self._running:
            return
        self._running = False
        ident = self._ident
        if ident:
            self._gil.unfollow(self._observe)
            if self._own_gc:
                self._gc.stop()
            if self._sampler is not None:
                self._sampler.forget_thread(ident)
        loop, end = self._loop, partial(_end, self._timer, self._handle, self._schedules)
        self._ident = 0
        if loop is None or loop.is_closed() or threading.get_ident() == ident:
            end()
        else:
            loop.call_soon_threadsafe(end)

    def stalls(self, start: float | None = None, stop: float | None = None) -> list[Stall]:
        """Stalls that reach into a window of the wall clock, oldest first."""
        low = float("-inf") if start is None else start
        high = float("inf") if stop is None else stop
        return [each for each in tuple(self._stalls) if each.start < high and each.start + each.duration > low]

    def totals(self) -> tuple[float, float]:
        """Seconds of wall clock since the start, and those that the loop worked. Differences give any window."""
        if not self._began:
            return 0.0, 0.0
        return now() - self._began, self._timer.worked() if self._timer else self._work.worked()

    @property
    def busy(self) -> float:
        """Share of the time since the start in which the loop was not waiting in its poll."""
        wall, worked = self.totals()
        return min(worked / wall, 1.0) if wall > 0 else 0.0

    @property
    def exact(self) -> bool:
        """Whether ``busy`` is timed at the poll; else it is from samples and the processor time."""
        return self._timer is not None

    def cost(self) -> Cost:
        """CPU seconds and calls of its timer on the loop, the clock at the poll, and its share of the ticks."""
        cheap = Cost(self._ticks * _TICK_COST, 0)
        turns = self._timer.turns if self._timer else 0
        return self._meter.cost() + self._watch_meter.cost() + cheap + Cost(turns * _TURN_COST, 0)

    def statistics(self) -> dict[str, Any]:
        """Plain values: lag, busy share, turns, stalls by cause, cost. Seconds."""
        by_cause: dict[str, dict[str, float]] = {}
        for stall in tuple(self._stalls):
            row = by_cause.setdefault(str(stall.cause), {"stalls": 0, "seconds": 0.0})
            row["stalls"] += 1
            row["seconds"] += stall.duration
        wall, worked = self.totals()
        lengths = self._timer.lengths if self._timer else None
        cost = self.cost()
        return {
            "running": self._running,
            "seconds": wall,
            "worked": worked,
            "busy": self.busy,
            "exact": self.exact,
            "lag": _quantiles(self.lag),
            "turns": self._timer.turns if self._timer else None,
            "long_turns": _quantiles(lengths) if lengths else None,
            "stalls": self.stall_count,
            "stall_seconds": self.stall_seconds,
            "causes": by_cause,
            "cost": {"cpu": cost.cpu, "calls": cost.calls},
        }

    def _clear(self) -> None:
        self._ident = 0
        self._native_id = 0
        self._began = 0.0
        self._due = 0.0
        self._alive = 0.0  # the loop's last sign of life
        self._edge = 0.0
        self._worked_at = 0.0  # the last look at which the loop was not polling
        self._last_stop = 0.0  # end of the last time reported as finished, so that none is reported twice
        self._pinged = False
        self._handle: asyncio.TimerHandle | None = None
        self._schedules: os_thread.ScheduleFile | None = None  # of the loop's thread
        self._timer: PollTimer | None = None
        self._work = SampledWork()
        self._driver: Leaf | None = None
        self._point = Point(0.0, os_thread.own_usage(), None)
        self._finished: deque[_Finished] = deque()
        self._suspicion: Suspicion | None = None
        self._previous: Suspicion | None = None
        self._row_start = self._row_worked = self._row_cpu = 0.0
        self._row_lags = 0
        self._row_lag = self._row_lag_max = 0.0
        self._row_stalls = self.stall_count

    # On the loop's thread

    def _begin(self) -> None:
        loop = self._loop
        if not self._running or self._ident or loop is None:
            return
        self._ident = threading.get_ident()
        self._native_id = threading.get_native_id()
        self._schedules = os_thread.ScheduleFile(self._native_id)
        self._began = self._alive = self._row_start = now()
        self._point = read_point(self._began, self._schedules)
        self._row_cpu = self._point.usage.user + self._point.usage.system
        if self._time_polls:
            timer = PollTimer(self.threshold, self._on_long_turn)
            if timer.attach(loop):
                self._timer = timer
        if self._own_gc:
            self._gc.start()
        self._schedule()
        if self._sampler is not None:
            self._sampler.watch_thread(self._ident, "event loop")
        self._gil.follow(self._observe)

    def _read(self, time: float) -> Point:
        assert self._schedules is not None
        return read_point(time, self._schedules)

    def _schedule(self) -> None:
        if self._loop is not None:
            self._due = now() + self._tick
            self._handle = self._loop.call_later(self._tick, self._beat)

    def _beat(self) -> None:
        mark = self._meter.begin()
        if not self._running:
            return
        ran = now()
        lag = max(ran - self._due, 0.0)
        self.lag.add(lag)
        self._row_lags += 1
        self._row_lag += lag
        self._row_lag_max = max(self._row_lag_max, lag)
        # Whoever called us is the loop, or Python code that called a loop written in C: there it waits for events.
        caller = sys._getframe(1)
        self._driver = (caller.f_code, caller.f_lasti) if not self._timer else None
        after = self._read(ran)
        if lag > self.threshold / 2:
            turn = self._timer.turn_started if self._timer else 0.0
            start = self._due if self._timer else self._stuck_since()
            self._report(start, turn or ran, after)
        self._point = after
        self._alive = ran
        if ran - self._row_start >= 1.0:
            self._add_row(ran)
        self._schedule()
        self._meter.end(mark)

    def _on_long_turn(self, start: float, stop: float) -> None:
        after = self._read(stop)
        self._report(start, stop, after)
        self._point = after

    def _on_ping(self) -> None:
        ran = now()
        self._pinged = False
        start = self._stuck_since()
        if ran - start > self.threshold:
            after = self._read(ran)
            self._report(start, ran, after)
            self._point = after
        self._alive = ran

    def _report(self, start: float, stop: float, after: Point) -> None:
        start = max(start, self._last_stop)
        if stop > start:
            self._finished.append(_Finished(start, stop, self._point, after))
            self._last_stop = stop

    def _add_row(self, ran: float) -> None:
        worked = self.totals()[1]
        cpu = self._point.usage.user + self._point.usage.system
        wall = ran - self._row_start
        self.series.append(
            ran,
            min((worked - self._row_worked) / wall, 1.0),
            (cpu - self._row_cpu) / wall,
            self._row_lag / self._row_lags,
            self._row_lag_max,
            self.stall_count - self._row_stalls,
        )
        self._row_start, self._row_worked, self._row_cpu = ran, worked, cpu
        self._row_lags, self._row_lag, self._row_lag_max = 0, 0.0, 0.0
        self._row_stalls = self.stall_count

    # On the sampler's thread

    def _observe(self, due: float, woke: float, look: Look) -> bool:
        self._ticks += 1
        leaf = look.leaves.get(self._ident)
        if leaf is None or not self._running:
            return False
        polling = is_polling(leaf, self._driver)
        if self._timer is None:
            idle = polling and woke < self._due + _CREDIBLE
            schedule = self._schedules.read() if self._schedules else None
            self._work.observe(woke, schedule.ran + schedule.waited if schedule else 0.0, idle)
            if idle:
                self._alive = max(self._alive, woke)
            elif self._edge <= self._alive:
                self._edge = (self._alive + max(due, self._alive)) / 2
        start = self._suspected(woke)
        if start or self._finished or self._suspicion:
            mark = self._watch_meter.begin()
            if start:
                self._sample(start, woke, look, polling=polling or leaf[0].co_filename in _MONITORS)
            while self._finished:
                self._close(self._finished.popleft(), look)
            if not start:
                self._suspicion = None
            self._watch_meter.end(mark)
        if not polling:
            self._worked_at = woke
        # What is estimated from looks is right only if they don't get rarer by what they see.
        return bool(start) or woke - self._worked_at < (_STEADY if self._timer is None else _CREDIBLE)

    def _suspected(self, woke: float) -> float:
        """When the loop seems to have stopped turning; 0 if it seems well."""
        patience = self.threshold / 2
        if self._timer is not None:
            turn = self._timer.turn_started
            start = turn or self._due
            return start if woke - start > patience else 0.0
        if woke - self._alive <= patience:
            return 0.0
        if not self._pinged and self._loop is not None:
            self._pinged = True
            try:
                self._loop.call_soon_threadsafe(self._on_ping)
            except RuntimeError:  # closed meanwhile
                return 0.0
        return self._stuck_since()

    def _stuck_since(self) -> float:
        """Without a clock at the poll: half-way from the last sign of life to the next look that was due."""
        return max(self._alive, self._edge)

    def _sample(self, start: float, woke: float, look: Look, *, polling: bool) -> None:
        stack = look.stacks().get(self._ident)
        if stack is None:
            return
        suspicion = self._suspicion
        if suspicion is None or abs(suspicion.start - start) > 0.001:
            self._previous = suspicion
            suspicion = self._suspicion = self._suspect(start, woke)
        suspicion.sample(woke, stack, polling=polling)
        if not suspicion.reported and woke - start > max(self._lasting, self.threshold):
            suspicion.reported = True
            self._log.write_lasting(woke - start, suspicion.dominating())

    def _suspect(self, start: float, woke: float) -> Suspicion:
        assert self._schedules is not None
        return Suspicion(start, woke, self._native_id, self._schedules, self._gil.clocks())

    def _close(self, finished: _Finished, look: Look) -> None:
        gaps = [gap for gap in tuple(self._gil.gaps) if gap.stop > finished.start and gap.start < finished.stop]
        start = _true_start(finished, gaps)
        if finished.stop - start <= self.threshold:
            return
        suspicion = self._evidence_of(finished)
        competitor = self._gil.busiest(suspicion.clocks, look, self._ident) if suspicion else None
        stall = judge(
            start,
            finished.stop,
            before=finished.before,
            after=finished.after,
            suspicion=suspicion,
            gaps=gaps,
            collections=self._gc,
            ident=self._ident,
            competitor=competitor,
        )
        self._stalls.append(stall)
        self.stall_count += 1
        self.stall_seconds += stall.duration
        self._log.write(stall)
        for callback in tuple(self.on_stall):
            try:
                callback(stall)
            except Exception:
                self.on_stall.remove(callback)
                logger.exception("a callback for stalls failed and is removed")

    def _evidence_of(self, finished: _Finished) -> Suspicion | None:
        """The samples of a stall: by the time its end is known the loop may be under the next suspicion already."""
        for suspicion in (self._suspicion, self._previous):
            if _overlaps(suspicion, finished):
                return suspicion
        return None


def _end(timer: PollTimer | None, handle: asyncio.TimerHandle | None, schedules: os_thread.ScheduleFile | None) -> None:
    """Take everything away from a loop, on its thread. Not a method: the monitor may have been started again."""
    if timer is not None:
        timer.detach()
    if handle is not None:
        handle.cancel()
    if schedules is not None:
        schedules.close()


def _overlaps(suspicion: Suspicion | None, finished: _Finished) -> bool:
    """Whether samples are of a stall. What was seen after its end is of what came next, however far back that began."""
    return suspicion is not None and finished.start < suspicion.opened < finished.stop


def _true_start(finished: _Finished, gaps: list[Gap]) -> float:
    """A loop that couldn't leave its poll was held up from when the ticking thread was, not from its own next timer."""
    starts = [gap.start for gap in gaps if gap.kind is not GapKind.NO_PROCESSOR and gap.start > finished.before.time]
    return min([finished.start, *starts])


def _quantiles(histogram: Histogram) -> dict[str, float]:
    return {
        "number": histogram.number,
        "mean": histogram.mean,
        "p50": histogram.quantile(0.5),
        "p90": histogram.quantile(0.9),
        "p99": histogram.quantile(0.99),
        "max": histogram.largest,
    }
