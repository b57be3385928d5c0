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
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import floor

from gnomon.reports.recording import Recording, Runs, Totals, Worker
from gnomon.reports.waiting import NAMES, Waiting, waiting

__all__ = ["PARTS", "Account", "Parts", "PrefixAccount", "WorkerAccount", "account", "apportion", "percentages"]

#: The parts of a thread's time, in the order in which they are shown.
PARTS = (
    "compute", "offcpu", "decode", "encode", "transfer", "handover", "scheduler", "between", "idle", "unaccounted",
)  # fmt: skip

#: The parts that are tasks, and those that are gaps, in the order in which runs without details are taken out of them.
_BUSY = ("compute", "offcpu", "decode", "encode")
_GAPS = ("idle", "between", "scheduler", "handover", "transfer")


@dataclass(slots=True)
class Parts:
    """Ticks by part.

    ``compute`` is the user's code on the processor, and ``offcpu`` the user's code waiting for something (where that
    was not measured, ``compute`` is both); ``decode`` and ``encode`` are unpickling arguments and pickling results;
    ``transfer`` is no task on a thread while its worker fetched data; ``handover`` is runs ready on the worker and not
    yet handed to its threads; ``scheduler`` is tasks that waited at the scheduler or were on their way; ``idle`` is
    nothing to do. Recordings without demand have ``between``, the other gaps between two tasks, instead of the last
    three but ``idle``, which then is before a thread's first and after its last task. ``unaccounted`` is what the
    records don't tell.
    """

    compute: int = 0
    offcpu: int = 0
    decode: int = 0
    encode: int = 0
    transfer: int = 0
    handover: int = 0
    scheduler: int = 0
    between: int = 0
    idle: int = 0
    unaccounted: int = 0

    @property
    def busy(self) -> int:
        """Ticks in tasks."""
        return self.compute + self.offcpu + self.decode + self.encode

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
    """The account of a recording. Prefixes by descending time, workers in order of joining; ``alongside`` in ticks.

    ``unmeasured`` names parts that are zero because nobody measured them, or because finer ones take their place.
    """

    capacity: int = 0
    alongside: int = 0
    parts: Parts = field(default_factory=Parts)
    prefixes: list[PrefixAccount] = field(default_factory=list)
    workers: list[WorkerAccount] = field(default_factory=list)
    tasks: int = 0
    erred: int = 0
    nbytes: int = 0
    unmeasured: tuple[str, ...] = ()

    @property
    def threads(self) -> int:
        """Threads of all workers that were there at any time."""
        return sum(account.worker.nthreads for account in self.workers)


def account(recording: Recording) -> Account:
    """The account of a recording."""
    demand, cpus = recording.demand.known, recording.runs.cpus
    unmeasured = [] if any(cpu >= 0 for cpu in cpus) or any(t.measured for t in recording.prefixes) else ["offcpu"]
    result = Account(unmeasured=(*unmeasured, *(("between",) if demand else ("handover", "scheduler"))))
    names = recording.runs.prefix_names
    by_prefix = {name: PrefixAccount(name) for name in names}
    slots_of: list[PrefixAccount] = [by_prefix[name] for name in names]
    rows_of = _rows_by_worker(recording)
    steps_of = waiting(recording)
    totals_of = {totals.name: totals for totals in recording.worker_totals}
    lost = Parts()
    for index, worker in enumerate(recording.workers):
        one = _worker(recording, worker, rows_of[index], steps_of[index], slots_of)
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
    last: bool = False


