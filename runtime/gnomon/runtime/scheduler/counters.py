"""What a live view asks of a scheduler: one compact answer a second, and looks at single tasks and graphs on demand.

``live`` is the whole stream: states, totals, workers and the telemetry's rows since a number, in one answer that says
what it cost. Names and texts travel once: the asker says what it knows. Nothing here changes the model, and nothing
runs longer than a bounded number of tasks takes.

Contents: LiveView, Traffic, DASHBOARD.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import chain, islice
from math import nan
from operator import add
from time import thread_time
from typing import TYPE_CHECKING, Any

from gnomon.runtime import clock
from gnomon.runtime.core.states import STATE_NAMES
from gnomon.runtime.core.task import TaskState
from gnomon.runtime.scheduler.texts import KEY_TEXT, key_text

if TYPE_CHECKING:
    from gnomon.runtime.comm import Comm
    from gnomon.runtime.comm.base import Counters
    from gnomon.runtime.scheduler.server import Scheduler

__all__ = ["DASHBOARD", "LiveView", "Traffic"]

#: What the names of clients begin with that only look.
DASHBOARD = "gnomon-dashboard"

_STATES = STATE_NAMES[:-1]

#: Tasks that one request looks at: some milliseconds of work.
_SCAN = 20_000

#: Rows of each ring in one answer.
_MOST_ROWS = 20_000


class Traffic:
    """What went over the scheduler's connections, by their own counters, looked at now and then.

    Connections that have closed since a look are still counted whole: their counters were kept. One that opened and
    closed between two looks is not known.
    """

    def __init__(self) -> None:
        self._open: list[Counters] = []
        self._closed: tuple[int, ...] = (0, 0, 0, 0)

    def look(self, comms: Sequence[Comm]) -> tuple[int, ...]:
        """Messages received and sent, bytes received and sent so far; connections, and those that count no bytes."""
        counters = [comm.counters for comm in comms]
        still = set(map(id, counters))
        gone = [counter for counter in self._open if id(counter) not in still]
        self._closed = tuple(map(add, self._closed, _sums(gone)))
        self._open = counters
        inside = sum([comm.local_address.startswith("inproc://") for comm in comms])
        return *map(add, self._closed, _sums(counters)), len(comms), inside


class LiveView:
    """Answers for one scheduler."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._model = scheduler.model
        self._traffic = Traffic()

    def live(
        self,
        since: Sequence[int] | None = None,
        limit: int = 10_000,
        known: int = 0,
        left: float = 0.0,
        errors: int = 0,
        logs: int = 0,
    ) -> dict[str, Any]:
        """Everything that moves, as plain values.

        Args:
            since: the telemetry's numbers, ``next`` of the page before; None begins with the oldest rows.
            limit: rows of each ring.
            known: the greatest worker id that the asker knows; ``facts`` has those above it.
            left: the time of the last departure that the asker knows.
            errors, logs: how many the asker has heard of.

        ``cost`` is the processor seconds that this took, without packing. ``workers`` holds columns as bytes of arrays:
        ids, processing, in_memory, nbytes (q); occupancy, memory, cpu_seconds, last_seen (d). ``living`` are rows of
        prefix and number of living tasks by state; sums over runs, errors and logs are those of ``Telemetry.news``.
        ``loop`` is the budget of the scheduler's loop since its start (see ``budget``), ``traffic`` what ``Traffic``
        tells.
        """
        began = thread_time()
        now = clock.now()
        scheduler, model, telemetry = self._scheduler, self._model, self._scheduler.telemetry
        head = telemetry.numbers()
        page = telemetry.since(tuple(since or (0,) * len(head)), min(limit, _MOST_ROWS))
        news = telemetry.news(known, left, errors, logs)
        rows = news.pop("workers")
        answer: dict[str, Any] = {
            "id": scheduler.id,
            "started": scheduler.started,
            "now": now,
            "number": head,
            "page": page,
            "states": _STATES,
            "living": self._living(),
            "groups": len(model.groups),
            "queued": model.queue.live,
            "no_worker": len(model.no_worker),
            "threads": model.total_threads,
            "clients": sum(not client.name.startswith(DASHBOARD) for client in model.clients.values()),
            "workers": self._workers(),
            "loop": scheduler.watching.budget.rows(),
            "traffic": self._traffic.look(
                [stream.comm for stream in chain(scheduler.workers.values(), scheduler.clients.values())]
            ),
            "facts": [
                (ws.worker_id, ws.name, ws.address, ws.host, ws.pid, ws.nthreads, ws.memory_limit, row[5])
                for row in rows
                if row[0] > known and (ws := model.workers.get(row[0])) is not None
            ],
            "departed": [row for row in rows if row[6] is not None and row[6] > left],
            **news,
        }
        if since is None or head[1] != since[1]:
            answer |= telemetry.pairs()
        if since is None or any(page["missed"]) or not page["done"]:
            answer["demand"] = telemetry.demand()
        answer["cost"] = thread_time() - began
        return answer

    def _living(self) -> list[tuple[Any, ...]]:
        """Rows of prefix and number of living tasks by state."""
        found: dict[str, Sequence[int]] = {}
        for group in self._model.groups.values():
            name = group.prefix.name
            row = found.get(name)
            found[name] = group.counts[:-1] if row is None else list(map(add, row, group.counts))
        return [(name, *row) for name, row in found.items()]

    def _workers(self) -> dict[str, bytes]:
        streams = self._scheduler.workers
        workers = [ws for ws in self._model.workers.values() if ws.worker_id in streams]
        theirs = [streams[ws.worker_id] for ws in workers]
        metrics = [stream.metrics for stream in theirs]
        return {
            "ids": array("q", [ws.worker_id for ws in workers]).tobytes(),
            "processing": array("q", [len(ws.processing) for ws in workers]).tobytes(),
            "in_memory": array("q", [len(ws.has_what) for ws in workers]).tobytes(),
            "nbytes": array("q", [ws.nbytes for ws in workers]).tobytes(),
            "occupancy": array("d", [ws.occupancy for ws in workers]).tobytes(),
            "memory": _numbers(metrics, "memory").tobytes(),
            "cpu_seconds": _numbers(metrics, "cpu_seconds").tobytes(),
            "last_seen": array("d", [stream.last_seen for stream in theirs]).tobytes(),
        }

    def tasks_page(
        self, state: str = "", prefix: str = "", search: str = "", offset: int = 0, limit: int = 200
    ) -> dict[str, Any]:
        """Living tasks, the latest defined first: those in a state, of a prefix, with a text in their key.

        ``scanned`` says how many were looked at; ``total`` counts the matches among them.
        """
        if state and state not in _STATES:
            raise ValueError(f"a task is never {state!r}; the states are {', '.join(_STATES)}")
        wanted = _STATES.index(state) if state else -1
        limit = max(0, min(limit, _SCAN))
        rows: list[tuple[Any, ...]] = []
        matches = scanned = 0
        for ts in islice(reversed(self._model.by_id.values()), _SCAN):
            scanned += 1
            if (wanted >= 0 and ts.state != wanted) or (prefix and ts.group.prefix.name != prefix):
                continue
            if search and search not in key_text(ts.key):
                continue
            matches += 1
            if offset < matches <= offset + limit:
                rows.append(_row(ts))
        return {"total": matches, "scanned": scanned, "tasks": len(self._model.by_id), "rows": rows}

    def task_graph(self, limit: int = 2_000) -> dict[str, Any]:
        """The graph of all living tasks: nodes of key, prefix and state, edges from dependency to dependent.

        Of more than ``limit`` tasks only their number is told.
        """
        total = len(self._model.by_id)
        if total > min(limit, _SCAN):
            return {"total": total, "scanned": 0, "nodes": [], "edges": []}
        tasks = list(self._model.by_id.values())
        index = {ts.task_id: row for row, ts in enumerate(tasks)}
        edges = [
            (index[dep.task_id], row) for row, ts in enumerate(tasks) for dep in ts.dependencies if dep.task_id in index
        ]
        nodes = [(key_text(ts.key), ts.group.prefix.name, STATE_NAMES[ts.state]) for ts in tasks]
        return {"total": total, "scanned": total, "nodes": nodes, "edges": edges}

    def group_graph(self, limit: int = 500) -> dict[str, Any]:
        """The graph of groups: nodes of name, prefix and tasks by state, edges with the number of edges they stand for.

        The ``limit`` greatest groups; edges are those of the ``scanned`` tasks that were looked at.
        """
        groups = sorted(self._model.groups.values(), key=lambda group: -group.alive)[:limit]
        index = {group.name: row for row, group in enumerate(groups)}
        counts: dict[tuple[int, int], int] = {}
        scanned = 0
        for ts in islice(reversed(self._model.by_id.values()), _SCAN):
            scanned += 1
            to = index.get(ts.group.name)
            if to is None:
                continue
            for dep in ts.dependencies:
                source = index.get(dep.group.name)
                if source is not None and source != to:
                    counts[source, to] = counts.get((source, to), 0) + 1
        nodes = [
            (group.name[:KEY_TEXT], group.prefix.name, dict(zip(_STATES, group.counts, strict=False)))
            for group in groups
        ]
        return {
            "total": len(self._model.groups),
            "tasks": len(self._model.by_id),
            "scanned": scanned,
            "nodes": nodes,
            "edges": [(source, to, count) for (source, to), count in counts.items()],
        }


def _sums(counters: Sequence[Counters]) -> tuple[int, int, int, int]:
    return (
        sum([counter.messages_received for counter in counters]),
        sum([counter.messages_sent for counter in counters]),
        sum([counter.bytes_received for counter in counters]),
        sum([counter.bytes_sent for counter in counters]),
    )


def _row(ts: TaskState) -> tuple[Any, ...]:
    worker = ts.processing_on.address if ts.processing_on is not None else ts.holders[0].address if ts.holders else ""
    return key_text(ts.key), ts.group.prefix.name, STATE_NAMES[ts.state], worker, ts.attempt, ts.nbytes


def _numbers(metrics: Sequence[dict[str, Any]], name: str) -> array[float]:
    """One of the metrics of each; NaN for what is no number, which workers may well send."""
    try:
        return array("d", [row.get(name, nan) for row in metrics])
    except TypeError:
        values = [row.get(name) for row in metrics]
        return array("d", [value if isinstance(value, int | float) else nan for value in values])
