"""Tasks: by prefix, how long they computed, and one by one by state.

Contents: tasks, one_prefix.
"""

from __future__ import annotations

from math import floor, log10

from gnomon.reports.dashboard.context import Context, DashboardUnavailable
from gnomon.reports.dashboard.pages import panels
from gnomon.reports.dashboard.pages.colors import slots_of
from gnomon.reports.dashboard.pages.overview import NO_TASK, progress
from gnomon.reports.dashboard.pages.panels import Panel
from gnomon.reports.dashboard.pages.view import View
from gnomon.reports.page import tables
from gnomon.reports.palette import OTHER
from gnomon.reports.recording import Recording
from gnomon.reports.units import count_text, cut, time_text

__all__ = ["durations_panel", "one_prefix", "slots_in", "tasks", "tasks_by_state"]


#: Rows of a leaf of the tables of single tasks.
_LEAF = 20


async def tasks(context: Context, view: View) -> list[Panel]:
    """All prefixes."""
    model = context.model
    recording = model.recording(*view.window(model))
    result = view.account(model)
    colors = slots_in(context, recording)
    by_prefix = tables.prefix_table(recording, result, _with_default(colors, (each.name for each in result.prefixes)))
    if view.prefix:
        by_prefix = by_prefix._replace(rows=[row for row in by_prefix.rows if _full(row[0]) == view.prefix])
    ended = f"No task ended in this window ({view.words(model)}). Choose a longer one above."
    nothing = NO_TASK if model.counters is None or not model.counters.totals else ended
    return [
        panels.told_table(view, by_prefix, empty=nothing),
        durations_panel(recording, view.prefix),
        panels.told_table(view, _slowest(recording, colors, view.prefix), empty=ended, leaf=_LEAF),
        await tasks_by_state(context, view, view.prefix),
    ]


async def one_prefix(context: Context, view: View, prefix: str) -> list[Panel]:
    """One prefix: how far it is, how long its tasks compute, its slowest runs, its tasks by state."""
    model = context.model
    only = View(view.span, view.range, prefix, view.worker, view.search, view.sorts, view.leaves)
    recording = model.recording(*view.window(model))
    colors = slots_in(context, recording)
    none = f"No run of “{cut(prefix, 60)}” ended in this window. Choose a longer one above."
    return [
        progress(model, only),
        durations_panel(recording, prefix),
        panels.told_table(view, _slowest(recording, colors, prefix), empty=none, leaf=_LEAF),
        await tasks_by_state(context, only, prefix),
    ]


def slots_in(context: Context, recording: Recording) -> dict[str, int]:
    """Colours of the prefixes of a recording."""
    return _with_default(slots_of(context.model), recording.runs.prefix_names)


def _with_default(colors: dict[str, int], names: object) -> dict[str, int]:
    return {**{str(name): OTHER for name in names}, **colors}  # type: ignore[attr-defined]


def _full(cell: tables.Cell) -> str:
    return cell.title or cell.text


def _slowest(recording: Recording, colors: dict[str, int], prefix: str) -> tables.Table:
    made = tables.slowest_table(recording, colors)
    if not prefix:
        return made
    rows = [row for row in made.rows if _full(row[1]) == prefix]
    return made._replace(rows=rows, note="Of the 200 longest runs in the window, those of this prefix.")


def durations_panel(recording: Recording, prefix: str = "") -> Panel:
    """Counts of runs by computing time, on a logarithmic axis."""
    runs = recording.runs
    wanted = runs.prefix_names.index(prefix) if prefix in runs.prefix_names else -1
    if prefix and wanted < 0:
        return panels.text("durations", f"No run of “{cut(prefix, 60)}” has details in this window.")
    chosen = [
        max(1, ticks)
        for ticks, of in zip(runs.computes, runs.prefixes, strict=True)
        if not prefix or of == wanted
    ]  # fmt: skip
    if not chosen:
        return panels.text("durations", "No run has details in this window, so there is nothing to count.")
    low, high = floor(3 * log10(min(chosen))), floor(3 * log10(max(chosen))) + 1
    counts = [0] * (high - low)
    for ticks in chosen:
        counts[min(len(counts) - 1, max(0, floor(3 * log10(ticks)) - low))] += 1
    edges = [time_text(10 ** ((low + at) / 3)) for at in range(len(counts) + 1)]
    bins = [
        (edges[at], number, f"{count_text(number)} runs of {edges[at]} to {edges[at + 1]}")
        for at, number in enumerate(counts)
    ]  # fmt: skip
    said = ", ".join(f"{number} from {label}" for label, number, _ in bins if number)
    return {
        "kind": "histogram",
        "name": "durations",
        "bins": bins,
        "every": 3 if len(bins) >= 8 else 1,
        "words": f"Runs by computing time: {said}",
        "note": f"{count_text(len(chosen))} runs by computing time, on a logarithmic axis; marks are lower ends.",
    }


async def tasks_by_state(context: Context, view: View, prefix: str) -> Panel:
    """Tasks that the scheduler knows now, a leaf of them, asked of it."""
    page = view.leaves.get("known-tasks", 0)
    asked = {"state": "", "prefix": prefix, "search": view.search, "offset": page * _LEAF, "limit": _LEAF}
    try:
        answer = await context.request("tasks_page", **asked)
    except DashboardUnavailable as exc:
        return panels.text("known-tasks", f"The scheduler could not be asked for its tasks: {exc}", "notice")
    workers = {} if context.model.counters is None else {w.address: w for w in context.model.counters.workers.values()}
    rows = []
    for key, of, state, address, attempt, nbytes in answer["rows"]:
        worker = workers.get(address)
        name = worker.name if worker is not None else address
        shown = str(key)
        rows.append(
            [
                panels.cell(cut(shown, 80), None, shown if len(shown) > 80 else ""),
                panels.of_prefix(of),
                panels.cell(state),
                panels.of_worker(name) if name else panels.cell("-"),
                panels.count(attempt),
                panels.size(nbytes),
            ]
        )  # fmt: skip
    total, scanned = answer["total"], answer["scanned"]
    columns = (("key", False), ("prefix", False), ("state", False), ("on", False), ("attempt", True), ("result", True))
    empty = "The scheduler holds no task" + (
        f" that matches “{view.search or prefix}”." if view.search or prefix else "."
    )
    made = panels.table(
        View(view.span, view.range, "", "", "", {}, {}), "known-tasks", columns, rows,
        note=f"Of {count_text(scanned)} tasks looked at.", empty=empty, sortable=False,
    )  # fmt: skip
    if rows:
        made |= {"page": page, "pages": max(1, -(-total // _LEAF)), "total": total}
    return made
