"""Where the time of every worker thread went, in parts that exclude each other and add up.

Capacity is the sum over workers of their threads times the time they were there. Each worker's runs are laid into as
many slots as it has threads; what lies in the gaps is waiting or idleness. Work beyond the threads (a task that left
its slot and runs on) can't be inside the capacity and is counted apart, as *alongside*. All amounts are whole ticks, so
``sum(parts) == capacity`` holds exactly, as do the sums by prefix and by worker.

Runs whose details are gone (the scheduler's ring was full) still count, by the complete totals; they are taken out of
the time before a slot's first known run, and what remains of that time is *unaccounted*: nobody can say what it was.

Contents: PrefixAccount, Account, account, fill_account, apportion, percentages; and the parts of ``worker_accounts``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gnomon.reports.grouping import sums_by
from gnomon.reports.idle_reasons import NAMES, name_gaps
from gnomon.reports.recording import Recording, Runs, Totals
from gnomon.reports.slots import Layout, lay_out
from gnomon.reports.worker_accounts import PARTS, Parts, WorkerAccounts

__all__ = ["PARTS", "Account", "Parts", "PrefixAccount", "account", "apportion", "fill_account", "percentages"]

#: The parts that are tasks, and those that are gaps, in the order in which runs without details are taken out of them.
_BUSY = ("compute", "offcpu", "decode", "encode")
_GAPS = ("idle", "between", "scheduler", "handover", "transfer")


@dataclass(slots=True)
class PrefixAccount:
    """The tasks of one prefix: how many (complete), and their ticks inside the capacity."""

    name: str
    tasks: int = 0
    erred: int = 0
    nbytes: int = 0
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
    workers: WorkerAccounts = field(default_factory=WorkerAccounts)
    tasks: int = 0
    erred: int = 0
    nbytes: int = 0
    unmeasured: tuple[str, ...] = ()

    @property
    def threads(self) -> int:
        """Threads of all workers that were there at any time."""
        return sum(worker.nthreads for worker in self.workers.workers)


def account(recording: Recording) -> Account:
    """The account of a recording."""
    result = Account()
    fill_account(result, recording, lay_out(recording))
    return result


def fill_account(result: Account, recording: Recording, laid: Layout) -> None:
    """Put the account of a recording, whose runs are laid in slots, into an empty one."""
    import numpy

    runs = recording.runs
    result.unmeasured = _unmeasured(recording)
    by_prefix = {name: PrefixAccount(name) for name in runs.prefix_names}
    workers = result.workers = WorkerAccounts(recording.workers)
    workers.number("capacity")[:] = laid.capacity
    workers.number("alongside")[:] = laid.alongside
    shares = _shares(runs, laid)
    _count_runs(workers, runs)
    for name, ticks in zip(_BUSY, sums_by(laid.workers, len(workers), shares), strict=True):
        workers.part(name)[:] = ticks
    of_prefixes = sums_by(numpy.asarray(runs.prefixes)[laid.rows], len(runs.prefix_names), shares)
    for prefix, amounts in zip(runs.prefix_names, of_prefixes.T.tolist(), strict=True):
        by_prefix[prefix].parts = Parts(*amounts)
    _add_gaps(workers, recording, laid)
    lost = _add_lost(workers, recording)
    _add_lost_prefixes(recording, by_prefix, lost)
    result.parts = workers.total()
    result.capacity = int(workers.number("capacity").sum())
    result.alongside = int(workers.number("alongside").sum()) + _of_nobody(recording)
    for totals in recording.prefixes:
        known = by_prefix[str(totals.name)]
        known.tasks, known.erred, known.nbytes = totals.tasks, totals.erred, totals.nbytes
        result.tasks += totals.tasks
        result.erred += totals.erred
        result.nbytes += totals.nbytes
    result.prefixes = sorted(by_prefix.values(), key=lambda prefix: (-prefix.parts.busy, -prefix.tasks, prefix.name))


def _unmeasured(recording: Recording) -> tuple[str, ...]:
    """The parts that nobody measured, or that finer ones take the place of."""
    gaps = ("between",) if recording.demand.known else ("handover", "scheduler")
    timed = any(cpu >= 0 for cpu in recording.runs.cpus) or any(totals.measured for totals in recording.prefixes)
    return gaps if timed else ("offcpu", *gaps)


def _count_runs(workers: WorkerAccounts, runs: Runs) -> None:
    """How many runs each worker has, how many of them failed, and the bytes of their results."""
    import numpy

    owners, ok, nbytes = (numpy.asarray(column) for column in (runs.workers, runs.ok, runs.nbytes))
    sums = sums_by(owners, len(workers), (numpy.ones(len(owners), "q"), ok == 0, nbytes))
    for name, amounts in zip(("tasks", "erred", "nbytes"), sums, strict=True):
        workers.number(name)[:] = amounts


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


def _add_gaps(workers: WorkerAccounts, recording: Recording, laid: Layout) -> None:
    """Tell what the gaps were.

    Without knowledge of demand the end of a slot's time is idleness, whatever was being fetched.
    """
    known, owners = recording.demand.known, laid.gap_workers
    named = name_gaps(recording, owners, laid.gap_begins, laid.gap_ends) * (~laid.gap_last | known)
    rest = laid.gap_ends - laid.gap_begins - named.sum(axis=0)
    between = laid.gap_used & ~laid.gap_last & (not known)
    columns = (*named, rest * between, rest * ~between, rest * (~between & ~laid.gap_used))
    *parts, lead = sums_by(owners, len(workers), columns)
    for name, ticks in zip((*NAMES, "between", "idle"), parts, strict=True):
        workers.part(name)[:] = ticks
    workers.number("lead")[:] = lead


def _add_lost(workers: WorkerAccounts, recording: Recording) -> Parts:
    """Count the runs of workers that have no details here, by these workers' totals; the ticks of all of them."""
    import numpy

    totals_of = {totals.name: totals for totals in recording.worker_totals}
    tasks = workers.number("tasks").tolist()
    lost = [
        (row, each)
        for row, worker in enumerate(workers.workers)
        if (each := totals_of.get(worker.worker_id)) is not None and each.tasks > tasks[row]
    ]
    if not lost:
        return Parts()
    at = numpy.asarray([row for row, _ in lost], "q")
    totals = [each for _, each in lost]
    missing = numpy.asarray([_of_totals(each) for each in totals], "q").T
    missing = numpy.maximum(0, missing - _known(recording.runs, recording.runs.workers, len(workers))[:, at])
    wanted = missing.sum(axis=0)
    granted = numpy.minimum(wanted, sum(workers.part(name)[at] for name in _GAPS))
    workers.number("alongside")[at] += wanted - granted
    unknown = numpy.maximum(0, workers.number("lead")[at] - granted)
    left = granted
    for name in _GAPS:
        taken = numpy.minimum(left, workers.part(name)[at])
        workers.part(name)[at] -= taken
        left = left - taken
    workers.part("unaccounted")[at] += unknown
    workers.part("idle")[at] -= unknown
    for row in numpy.flatnonzero(granted < wanted).tolist():
        missing[:, row] = apportion(int(granted[row]), missing[:, row].tolist())
    for name, ticks in zip(_BUSY, missing, strict=True):
        workers.part(name)[at] += ticks
    for name in ("tasks", "erred", "nbytes"):
        workers.number(name)[at] = [getattr(each, name) for each in totals]
    return Parts(*missing.sum(axis=1).tolist())


