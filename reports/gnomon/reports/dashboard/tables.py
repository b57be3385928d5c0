"""The model as tables for machines: sorted, filtered and cut into pages here, so that nobody gets more than a page.

Contents: Query, TABLES, answer, BadQueryError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any, NamedTuple

from gnomon.reports.account import PrefixAccount
from gnomon.reports.dashboard.model import Model
from gnomon.reports.dashboard.underway import LIVE_PARTS
from gnomon.reports.recording import TICKS

__all__ = ["TABLES", "BadQueryError", "Query", "Table", "answer", "page_of"]

#: Rows of a page at most, and by default.
LARGEST = 200
_SIZE = 50

_LONGEST_TEXT = 500


class BadQueryError(ValueError):
    """A query that can't be answered; the text is for who asked."""


@dataclass(frozen=True, slots=True)
class Query:
    """What a table is asked for. ``start`` and ``stop``: scheduler time, in seconds; negative: before now."""

    sort: str = ""
    desc: bool = False
    page: int = 1
    size: int = _SIZE
    prefix: str = ""
    worker: str = ""
    state: str = ""
    q: str = ""
    start: float | None = None
    stop: float | None = None

    @classmethod
    def of(cls, arguments: Mapping[str, Sequence[bytes]]) -> Query:
        """The query of a request's arguments. Raises BadQueryError."""
        said = {name: values[-1].decode("utf-8", "replace") for name, values in arguments.items() if values}
        said.pop("token", None)
        unknown = sorted(set(said) - set(cls.__slots__))
        if unknown:
            raise BadQueryError(f"unknown: {', '.join(unknown)}; known are {', '.join(cls.__slots__)}")
        size = _whole("size", said.get("size") or str(_SIZE))
        if size > LARGEST:
            raise BadQueryError(f"size is at most {LARGEST}")
        return cls(
            sort=said.get("sort", ""),
            desc=said.get("desc", "").lower() in ("1", "true", "yes"),
            page=_whole("page", said.get("page") or "1"),
            size=size,
            prefix=said.get("prefix", ""),
            worker=said.get("worker", ""),
            state=said.get("state", ""),
            q=said.get("q", "")[:_LONGEST_TEXT],
            start=_number("start", said["start"]) if said.get("start") else None,
            stop=_number("stop", said["stop"]) if said.get("stop") else None,
        )

    def window(self, model: Model) -> tuple[float | None, float | None]:
        """Start and stop as scheduler time."""
        start, stop = (model.now + time if time is not None and time <= 0 else time for time in (self.start, self.stop))
        return start, stop

    def finds(self, *texts: str) -> bool:
        """Whether ``q`` is in one of these texts."""
        return not self.q or any(self.q.lower() in text.lower() for text in texts)


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not isfinite(value):
        raise BadQueryError(f"{name} must be a number, not {text[:50]!r}")
    return value


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        raise BadQueryError(f"{name} must be a positive number, not {text[:50]!r}")
    return int(text)


class Table(NamedTuple):
    """Columns of name and unit (``""``, ``s``, ``B``, ``/s``, ``%``, ``time``), and rows.

    ``notice``: what is not in it.
    """

    columns: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[Any]]
    notice: str = ""


def _prefixes(model: Model, query: Query) -> Table:
    """By prefix: living tasks by state, all runs there ever were, and their parts in the window."""
    states = list(model.counters.states) if model.counters else []
    totals = model.counters.totals if model.counters else {}
    live = model.counters.prefixes if model.counters else {}
    accounts: dict[str, PrefixAccount] = {}
    if query.start is not None or query.stop is not None:
        accounts = {each.name: each for each in model.account(*query.window(model)).prefixes}
    columns = [
        ("prefix", ""), *((state, "") for state in states), ("runs", ""), ("failed_runs", ""), ("nbytes", "B"),
        ("compute", "s"), ("decode", "s"), ("encode", "s"), ("cpu", "s"), ("mean", "s"), ("window_runs", ""),
        ("window_busy", "s"),
    ]  # fmt: skip
    rows = []
    for name in {**totals, **live, **accounts}:
        if not query.finds(name) or (query.prefix and name != query.prefix):
            continue
        counts = live.get(name, {})
        total, part = totals.get(name), accounts.get(name)
        runs = total.tasks if total else 0
        seconds = [getattr(total, part_name) / TICKS if total else 0.0 for part_name in ("compute", "decode", "encode")]
        cpu = total.cpu / TICKS if total and total.measured else nan
        rows.append(
            [
                name, *(counts.get(state, 0) for state in states), runs, total.erred if total else 0,
                total.nbytes if total else 0, *seconds, cpu, sum(seconds) / runs if runs else nan,
                part.tasks if part else 0, part.parts.busy / TICKS if part else 0.0,
            ]
        )  # fmt: skip
    return Table(columns, rows)


