"""What a page shows: its panels, and what all pages are told of the data themselves.

Contents: told, report.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from gnomon.reports.dashboard.context import Context
from gnomon.reports.dashboard.pages import panels
from gnomon.reports.dashboard.pages.catalogue import PageEntry
from gnomon.reports.dashboard.pages.colors import slots_of
from gnomon.reports.dashboard.pages.data import communication, memory
from gnomon.reports.dashboard.pages.graph import graph, task_graph
from gnomon.reports.dashboard.pages.overview import overview
from gnomon.reports.dashboard.pages.panels import Panel
from gnomon.reports.dashboard.pages.profile import profile
from gnomon.reports.dashboard.pages.scheduler import scheduler
from gnomon.reports.dashboard.pages.tasks import one_prefix, tasks
from gnomon.reports.dashboard.pages.trouble import errors, events, logs
from gnomon.reports.dashboard.pages.view import View
from gnomon.reports.dashboard.pages.workers import call_stacks, one_worker, run_at, workers
from gnomon.reports.page import build_page
from gnomon.reports.palette import OTHER
from gnomon.reports.recording import TICKS
from gnomon.reports.units import bytes_text, count_text, time_text

__all__ = ["report", "told"]

#: Bins of the strip that shows the whole run, and prefixes offered in the filter.
_BINS = 600
_OFFERED = 200

#: Pages that show single runs.
_DETAILED = frozenset({"timeline", "tasks", "prefix", "worker", "report"})

_Make = Callable[[Context, View], Awaitable[list[Panel]]]


async def told(context: Context, entry: PageEntry, query: Mapping[str, list[bytes]], view: View) -> dict[str, Any]:
    """All that a page shows now. What is asked for on demand comes only when ``ask`` says so."""
    await context.fresh(min(1.0, entry.refresh or 1.0))
    model = context.model
    asked = _text(query, "ask")
    heard = model.version > 0
    if heard:
        made = await _panels(context, entry, query, view, asked)
    else:
        sentence = "The scheduler has not told anything yet; this page asks it again and again."
        made = [panels.text(block.name, sentence) for block in entry.blocks if not block.chart]
    names = [] if model.counters is None else sorted(model.counters.totals, key=str)[:_OFFERED]
    return {
        "now": model.now - model.begin,
        "age": context.feed.age(),
        "connected": model.connected,
        "heard": heard,
        "retries": model.retries,
        "errors": model.errors_seen,
        "panels": made,
        "notices": _notices(context, entry, view),
        "prefixes": names,
        "minimap": _minimap(context) if entry.minimap and heard else None,
    }


async def _panels(
    context: Context, entry: PageEntry, query: Mapping[str, list[bytes]], view: View, asked: str
) -> list[Panel]:
    what = _text(query, "what")
    if entry.name == "prefix":
        return await one_prefix(context, view, what)
    if entry.name == "worker":
        made = await one_worker(context, view, what)
        if asked == "stacks":
            made = [each for each in made if each["name"] != "stacks"] + [await call_stacks(context, what)]
        return made
    if entry.name == "profile":
        return await profile(context, view, _text(query, "process") or "executor")
    if entry.name == "graph":
        return await (task_graph if asked == "tasks" else graph)(context, view)
    if entry.name == "timeline":
        if asked == "run":
            return [run_at(context, view, query)]
        return [_legend(context, view)]
    if entry.name == "report":
        return [_report_panel(context, view)]
    makers: dict[str, _Make] = {
        "summary": overview, "tasks": tasks, "workers": workers, "scheduler": scheduler, "memory": memory,
        "communication": communication, "errors": errors, "logs": logs, "events": events,
    }  # fmt: skip
    return await makers[entry.name](context, view)


def _text(query: Mapping[str, list[bytes]], name: str) -> str:
    values = query.get(name)
    return values[-1].decode("utf-8", "replace")[:2_000] if values else ""


def _notices(context: Context, entry: PageEntry, view: View) -> list[str]:
    """What the numbers of this window lack."""
    model = context.model
    if entry.name not in _DETAILED:
        return []
    start, stop = view.window(model)
    said = []
    if model.behind:
        said.append(
            f"The scheduler is still telling of {count_text(model.behind)} runs; until then they are known by their "
            "sums alone."
        )
    lost = sum(gap.rows for gap in model.gaps if gap.stop > start and gap.start < stop)
    if lost:
        said.append(
            f"{count_text(lost)} tasks of this window have no details: they came too fast or too long ago. Totals use "
            "counters and are complete."
        )
    return said


def _minimap(context: Context) -> dict[str, Any]:
    """The whole run in one strip."""
    model = context.model
    bins = model.history.bins(most=_BINS)
    erred = sum(each.erred for each in bins)
    marks = f"; {count_text(round(erred))} errors as marks on top" if erred else ""
    return {
        "busy": [round(each.busy / each.capacity, 3) if each.capacity > 0 else 0.0 for each in bins],
        "errors": [round(each.erred) for each in bins],
        "end": bins[-1].stop - model.begin if bins else 0.0,
        "words": f"The whole run, 0 to {time_text((model.now - model.begin) * TICKS)}: share of threads in tasks"
        f"{marks}. Drag to choose a range; double click to follow again.",
    }


def _legend(context: Context, view: View) -> Panel:
    """The colours of the stream with the time of each prefix in the window: the same facts as text."""
    model = context.model
    colors, result = slots_of(model), view.account(model)
    rows = [
        [
            panels.of_prefix(each.name, colors.get(each.name, OTHER)),
            panels.count(each.tasks),
            panels.time(each.parts.busy),
            panels.cell(f"{100 * each.parts.busy / max(1, result.capacity):.1f} %", each.parts.busy),
            panels.count(each.erred),
        ]
        for each in result.prefixes
        if each.tasks or each.parts.busy
    ]  # fmt: skip
    columns = (("prefix", False), ("tasks", True), ("in tasks", True), ("of capacity", True), ("erred", True))
    note = "Erred tasks are black (white in the dark) and crossed; prefixes beyond nine repeat a colour with a hatch."
    return panels.table(view, "stream-legend", columns, rows, note=note,
                        empty="No task ended in this window.", leaf=25)  # fmt: skip


def _report_panel(context: Context, view: View) -> Panel:
    """What a report would hold."""
    model = context.model
    start, stop = view.window(model)
    recording = model.recording(start, stop)
    kept = max(start, model.kept_from)
    ledger = recording.ledgers.get("runs")
    facts = [
        ("window", f"{view.words(model)}: {time_text((stop - start) * TICKS)}"),
        ("tasks with details", count_text(len(recording.runs))),
        ("tasks by their totals alone", count_text(ledger.missed if ledger is not None else 0)),
        ("details from", f"{kept - model.begin:,.1f} s on"),
        ("fetches with details", count_text(len(recording.transfers))),
        ("workers", count_text(len(recording.workers))),
        ("about", f"{bytes_text(1_500_000 + 25 * len(recording.runs))} as a page"),
    ]
    rows = [[panels.cell(name), panels.cell(value)] for name, value in facts]
    return panels.table(view, "report", (("what the report would hold", False), ("", False)), rows, sortable=False)


async def report(context: Context, view: View, kind: str) -> tuple[bytes, str]:
    """The report of what is kept of a window, as a page or a recording, and a name for the file."""
    await context.fresh()
    model = context.model
    recording = model.recording(*view.window(model))
    recording.info["created"] = f"from the dashboard of {context.name or model.address}"
    if kind == "gnomon":
        return await asyncio.to_thread(recording.dumps), "gnomon-recording.gnomon"
    page = await asyncio.to_thread(build_page, recording)
    return page.encode("utf-8"), "gnomon-report.html"
