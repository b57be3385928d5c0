"""What the scheduler's records say of tasks and memory, in the forms that programs ask for.

The context managers serve clients of both kinds: ``with`` for one that waits, ``async with`` for an asynchronous one.

Contents: get_task_stream, get_task_metadata, MemorySampler; task_rows, memory_rows, for who has pages of records.
"""

from __future__ import annotations

import asyncio
import sys
from array import array
from collections.abc import Iterator, Sequence
from math import inf, isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from gnomon.runtime.client.default import default_client
from gnomon.runtime.client.packing import seconds
from gnomon.runtime.client.plots import check_plot, draw_task_stream
from gnomon.runtime.instruments.series import COLUMNS

if TYPE_CHECKING:
    from pathlib import Path

    from gnomon.runtime.client.client import Client

__all__ = ["MemorySampler", "Records", "get_task_metadata", "get_task_stream", "memory_rows", "task_rows"]


class Records(NamedTuple):
    """The scheduler's records between two marks: pages as its telemetry gives them, and the later mark."""

    pages: list[dict[str, Any]]
    mark: dict[str, Any]

    @property
    def workers(self) -> dict[int, str]:
        """Addresses by worker id."""
        return {row[0]: row[2] for row in self.mark["workers"]}

    @property
    def tasks(self) -> Iterator[dict[str, Any]]:
        """All runs; see ``task_rows``."""
        workers = self.workers
        return (row for page in self.pages for row in task_rows(page, workers))


def _column(page: dict[str, Any], code: str, data: bytes) -> array[Any]:
    column: array[Any] = array(code)
    column.frombytes(data)
    if page["byteorder"] != sys.byteorder:
        column.byteswap()
    return column


def task_rows(page: dict[str, Any], workers: dict[int, str]) -> Iterator[dict[str, Any]]:
    """The runs of a page of records, one dict each.

    Fields: ``key``, ``prefix``, ``worker`` (address), ``thread``, ``status`` (OK or error), ``nbytes``, ``cpu``
    (seconds on the processor, None if not known), ``span``; ``startstops``: dicts of ``action``, ``start``, ``stop``.
    """
    runs = page["runs"]
    timings, cpus = _column(page, "d", runs["timings"]), _column(page, "d", runs["cpus"])
    prefixes, spans = _column(page, "i", runs["prefixes"]), _column(page, "i", runs["spans"])
    worker_ids, threads = _column(page, "q", runs["workers"]), _column(page, "i", runs["threads"])
    sizes, ok = _column(page, "q", runs["nbytes"]), _column(page, "b", runs["ok"])
    for row, key in enumerate(runs["keys"]):
        times = timings[4 * row : 4 * row + 4]
        cpu = cpus[row]
        yield {
            "key": key,
            "prefix": runs["prefix_names"][prefixes[row]],
            "worker": workers.get(worker_ids[row], ""),
            "thread": threads[row],
            "status": "OK" if ok[row] else "error",
            "nbytes": sizes[row],
            "cpu": cpu if cpu == cpu else None,
            "span": tuple(runs["span_names"][spans[row]]),
            "startstops": [
                {"action": action, "start": times[i], "stop": times[i + 1]}
                for i, action in enumerate(("deserialize", "compute", "serialize"))
                if times[i + 1] > times[i] or action == "compute"
            ],
        }


def memory_rows(page: dict[str, Any]) -> Iterator[tuple[float, tuple[int, int], float]]:
    """Time, process (worker id and kind) and resident bytes, of each row of measurements of a page."""
    series = page["series"]
    times, workers = _column(page, "d", series["times"]), _column(page, "q", series["workers"])
    kinds, values = _column(page, "b", series["processes"]), _column(page, "d", series["values"])
    width, place = len(series["columns"]), COLUMNS.index("memory")
    for row, time in enumerate(times):
        yield time, (workers[row], kinds[row]), values[width * row + place]


class _Block:
    """A block of code whose records are fetched at its end, also if it raises. ``client``: default the one in use."""

    def __init__(self, client: Client | None = None) -> None:
        self._client = default_client(client)
        self._first: dict[str, Any] = {}

    def _end(self, records: Records) -> None:
        raise NotImplementedError

    def __enter__(self) -> Any:
        self._first = self._client.request("telemetry_mark")
        return self

    def __exit__(self, *exception: object) -> None:
        self._end(self._client.records_since(self._first))

    async def __aenter__(self) -> Any:
        self._first = await self._client.request("telemetry_mark")
        return self

    async def __aexit__(self, *exception: object) -> None:
        records = await self._client.records_since(self._first)
        await asyncio.to_thread(self._end, records)  # a figure takes a while