def _workers(model: Model, query: Query) -> Table:
    columns = [
        ("name", ""), ("address", ""), ("host", ""), ("id", ""), ("pid", ""), ("threads", ""), ("processing", ""),
        ("in_memory", ""), ("nbytes", "B"), ("occupancy", "s"), ("memory", "B"), ("memory_limit", "B"), ("cpu", "%"),
        ("last_seen", "time"), ("joined", "time"), ("runs", ""), ("failed_runs", ""), ("compute", "s"),
    ]  # fmt: skip
    if model.counters is None:
        return Table(columns, [])
    totals = model.counters.worker_totals
    rows = []
    for each in model.counters.workers.values():
        if not query.finds(each.name, each.address, each.host) or query.worker not in ("", each.name, each.address):
            continue
        total = totals.get(each.id)
        rows.append(
            [
                each.name, each.address, each.host, each.id, each.pid, each.nthreads, each.processing, each.in_memory,
                each.nbytes, each.occupancy, each.memory, each.memory_limit, each.cpu, each.last_seen, each.joined,
                total.tasks if total else 0, total.erred if total else 0, total.compute / TICKS if total else 0.0,
            ]
        )  # fmt: skip
    return Table(columns, rows)


def _errors(model: Model, query: Query) -> Table:
    columns = [
        ("prefix", ""), ("type", ""), ("summary", ""), ("count", ""), ("key", ""), ("worker", ""), ("first", "time"),
        ("last", "time"), ("traceback", ""),
    ]  # fmt: skip
    names = _names(model)
    rows = [
        [e.prefix, e.type_name, e.summary, e.count, e.key, names.get(e.worker_id, ""), e.first, e.last, e.text]
        for e in model.errors
        if query.finds(e.prefix, e.type_name, e.summary, e.key) and query.prefix in ("", e.prefix)
    ]
    loose = model.errors_ungrouped
    return Table(columns, rows, f"{loose} more errors are counted and not kept." if loose else "")


def _names(model: Model) -> dict[int, str]:
    names = {each.id: each.name for each in model.departed}
    if model.counters is not None:
        names |= {each.id: each.name for each in model.counters.workers.values()}
    return names


def _logs(model: Model, query: Query) -> Table:
    rows = [[time, level, text] for time, level, text in model.logs if query.finds(level, text)]
    gone = model.logs_seen - len(model.logs)
    notice = f"The latest {len(model.logs)} of {model.logs_seen} lines." if gone > 0 else ""
    return Table([("time", "time"), ("level", ""), ("text", "")], rows, notice)


def _events(model: Model, query: Query) -> Table:
    rows = [list(event) for event in model.events if query.finds(event.kind, event.text)]
    return Table([("time", "time"), ("kind", ""), ("text", "")], rows)


def _transfers(model: Model, query: Query) -> Table:
    columns = [("from", ""), ("to", ""), ("transport", ""), ("fetches", ""), ("nbytes", "B"), ("seconds", "s")]
    names = _names(model) | {-1: "(unknown)", -2: "(further workers)"}
    rows = [
        [names.get(source, str(source)), names.get(target, str(target)), *rest[:4]]
        for source, target, *rest in model.pairs
    ]
    return Table(columns, [row for row in rows if query.finds(*row[:3]) and query.worker in ("", row[0], row[1])])


def _history(model: Model, query: Query) -> Table:
    columns = [
        ("start", "time"), ("stop", "time"), ("tasks", ""), ("failed", ""), ("busy", "s"), ("nbytes", "B"),
        ("capacity", "s"), ("missed", ""),
    ]  # fmt: skip
    bins = model.history.bins(*query.window(model), most=LARGEST)
    return Table(columns, [each[:8] for each in bins])


