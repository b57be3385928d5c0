"""What a client may ask of the cluster's instruments: profiles, call stacks, records.

Contents: ClusterInstruments, load_session.
"""

from __future__ import annotations

import asyncio
import inspect
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgpack

from gnomon.profiler.sessions.session import Nodes, Samples, Session
from gnomon.runtime.client.future import futures_of
from gnomon.runtime.client.graph import wire_key
from gnomon.runtime.client.packing import seconds, worker_names
from gnomon.runtime.client.plots import check_plot, draw_task_stream
from gnomon.runtime.client.records import Records

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine

    from gnomon.runtime.client.effects import Effect
    from gnomon.runtime.messages import Key

__all__ = ["ClusterInstruments", "load_session"]

#: Rows of records asked for at once.
_PAGE = 10_000

#: Where a profile is written when a plot is asked for without a name.
_PLOT = "gnomon-profile.html"

#: The profile of a cluster that nobody samples.
_EMPTY = Session(
    meta={"interval": 0.0, "start": 0.0, "stop": 0.0, "pid": 0, "process": "", "python": ""}
    | dict.fromkeys(("cpu", "missed", "samples", "ticks"), 0),
    functions=(),
    nodes=Nodes((), (), ()),
    buckets=(),
    threads=(),
    labels=("",),
    samples=Samples((), (), (), (), ()),
)


def load_session(packed: bytes) -> Session:
    """The session that a process of the cluster packed. Raises ValueError for what is none."""
    try:
        plain = msgpack.unpackb(zlib.decompress(packed), strict_map_key=False)
    except (zlib.error, ValueError, msgpack.exceptions.UnpackException) as exc:
        raise ValueError("these bytes are no session") from exc
    return Session.from_plain(plain)


