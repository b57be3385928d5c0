"""What the scheduler remembers of the work it saw: runs and transfers in numbered rings, and totals that are complete.

A ring holds columns (flat arrays and lists), never an object per record, and numbers its records from 0. A reader asks
for what came since a number and is told how many of these are gone: nothing is dropped silently. The totals by prefix,
worker and pair count every record, those that fell out of a ring included. All times are scheduler time in seconds.

This room keeps and hands out; it does no input or output, draws nothing and judges nothing. Both answers, of ``mark``
and ``since``, are plain values that msgpack carries.

Contents: Telemetry, Ring, Column.
"""

from __future__ import annotations

import sys
from array import array
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from operator import sub
from typing import Any, NamedTuple

from gnomon.runtime.core import RunColumns
from gnomon.runtime.messages import ErrorRecord, Key, TransfersDone

__all__ = ["Column", "Ring", "Telemetry"]

#: Characters of a key, and of an error's text, that leave the scheduler.
_KEY_TEXT = 512
_ERROR_TEXT = 8192

#: The name under which totals of further prefixes are kept once the table of totals is full.
_OTHER = "(other prefixes)"


_RUNS = (Column("O"), Column("O"), Column("q"), Column("i"), Column("d", 4), Column("q"), Column("b"))
_TRANSFERS = (Column("q"), Column("q"), Column("q"), Column("d"), Column("d"), Column("O"))


class _Totals:
    """Sums over the runs of one prefix or worker."""

    __slots__ = ("compute", "count", "decode", "encode", "erred", "nbytes")

    def __init__(self) -> None:
        self.count = self.erred = self.nbytes = 0
        self.decode = self.compute = self.encode = 0.0

    def add(self, count: int, erred: int, nbytes: int, decode: float, compute: float, encode: float) -> None:
        self.count += count
        self.erred += erred
        self.nbytes += nbytes
        self.decode += decode
        self.compute += compute
        self.encode += encode

    def row(self, name: str | int) -> tuple[Any, ...]:
        return name, self.count, self.erred, self.nbytes, self.decode, self.compute, self.encode


