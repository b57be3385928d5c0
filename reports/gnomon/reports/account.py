"""Where the time of every worker thread went, in parts that exclude each other and add up.

Capacity is the sum over workers of their threads times the time they were there. Each worker's runs are laid into as
many slots as it has threads; what lies in the gaps is waiting or idleness. Work beyond the threads (a task that left
its slot and runs on) can't be inside the capacity and is counted apart, as *alongside*. All amounts are whole ticks, so
``sum(parts) == capacity`` holds exactly, as do the sums by prefix and by worker.

Runs whose details are gone (the scheduler's ring was full) still count, by the complete totals; they are taken out of
the time before a slot's first known run, and what remains of that time is *unaccounted*: nobody can say what it was.

Contents: PARTS, Parts, PrefixAccount, WorkerAccount, Account, account, apportion, percentages.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from gnomon.reports.recording import Recording, Totals, Worker

__all__ = ["PARTS", "Account", "Parts", "PrefixAccount", "WorkerAccount", "account", "apportion", "percentages"]

#: The parts of a thread's time, in the order in which they are shown.
PARTS = ("compute", "decode", "encode", "transfer", "between", "idle", "unaccounted")


@dataclass(slots=True)
class Parts:
    """Ticks by part.

    ``compute`` is the user's code; ``decode`` and ``encode`` are unpickling arguments and pickling results;
    ``transfer`` is no task on a thread while its worker fetched data; ``between`` is the other gaps between two tasks;
    ``idle`` is before a thread's first and after its last task; ``unaccounted`` is what the records don't tell.
    """

    compute: int = 0
    decode: int = 0
    encode: int = 0
    transfer: int = 0
    between: int = 0
    idle: int = 0
    unaccounted: int = 0

    @property
    def busy(self) -> int:
        """Ticks in tasks."""
        return self.compute + self.decode + self.encode

    def values(self) -> list[int]:
        """The amounts in the order of ``PARTS``."""
        return [getattr(self, name) for name in PARTS]

    def add(self, other: Parts) -> None:
        """Add another's amounts to these."""
        for name in PARTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(slots=True)
class PrefixAccount:
    """The tasks of one prefix: how many (complete), and their ticks inside the capacity."""

    name: str
    tasks: int = 0
    erred: int = 0
    nbytes: int = 0
    parts: Parts = field(default_factory=Parts)


@dataclass(slots=True)
class WorkerAccount:
    """One worker: its capacity in ticks, and the parts, which sum to it.

    ``lead`` is how much of ``parts.idle`` lies before a slot's first run with details, or in a slot that has none.
    """

    worker: Worker
    capacity: int = 0
    tasks: int = 0
    erred: int = 0
    nbytes: int = 0
    alongside: int = 0
    lead: int = 0
    parts: Parts = field(default_factory=Parts)


@dataclass(slots=True)
class Account:
    """The account of a recording. Prefixes by descending time, workers in order of joining; ``alongside`` in ticks."""

    capacity: int = 0
    alongside: int = 0
    parts: Parts = field(default_factory=Parts)
    prefixes: list[PrefixAccount] = field(default_factory=list)
    workers: list[WorkerAccount] = field(default_factory=list)
    tasks: int = 0
    erred: int = 0
    nbytes: int = 0

    @property
    def threads(self) -> int:
        """Threads of all workers that were there at any time."""
        return sum(account.worker.nthreads for account in self.workers)


def account(recording: Recording) -> Account:
    """The account of a recording."""
    result = Account()
    names = recording.runs.prefix_names
    by_prefix = {name: PrefixAccount(name) for name in names}
    slots_of: list[PrefixAccount] = [by_prefix[name] for name in names]
    rows_of = _rows_by_worker(recording)
    inbound = _inbound(recording)
    totals_of = {totals.name: totals for totals in recording.worker_totals}
    lost = Parts()
    for index, worker in enumerate(recording.workers):
        one = _worker(recording, worker, rows_of[index], inbound[index], slots_of)
        _add_lost(one, recording, rows_of[index], totals_of.get(worker.worker_id), lost)
        result.workers.append(one)
        result.capacity += one.capacity
        result.alongside += one.alongside
        result.parts.add(one.parts)
    result.alongside += sum(_length(recording, row) for row in rows_of[-1])
    _add_lost_prefixes(recording, by_prefix, lost)
    for totals in recording.prefixes:
        prefix = by_prefix[str(totals.name)]
        prefix.tasks, prefix.erred, prefix.nbytes = totals.tasks, totals.erred, totals.nbytes
        result.tasks += totals.tasks
        result.erred += totals.erred
        result.nbytes += totals.nbytes
    result.prefixes = sorted(by_prefix.values(), key=lambda prefix: (-prefix.parts.busy, -prefix.tasks, prefix.name))
    return result


