"""The scheduler: is it the limit?

Contents: scheduler.
"""

from __future__ import annotations

from array import array
from math import nan

from gnomon.reports.dashboard.context import Context
from gnomon.reports.dashboard.pages import panels
from gnomon.reports.dashboard.pages.loop import NOT_MEASURED, loop_bar, loop_parts, traffic
from gnomon.reports.dashboard.pages.overview import loop_busy, per_second
from gnomon.reports.dashboard.pages.panels import Panel
from gnomon.reports.dashboard.pages.view import View
from gnomon.reports.recording import TICKS, Recording
from gnomon.reports.units import bytes_text, count_text, cut, time_text

__all__ = ["scheduler"]


async def scheduler(context: Context, view: View) -> list[Panel]:
    """All panels of the page."""
    model = context.model
    recording = model.recording(*view.window(model))
    return [
        _numbers(context, view),
        loop_bar(model, view),
        loop_parts(model, view),
        traffic(model, view),
        _processes(view, recording),
        _stalls(view, recording, recording.start - model.begin),
        _cost(context),
    ]


def _numbers(context: Context, view: View) -> Panel:
    now, rates = context.model.counters, context.model.rates()
    if now is None:
        return panels.text("scheduler", "The scheduler has not told anything yet; this page asks it every second.")
    return panels.strip(
        "scheduler",
        [
            ("rate", per_second(rates["tasks"]), "tasks done"),
            ("bytes", f"{bytes_text(rates['bytes'])}/s" if rates["bytes"] == rates["bytes"] else "-", "results"),
            ("workers", count_text(len(now.workers)), "workers connected"),
            ("clients", count_text(now.clients), "clients connected"),
            ("groups", count_text(now.groups), "groups of tasks"),
            ("live", count_text(sum(now.states.values())), "tasks known"),
            ("queued", count_text(now.queued), "queued"),
            loop_busy(context.model, view),
        ],
    )


_PROCESSES = ("scheduler", "agent", "executor")


def _column(recording: Recording, name: str, rows: list[int]) -> list[float]:
    values = recording.series.values.get(name) or array("d", [nan]) * len(recording.series)
    return [values[row] for row in rows if values[row] == values[row]]


def _processes(view: View, recording: Recording) -> Panel:
    """What the scheduler measured of its own process."""
    series = recording.series
    rows = [row for row, worker in enumerate(series.workers) if worker == -1]
    if not rows:
        return panels.text("process", NOT_MEASURED)

    def said(name: str, how: str, words: str) -> Panel:
        values = _column(recording, name, rows)
        if not values:
            return panels.cell("-", -1, "not measured")
        value = {"mean": sum(values) / len(values), "most": max(values), "last": values[-1], "sum": sum(values)}[how]
        shown = {"percent": f"{value:.1f} %", "bytes": bytes_text(value), "time": time_text(value * TICKS)}[words]
        return panels.cell(shown, value)

    facts = (
        ("CPU, of one core, mean", said("cpu", "mean", "percent")),
        ("CPU, of one core, most", said("cpu", "most", "percent")),
        ("memory now", said("memory", "last", "bytes")),
        ("loop busy, mean", said("busy", "mean", "percent")),
        ("lag, median", said("lag_p50", "mean", "time")),
        ("lag, 99 %, most", said("lag_p99", "most", "time")),
        ("lag, most", said("lag_max", "most", "time")),
        ("collecting garbage", said("gc_seconds", "sum", "time")),
        ("GIL contended, mean", said("gil_contended", "mean", "percent")),
        ("its instruments' own time", said("own_cpu", "sum", "time")),
    )
    return panels.table(
        view, "process", (("measured", False), ("", True)), [[panels.cell(name), value] for name, value in facts],
        caption="The scheduler's process in the window", sortable=False,
    )  # fmt: skip


def _stalls(view: View, recording: Recording, offset: float) -> Panel:
    rows = []
    for stall in sorted(recording.stalls, key=lambda each: -each.begin):
        of = "scheduler" if stall.worker < 0 else recording.workers[stall.worker].label
        stack = "\n".join(" ".join(map(str, frame)) for frame in stall.stack)
        rows.append(
            [
                panels.cell(f"{stall.begin / TICKS + offset:,.2f} s", stall.begin),
                panels.cell(time_text(stall.length), stall.length),
                panels.cell(cut(of, 32), None, of),
                panels.cell(_PROCESSES[stall.process] if 0 <= stall.process < 3 else ""),
                panels.cell(stall.cause),
                panels.cell(cut(stall.function or stall.detail or "-", 60), None, stack or stall.detail),
                panels.cell(cut(f"{stall.file}:{stall.line}", 50) if stall.file else "-", None, stall.file),
            ]
        )
    columns = (("at", True), ("lasted", True), ("of", False), ("process", False), ("cause", False),
               ("function", False), ("at", False))  # fmt: skip
    empty = "Every event loop came round in time in this window."
    return panels.table(view, "stalls", columns, rows, caption="Loops that did not come round in time, and why",
                        empty=empty, leaf=15)  # fmt: skip


def _cost(context: Context) -> Panel:
    """What looking costs: this dashboard's own counters."""
    words = {
        "looks": "views open", "requests": "questions to the scheduler", "connections": "connections made",
        "skipped": "updates skipped for slow browsers", "scheduler_cost": "scheduler's time spent on it",
    }  # fmt: skip
    rows = []
    for name, word in words.items():
        value = context.statistics.get(name, 0)
        shown = time_text(value * TICKS) if name == "scheduler_cost" else count_text(int(value))
        rows.append([panels.cell(word), panels.cell(shown, value)])
    return panels.table(View(), "cost", (("this dashboard", False), ("", True)), rows,
                        caption="What looking costs", sortable=False)  # fmt: skip
