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

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from gnomon.reports.idle_reasons import NAMES, Waiting, waiting
from gnomon.reports.recording import Recording, Runs, Totals, Worker
from gnomon.reports.slots import Layout, lay_out

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
    unmeasured = [] if (len(cpus) and max(cpus) >= 0) or any(t.measured for t in recording.prefixes) else ["offcpu"]
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


def _worker(
    recording: Recording, worker: Worker, rows: Sequence[int], steps: Waiting, prefixes: Sequence[PrefixAccount]
) -> WorkerAccount:
    """The account of one worker; adds what its tasks took to their prefixes."""
    import numpy

    runs = recording.runs
    low, high = _presence(recording, worker)
    mine = numpy.asarray(rows, "q")
    one = WorkerAccount(worker, capacity=worker.nthreads * (high - low), tasks=len(rows))
    one.nbytes = int(numpy.asarray(runs.nbytes)[mine].sum())
    one.erred = int((numpy.asarray(runs.ok)[mine] == 0).sum())
    laid = lay_out(runs, rows, worker.nthreads, low, high)
    one.alongside = laid.alongside
    of_prefix = numpy.asarray(runs.prefixes)[laid.rows]
    for name, ticks in zip(_BUSY, _shares(runs, laid), strict=True):
        setattr(one.parts, name, int(ticks.sum()))
        # Sums in double precision are exact here: ticks of centuries stay below 2 ** 53.
        for prefix, amount in zip(prefixes, numpy.bincount(of_prefix, ticks, len(prefixes)), strict=True):
            setattr(prefix.parts, name, getattr(prefix.parts, name) + int(amount))
    _add_gaps(one, laid, steps, known=recording.demand.known)
    return one


def _shares(runs: Runs, laid: Layout) -> tuple[Any, Any, Any, Any]:
    """What lies between begin and end of each run: computing, waiting, decoding and encoding."""
    import numpy

    columns = (numpy.asarray(column)[laid.rows] for column in (runs.begins, runs.decodes, runs.computes, runs.encodes))
    start, decode, compute, encode = columns
    started = start + decode
    ended = started + compute
    first = numpy.maximum(started, laid.begins) - started
    after = numpy.maximum(first, numpy.minimum(ended, laid.ends) - started)
    on = _on_processor(runs, laid.rows)
    on = _spread(on, compute, after) - _spread(on, compute, first)
    return (
        on,
        after - first - on,
        numpy.maximum(0, numpy.minimum(started, laid.ends) - numpy.maximum(start, laid.begins)),
        numpy.maximum(0, numpy.minimum(ended + encode, laid.ends) - numpy.maximum(ended, laid.begins)),
    )


def _on_processor(runs: Runs, rows: Any) -> Any:
    """Ticks of computing on the processor; all of them where that was not measured."""
    import numpy

    compute = numpy.asarray(runs.computes)[rows]
    if not len(runs.cpus):
        return compute
    cpu = numpy.asarray(runs.cpus)[rows]
    return numpy.where(cpu < 0, compute, numpy.minimum(cpu, compute))


def _spread(amount: Any, length: Any, until: Any) -> Any:
    """How much of an amount that is spread evenly over a length lies before ``until`` (as the page's script has it)."""
    import numpy

    with numpy.errstate(divide="ignore", invalid="ignore"):
        share = numpy.where(length > 0, amount / length, 0.0)
    return numpy.where(until >= length, amount, numpy.floor(until * share).astype("q"))


def _add_gaps(one: WorkerAccount, laid: Layout, steps: Waiting, *, known: bool) -> None:
    """Tell what the gaps were.

    Without knowledge of demand the end of a slot's time is idleness, whatever was being fetched.
    """
    parts = one.parts
    rest = laid.gap_ends - laid.gap_begins
    stepped = (laid.gap_last == 0) | known
    for name, ticks in zip(NAMES, steps.within(laid.gap_begins, laid.gap_ends), strict=True):
        named = ticks * stepped
        setattr(parts, name, getattr(parts, name) + int(named.sum()))
        rest = rest - named
    between = laid.gap_used & (laid.gap_last == 0) & (not known)
    parts.between += int(rest[between].sum())
    parts.idle += int(rest[~between].sum())
    one.lead += int(rest[~between & ~laid.gap_used].sum())


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
    import numpy

    runs = recording.runs
    for totals in recording.prefixes:
        by_prefix.setdefault(str(totals.name), PrefixAccount(str(totals.name)))
    if not lost.busy:
        return
    prefixes = numpy.asarray(runs.prefixes)
    rows_of = {name: numpy.flatnonzero(prefixes == at) for at, name in enumerate(runs.prefix_names)}
    known = [_known(runs, rows_of.get(str(totals.name), ())) for totals in recording.prefixes]
    for at, name in enumerate(_BUSY):
        weights = [
            max(0, _of_totals(totals)[at] - here[at]) for totals, here in zip(recording.prefixes, known, strict=True)
        ]
        for totals, ticks in zip(recording.prefixes, apportion(getattr(lost, name), weights), strict=True):
            parts = by_prefix[str(totals.name)].parts
            setattr(parts, name, getattr(parts, name) + ticks)


def _known(runs: Runs, rows: Any) -> tuple[int, int, int, int]:
    """Sums over runs with details, in the order of ``_BUSY``."""
    import numpy

    mine = numpy.asarray(rows, "q")
    decode, compute, encode = (
        int(numpy.asarray(column)[mine].sum()) for column in (runs.decodes, runs.computes, runs.encodes)
    )
    on = int(_on_processor(runs, mine).sum())
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


def _rows_by_worker(recording: Recording) -> list[Any]:
    """Rows of runs by worker; the last list holds those of workers that nobody knows any more."""
    import numpy

    workers = numpy.asarray(recording.runs.workers)
    order = numpy.argsort(workers, kind="stable")
    edges = numpy.searchsorted(workers[order], range(len(recording.workers) + 1))
    return [*(order[low:high] for low, high in pairwise(edges)), order[: edges[0]]]


def _length(recording: Recording, row: int) -> int:
    runs = recording.runs
    begin = runs.begins[row]
    end = begin + runs.decodes[row] + runs.computes[row] + runs.encodes[row]
    return max(0, min(end, recording.duration) - max(begin, 0))
