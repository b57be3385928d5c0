"""The first page: how the run goes, in numbers and words.

Contents: overview, counters, loop_busy, budget, progress, latest_errors, per_second, rate_bytes.
"""

from __future__ import annotations

from gnomon.reports.account import percentages
from gnomon.reports.dashboard.context import Context
from gnomon.reports.dashboard.model import Model
from gnomon.reports.dashboard.pages import panels
from gnomon.reports.dashboard.pages.colors import slots_of
from gnomon.reports.dashboard.pages.panels import Panel
from gnomon.reports.dashboard.pages.view import View
from gnomon.reports.dashboard.underway import LIVE_PARTS
from gnomon.reports.page.sentences import closing, loop_times
from gnomon.reports.page.tables import part_words
from gnomon.reports.palette import OTHER
from gnomon.reports.recording import TICKS, Recording
from gnomon.reports.units import bytes_text, count_text, cut, time_text

__all__ = ["budget", "counters", "latest_errors", "loop_busy", "overview", "per_second", "progress", "rate_bytes"]

#: States in the order in which a task goes through them, and what they are called.
STATES = (
    ("memory", "in memory"), ("done", "done"), ("processing", "processing"), ("queued", "queued"),
    ("no-worker", "no worker"), ("waiting", "waiting"), ("erred", "erred"), ("released", "released"),
    ("forgotten", "forgotten"),
)  # fmt: skip

NO_WORKER = (
    "No worker has joined. Tasks wait until one does: start one with `gnomon worker ADDRESS`, or let the cluster scale."
)
#: What the time of tasks that have not ended is called.
UNDERWAY = "In tasks that have not ended yet"

NO_TASK = "No task has run yet. Numbers appear with the first `client.submit`, `map` or `compute`."


async def overview(context: Context, view: View) -> list[Panel]:
    """All panels of the first page."""
    model = context.model
    return [counters(model, view), budget(model, view), progress(model, view), latest_errors(model)]


def counters(model: Model, view: View) -> Panel:
    """The header's numbers."""
    now = model.counters
    if now is None:
        return panels.text("counters", "The scheduler has not told anything yet; this page asks it every second.")
    states, rates = now.states, model.rates()
    wanted = ("memory", "processing", "queued", "waiting", "no-worker", "erred")
    items = [
        ("workers", count_text(len(now.workers)), "worker" if len(now.workers) == 1 else "workers"),
        ("threads", count_text(now.total_threads), "thread" if now.total_threads == 1 else "threads"),
        ("tasks", count_text(sum(each.tasks for each in now.totals.values())), "tasks run"),
        ("rate", per_second(rates["tasks"]), "task rate"),
        *((name, count_text(states.get(name, 0)), word) for name, word in STATES if name in wanted),
    ]
    return panels.strip("counters", [*items, loop_busy(model, view)])


def loop_busy(model: Model, view: View) -> tuple[str, str, str]:
    """The share of its time that the scheduler's loop worked in the window, as in the header of reports."""
    low, high = view.window(model)
    window = model.loop_times.window(low, high)
    times = loop_times(Recording(low, 0, loop=window.parts)) if window is not None else None
    return "loop", f"{100 * times[0] / sum(times):.1f} %" if times else "-", "loop busy"


def budget(model: Model, view: View) -> Panel:
    """Where the threads' time went in the window: the report's bar."""
    result = view.account(model)
    if not result.capacity:
        return panels.text("budget", NO_WORKER if not result.workers else "No time has passed in this window.")
    values = result.live_values()
    parts = [
        (name, UNDERWAY if name == "underway" else part_words(name, result)[0], percent, time_text(ticks))
        for name, ticks, percent in zip(LIVE_PARTS, values, percentages(values), strict=True)
        if ticks
    ]
    return {
        "kind": "bar",
        "name": "budget",
        "parts": parts,
        "closing": closing(result),
        "amber": result.parts.unaccounted > 0.05 * result.capacity,
    }


def progress(model: Model, view: View) -> Panel:
    """How far each prefix is, its tasks by state, and when it may be done."""
    now, colors = model.counters, slots_of(model)
    rows = []
    for each in model.progress():
        name = each.prefix
        if view.prefix and view.prefix != name:
            continue
        total = max(1, each.total_known)
        bars = [
            (f"state-{state}", 100 * number / total, f"{word} {count_text(number)}")
            for state, word, number in (
                ("done", "done", each.done - each.erred),
                ("erred", "erred", each.erred),
                ("processing", "processing", each.processing),
                ("waiting", "waiting", each.waiting),
            )
            if number > 0
        ]
        eta = each.eta_seconds
        rows.append(
            [
                panels.of_prefix(name, colors.get(name, OTHER)),
                panels.cell("", 100 * each.done / total, bars=bars),
                panels.cell(f"{count_text(each.done)} of {count_text(each.total_known)}", each.done),
                panels.count(each.processing),
                panels.count(each.waiting),
                panels.count(each.erred),
                panels.cell(per_second(each.rate), each.rate),
                panels.cell(time_text(eta * TICKS) if eta is not None else "-", eta if eta is not None else -1.0),
            ]
        )
    columns = (
        ("prefix", False), ("", False), ("done", True), ("processing", True), ("waiting", True), ("erred", True),
        ("rate", True), ("left, about", True),
    )  # fmt: skip
    note = (
        "Bars: done, erred (crossed), processing (striped), waiting (pale). What is left is told from the present rate."
    )
    empty = NO_TASK if now is None or not now.totals else f"No task has the prefix “{view.prefix}”."
    return panels.table(view, "progress", columns, rows, note=note, empty=empty, leaf=20)


def latest_errors(model: Model) -> Panel:
    """The newest groups of errors, a line each."""
    rows = [
        [
            panels.cell(f"{count_text(each.count)} times", each.count),
            panels.of_prefix(each.prefix),
            panels.cell(cut(each.summary or each.type_name, 110), None, each.summary, link="errors"),
            panels.cell(f"{each.last - model.begin:,.1f} s", each.last),
        ]
        for each in model.errors[:5]
    ]
    return panels.table(
        View(), "latest-errors", (("", True), ("in", False), ("error", False), ("last at", True)), rows,
        empty="No task has raised.", sortable=False,
    )  # fmt: skip


def per_second(rate: float) -> str:
    """A rate with three digits; a dash if it is not known."""
    if rate != rate:
        return "-"
    return f"{rate:,.0f} /s" if rate >= 100 else f"{rate:.3g} /s"


def rate_bytes(nbytes: float, seconds: float) -> str:
    """Bytes per second, a dash if no time passed."""
    return f"{bytes_text(nbytes / seconds)}/s" if seconds > 0 else "-"