class get_task_stream(_Block):  # noqa: N801 - the name users know, which reads as a call
    """``with get_task_stream() as stream: ...``: the runs that ended in the block, in ``stream.data`` after it.

    Args:
        client: default the one in use.
        plot: draw a Bokeh figure of them, in ``stream.figure``; ``"save"`` also writes it to ``filename``.
        filename: where to save.

    Raises ValueError for another ``plot``, at the end RuntimeError for a plot without the package that draws.
    """

    def __init__(
        self, client: Client | None = None, plot: bool | str = False, filename: str | Path = "task-stream.html"
    ) -> None:
        check_plot(plot)
        super().__init__(client)
        self.data: list[dict[str, Any]] = []
        self.figure: Any = None
        self._plot = plot
        self._filename = filename

    def _end(self, records: Records) -> None:
        self.data = list(records.tasks)
        if self._plot:
            self.figure = draw_task_stream(self.data, self._plot, self._filename)


class get_task_metadata(_Block):  # noqa: N801
    """``with get_task_metadata() as tasks: ...``: of the tasks that ended in the block, after it.

    ``tasks.metadata`` has what is known of each by key (see ``task_rows``), ``tasks.state`` "memory" or "erred".
    """

    def __init__(self, client: Client | None = None) -> None:
        super().__init__(client)
        self.metadata: dict[str, dict[str, Any]] = {}
        self.state: dict[str, str] = {}

    def _end(self, records: Records) -> None:
        for row in records.tasks:
            key = row.pop("key")
            self.metadata[key] = row
            self.state[key] = "memory" if row["status"] == "OK" else "erred"


class MemorySampler:
    """The cluster's resident memory while blocks of code ran: ``with sampler.sample("label"): ...``.

    ``samples`` has, by label, pairs of time (seconds since the epoch) and bytes of all workers' processes together; a
    pair per heartbeat of a worker, so that of a block shorter than a second there may be none.
    """

    def __init__(self) -> None:
        self.samples: dict[str, list[tuple[float, float]]] = {}

    def sample(
        self,
        label: str | None = None,
        *,
        client: Client | None = None,
        measure: str = "process",
        interval: float | str = 0.5,
    ) -> _Sampling:
        """Sample during a block.

        Args:
            label: default a number.
            client: default the one in use.
            measure: only ``"process"`` (resident memory) is recorded.
            interval: keep a pair for each stretch of so many seconds (or text, as ``"500 ms"``) at most, the last.

        Raises ValueError for another ``measure``.
        """
        if measure != "process":
            raise ValueError(f"measure must be 'process', not {measure!r}: other kinds of memory are not recorded")
        return _Sampling(self, str(len(self.samples)) if label is None else label, client, seconds(interval) or 0.0)

    def to_pandas(self, *, align: bool = False) -> Any:
        """The samples as a data frame, a column per label; ``align``: all begin at time 0."""
        import pandas as pd

        series = {}
        for label, pairs in self.samples.items():
            times = pd.to_datetime([time for time, _ in pairs], unit="s")
            column = pd.Series([nbytes for _, nbytes in pairs], index=times)
            if align and len(column):
                column.index = column.index - column.index[0]
            series[label] = column[~column.index.duplicated(keep="last")]
        return pd.DataFrame(series).ffill()

    def plot(self, *, align: bool = False, **kwargs: Any) -> Any:
        """Draw ``to_pandas`` with pandas, in GiB; ``kwargs`` go to its ``plot``."""
        frame = self.to_pandas(align=align) / 2**30
        return frame.plot(**{"xlabel": "time", "ylabel": "Cluster memory (GiB)", **kwargs})


class _Sampling(_Block):
    def __init__(self, sampler: MemorySampler, label: str, client: Client | None, interval: float) -> None:
        super().__init__(client)
        self._sampler = sampler
        self._label = label
        self._interval = interval

    def _end(self, records: Records) -> None:
        rows: Sequence[tuple[float, tuple[int, int], float]]
        rows = sorted(row for page in records.pages for row in memory_rows(page))
        latest: dict[tuple[int, int], float] = {}
        pairs: list[tuple[float, float]] = []
        begin = -inf
        for time, process, nbytes in rows:
            if not process[0] or isnan(nbytes):
                continue
            latest[process] = nbytes
            if time - begin < self._interval:
                pairs.pop()
            else:
                begin = time
            pairs.append((time, sum(latest.values())))
        self._sampler.samples[self._label] = pairs