def _worker(
    recording: Recording, worker: Worker, rows: Sequence[int], steps: Waiting, prefixes: Sequence[PrefixAccount]
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
        _gap(one, slot, begin, steps, known=recording.demand.known)
        tasks = prefixes[runs.prefixes[row]].parts
        shares = _shares(runs, row, begin, finish, (start, started, ended, stop))
        for name, ticks in zip(_BUSY, shares, strict=True):
            setattr(parts, name, getattr(parts, name) + ticks)
            setattr(tasks, name, getattr(tasks, name) + ticks)
        slot.end, slot.used = max(slot.end, finish), True
    for slot in slots:
        slot.last = True
        _gap(one, slot, high, steps, known=recording.demand.known)
    return one


def _shares(
    runs: Runs, row: int, begin: int, finish: int, times: tuple[int, int, int, int]
) -> tuple[int, int, int, int]:
    """What lies between two times of a run's computing, waiting, decoding and encoding."""
    start, started, ended, stop = times
    decode = max(0, min(started, finish) - max(start, begin))
    encode = max(0, min(stop, finish) - max(ended, begin))
    first, after = max(started, begin) - started, min(ended, finish) - started
    if after <= first:
        return 0, 0, decode, encode
    compute = runs.computes[row]
    cpu = compute if not len(runs.cpus) or runs.cpus[row] < 0 else min(runs.cpus[row], compute)
    on = _spread(cpu, compute, after) - _spread(cpu, compute, first)
    return on, after - first - on, decode, encode


def _spread(amount: int, length: int, until: int) -> int:
    """How much of an amount that is spread evenly over a length lies before ``until`` (as the page's script has it)."""
    return amount if until >= length else floor(until * (amount / length))


def _gap(one: WorkerAccount, slot: _Slot, until: int, steps: Waiting, *, known: bool) -> None:
    """Tell what a slot did from its end to ``until``, where its next task begins or its worker left.

    Without knowledge of demand the end of a slot's time is idleness, whatever was being fetched.
    """
    parts = one.parts
    rest = until - slot.end
    if known or not slot.last:
        for name, ticks in zip(NAMES, steps.within(slot.end, until), strict=True):
            setattr(parts, name, getattr(parts, name) + ticks)
            rest -= ticks
    if slot.used and not known and not slot.last:
        parts.between += rest
    else:
        parts.idle += rest
        one.lead += 0 if slot.used else rest


def _add_lost(
    one: WorkerAccount, recording: Recording, rows: Sequence[int], totals: Totals | None, lost: Parts
) -> None:
    """Count the runs of a worker that have no details here, by the worker's complete totals."""
    if totals is None or totals.tasks <= one.tasks:
        return
    parts = one.parts
    known = _known(recording.runs, rows)
    missing = [max(0, total - here) for total, here in zip(_of_totals(totals), known, strict=True)]
    wanted = sum(missing)
    granted = min(wanted, sum(getattr(parts, name) for name in _GAPS))
    one.alongside += wanted - granted
    unknown = max(0, one.lead - granted)
    left = granted
    for name in _GAPS:
        taken = min(left, getattr(parts, name))
        setattr(parts, name, getattr(parts, name) - taken)
        left -= taken
    parts.unaccounted += unknown
    parts.idle -= unknown
    for name, ticks in zip(_BUSY, apportion(granted, missing), strict=True):
        setattr(parts, name, getattr(parts, name) + ticks)
        setattr(lost, name, getattr(lost, name) + ticks)
    one.tasks, one.erred, one.nbytes = totals.tasks, totals.erred, totals.nbytes


def _add_lost_prefixes(recording: Recording, by_prefix: dict[str, PrefixAccount], lost: Parts) -> None:
    """Spread the time of runs without details over the prefixes, by the prefixes' complete totals."""
    runs = recording.runs
    for totals in recording.prefixes:
        by_prefix.setdefault(str(totals.name), PrefixAccount(str(totals.name)))
    rows_of: dict[str, list[int]] = {name: [] for name in runs.prefix_names}
    for row, prefix in enumerate(runs.prefixes):
        rows_of[runs.prefix_names[prefix]].append(row)
    known = [_known(runs, rows_of.get(str(totals.name), ())) for totals in recording.prefixes]
    for at, name in enumerate(_BUSY):
        weights = [
            max(0, _of_totals(totals)[at] - here[at]) for totals, here in zip(recording.prefixes, known, strict=True)
        ]
        for totals, ticks in zip(recording.prefixes, apportion(getattr(lost, name), weights), strict=True):
            parts = by_prefix[str(totals.name)].parts
            setattr(parts, name, getattr(parts, name) + ticks)


def _known(runs: Runs, rows: Sequence[int]) -> tuple[int, int, int, int]:
    """Sums over runs with details, in the order of ``_BUSY``."""
    compute = on = 0
    for row in rows:
        each = runs.computes[row]
        compute += each
        on += each if not len(runs.cpus) or runs.cpus[row] < 0 else min(runs.cpus[row], each)
    decode, encode = sum(runs.decodes[row] for row in rows), sum(runs.encodes[row] for row in rows)
    return on, compute - on, decode, encode


def _of_totals(totals: Totals) -> tuple[int, int, int, int]:
    """The same of complete totals; what was not measured counts as on the processor."""
    off = min(totals.compute, max(0, totals.measured - totals.cpu))
    return totals.compute - off, off, totals.decode, totals.encode


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


def _length(recording: Recording, row: int) -> int:
    runs = recording.runs
    begin = runs.begins[row]
    end = begin + runs.decodes[row] + runs.computes[row] + runs.encodes[row]
    return max(0, min(end, recording.duration) - max(begin, 0))
