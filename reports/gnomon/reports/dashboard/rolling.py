"""The rows that a live view keeps: a recording that grows at the end and is bounded, and windows cut out of it.

Rows come from the scheduler's pages. The oldest leave when there are too many; their sums stay, as gaps do: the sums of
runs whose rows never came. So a window's totals are complete, whatever rows it has. Times are ticks since ``begin``.

Contents: Rolling, Arrived, sum_runs.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple, TypeVar

from gnomon.reports.collect import measurements
from gnomon.reports.collect.details import add_runs, add_transfers
from gnomon.reports.collect.measurements import ticks, typed
from gnomon.reports.dashboard.history import Ended
from gnomon.reports.dashboard.states import DemandStates
from gnomon.reports.dashboard.stretches import Stretches, take
from gnomon.reports.dashboard.totals import Gap, Gaps, Sums
from gnomon.reports.grouping import sums_by
from gnomon.reports.recording import TICKS, Ledger, Recording, Worker
from gnomon.reports.records import Runs, Series, Transfers

__all__ = ["Arrived", "Rolling", "sum_runs"]

_RUN_COLUMNS = ("prefixes", "workers", "threads", "begins", "decodes", "computes", "encodes", "nbytes", "ok")
_LATER_COLUMNS = ("cpus", "spans")
_TRANSFER_COLUMNS = ("transports", "froms", "tos", "begins", "lengths", "nbytes")
_LATER_TRANSFER_COLUMNS = ("types", "waits", "holds", "serialises")

#: Stalls that are kept, and names of prefixes and spans that may be known before those without rows are forgotten.
_STALLS = 2_000
_NAMES = 20_000

_Name = TypeVar("_Name", bound=Hashable)

_Parts = list[tuple[int, int] | list[int]]


class Arrived(NamedTuple):
    """What a page brought: the rows of its runs, and the earliest time, in ticks, that its rows reach back to."""

    runs: range
    since: float


class Rolling:
    """See the module. ``limit``: runs, likewise transfers, rows of measurements and of demand, that are kept."""

    def __init__(self, begin: float, limit: int = 100_000) -> None:
        self.begin = begin
        self.limit = limit
        self.gaps = Gaps()
        self.kept_from = 0
        self.demand = DemandStates()
        self._all = Recording(begin, 0)
        self._ids: dict[int, int] = {}
        self._prefixes: dict[str, int] = {}
        self._spans: dict[tuple[str, ...], int] = {}
        self._transports: dict[str, int] = {}
        self._types: dict[str, int] = {}
        self._runs = Stretches()
        self._transfers = Stretches()
        self._series = Stretches()

    # What comes

    def see_worker(self, worker_id: int, name: str, address: str, nthreads: int, host: str, joined: float) -> None:
        """A worker is there."""
        if worker_id not in self._ids:
            self._ids[worker_id] = len(self._all.workers)
            when = ticks(joined - self.begin)
            self._all.workers.append(Worker(worker_id, name, address, nthreads, host, when, None, ""))

    def lose_worker(self, worker_id: int, left: float, reason: str) -> None:
        """A worker has left."""
        row = self._ids.get(worker_id)
        if row is not None:
            worker = self._all.workers[row]
            self._all.workers[row] = worker._replace(left=ticks(left - self.begin), reason=reason)

    @property
    def workers(self) -> Sequence[Worker]:
        """All workers there ever were; ``joined`` and ``left`` in ticks since ``begin``."""
        return self._all.workers

    @property
    def runs(self) -> Runs:
        """The runs that are kept, of which ``append`` gives the new ones."""
        return self._all.runs

    @property
    def rows(self) -> int:
        """Runs that are kept."""
        return len(self._runs)

    def append(self, page: Mapping[str, Any]) -> Arrived:
        """Take a page's rows."""
        plain = dict(page)
        recording, most = self._all, self.limit
        before = len(recording.runs)
        add_runs(recording, plain, most, self._ids, self._prefixes, self._spans)
        recording.runs.prefix_names = list(self._prefixes)
        recording.runs.span_names = list(self._spans)
        new = range(before, len(recording.runs))
        since: float = inf
        if new:
            since = low = min(recording.runs.begins[before:])
            self._runs.append(len(new), low, max(map(self.stop_of, new)))
        before = len(recording.transfers)
        add_transfers(recording, plain, most, self._ids, self._transports, self._types)
        recording.transfers.transport_names = list(self._transports)
        recording.transfers.type_names = list(self._types)
        begins, lengths = recording.transfers.begins[before:], recording.transfers.lengths[before:]
        if begins:
            ends = map(sum, zip(begins, lengths, strict=True))
            self._transfers.append(len(begins), min(begins), max(ends))
            since = min(since, *begins)
        if "series" in plain:
            since = min(since, self._observe(plain, most))
        return Arrived(new, since)

    def _observe(self, page: dict[str, Any], most: int) -> float:
        """Take what processes measured; the earliest time of a change of demand."""
        recording = self._all
        before = len(recording.series)
        measurements.add_series(recording, page, most, self._ids)
        times = recording.series.times[before:]
        if times:
            self._series.append(len(times), min(times) - 1, max(times))
        measurements.add_stalls(recording, page, most, self._ids)
        del recording.stalls[:-_STALLS]
        part, order = page["demand"], page["byteorder"]
        when = [ticks(time - self.begin) for time in typed("d", part["times"], order)]
        self.demand.append(
            when,
            typed("q", part["workers"], order),
            typed("b", part["kinds"], order),
            typed("b", part["values"], order),
        )
        return min(when, default=inf)

    def stop_of(self, row: int) -> int:
        """When a run ended."""
        runs = self._all.runs
        return runs.begins[row] + runs.decodes[row] + runs.computes[row] + runs.encodes[row]

    def sums(self, rows: Sequence[int]) -> tuple[Sums, Sums]:
        """Sums of runs by prefix and by worker id."""
        return sum_runs(self._all, rows)

    def ended(self, rows: range) -> Ended:
        """When runs began and ended, and what came of them."""
        import numpy

        runs, part = self._all.runs, slice(rows.start, rows.stop)
        columns = (runs.prefixes, runs.begins, runs.decodes, runs.computes, runs.encodes, runs.nbytes, runs.ok)
        # Slices of arrays are copies: a view would keep the columns from growing.
        prefixes, begins, decodes, computes, encodes, nbytes, ok = (numpy.asarray(each[part]) for each in columns)
        return Ended(runs.prefix_names, prefixes, begins, begins + decodes + computes + encodes, nbytes, ok == 0)

    def stalls_since(self, when: int) -> list[Any]:
        """Stalls that began at a time or later."""
        return [stall for stall in self._all.stalls if stall.begin >= when]

    def trim(self) -> None:
        """Let the oldest rows go where there are more than ``limit``; their sums stay, as a gap."""
        if len(self._runs) > self.limit + self.limit // 8:
            for stretch in self._runs.drop(self.limit):
                count = stretch.after - stretch.first
                self.gaps.add(Gap(max(0, stretch.low), max(1, stretch.high), *self.sums(range(count))))
                self.kept_from = max(self.kept_from, stretch.high)
                runs = self._all.runs
                del runs.keys[:count]
                for name in (*_RUN_COLUMNS, *_LATER_COLUMNS):
                    del getattr(runs, name)[:count]
        if len(self._transfers) > self.limit + self.limit // 8:
            gone = self._transfers.drop(self.limit)
            for name in (*_TRANSFER_COLUMNS, *_LATER_TRANSFER_COLUMNS):
                del getattr(self._all.transfers, name)[: sum(stretch.after - stretch.first for stretch in gone)]
        if len(self._series) > self.limit + self.limit // 8:
            count = sum(stretch.after - stretch.first for stretch in self._series.drop(self.limit))
            series = self._all.series
            columns: list[array[Any]] = [series.times, series.workers, series.processes, *series.values.values()]
            for column in columns:
                del column[:count]
        self.demand.trim(2 * self.limit)
        if len(self._prefixes) > _NAMES:
            self._prefixes = _used(self._all.runs.prefixes, list(self._prefixes))
            self._all.runs.prefix_names = list(self._prefixes)
        if len(self._spans) > _NAMES:
            self._spans = _used(self._all.runs.spans, list(self._spans))
            self._all.runs.span_names = list(self._spans)

    # What is asked

    def window(self, low: int, high: int) -> Recording:
        """The recording of what lies between two times; its own times count from ``low``.

        Its runs are those that overlap the window, and its totals are theirs, with the sums of those without rows.
        """
        recording = Recording(self.begin + low / TICKS, max(0, high - low))
        rows = self._window_workers(recording, low, high)
        recording.runs = self._window_runs(low, high, rows)
        recording.transfers = self._window_transfers(low, high, rows)
        recording.series = self._window_series(low, high, rows)
        recording.stalls = [
            stall._replace(begin=stall.begin - low, worker=rows[stall.worker] if stall.worker >= 0 else stall.worker)
            for stall in self._all.stalls
            if stall.begin < high and stall.begin + stall.length > low
        ]
        ids = {worker.worker_id: row for row, worker in enumerate(recording.workers)}
        recording.demand = self.demand.window(low, high, ids)
        prefixes, workers = self.gaps.share(low, high)
        lost = sum(amounts[0] for amounts in prefixes.values())
        of_prefixes, of_workers = sum_runs(recording, range(len(recording.runs)))
        prefixes.merge(of_prefixes)
        workers.merge(of_workers)
        recording.prefixes = prefixes.totals()
        recording.worker_totals = [row for row in workers.totals() if row.name in ids]
        recording.ledgers = {"runs": Ledger(len(recording.runs) + lost, len(recording.runs))}
        for name, table in (("transfers", recording.transfers), ("series", recording.series)):
            recording.ledgers[name] = Ledger(len(table), len(table))
        recording.ledgers["stalls"] = Ledger(len(recording.stalls), len(recording.stalls))
        recording.ledgers["workers"] = Ledger(len(recording.workers), len(recording.workers))
        recording.info["ring_length"] = self.limit
        return recording

    def _window_workers(self, recording: Recording, low: int, high: int) -> list[int]:
        """Put the workers of a window into its recording; gives, by row here, their rows there (-1: none)."""
        rows = []
        for worker in self._all.workers:
            if worker.joined < high and (worker.left is None or worker.left > low):
                rows.append(len(recording.workers))
                left = None if worker.left is None else worker.left - low
                recording.workers.append(worker._replace(joined=worker.joined - low, left=left))
            else:
                rows.append(-1)
        return rows

    def _window_runs(self, low: int, high: int, rows: list[int]) -> Runs:
        runs = self._all.runs
        parts = self._runs.within(low, high, lambda row: runs.begins[row] < high and self.stop_of(row) > low)
        cut = Runs(keys=take(runs.keys, parts), prefix_names=runs.prefix_names, span_names=runs.span_names)
        for name in (*_RUN_COLUMNS, *_LATER_COLUMNS):
            setattr(cut, name, take(getattr(runs, name), parts))
        cut.begins = array("q", [begin - low for begin in cut.begins])
        cut.workers = _mapped(cut.workers, rows)
        return cut

    def _window_transfers(self, low: int, high: int, rows: list[int]) -> Transfers:
        transfers = self._all.transfers
        parts = self._transfers.within(
            low, high, lambda row: transfers.begins[row] < high and transfers.begins[row] + transfers.lengths[row] > low
        )
        cut = Transfers(transport_names=transfers.transport_names, type_names=transfers.type_names)
        for name in (*_TRANSFER_COLUMNS, *_LATER_TRANSFER_COLUMNS):
            setattr(cut, name, take(getattr(transfers, name), parts))
        cut.begins = array("q", [begin - low for begin in cut.begins])
        cut.froms, cut.tos = _mapped(cut.froms, rows), _mapped(cut.tos, rows)
        return cut

    def _window_series(self, low: int, high: int, rows: list[int]) -> Series:
        series = self._all.series
        parts = self._series.within(low, high, lambda row: low < series.times[row] <= high)
        return Series(
            array("q", [time - low for time in take(series.times, parts)]),
            _mapped(take(series.workers, parts), rows),
            take(series.processes, parts),
            {name: take(column, parts) for name, column in series.values.items()},
        )