def _add_lost_prefixes(recording: Recording, by_prefix: dict[str, PrefixAccount], lost: Parts) -> None:
    """Spread the time of runs without details over the prefixes, by the prefixes' complete totals."""
    for totals in recording.prefixes:
        by_prefix.setdefault(str(totals.name), PrefixAccount(str(totals.name)))
    if not lost.busy:
        return
    runs = recording.runs
    sums = _known(runs, runs.prefixes, len(runs.prefix_names)).T.tolist()
    of_prefix = dict(zip(runs.prefix_names, sums, strict=True))
    known = [of_prefix.get(str(totals.name), [0] * len(_BUSY)) for totals in recording.prefixes]
    for at, name in enumerate(_BUSY):
        weights = [
            max(0, _of_totals(totals)[at] - here[at]) for totals, here in zip(recording.prefixes, known, strict=True)
        ]
        for totals, ticks in zip(recording.prefixes, apportion(getattr(lost, name), weights), strict=True):
            parts = by_prefix[str(totals.name)].parts
            setattr(parts, name, getattr(parts, name) + ticks)


def _known(runs: Runs, names: Any, count: int) -> Any:
    """Sums over runs with details by name (a number; negative: none): a row for each of ``_BUSY``."""
    import numpy

    decode, compute, encode = (numpy.asarray(column) for column in (runs.decodes, runs.computes, runs.encodes))
    on = _on_processor(runs, slice(None))
    return sums_by(numpy.asarray(names), count, (on, compute - on, decode, encode))


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


def _of_nobody(recording: Recording) -> int:
    """Ticks of runs of workers that nobody knows any more, as far as they lie in the recording."""
    import numpy

    runs = recording.runs
    rows = numpy.flatnonzero(numpy.asarray(runs.workers) < 0)
    begins, ends = (numpy.asarray(column)[rows] for column in (runs.begins, runs.ends()))
    ends = numpy.minimum(ends, recording.duration)
    return int(numpy.maximum(0, ends - numpy.maximum(begins, 0)).sum())