@dataclass(slots=True)
class _Slot:
    """One thread's worth of a worker's time: until when it is told, and what lay before its first task."""

    end: int
    used: bool = False


class _Covered:
    """How much of a span of time some intervals cover."""

    def __init__(self, intervals: list[tuple[int, int]]) -> None:
        self._edges: list[int] = []  # begin, end, begin, end... disjoint and ascending
        self._sums: list[int] = [0]  # covered up to each end
        for begin, end in sorted(intervals):
            if end <= begin:
                continue
            if self._edges and begin <= self._edges[-1]:
                if end > self._edges[-1]:
                    self._sums[-1] += end - self._edges[-1]
                    self._edges[-1] = end
            else:
                self._edges += (begin, end)
                self._sums.append(self._sums[-1] + end - begin)

    def _until(self, time: int) -> int:
        position = bisect_right(self._edges, time)
        total = self._sums[position // 2]
        return total + time - self._edges[position - 1] if position % 2 else total

    def within(self, begin: int, end: int) -> int:
        return self._until(end) - self._until(begin) if self._edges else 0


def _worker(
    recording: Recording, worker: Worker, rows: Sequence[int], inbound: _Covered, prefixes: Sequence[PrefixAccount]
) -> WorkerAccount:
    """Lay the runs of one worker into its slots."""
    runs = recording.runs
    low, high = _presence(recording, worker)
    one = WorkerAccount(worker, capacity=worker.nthreads * (high - low), tasks=len(rows))
    slots = [_Slot(low) for _ in range(worker.nthreads)]
    parts = one.parts
    of_thread: dict[int, _Slot] = {}
    for row in sorted(rows, key=runs.begins.__getitem__):
        one.nbytes += runs.nbytes[row]
        one.erred += not runs.ok[row]
        start = runs.begins[row]
        started = start + runs.decodes[row]
        ended = started + runs.computes[row]
        stop = ended + runs.encodes[row]
        slot = of_thread.get(runs.threads[row])
        if slot is None or slot.end > start:
            slot = min(slots, key=lambda s: s.end, default=None)
            if slot is None:
                one.alongside += stop - start
                continue
            of_thread[runs.threads[row]] = slot
        begin = min(max(start, slot.end), high)
        finish = min(max(stop, begin), high)
        one.alongside += max(0, min(begin, stop) - max(start, low))  # what found no free slot
        _gap(one, slot, begin, inbound)
        tasks = prefixes[runs.prefixes[row]].parts
        for name, first, after in (("decode", start, started), ("compute", started, ended), ("encode", ended, stop)):
            ticks = max(0, min(after, finish) - max(first, begin))
            setattr(parts, name, getattr(parts, name) + ticks)
            setattr(tasks, name, getattr(tasks, name) + ticks)
        slot.end, slot.used = max(slot.end, finish), True
    parts.idle += sum(high - slot.end for slot in slots)
    one.lead += sum(high - slot.end for slot in slots if not slot.used)
    return one


def _gap(one: WorkerAccount, slot: _Slot, until: int, inbound: _Covered) -> None:
    """Tell what a slot did from its end to ``until``, where its next task begins."""
    parts = one.parts
    waited = inbound.within(slot.end, until)
    parts.transfer += waited
    rest = until - slot.end - waited
    if slot.used:
        parts.between += rest
    else:
        parts.idle += rest
        one.lead += rest


def _add_lost(
    one: WorkerAccount, recording: Recording, rows: Sequence[int], totals: Totals | None, lost: Parts
) -> None:
    """Count the runs of a worker that have no details here, by the worker's complete totals."""
    if totals is None or totals.tasks <= one.tasks:
        return
    runs, parts = recording.runs, one.parts
    missing = [
        max(0, total - sum(column[row] for row in rows))
        for total, column in (
            (totals.decode, runs.decodes),
            (totals.compute, runs.computes),
            (totals.encode, runs.encodes),
        )
    ]
    wanted = sum(missing)
    granted = min(wanted, parts.idle + parts.between + parts.transfer)
    one.alongside += wanted - granted
    unknown = max(0, one.lead - granted)
    left = granted
    for name in ("idle", "between", "transfer"):
        taken = min(left, getattr(parts, name))
        setattr(parts, name, getattr(parts, name) - taken)
        left -= taken
    parts.unaccounted += unknown
    parts.idle -= unknown
    for name, ticks in zip(("decode", "compute", "encode"), apportion(granted, missing), strict=True):
        setattr(parts, name, getattr(parts, name) + ticks)
        setattr(lost, name, getattr(lost, name) + ticks)
    one.tasks, one.erred, one.nbytes = totals.tasks, totals.erred, totals.nbytes


def _add_lost_prefixes(recording: Recording, by_prefix: dict[str, PrefixAccount], lost: Parts) -> None:
    """Spread the time of runs without details over the prefixes, by the prefixes' complete totals."""
    runs = recording.runs
    for totals in recording.prefixes:
        by_prefix.setdefault(str(totals.name), PrefixAccount(str(totals.name)))
    for name, column in (("decode", runs.decodes), ("compute", runs.computes), ("encode", runs.encodes)):
        known = [0] * len(runs.prefix_names)
        for prefix, ticks in zip(runs.prefixes, column, strict=True):
            known[prefix] += ticks
        of_name = dict(zip(runs.prefix_names, known, strict=True))
        weights = [max(0, getattr(totals, name) - of_name.get(str(totals.name), 0)) for totals in recording.prefixes]
        for totals, ticks in zip(recording.prefixes, apportion(getattr(lost, name), weights), strict=True):
            parts = by_prefix[str(totals.name)].parts
            setattr(parts, name, getattr(parts, name) + ticks)


def apportion(amount: int, weights: Sequence[int]) -> list[int]:
    """Whole shares of ``amount`` in proportion to the weights, which sum to it exactly (none if there is no weight)."""
    total = sum(weights)
    if not total:
        if not weights:
            return []
        return [amount] + [0] * (len(weights) - 1)
    shares = [amount * weight // total for weight in weights]
    rest = amount - sum(shares)
    by_remainder = sorted(range(len(weights)), key=lambda i: (-(amount * weights[i] % total), i))
    for i in by_remainder[:rest]:
        shares[i] += 1
    return shares


def percentages(amounts: Sequence[int]) -> list[float]:
    """The amounts in percent with one decimal, rounded so that they sum to 100.0; all 0.0 if there is nothing."""
    if not sum(amounts):
        return [0.0] * len(amounts)
    return [share / 10 for share in apportion(1000, amounts)]


def _presence(recording: Recording, worker: Worker) -> tuple[int, int]:
    """From when to when the worker was there, inside the recording."""
    low = min(max(0, worker.joined), recording.duration)
    high = recording.duration if worker.left is None else min(worker.left, recording.duration)
    return low, max(low, high)


def _rows_by_worker(recording: Recording) -> list[array[int]]:
    """Rows of runs by worker; the last list holds those of workers that nobody knows any more."""
    rows = [array("q") for _ in range(len(recording.workers) + 1)]
    for row, worker in enumerate(recording.runs.workers):
        rows[worker].append(row)
    return rows


def _inbound(recording: Recording) -> list[_Covered]:
    """Per worker, when it was fetching."""
    intervals: list[list[tuple[int, int]]] = [[] for _ in recording.workers]
    transfers = recording.transfers
    for to, begin, length in zip(transfers.tos, transfers.begins, transfers.lengths, strict=True):
        if to >= 0:
            intervals[to].append((begin, begin + length))
    return [_Covered(each) for each in intervals]


def _length(recording: Recording, row: int) -> int:
    runs = recording.runs
    begin = runs.begins[row]
    end = begin + runs.decodes[row] + runs.computes[row] + runs.encodes[row]
    return max(0, min(end, recording.duration) - max(begin, 0))
