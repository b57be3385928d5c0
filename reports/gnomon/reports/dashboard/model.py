"""All that the dashboard knows of the cluster: what the scheduler's answers brought, and what is asked of it.

It does no input or output and reads no clock: whoever feeds it says when. Times are the scheduler's, in seconds.

Contents: Model, Gap, Event, Progress, ErrorNow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from math import inf, nan
from operator import sub
from typing import Any, NamedTuple

from gnomon.reports.collect.measurements import ticks, typed
from gnomon.reports.dashboard.counters import Counters, Departed, Facts, read_counters
from gnomon.reports.dashboard.history import History
from gnomon.reports.dashboard.looptimes import LoopTimes
from gnomon.reports.dashboard.rolling import Rolling, sum_runs
from gnomon.reports.dashboard.totals import Gap as SumsGap
from gnomon.reports.dashboard.totals import Sums
from gnomon.reports.dashboard.underway import LiveAccount, Underway, account_with
from gnomon.reports.dashboard.windows import Windows
from gnomon.reports.recording import TICKS, ErrorGroup, LogLine, Pair, Recording

__all__ = ["ErrorNow", "Event", "Gap", "Model", "Progress"]

#: Events, log lines and departed workers that are kept.
_KEPT = 1_000

#: Counters of the last seconds that rates are made of.
_RECENT = 120

_SCHEDULER = 0
_EXECUTOR = 2


class ErrorNow(NamedTuple):
    """Errors alike, since the scheduler began. ``worker_id`` -1: none; ``first`` and ``last`` scheduler time."""

    prefix: str
    type_name: str
    summary: str
    count: int  # type: ignore[assignment]  # the tuple's own method is nobody's here
    key: str
    worker_id: int
    text: str
    first: float
    last: float


class Event(NamedTuple):
    """Something that happened: ``kind`` is ``join``, ``leave``, ``stall``, ``gap`` or ``connection``."""

    time: float
    kind: str
    text: str


class Gap(NamedTuple):
    """A time of which ``rows`` runs are known by their sums alone."""

    start: float
    stop: float
    rows: int


class Progress(NamedTuple):
    """How far the living tasks of a prefix are.

    ``done``: those whose results have been let go, and those that erred, included. ``eta_seconds``: that the rest takes
    at this rate; None: not known.
    """

    prefix: str
    done: int
    total_known: int
    processing: int
    waiting: int
    erred: int
    rate: float
    eta_seconds: float | None


class Model:
    """See the module. ``limit``: rows of each kind that are kept with their details."""

    def __init__(self, limit: int = 100_000) -> None:
        self.limit = limit
        self.version = 0
        self.connected = False
        self.retries = 0
        self.address = ""
        self._heard = -inf
        self._events: deque[Event] = deque(maxlen=_KEPT)
        self._reset("", 0.0)

    def _reset(self, scheduler_id: str, begin: float) -> None:
        """Begin anew: nothing known, or another scheduler in the place of the one before."""
        self.scheduler_id = scheduler_id
        self.started = self.begin = begin
        self.now = 0.0
        self.counters: Counters | None = None
        self.history = History(begin)
        self.loop_times = LoopTimes(begin)
        self.missed: dict[str, int] = {}
        self.errors: list[ErrorNow] = []
        self.errors_seen = self.errors_ungrouped = 0
        self.logs: deque[tuple[float, str, str]] = deque(maxlen=_KEPT)
        self.logs_seen = 0
        self.pairs: list[Sequence[Any]] = []
        self._pair_parts: dict[tuple[Any, ...], Sequence[float]] = {}
        self.departed: deque[Departed] = deque(maxlen=_KEPT)
        self.next: tuple[int, ...] | None = None
        self.known = 0
        self.behind = 0
        self.left = 0.0
        self._rolling = Rolling(begin, self.limit)
        self._underway = Underway()
        self._windows = Windows(self._rolling.window, self._ended, self._account)
        self._facts: dict[int, Facts] = {}
        self._cpus: dict[int, float] = {}
        self._scheduler_row: dict[str, float] = {}
        self._recent: deque[Counters] = deque(maxlen=_RECENT)
        self._base: tuple[Sums, Sums] = Sums(), Sums()
        self._detailed: tuple[Sums, Sums] = Sums(), Sums()
        self._gap: tuple[int, int] | None = None
        self._stalls_told = self._last_stop = 0

    # What comes

    def question(self) -> dict[str, Any]:
        """The arguments of the next ``live`` request."""
        return {
            "since": self.next,
            "known": self.known,
            "left": self.left,
            "errors": self.errors_seen,
            "logs": self.logs_seen,
        }

    def apply(self, answer: Mapping[str, Any], heard: float) -> bool:
        """Take an answer to ``live``; ``heard`` is our own steady clock. False: there is more to be asked for now."""
        if answer["id"] != self.scheduler_id:
            other = bool(self.scheduler_id)
            self._reset(answer["id"], answer["started"])
            if other:  # and this answer is to a question about the one before
                self.note(answer["now"], "connection", "another scheduler answers here: everything begins anew")
                return False
        before, self.now = self.now, answer["now"]
        self._take_workers(answer, before)
        done = self._take_page(answer, before)
        counters = read_counters(answer, self._facts, self._cpus)
        self.counters = counters
        self._recent.append(counters)
        self.loop_times.append(self.now, answer["loop"], answer["traffic"])
        if done:
            self._settle(counters)
        else:
            self._await_rows(counters)
        self._take_news(answer)
        self._rolling.trim()
        self._heard = heard
        self.connected = True
        self.version += 1
        return done

    def begin_anew(self) -> None:
        """Forget everything: what was known can't be trusted any more."""
        self._reset("", 0.0)

    def skip(self, answer: Mapping[str, Any]) -> None:
        """Leave what this answer did not bring to the sums, and go on after it."""
        assert self.next is not None
        assert self.counters is not None
        self._miss(answer, self.next, answer["number"], self._last_stop, ticks(self.now - self.begin))
        self.next = tuple(answer["number"])
        self.behind = 0
        self._settle(self.counters)  # which are this answer's: up to its numbers, every row has come or is left out

    def lost_connection(self) -> None:
        """The scheduler can't be asked."""
        if self.connected:
            self.note(self.now, "connection", "the scheduler does not answer")
        self.connected = False

    def note(self, when: float, kind: str, text: str) -> None:
        """Record an event."""
        self._events.append(Event(when, kind, text))

    def _take_workers(self, answer: Mapping[str, Any], before: float) -> None:
        rolling, begin = self._rolling, self.begin
        for row in answer["facts"]:
            worker_id, name, address, host, _, nthreads, _, joined = row
            rolling.see_worker(worker_id, name, address, nthreads, host, joined)
            self.history.add_capacity(joined - begin, self.now - begin, nthreads)
            self.note(joined, "join", f"worker {name} joined at {address} with {nthreads} threads")
            self.known = max(self.known, worker_id)
            self._windows.forget_from(ticks(joined - begin))
        fresh = {row[0] for row in answer["facts"]}
        if before:
            threads = sum(f.nthreads for f in self._facts.values() if f.id not in fresh)
            self.history.add_capacity(before - begin, self.now - begin, threads)
        for worker_id, name, address, nthreads, host, joined, left, reason in answer["departed"]:
            if worker_id not in self._facts:  # it came and went unseen
                rolling.see_worker(worker_id, name, address, nthreads, host, joined)
                self.history.add_capacity(joined - begin, left - begin, nthreads)
            rolling.lose_worker(worker_id, left, reason)
            self._windows.forget_from(ticks(left - begin))
            self._facts.pop(worker_id, None)
            self._cpus.pop(worker_id, None)
            self.departed.append(Departed(worker_id, name, address, nthreads, host, joined, left, reason))
            self.note(left, "leave", reason or f"worker {name} left")
            self.left = max(self.left, left)

    def _take_page(self, answer: Mapping[str, Any], before: float) -> bool:
        """Take the telemetry's rows; whether there are no more."""
        page, rings = answer["page"], list(answer["rings"])
        expected = self.next or (0,) * len(page["next"])
        here = [number + gone for number, gone in zip(expected, page["missed"], strict=True)]
        start = ticks(before - self.begin) if before else 0
        self._miss(answer, expected, here, start, ticks(self.now - self.begin))
        self._read_cpus(page)
        rolling = self._rolling
        new, since = rolling.append(page)
        if new:
            self.history.add_runs(rolling.ended(new))
            prefixes, workers = rolling.sums(new)
            self._detailed[0].merge(prefixes)
            self._detailed[1].merge(workers)
            self._underway.take_runs(rolling.runs, new, rolling.workers)
            if page["missed"][rings.index("runs")] and self._gap is not None:
                self._gap = self._gap[0], max(self._gap[0] + 1, min(map(rolling.stop_of, new)))
            self._last_stop = max(self._last_stop, *map(rolling.stop_of, new))
        self._windows.forget_from(min(since, start))
        self.next = tuple(page["next"])
        self.behind = answer["number"][rings.index("runs")] - self.next[rings.index("runs")]
        return bool(page["done"])

    def _miss(
        self, answer: Mapping[str, Any], expected: Sequence[int], here: Sequence[int], start: int, stop: int
    ) -> None:
        """Rows between two numbers of each ring never come; runs among them ended between two times in ticks."""
        for name, low, high in zip(answer["rings"], expected, here, strict=True):
            if high <= low:
                continue
            self.missed[name] = self.missed.get(name, 0) + high - low
            if name == "runs":
                known = self._gap or (start, stop)
                self._gap = min(known[0], start), max(known[1], stop, start + 1)
            elif name == "demand":
                self._rolling.demand.restart(answer.get("demand", ()), ticks(self.now - self.begin))

    def _read_cpus(self, page: Mapping[str, Any]) -> None:
        """What the tasks' processes used last, in percent of one processor."""
        if "series" in page:
            part, order = page["series"], page["byteorder"]
            width, at = len(part["columns"]), part["columns"].index("cpu")
            values = typed("d", part["values"], order)
            processes = typed("b", part["processes"], order)
            for row, worker_id in enumerate(typed("q", part["workers"], order)):
                if processes[row] == _EXECUTOR:
                    self._cpus[worker_id] = values[row * width + at]
                elif processes[row] == _SCHEDULER:
                    cells = values[row * width : (row + 1) * width]
                    self._scheduler_row = dict(zip(part["columns"], cells, strict=True))

    def _await_rows(self, counters: Counters) -> None:
        """More rows are to come: until then what the sums hold beyond those that came lies behind the last of these."""
        gaps, now = self._rolling.gaps, ticks(self.now - self.begin)
        before, start = gaps.pending, min(self._last_stop, now - 1)
        gaps.pending = SumsGap(
            start,
            now,
            counters.prefix_sums.minus(self._base[0], self._detailed[0]),
            counters.worker_sums.minus(self._base[1], self._detailed[1]),
        )
        self._windows.forget_from(start if before is None else min(start, before.start))

    def _settle(self, counters: Counters) -> None:
        """All rows that there are have come: what the sums hold beyond them is a gap."""
        pending, self._rolling.gaps.pending = self._rolling.gaps.pending, None
        if pending is not None:
            self._windows.forget_from(pending.start)
        if self._gap is not None:
            prefixes = counters.prefix_sums.minus(self._base[0], self._detailed[0])
            workers = counters.worker_sums.minus(self._base[1], self._detailed[1])
            gap = SumsGap(*self._gap, prefixes, workers)
            if gap.rows:
                self._rolling.gaps.add(gap)
                self.history.add_sums(gap.start, gap.stop, prefixes)
                self._windows.forget_from(gap.start)
                self._underway.lose_runs(workers, gap.stop)
                text = f"{gap.rows:,} runs came too fast, or too long ago, to be shown singly; their sums are complete"
                self.note(self.begin + gap.stop / TICKS, "gap", text)
        self._gap = None
        self._base = counters.prefix_sums, counters.worker_sums
        self._detailed = Sums(), Sums()
        self._find_underway(counters)

    def _find_underway(self, counters: Counters) -> None:
        """Tell which threads are in tasks that have not ended."""
        demand = self._rolling.demand
        joined = {worker_id: ticks(facts.joined - self.begin) for worker_id, facts in self._facts.items()}
        now = ticks(self.now - self.begin)
        changed = self._underway.settle(counters.workers, joined, demand.since, now, told=demand.known_from is not None)
        if changed is not None:
            self._windows.forget_from(changed)

    def _take_news(self, answer: Mapping[str, Any]) -> None:
        if answer["errors"]:
            self.errors = sorted((ErrorNow(*row) for row in answer["errors"]), key=lambda row: -row.last)
        self.errors_seen, self.errors_ungrouped = answer["errors_seen"], answer["errors_ungrouped"]
        self.logs.extend(tuple(row) for row in answer["logs"])
        self.logs_seen = answer["logs_seen"]
        if "pairs" in answer:
            self.pairs = answer["pairs"]
            self._pair_parts = {tuple(row[:3]): row[3:] for row in answer["pair_parts"]}
        names = {-1: "the scheduler"} | {row: worker.label for row, worker in enumerate(self._rolling.workers)}
        for stall in self._rolling.stalls_since(self._stalls_told):
            self._stalls_told = max(self._stalls_told, stall.begin + 1)
            where = names.get(stall.worker, "a worker that left")
            why = f"{stall.cause} {stall.detail}".strip()
            text = f"the event loop of {where} stood still for {stall.length / TICKS:.3g} s: {why}"
            self.note(self.begin + stall.begin / TICKS, "stall", text)

    # What is asked

    def age(self, clock: float) -> float:
        """Seconds since the last answer came, by the steady clock of who feeds this."""
        return clock - self._heard

    def scheduler_series(self) -> dict[str, float]:
        """What the scheduler measured of itself last, by the names of a series' columns; NaN: not measured."""
        return dict(self._scheduler_row)

    @property
    def kept_from(self) -> float:
        """From when on runs have rows."""
        return self.begin + self._rolling.kept_from / TICKS

    @property
    def gaps(self) -> list[Gap]:
        """Times of which runs are known by their sums alone."""
        return [Gap(self.begin + g.start / TICKS, self.begin + g.stop / TICKS, g.rows) for g in self._rolling.gaps]

    @property
    def events(self) -> list[Event]:
        """What happened, oldest first."""
        return sorted(self._events)

    def recording(self, start: float | None = None, stop: float | None = None) -> Recording:
        """What is kept of a window, as a recording that begins at ``start``.

        Its runs are those that overlap the window. Its totals count them, and those without rows; errors, logs and
        pairs are those of the whole run. The loop's budget lies between the answers nearest to the window's ends.
        """
        low, high = self._window(self.kept_from if start is None else start, stop)
        recording = self._rolling.window(low, high)
        loop = self.loop_times.window(self.begin + low / TICKS, self.begin + high / TICKS)
        recording.loop = [] if loop is None else loop.parts
        recording.errors = [ErrorGroup(*error[:7]) for error in self.errors]
        recording.logs = [LogLine(ticks(time - recording.start), level, text) for time, level, text in self.logs]
        recording.pairs = [
            Pair(*row[:5], *map(ticks, (*row[5:], *self._pair_parts.get(tuple(row[:3]), ())))) for row in self.pairs
        ]
        return recording

    def account(self, start: float | None = None, stop: float | None = None, *, exact: bool = False) -> LiveAccount:
        """The account of a window of whole seconds; made anew only where rows came. Its runs are those that ended.

        ``exact``: of the window as it is, made at once; its runs are those that overlap it.
        """
        low, high = self._window(self.kept_from if start is None else start, stop)
        if exact:
            return self._account(self._rolling.window(low, high), low)
        return self._windows.account(low, high, max(0, ticks(self.now - self.begin)))

    def _account(self, recording: Recording, low: int) -> LiveAccount:
        return account_with(recording, self._underway, low)

    def _window(self, start: float, stop: float | None) -> tuple[int, int]:
        now = max(0, ticks(self.now - self.begin))
        low = min(max(0, ticks(start - self.begin)), now)
        return low, max(low, now if stop is None else min(now, ticks(stop - self.begin)))

    def _ended(self, recording: Recording, low: int, high: int) -> tuple[Sums, Sums]:
        """Sums of the runs that ended in a window, those without rows included."""
        ended = [row for row, end in enumerate(recording.runs.ends()) if 0 < end <= high - low]
        prefixes, workers = sum_runs(recording, ended)
        lost_prefixes, lost_workers = self._rolling.gaps.share(low, high)
        prefixes.merge(lost_prefixes)
        workers.merge(lost_workers)
        return prefixes, workers

    def rates(self, seconds: float = 5.0) -> dict[str, float]:
        """Tasks, errors and bytes of results per second, over the last seconds; NaN where that is not known yet."""
        before, here = self._before(seconds), self.counters
        if before is None or here is None:
            return dict.fromkeys(("tasks", "erred", "bytes"), nan)
        grown = map(sub, _whole(here.prefix_sums), _whole(before.prefix_sums))
        return {
            name: amount / (here.time - before.time)
            for name, amount in zip(("tasks", "erred", "bytes"), grown, strict=True)
        }

    def _before(self, seconds: float) -> Counters | None:
        """The counters of so many seconds ago, or the oldest since then."""
        found = None
        for counters in self._recent:
            if counters.time < self.now and (found is None or counters.time <= self.now - seconds):
                found = counters
        return found

    def progress(self, seconds: float = 30.0) -> list[Progress]:
        """Rows for the prefixes of living tasks, those with the most to do first."""
        if self.counters is None:
            return []
        before = self._before(seconds)
        rows = []
        for prefix, states in self.counters.prefixes.items():
            total = sum(states.values())
            done = states["memory"] + states["erred"] + states["released"]
            rate = nan
            if before is not None:
                was = before.prefix_sums.get(prefix, (0,))[0]
                rate = (self.counters.prefix_sums.get(prefix, (0,))[0] - was) / (self.counters.time - before.time)
            left = total - done
            eta = 0.0 if not left else left / rate if rate > 0 else None
            waiting = left - states["processing"]
            rows.append(Progress(prefix, done, total, states["processing"], waiting, states["erred"], rate, eta))
        return sorted(rows, key=lambda row: (row.done - row.total_known, -row.total_known, row.prefix))


def _whole(sums: Sums) -> list[int]:
    """Tasks, errors and bytes of all names together."""
    return [sum(amounts[at] for amounts in sums.values()) for at in range(3)]