class ClusterInstruments:
    """The part of ``Client`` that asks instruments. With an asynchronous client every answer is awaited."""

    def call(self, coroutine: Coroutine[Effect, Any, Any]) -> Any:
        """Run one of this room's coroutines to its end; asynchronous clients give an awaitable."""
        raise NotImplementedError

    async def _ask(self, method: str, arguments: dict[str, Any], timeout: float | None = None) -> Any:
        raise NotImplementedError

    def profile(
        self,
        key: str | None = None,
        start: float | str | None = None,
        stop: float | str | None = None,
        workers: Any = None,
        merge_workers: bool = True,
        plot: bool | str = False,
        filename: str | Path | None = None,
        server: bool = False,
        scheduler: bool = False,
    ) -> Any:
        """What the cluster's threads were at: a session of ``gnomon.profiler``.

        With ``merge_workers`` false one per address.

        Args:
            key: only tasks whose prefix begins so.
            start, stop: the window: seconds since the epoch, or text for so long ago (``"10 s"``); default: all.
            workers: addresses, names or hosts; default all.
            plot: write a flame graph, to ``filename`` or else to ``gnomon-profile.html``.
            filename: write the session there, in the format of its ending (``.html`` is a flame graph,
                ``.speedscope.json``, ``.txt``, ``.profile``...).
            server: the workers' own event loops instead of tasks.
            scheduler: the scheduler's event loop instead.

        Raises ValueError for a file name without a known ending.
        """
        if server and scheduler:
            raise ValueError("a profile is of the workers' loops or of the scheduler's, not of both")
        process = "scheduler" if scheduler else "agent" if server else "executor"
        arguments: dict[str, Any] = {"process": process, "start": _moment(start), "stop": _moment(stop)}
        if key is not None:
            arguments["prefix"] = key
        if workers is not None:
            arguments["workers"] = worker_names(workers)
        target = filename if filename is not None or not plot else _PLOT
        return self.call(self._profile(arguments, merge_workers, target))

    async def _profile(self, arguments: dict[str, Any], merge: bool, filename: str | Path | None) -> Any:
        packed: dict[str, bytes] = await self._ask("profile", arguments)
        sessions = {address: load_session(data) for address, data in packed.items()}
        if not merge and filename is None:
            return sessions
        merged = Session.merge(sessions.values()) if sessions else _EMPTY
        if filename is not None:
            from gnomon.profiler.export import write  # only where something is written

            write(merged, filename)
        return merged if merge else sessions

    async def task_profile(self, key: Key) -> Session:
        """The deep profile of a key's last run. Raises ValueError if there is none."""
        data = await self._ask("task_profile", {"key": key})
        if data is None:
            raise ValueError(
                f"there is no deep profile of {key!r}: submit it with profile=True; only the latest ones are kept"
            )
        from gnomon.profiler import deep  # pyinstrument, only where it is asked for
        from gnomon.profiler.export.pyinstrument import from_pyinstrument

        return from_pyinstrument(deep.load(data))

    def call_stack(self, futures: Any = None, keys: Any = None) -> Any:
        """Where running tasks are: by worker address and key the lines of the stack, outermost first.

        Of the futures or keys given, or of all that run.
        """
        wanted: tuple[Key, ...] | None = None
        if futures is not None or keys is not None:
            wanted = tuple([future.key for future in futures_of(futures or ())])
            wanted += tuple([wire_key(key) for key in keys or ()])
        return self.call(self._call_stack(wanted))

    async def _call_stack(self, keys: tuple[Key, ...] | None) -> dict[str, dict[Any, list[str]]]:
        found = await self._ask("call_stack", {"keys": keys})
        return {address: {key: list(stack) for key, stack in stacks} for address, stacks in found.items()}

    def get_task_stream(
        self,
        start: float | str | None = None,
        stop: float | str | None = None,
        count: int | None = None,
        plot: bool | str = False,
        filename: str | Path = "task-stream.html",
        bokeh_resources: Any = None,
    ) -> Any:
        """The runs that the scheduler remembers, oldest first (see ``records.task_rows`` for their fields).

        Args:
            start, stop: runs that were under way in this window; as in ``profile``.
            count: the last so many.
            plot: give a pair of the runs and a Bokeh figure of them; ``"save"`` also writes it to ``filename``.
            filename: where to save.
            bokeh_resources: where the saved page takes Bokeh's scripts from; it holds them itself by default.

        Raises RuntimeError for a plot without the package that draws, ValueError for another ``plot``.
        """
        check_plot(plot)
        rows = self.call(self._task_stream(_moment(start), _moment(stop), count))
        if not plot:
            return rows
        if inspect.isawaitable(rows):
            return _drawn(rows, plot, filename, bokeh_resources)
        return rows, draw_task_stream(rows, plot, filename, bokeh_resources)

    async def _task_stream(self, start: float | None, stop: float | None, count: int | None) -> list[dict[str, Any]]:
        records = await self._records((0, 0))
        rows = [
            row
            for row in records.tasks
            if (start is None or row["startstops"][-1]["stop"] >= start)
            and (stop is None or row["startstops"][0]["start"] <= stop)
        ]
        return rows if count is None else rows[max(0, len(rows) - count) :]

    def records_since(self, mark: dict[str, Any]) -> Any:
        """The scheduler's records since a mark (what ``request("telemetry_mark")`` gave), up to now."""
        return self.call(self._records(tuple(mark["number"])))

    async def _records(self, number: tuple[int, ...]) -> Records:
        mark: dict[str, Any] = await self._ask("telemetry_mark", {})
        end = tuple(mark["number"])[: len(number)]
        pages = []
        while any(here < there for here, there in zip(number, end, strict=True)):
            page = await self._ask("telemetry", {"since": number, "limit": _PAGE})
            pages.append(page)
            if tuple(page["next"]) == number:
                break
            number = tuple(page["next"])
        return Records(pages, mark)


async def _drawn(
    rows: Awaitable[list[dict[str, Any]]], plot: bool | str, filename: str | Path, bokeh_resources: Any
) -> tuple[list[dict[str, Any]], Any]:
    """The runs with their figure, which takes a while and is not drawn on the loop."""
    known = await rows
    return known, await asyncio.to_thread(draw_task_stream, known, plot, filename, bokeh_resources)


def _moment(value: Any) -> float | None:
    """A time of the wall clock: seconds since the epoch as they are, text and timedelta as so long ago."""
    if value is None or isinstance(value, int | float):
        return value
    ago = seconds(value)
    assert ago is not None
    return time.time() - ago
