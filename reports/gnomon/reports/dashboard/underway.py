"""Tasks that have not ended yet: which threads they hold since when, and an account of the threads that has their time.

A run is told when it ends. Until then it is known only that its worker holds tasks, and which of its threads have told
of no run since: their *tails*. So at most as many tails as there are tasks are taken for runs that go on:

- a tail begins with the thread's last known run, or with the worker;
- no more tails are taken at a time than the worker held tasks at any later answer, less those whose runs had begun by
  then and have been told of since, and less one if it was still fetching values or handing over;
- none before the time from which on the worker has held tasks without a break.

These rows are laid among the others when an account is made, and then taken out of computing as a part of its own. When
the run is told of, its row takes their place, and its time is computing, waiting, decoding and encoding as always.

Contents: Underway, Row, LiveAccount, LIVE_PARTS, account_with.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gnomon.reports.account import PARTS, Account, fill_account
from gnomon.reports.dashboard.counters import WorkerNow
from gnomon.reports.grouping import sums_by
from gnomon.reports.recording import TICKS, Recording, Worker
from gnomon.reports.records import Runs
from gnomon.reports.slots import Layout, lay_out
from gnomon.runtime.instruments.demand import ASSIGNED, FETCHING, READY

__all__ = ["LIVE_PARTS", "LiveAccount", "Row", "Underway", "account_with"]

#: The parts of a live account: the report's, with that of tasks that have not ended behind those of tasks that have.
LIVE_PARTS = (*PARTS[: PARTS.index("transfer")], "underway", *PARTS[PARTS.index("transfer") :])

#: Answers whose numbers of tasks are kept, and numbers that are kept of all of them together.
_ANSWERS = 600
_NUMBERS = 200_000

#: Ticks (10 ms) by which clocks of workers may be off: a run that begins so close to an answer may have come after it.
_MARGIN = TICKS // 100

#: The prefix of rows that are no runs; no task's key can begin so.
_PREFIX = "\0underway"


class Row(NamedTuple):
    """A thread that is taken to be in one task from ``begin`` (ticks since the run's begin) on."""

    worker_id: int
    thread: int
    begin: int


@dataclass(slots=True)
class LiveAccount(Account):
    """An account whose ``parts`` and ``underway`` sum to the capacity; ``underway_of``: the same by worker id."""

    underway: int = 0
    underway_of: dict[int, int] = field(default_factory=dict)

    def live_values(self) -> list[int]:
        """The amounts in the order of ``LIVE_PARTS``."""
        return [self.underway if name == "underway" else getattr(self.parts, name) for name in LIVE_PARTS]


class Underway:
    """What answers told of threads and of tasks; times in ticks since the run's begin.

    ``rows``: the threads that were in tasks at ``until``, and from when on. Beyond it runs are still to be told of.
    """

    def __init__(self) -> None:
        self.rows: frozenset[Row] = frozenset()
        self.until = 0
        self._ends: dict[int, dict[int, int]] = {}
        self._from: dict[int, int] = {}
        self._times: list[int] = []
        self._held: list[dict[int, int]] = []

    def take_runs(self, runs: Runs, rows: Iterable[int], workers: Sequence[Worker]) -> None:
        """Runs were told of."""
        times = self._times
        for row in rows:
            if runs.workers[row] < 0:
                continue
            worker_id, begin = workers[runs.workers[row]].worker_id, runs.begins[row]
            end = begin + runs.decodes[row] + runs.computes[row] + runs.encodes[row]
            ends = self._ends.setdefault(worker_id, {})
            thread = runs.threads[row]
            if end > ends.get(thread, -1):
                ends[thread] = end
            if times and begin + _MARGIN < times[-1]:
                for at in range(bisect_left(times, begin + _MARGIN), len(times)):
                    if worker_id in self._held[at]:
                        self._held[at][worker_id] -= 1

    def lose_runs(self, workers: Iterable[int], until: int) -> None:
        """Runs of workers, up to a time, are known by their sums alone: so are the tails of their threads."""
        for worker_id in workers:
            self._from[worker_id] = max(until, self._from.get(worker_id, 0))

    def settle(
        self, workers: Mapping[int, WorkerNow], joined: Mapping[int, int], since: Mapping[tuple[int, int], int],
        now: int, *, told: bool,
    ) -> int | None:  # fmt: skip
        """All runs that ended are known: find the rows anew. From when on accounts change with them, or None.

        ``joined``: when workers came; ``since``: from when on there has been demand, by worker and kind; ``told``:
        whether anybody tells of demand.
        """
        held = {}
        for each in workers.values():
            waits = (each.id, FETCHING) in since or (each.id, READY) in since
            if each.processing - waits > 0:
                held[each.id] = each.processing - waits
        found: list[Row] = []
        for worker_id, tasks in held.items():
            first = since.get((worker_id, ASSIGNED), now) if told else 0
            first = max(first, self._from.get(worker_id, 0), joined.get(worker_id, now))
            if first < now:
                found += self._tails(worker_id, workers[worker_id].nthreads, tasks, first, now)
        for worker_id in [known for known in self._ends if known not in workers]:
            del self._ends[worker_id]
        self._times.append(now)
        self._held.append(held)
        most = min(_ANSWERS, max(2, _NUMBERS // max(1, len(held))))
        del self._times[:-most], self._held[:-most]
        changed = [row.begin for row in self.rows.symmetric_difference(found)]
        if found:
            changed.append(self.until)
        self.rows, self.until = frozenset(found), now
        return min(changed, default=None)

    def _tails(self, worker_id: int, nthreads: int, tasks: int, first: int, now: int) -> Iterable[Row]:
        """The threads of a worker that are taken to be in tasks: none of them before ``first``."""
        ends = sorted(((end, thread) for thread, end in self._ends.get(worker_id, {}).items()), reverse=True)
        tails = [(end, thread) for end, thread in ends[:nthreads]]
        tails += [(first, -1 - at) for at in range(nthreads - len(tails))]
        tails = sorted((max(first, end), thread) for end, thread in tails)
        most, at = min(tasks, nthreads), len(self._times) - 1
        begins = [end for end, _ in tails[:most]]
        while most and at >= 0 and self._times[at] > begins[0]:
            here = max(0, self._held[at].get(worker_id, 0))
            for later in range(here, most):  # so many tails, and no more, reach back beyond this answer
                begins[later] = max(begins[later], self._times[at])
            most, at = min(most, here), at - 1
        return [Row(worker_id, thread, begin) for begin, (_, thread) in zip(begins, tails, strict=False) if begin < now]


def account_with(recording: Recording, underway: Underway, low: int) -> LiveAccount:
    """The account of a recording that begins at ``low``, with threads in tasks that have not ended; it is changed."""
    index = {worker.worker_id: at for at, worker in enumerate(recording.workers)}
    high = low + recording.duration
    mine = [row for row in underway.rows if row.worker_id in index and row.begin < high and underway.until > low]
    if mine:
        _lay_in(recording, mine, index, low, min(high + 1, underway.until))
    laid = lay_out(recording)
    live = LiveAccount()
    fill_account(live, recording, laid)
    _name_rest(live, known=recording.demand.known)
    _set_apart(live, recording, laid, len(recording.runs) - len(mine))
    live.parts = live.workers.total()
    live.prefixes = [prefix for prefix in live.prefixes if prefix.name != _PREFIX]
    return live


def _name_rest(live: LiveAccount, *, known: bool) -> None:
    """Tell what is left of times whose runs have no rows.

    The sums of these runs are complete, and demand does not depend on rows: so what neither names was in no task and
    waited for nothing. Where demand is not known it is like any other gap between tasks.
    """
    live.workers.part("idle" if known else "between")[:] += live.workers.part("unaccounted")
    live.workers.part("unaccounted")[:] = 0


def _set_apart(live: LiveAccount, recording: Recording, laid: Layout, first: int) -> None:
    """Take what the rows from ``first`` on got out of computing."""
    import numpy

    owners, ours = numpy.asarray(recording.runs.workers)[first:], laid.rows >= first
    (ticks,) = sums_by(laid.workers[ours], len(live.workers), [(laid.ends - laid.begins)[ours]])
    (tasks,) = sums_by(owners, len(live.workers), [numpy.ones(len(owners), "q")])
    live.workers.part("compute")[:] -= ticks
    live.workers.number("tasks")[:] -= tasks
    live.underway = int(ticks.sum())
    live.underway_of = {live.workers.workers[at].worker_id: int(ticks[at]) for at in numpy.flatnonzero(tasks).tolist()}


def _lay_in(recording: Recording, rows: Iterable[Row], index: Mapping[int, int], low: int, until: int) -> None:
    """Put rows, up to a time, behind a recording's runs, with totals, and a prefix of their own."""
    runs = recording.runs
    totals = {row.name: row for row in recording.worker_totals}
    runs.prefix_names = [*runs.prefix_names, _PREFIX]
    measured = len(runs.cpus) > 0
    for worker_id, thread, begin in rows:
        length = until - begin
        runs.keys.append("")
        for column, value in (
            (runs.prefixes, len(runs.prefix_names) - 1), (runs.workers, index[worker_id]), (runs.threads, thread),
            (runs.begins, begin - low), (runs.decodes, 0), (runs.computes, length), (runs.encodes, 0),
            (runs.nbytes, 0), (runs.ok, 1),
        ):  # fmt: skip
            column.append(value)
        if measured:
            runs.cpus.append(-1)
        if worker_id in totals:
            row = totals[worker_id]
            totals[worker_id] = row._replace(tasks=row.tasks + 1, compute=row.compute + length)
    recording.worker_totals = list(totals.values())