def _used(column: array[int], names: list[_Name]) -> dict[_Name, int]:
    """The names that a column uses, by their new place; the column is changed to hold these."""
    index: dict[_Name, int] = {}
    for row, at in enumerate(column):
        column[row] = index.setdefault(names[at], len(index))
    return index


def _mapped(workers: array[int], rows: list[int]) -> array[int]:
    """Rows of workers here as rows there; negative ones are no rows and stay."""
    if all(row == at for at, row in enumerate(rows)):
        return workers
    return array("q", [rows[worker] if worker >= 0 else worker for worker in workers])


def sum_runs(recording: Recording, rows: Sequence[int]) -> tuple[Sums, Sums]:
    """Sums of a recording's runs by prefix and by worker id; of runs of unknown workers, by prefix alone."""
    import numpy

    runs = recording.runs
    chosen = slice(rows.start, rows.stop) if isinstance(rows, range) else numpy.asarray(rows, "q")
    columns = (runs.ok, runs.nbytes, runs.decodes, runs.computes, runs.encodes, runs.prefixes, runs.workers)
    ok, nbytes, decodes, computes, encodes, prefixes, workers = (numpy.asarray(each)[chosen] for each in columns)
    cpus = numpy.asarray(runs.cpus)[chosen] if len(runs.cpus) else numpy.full(len(ok), -1)
    amounts = (
        numpy.ones(len(ok), "q"), 1 - ok, nbytes, decodes, computes, encodes,
        numpy.maximum(0, cpus), numpy.where(cpus >= 0, computes, 0),
    )  # fmt: skip
    ids = [worker.worker_id for worker in recording.workers]
    return _named_sums(runs.prefix_names, prefixes, amounts), _named_sums(ids, workers, amounts)


def _named_sums(names: Sequence[Any], places: Any, amounts: Sequence[Any]) -> Sums:
    """Sums of columns of amounts by the name whose place a row has."""
    rows = zip(names, sums_by(places, len(names), amounts).T.tolist(), strict=True)
    return Sums({name: tuple(sums) for name, sums in rows if sums[0]})
