"""What the scheduler remembers of the work it saw: numbered rings of records, and totals that are complete.

A ring holds columns (flat arrays and lists), never an object per record, and numbers its records from 0. A reader asks
for what came since a number and is told how many of these are gone: nothing is dropped silently. The totals by prefix,
worker, span and pair count every record, those that fell out of a ring included. Times are seconds, of the scheduler.

This room keeps and hands out; it does no input or output, draws nothing and judges nothing. Both answers, of ``mark``
and ``since``, are plain values that msgpack carries.

A page, the answer to ``telemetry``, has one table per ring, with ``number``, ``missed`` and ``next`` in the order of
``rings``. Columns are bytes of arrays (code in brackets) in the byte order that ``byteorder`` names; where NAMES is
said, the column (i) holds indices into that list. Workers are ids, 0 is the scheduler; a process is 0 for a scheduler,
1 for an agent, 2 for an executor.

    runs        keys, prefixes (NAMES prefix_names), workers (q), threads (i), timings (d, 4: start of decoding, of the
                user's code, its end, end of encoding), nbytes (q), ok (b), cpus (d: seconds that the thread was on the
                processor in the user's code, NaN: not known), spans (NAMES span_names, lists of words, outermost first)
    transfers   froms (q), tos (q), nbytes (q), starts (d), stops (d), transports (NAMES transport_names), types (NAMES
                type_names), parts (d, 3: wait, hold, serialise; NaN: not known). A row is one fetch, of one or more
                values of one holder; see below.
    series      times (d), workers (q), processes (b), values (d, one per name in ``columns``; NaN: not measured); see
                ``instruments.series``. Processes that share one process of the system tell of it once.
    stalls      starts (d), workers (q), processes (b), durations (d), rows: per stall a dict of cause, detail,
                function, file, line, stack (frames, outermost first), holder (a thread that held the GIL, or "")
    demand      times (d), workers (q), kinds (b), values (b): from this time on there is (1) or isn't (0) demand of
                this kind; see ``instruments.demand``. What there was at a mark is its ``demand``.
    regions     times (d), workers (q), names (NAMES name_table: pairs of prefix and region), counts (q), seconds (d, 2:
                inside, and without regions nested in it), each summed over the time since the one before

Of a transfer, ``wait`` are the seconds before its start, from when the first of its values was asked for: the worker
fetched other things. The time from start to stop is ``hold`` (the holder had the request, and its threads were busy
with tasks), ``serialise`` (they pickled the values and wrote them to memory) and the rest, the *wire*, with connecting.
What was ready before it was asked for takes no time to serialise. The type is the short name that the executor of
the holder knows, "(several)" if there are more than one, "" if nobody knows it: of small values that came by way of
the scheduler, and of copies that were never unpickled where they were fetched from.

A page takes a few milliseconds of the scheduler's loop, however many rows there are: it may have fewer than were asked
for though it is not the last. ``done`` says whether it is.

Contents: Telemetry.
"""

from __future__ import annotations

import sys
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from math import nan
from operator import sub
from time import thread_time
from typing import Any

from gnomon.runtime.core import RunColumns
from gnomon.runtime.messages import DemandChanged, ErrorRecord, Key, RegionsTimed, TransfersDone
from gnomon.runtime.scheduler.observations import RINGS, Observations
from gnomon.runtime.scheduler.pace import Pace, Page
from gnomon.runtime.scheduler.ring import Column, Ring, table
from gnomon.runtime.scheduler.texts import KEY_TEXT, cut, key_text
from gnomon.runtime.scheduler.totals import Totals, columns
from gnomon.runtime.scheduler.transfers import Transfers

__all__ = ["Telemetry"]

#: Characters of an error's text, or a line's, that leave the scheduler, and of the name of a line's level.
_ERROR_TEXT = 8192
_LEVEL = 20

#: The name under which totals of further prefixes are kept once the table of totals is full.
_OTHER = "(other prefixes)"
_OTHER_SPANS = "(other spans)"


#: What there are pages of, in the order of their numbers.
_RINGS = ("runs", "transfers", *RINGS)

_RUNS = (
    Column("O"),
    Column("O"),
    Column("q"),
    Column("i"),
    Column("d", 4),
    Column("q"),
    Column("b"),
    Column("d"),
    Column("O"),
)