def _account(model: Model, query: Query) -> Table:
    """The parts of the threads' time in the window (the last minute by default); they sum to the capacity."""
    start, stop = query.window(model)
    account = model.account(model.now - 60.0 if start is None else start, stop)
    rows: list[list[Any]] = [
        [name, ticks / TICKS, 100 * ticks / account.capacity if account.capacity else nan]
        for name, ticks in zip(LIVE_PARTS, account.live_values(), strict=True)
    ]
    rows.append(["capacity", account.capacity / TICKS, 100.0 if account.capacity else nan])
    return Table([("part", ""), ("seconds", "s"), ("share", "%")], rows)


def _runs(model: Model, query: Query) -> Table:
    """Single runs of the window (the last minute by default)."""
    columns = [
        ("key", ""), ("prefix", ""), ("worker", ""), ("begin", "time"), ("seconds", "s"), ("compute", "s"),
        ("nbytes", "B"), ("ok", ""),
    ]  # fmt: skip
    start, stop = query.window(model)
    recording = model.recording(model.now - 60.0 if start is None else start, stop)
    runs = recording.runs
    rows = []
    for row, key in enumerate(runs.keys):
        prefix = runs.prefix_names[runs.prefixes[row]]
        at = runs.workers[row]
        worker = recording.workers[at].name if at >= 0 else ""
        if query.prefix not in ("", prefix) or query.worker not in ("", worker) or not query.finds(key):
            continue
        compute = runs.computes[row]
        seconds = (runs.decodes[row] + compute + runs.encodes[row]) / TICKS
        begin = recording.start + runs.begins[row] / TICKS
        rows.append([key, prefix, worker, begin, seconds, compute / TICKS, runs.nbytes[row], bool(runs.ok[row])])
    missed = recording.ledgers["runs"].missed
    notice = f"{missed} runs of this time are known by their sums alone." if missed else ""
    return Table(columns, rows, notice)


#: By name, what makes a table of the model.
TABLES: dict[str, Callable[[Model, Query], Table]] = {
    "account": _account,
    "errors": _errors,
    "events": _events,
    "history": _history,
    "logs": _logs,
    "prefixes": _prefixes,
    "runs": _runs,
    "transfers": _transfers,
    "workers": _workers,
}


def page_of(table: Table, query: Query) -> dict[str, Any]:
    """A page of a table: sorted as asked, then cut. Raises BadQueryError for a column that isn't there."""
    rows = list(table.rows)
    names = [name for name, _ in table.columns]
    if query.sort:
        if query.sort not in names:
            raise BadQueryError(f"sort: there is no column {query.sort!r}; the columns are {', '.join(names)}")
        at = names.index(query.sort)
        rows.sort(key=lambda row: _order(row[at]), reverse=query.desc)
        rows.sort(key=lambda row: _is_missing(row[at]))  # what is not known comes last, whichever way
    elif query.desc:
        rows.reverse()
    first = (query.page - 1) * query.size
    return {
        "columns": [{"name": name, "unit": unit} for name, unit in table.columns],
        "rows": rows[first : first + query.size],
        "total": len(rows),
        "page": query.page,
        "size": query.size,
        "sort": query.sort,
        "desc": query.desc,
        "notice": table.notice,
    }


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _order(value: Any) -> tuple[int, Any]:
    """Numbers by size, then texts by letters."""
    if _is_missing(value):
        return 0, 0.0
    return (0, value) if isinstance(value, int | float) else (1, str(value).lower())


def answer(model: Model, name: str, query: Query, age: float) -> dict[str, Any]:
    """A page of a table, and how old it is: what ``/api/v1/NAME.json`` says. Raises BadQueryError, KeyError."""
    table = TABLES[name](model, query)
    return {**page_of(table, query), **about(model, age)}


def about(model: Model, age: float) -> dict[str, Any]:
    """What every answer says: the model's time, and its age in seconds (null before the first data)."""
    return {"now": model.now, "age": age if isfinite(age) else None, "connected": model.connected}