class _Worker:
    """What is told of a worker; it stays in the table after it left."""

    __slots__ = ("address", "host", "joined", "left", "name", "nthreads", "reason")

    def __init__(self, name: str, address: str, nthreads: int, host: str, joined: float) -> None:
        self.name = name
        self.address = address
        self.nthreads = nthreads
        self.host = host
        self.joined = joined
        self.left: float | None = None
        self.reason = ""


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
    """

    def __init__(
        self, *, length: int = 100_000, groups: int = 2_000, errors: int = 200, logs: int = 1_000, departed: int = 1_000
    ) -> None:
        self._runs = Ring(_RUNS, length)
        self._transfers = Ring(_TRANSFERS, length)
        self._groups = groups
        self._prefixes: dict[str, _Totals] = {}
        self._worker_totals: dict[int, _Totals] = {}
        self._pairs: dict[tuple[int, int, str], list[Any]] = {}
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
        self._runs.extend(columns, rows)
        began, started, ended, stopped = timings[0::4], timings[1::4], timings[2::4], timings[3::4]
        decode, compute, encode = map(sub, started, began), map(sub, ended, started), map(sub, stopped, ended)
        worker_ids, prefixes = columns.worker_ids, columns.prefixes
        if rows and prefixes.count(prefixes[0]) == rows and worker_ids.count(worker_ids[0]) == rows:
            erred = rows - sum(map(bool, columns.ok))
            amounts = rows, erred, sum(columns.nbytes), sum(decode), sum(compute), sum(encode)
            self._prefix_totals(prefixes[0]).add(*amounts)
            self._totals_of_worker(worker_ids[0]).add(*amounts)
            return
        by_prefix, by_worker = self._prefixes, self._worker_totals
        for prefix, worker_id, ok, size, d, c, e in zip(
            prefixes, worker_ids, columns.ok, columns.nbytes, decode, compute, encode, strict=True
        ):
            of_prefix = by_prefix.get(prefix) or self._prefix_totals(prefix)
            of_worker = by_worker.get(worker_id) or self._totals_of_worker(worker_id)
            for totals in (of_prefix, of_worker):  # written out: a call for each would double the cost of a row
                totals.count += 1
                totals.nbytes += size
                totals.decode += d
                totals.compute += c
                totals.encode += e
            if not ok:
                of_prefix.erred += 1
                of_worker.erred += 1

    def append_transfers(
        self, to_id: int, message: TransfersDone, holders: Mapping[str, int], offset: float = 0.0
    ) -> None:
        """Record fetches that the worker ``to_id`` reports.

        ``holders`` maps addresses to worker ids (an unknown address becomes -1), ``offset`` is added to its clock.
        """
        from_ids = [holders.get(address, -1) for address in message.holders]
        starts = [t + offset for t in message.starts] if offset else message.starts
        stops = [t + offset for t in message.stops] if offset else message.stops
        rows = len(from_ids)
        self._transfers.extend((from_ids, [to_id] * rows, message.nbytes, starts, stops, message.transports), rows)
        for from_id, nbytes, start, stop, transport in zip(
            from_ids, message.nbytes, starts, stops, message.transports, strict=True
        ):
            pair = self._pairs.get((from_id, to_id, transport))
            if pair is None:
                name = (from_id, to_id, transport) if len(self._pairs) < self._groups else (-2, -2, "")
                pair = self._pairs.setdefault(name, [0, 0, 0.0])
            pair[0] += 1
            pair[1] += nbytes
            pair[2] += stop - start

    def worker_joined(self, worker_id: int, *, name: str, address: str, nthreads: int, host: str, now: float) -> None:
        """A worker registered; ids are never reused."""
        self._workers[worker_id] = _Worker(name, address, nthreads, host, now)

    def worker_left(self, worker_id: int, *, reason: str, now: float) -> None:
        """A worker left or was given up. It stays in the records."""
        worker = self._workers.get(worker_id)
        if worker is None or worker.left is not None:
            return
        worker.left, worker.reason = now, reason
        self._departed.append(worker_id)
        if len(self._departed) > self._departed_limit:
            oldest = self._departed.popleft()
            del self._workers[oldest]
            self._worker_totals.pop(oldest, None)
            self._workers_forgotten += 1

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
                text = _cut(error.text, _ERROR_TEXT)
                group = self._errors[name] = _ErrorGroup(_key_text(key), worker_id, text, now)
            group.count += 1
            group.last = now

    def append_log(self, level: str, text: str, now: float) -> None:
        """Record a line of the scheduler's log."""
        self._logs.append((now, level, _cut(text, _ERROR_TEXT)))
        self._logs_seen += 1

    # -- what is asked ------------------------------------------------------------------------------------------------

    def mark(self, now: float) -> dict[str, Any]:
        """Where the records stand: the answer to ``telemetry_mark``.

        ``number`` is what ``since`` takes; the difference of two marks' totals is complete, whatever the rings lost.
        Rows of ``prefixes`` and ``workers`` totals: name, count, erred, nbytes, seconds of decode, compute and encode.
        """
        return {
            "number": (self._runs.next, self._transfers.next),
            "now": now,
            "length": self._runs.length,
            "prefixes": [totals.row(name) for name, totals in self._prefixes.items()],
            "worker_totals": [totals.row(worker_id) for worker_id, totals in self._worker_totals.items()],
            "pairs": [(*name, *amounts) for name, amounts in self._pairs.items()],
            "workers": [
                (worker_id, w.name, w.address, w.nthreads, w.host, w.joined, w.left, w.reason)
                for worker_id, w in self._workers.items()
            ],
            "workers_forgotten": self._workers_forgotten,
            "errors": [
                (*name, g.count, g.key, g.worker_id, g.text, g.first, g.last) for name, g in self._errors.items()
            ],
            "errors_seen": self._errors_seen,
            "errors_ungrouped": self._errors_ungrouped,
            "logs": list(self._logs),
            "logs_seen": self._logs_seen,
        }

    def since(self, number: Sequence[int], limit: int = 10_000) -> dict[str, Any]:
        """Runs and transfers since ``number``, at most ``limit`` of each: the answer to ``telemetry``.

        ``missed`` says how many of each are gone, ``next`` is the number to go on with, ``done`` whether there is no
        more now. Arrays are bytes in the byte order that ``byteorder`` names.
        """
        runs, runs_missed, runs_next = self._runs.read(number[0], limit)
        transfers, transfers_missed, transfers_next = self._transfers.read(number[1], limit)
        keys, prefixes, worker_ids, threads, timings, nbytes, ok = runs
        prefix_names, prefix_rows = table(prefixes)
        from_ids, to_ids, moved, starts, stops, transports = transfers
        transport_names, transport_rows = table(transports)
        return {
            "byteorder": sys.byteorder,
            "runs": {
                "keys": [
                    key if type(key) is str and len(key) <= _KEY_TEXT and key.isascii() else _key_text(key)
                    for key in keys
                ],
                "prefix_names": prefix_names,
                "prefixes": prefix_rows.tobytes(),
                "workers": worker_ids.tobytes(),
                "threads": threads.tobytes(),
                "timings": timings.tobytes(),
                "nbytes": nbytes.tobytes(),
                "ok": ok.tobytes(),
            },
            "transfers": {
                "froms": from_ids.tobytes(),
                "tos": to_ids.tobytes(),
                "nbytes": moved.tobytes(),
                "starts": starts.tobytes(),
                "stops": stops.tobytes(),
                "transport_names": transport_names,
                "transports": transport_rows.tobytes(),
            },
            "missed": (runs_missed, transfers_missed),
            "next": (runs_next, transfers_next),
            "done": runs_next == self._runs.next and transfers_next == self._transfers.next,
        }

    # -- tables of totals ---------------------------------------------------------------------------------------------

    def _prefix_totals(self, prefix: str) -> _Totals:
        if prefix not in self._prefixes and len(self._prefixes) >= self._groups:
            prefix = _OTHER
        return self._prefixes.setdefault(prefix, _Totals())

    def _totals_of_worker(self, worker_id: int) -> _Totals:
        return self._worker_totals.setdefault(worker_id, _Totals())


def _key_text(key: Key) -> str:
    return _cut(key if isinstance(key, str) else repr(key), _KEY_TEXT)


def _cut(text: str, length: int) -> str:
    """The text, cut in the middle if it is longer than ``length``; without what UTF-8 can't carry."""
    if len(text) > length:
        half = length // 2
        text = f"{text[:half]}…({len(text) - 2 * half} characters)…{text[-half:]}"
    return text.encode("utf-8", "replace").decode("utf-8")