#: Seconds that making a page may take; packing it takes about as long again.
_PAGE_SECONDS = 0.003


class _Worker:
    """What is told of a worker; it stays in the table after it left."""

    __slots__ = ("address", "clock", "host", "joined", "left", "name", "nthreads", "reason")

    def __init__(self, name: str, address: str, nthreads: int, host: str, joined: float) -> None:
        self.name = name
        self.address = address
        self.nthreads = nthreads
        self.host = host
        self.joined = joined
        self.left: float | None = None
        self.reason = ""
        self.clock: tuple[float, float, float, int] | None = None  # time, offset, uncertainty, samples

    def row(self, worker_id: int) -> tuple[Any, ...]:
        return worker_id, self.name, self.address, self.nthreads, self.host, self.joined, self.left, self.reason


class _ErrorGroup:
    """Errors of one prefix, type and first line: how many, and the first of them."""

    __slots__ = ("count", "first", "key", "last", "text", "worker_id")

    def __init__(self, key: str, worker_id: int, text: str, now: float) -> None:
        self.count = 0
        self.key = key
        self.worker_id = worker_id
        self.text = text
        self.first = self.last = now


class Telemetry:
    """The scheduler's records: what ``performance_report`` and dashboards read.

    Arguments:
        length: runs, and likewise transfers, whose details are kept.
        groups: prefixes with totals of their own, and pairs of workers; the rest is summed under one name.
        errors: groups of errors kept; errors that open no group any more are counted.
        logs: log lines kept.
        departed: workers that left and are still told of.
        observed: rows of each ring of what processes report of themselves.
        timer: reads the clock, of processor seconds, by which pages are kept short.
    """

    def __init__(
        self,
        *,
        length: int = 100_000,
        groups: int = 2_000,
        errors: int = 200,
        logs: int = 1_000,
        departed: int = 1_000,
        observed: int = 50_000,
        timer: Callable[[], float] = thread_time,
    ) -> None:
        self._runs = Ring(_RUNS, length)
        self._transfers = Transfers(length, groups)
        self._pace = Pace(_PAGE_SECONDS, timer)
        self._groups = groups
        self._observations = Observations(observed, groups)
        self._prefixes: dict[str, Totals] = {}
        self._spans: dict[tuple[str, ...], Totals] = {}
        self._worker_totals: dict[int, Totals] = {}
        self._workers: dict[int, _Worker] = {}
        self._departed: deque[int] = deque()
        self._departed_limit = departed
        self._workers_forgotten = 0
        self._errors: dict[tuple[str, str, str], _ErrorGroup] = {}
        self._errors_limit = errors
        self._errors_seen = 0
        self._errors_ungrouped = 0
        self._logs: deque[tuple[float, str, str]] = deque(maxlen=logs)
        self._logs_seen = 0

    # -- what happens -------------------------------------------------------------------------------------------------

    def append_runs(self, columns: RunColumns, offsets: Mapping[int, float] | None = None) -> None:
        """Record the accepted runs of a loop turn.

        ``offsets`` maps a worker's id to the seconds to add to its clock; workers not in it are taken as they are. The
        columns are copied, so the caller may reuse them; with offsets, ``columns.timings`` is corrected in place.
        """
        rows = len(columns.keys)
        timings = columns.timings
        if offsets:
            for row, worker_id in enumerate(columns.worker_ids):
                offset = offsets.get(worker_id)
                if offset:
                    for i in range(4 * row, 4 * row + 4):
                        timings[i] += offset
        cpus: Sequence[float] = columns.cpus or array("d", [nan]) * rows
        spans: Sequence[tuple[str, ...]] = columns.spans or [()] * rows
        self._runs.extend((*columns[:7], cpus, spans), rows)
        began, started, ended, stopped = timings[0::4], timings[1::4], timings[2::4], timings[3::4]
        computes = list(map(sub, ended, started))
        decode: Iterable[float] = map(sub, started, began)
        encode: Iterable[float] = map(sub, stopped, ended)
        if columns.spans:
            decode, encode = list(decode), list(encode)
            self._add_to_spans(columns, decode, computes, encode, cpus)
        worker_ids, prefixes = columns.worker_ids, columns.prefixes
        if rows and prefixes.count(prefixes[0]) == rows and worker_ids.count(worker_ids[0]) == rows:
            erred = rows - sum(map(bool, columns.ok))
            on_cpu = _on_cpu(computes, cpus)
            amounts = rows, erred, sum(columns.nbytes), sum(decode), sum(computes), sum(encode), *on_cpu
            self._prefix_totals(prefixes[0]).add(*amounts)
            self._totals_of_worker(worker_ids[0]).add(*amounts)
            return
        by_prefix, by_worker = self._prefixes, self._worker_totals
        for prefix, worker_id, ok, size, d, c, e, cpu in zip(
            prefixes, worker_ids, columns.ok, columns.nbytes, decode, computes, encode, cpus, strict=True
        ):
            of_prefix = by_prefix.get(prefix) or self._prefix_totals(prefix)
            of_worker = by_worker.get(worker_id) or self._totals_of_worker(worker_id)
            for totals in (of_prefix, of_worker):  # written out: a call for each would double the cost of a row
                totals.count += 1
                totals.nbytes += size
                totals.decode += d
                totals.compute += c
                totals.encode += e
                if cpu == cpu:
                    totals.cpu += cpu
                    totals.measured += c
            if not ok:
                of_prefix.erred += 1
                of_worker.erred += 1

    def _add_to_spans(
        self,
        columns: RunColumns,
        decodes: Sequence[float],
        computes: Sequence[float],
        encodes: Sequence[float],
        cpus: Sequence[float],
    ) -> None:
        """Totals by span; a run without one counts for none."""
        for span, ok, size, decode, compute, encode, cpu in zip(
            columns.spans, columns.ok, columns.nbytes, decodes, computes, encodes, cpus, strict=True
        ):
            if span:
                if span not in self._spans and len(self._spans) >= self._groups:
                    span = (_OTHER_SPANS,)
                on_cpu = _on_cpu((compute,), (cpu,))
                self._spans.setdefault(span, Totals()).add(1, 0 if ok else 1, size, decode, compute, encode, *on_cpu)

    def append_transfers(
        self, to_id: int, message: TransfersDone, holders: Mapping[str, int], offset: float = 0.0
    ) -> None:
        """Record fetches that the worker ``to_id`` reports.

        ``holders`` maps addresses to worker ids (an unknown address becomes -1), ``offset`` is added to its clock.
        Raises ValueError or TypeError for rows that are none.
        """
        self._transfers.append(to_id, message, holders, offset)

    def worker_joined(self, worker_id: int, *, name: str, address: str, nthreads: int, host: str, now: float) -> None:
        """A worker registered; ids are never reused."""
        self._workers[worker_id] = _Worker(name, address, nthreads, host, now)

    def clock_estimated(self, worker_id: int, *, time: float, offset: float, uncertainty: float, samples: int) -> None:
        """How a worker's clock stands to the scheduler's, as estimated at ``time`` from so many heartbeats.

        ``offset`` is what is added to its times, and wrong by ``uncertainty`` at most (NaN: nothing is known yet).
        """
        worker = self._workers.get(worker_id)
        if worker is not None:
            worker.clock = (time, offset, uncertainty, samples)

    def worker_left(self, worker_id: int, *, reason: str, now: float) -> None:
        """A worker left or was given up. It stays in the records."""
        worker = self._workers.get(worker_id)
        if worker is None or worker.left is not None:
            return
        worker.left, worker.reason = now, reason
        self._observations.worker_left(worker_id, now)
        self._departed.append(worker_id)
        if len(self._departed) > self._departed_limit:
            oldest = self._departed.popleft()
            del self._workers[oldest]
            self._worker_totals.pop(oldest, None)
            self._workers_forgotten += 1

    def append_report(self, worker_id: int, report: Mapping[str, Any], offset: float = 0.0) -> None:
        """Record what a process measured of itself, see ``Observations``, and what it logged."""
        self._observations.append_report(worker_id, report, offset)
        for lines in report.get("logs", {}).values():
            name = self._workers[worker_id].name if worker_id in self._workers else f"worker {worker_id}"
            for time, level, text in lines:
                self.append_log(str(level)[:_LEVEL], f"{name}: {text}", float(time) + offset)

    def append_demand(self, worker_id: int, changes: DemandChanged, offset: float = 0.0) -> None:
        """Record what idle threads wait for; see ``Observations``."""
        self._observations.append_demand(worker_id, changes, offset)

    def append_regions(self, worker_id: int, message: RegionsTimed, offset: float = 0.0) -> None:
        """Record what tasks spent in the user's regions; see ``Observations``."""
        self._observations.append_regions(worker_id, message, offset)

    def append_errors(
        self, keys: Sequence[Key], prefixes: Sequence[str], worker_id: int, errors: Sequence[ErrorRecord], now: float
    ) -> None:
        """Record why tasks failed; errors of one prefix, type and last line of text are one group."""
        self._errors_seen += len(errors)
        for key, prefix, error in zip(keys, prefixes, errors, strict=True):
            last_line = error.text.rstrip().rpartition("\n")[2][:200]
            name = (prefix, error.type_name, last_line)
            group = self._errors.get(name)
            if group is None:
                if len(self._errors) >= self._errors_limit:
                    self._errors_ungrouped += 1
                    continue
                text = cut(error.text, _ERROR_TEXT)
                group = self._errors[name] = _ErrorGroup(key_text(key), worker_id, text, now)
            group.count += 1
            group.last = now

    def append_log(self, level: str, text: str, now: float) -> None:
        """Record a line of the scheduler's log, or of a worker's."""
        self._logs.append((now, level, cut(text, _ERROR_TEXT)))
        self._logs_seen += 1

    # -- what is asked ------------------------------------------------------------------------------------------------

    def mark(self, now: float) -> dict[str, Any]:
        """Where the records stand: the answer to ``telemetry_mark``.

        ``number`` is what ``since`` takes; the difference of two marks' totals is complete, whatever the rings lost.
        Rows of ``prefixes``, ``worker_totals`` and ``spans``: name, count, erred, nbytes, seconds of decode, compute
        and encode. Rows of ``prefix_cpu``, ``worker_cpu`` and ``span_cpu``: name, seconds on the processor, and
        seconds of compute of which these are a part. ``demand``: pairs of worker and kind that there is demand of.
        ``regions``: prefix, region, count, seconds, own seconds. ``pairs``: worker fetched from, worker that fetched,
        transport, fetches, nbytes, seconds; ``pair_parts``: the same names, seconds of wait, hold and serialise.
        ``types``: type, values, nbytes, seconds, and of wait, hold and serialise, where a fetch of several types is
        shared out by bytes. ``clocks``: worker, time of the estimate, offset, uncertainty, heartbeats that it is from.
        """
        return {
            **self._always(),
            "number": self.numbers(),
            "now": now,
            "length": self._runs.length,
            "worker_totals": [totals.row(worker_id) for worker_id, totals in self._worker_totals.items()],
            "spans": [totals.row(span) for span, totals in self._spans.items()],
            "worker_cpu": [(name, t.cpu, t.measured) for name, t in self._worker_totals.items()],
            "span_cpu": [(name, t.cpu, t.measured) for name, t in self._spans.items()],
            **self._observations.mark(),
            **self._transfers.mark(),
            "clocks": [(worker_id, *w.clock) for worker_id, w in self._workers.items() if w.clock is not None],
            "workers": [worker.row(worker_id) for worker_id, worker in self._workers.items()],
            "workers_forgotten": self._workers_forgotten,
            "errors": self._error_rows(),
            "logs": list(self._logs),
        }

    def numbers(self) -> tuple[int, ...]:
        """The numbers of each ring's next row."""
        return self._runs.next, self._transfers.ring.next, *self._observations.numbers()

    def news(self, known: int, left: float, errors: int, logs: int) -> dict[str, Any]:
        """What changes with every run, and what one does not know yet who was told of so much before; as in ``mark``.

        ``worker_totals`` are columns (see ``totals``). ``workers`` has those with an id above ``known`` and those that
        left after ``left``, errors are told if there were others than so many, and log lines but for the first so many.
        """
        joined = takewhile(lambda item: item[0] > known, reversed(self._workers.items()))
        departed = ((worker_id, self._workers[worker_id]) for worker_id in reversed(self._departed))
        gone = takewhile(lambda item: item[1].left is not None and item[1].left > left, departed)
        workers = dict([*joined, *gone])
        new = self._logs_seen - logs
        return {
            **self._always(),
            "worker_totals": columns(self._worker_totals),
            "workers": [workers[worker_id].row(worker_id) for worker_id in sorted(workers)],
            "errors": self._error_rows() if self._errors_seen != errors else [],
            "logs": list(self._logs)[-new:] if new > 0 else [],
        }

    def _always(self) -> dict[str, Any]:
        """What marks and news both tell, and in the same way."""
        return {
            "rings": _RINGS,
            "prefixes": [totals.row(name) for name, totals in self._prefixes.items()],
            "prefix_cpu": [(name, t.cpu, t.measured) for name, t in self._prefixes.items()],
            "errors_seen": self._errors_seen,
            "errors_ungrouped": self._errors_ungrouped,
            "logs_seen": self._logs_seen,
        }

    def pairs(self) -> dict[str, Any]:
        """``pairs`` and ``pair_parts`` of ``mark``."""
        return self._transfers.pairs()

    def demand(self) -> list[tuple[int, int]]:
        """``demand`` of ``mark``."""
        return self._observations.demand()

    def _error_rows(self) -> list[tuple[Any, ...]]:
        return [(*name, g.count, g.key, g.worker_id, g.text, g.first, g.last) for name, g in self._errors.items()]

    def since(self, number: Sequence[int], limit: int = 10_000) -> dict[str, Any]:
        """Rows since ``number``, at most ``limit`` of each ring: the answer to ``telemetry`` (see the module).

        ``missed`` says how many of each are gone, ``next`` is the number to go on with, ``done`` whether there is no
        more now. A number of two alone asks for runs and transfers, and is answered with these.
        """
        pace = self._pace
        pace.begin()
        runs, runs_missed, runs_next = pace.take("runs", self._runs_page, number[0], limit)
        transfers, missed, after = pace.take("transfers", self._transfers.since, number[1], limit)
        gone, following = [runs_missed, missed], [runs_next, after]
        last = [self._runs.next, self._transfers.ring.next]
        pages: dict[str, Any] = {"runs": runs, "transfers": transfers}
        if len(number) > 2:
            more, more_missed, more_next = self._observations.since(number[2:], limit, pace)
            pages |= more
            gone, following = gone + more_missed, following + more_next
            last += self._observations.numbers()
        return {
            "byteorder": sys.byteorder,
            **pages,
            "missed": tuple(gone),
            "next": tuple(following),
            "done": following == last,
        }

    def _runs_page(self, number: int, limit: int) -> Page:
        (keys, prefixes, worker_ids, threads, timings, nbytes, ok, cpus, spans), missed, after = self._runs.read(
            number, limit
        )
        span_names, span_rows = table(spans)
        prefix_names, prefix_rows = table(prefixes)
        page = {
            "keys": [
                key if type(key) is str and len(key) <= KEY_TEXT and key.isascii() else key_text(key) for key in keys
            ],
            "prefix_names": prefix_names,
            "prefixes": prefix_rows.tobytes(),
            "workers": worker_ids.tobytes(),
            "threads": threads.tobytes(),
            "timings": timings.tobytes(),
            "nbytes": nbytes.tobytes(),
            "ok": ok.tobytes(),
            "cpus": cpus.tobytes(),
            "span_names": span_names,
            "spans": span_rows.tobytes(),
        }
        return page, missed, after

    # -- tables of totals ---------------------------------------------------------------------------------------------

    def _prefix_totals(self, prefix: str) -> Totals:
        if prefix not in self._prefixes and len(self._prefixes) >= self._groups:
            prefix = _OTHER
        return self._prefixes.setdefault(prefix, Totals())

    def _totals_of_worker(self, worker_id: int) -> Totals:
        return self._worker_totals.setdefault(worker_id, Totals())


def _on_cpu(computes: Sequence[float], cpus: Sequence[float]) -> tuple[float, float]:
    """Seconds on the processor, and the seconds of compute of which these are known to be a part."""
    total = sum(cpus)
    if total == total:
        return total, sum(computes)
    known = [(cpu, compute) for cpu, compute in zip(cpus, computes, strict=True) if cpu == cpu]
    return sum(cpu for cpu, _ in known), sum(compute for _, compute in known)
