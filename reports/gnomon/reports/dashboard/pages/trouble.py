"""Errors, logs and events.

Contents: errors, logs, events.
"""

from __future__ import annotations

from gnomon.reports.dashboard.context import Context
from gnomon.reports.dashboard.pages import panels
from gnomon.reports.dashboard.pages.panels import Panel
from gnomon.reports.dashboard.pages.view import View
from gnomon.reports.units import count_text, cut

__all__ = ["errors", "events", "logs"]

_GROUPS = 20
_LINES = 200


async def errors(context: Context, view: View) -> list[Panel]:
    """Groups of alike errors, newest first, with the first traceback of each."""
    model = context.model
    found = [
        each
        for each in model.errors
        if view.prefix in ("", each.prefix) and view.finds(each.prefix, each.summary, each.text, each.key)
    ]  # fmt: skip
    counts = f"{count_text(model.errors_seen)} errors in {count_text(len(model.errors))} groups"
    if model.errors_ungrouped:
        counts += f"; {count_text(model.errors_ungrouped)} more were only counted, there being no room for their groups"
    if not found:
        none = (
            "No task has raised."
            if not model.errors_seen
            else f"{counts}; none matches the filter. Clear it to see all."
        )
        return [panels.text("errors", none)]
    pages = max(1, -(-len(found) // _GROUPS))
    page = min(view.leaves.get("errors", 0), pages - 1)
    names = (
        {}
        if model.counters is None
        else {each.id: panels.label_of(each.name) for each in model.counters.workers.values()}
    )
    groups = []
    for each in found[page * _GROUPS : (page + 1) * _GROUPS]:
        first, last = each.first - model.begin, each.last - model.begin
        groups.append(
            {
                "times": count_text(each.count),
                "prefix": cut(each.prefix, 60),
                "summary": cut(each.summary or each.type_name, 300),
                "key": cut(each.key, 200),
                "where": f" on {cut(names.get(each.worker_id, 'a worker that left'), 60)}, at {first:,.2f} s; "
                f"last at {last:,.2f} s",
                "text": each.text,
            }
        )  # fmt: skip
    return [{"kind": "groups", "name": "errors", "groups": groups, "note": counts + ".", "page": page, "pages": pages,
             "total": len(found)}]  # fmt: skip


async def logs(context: Context, view: View) -> list[Panel]:
    """The scheduler's log, newest first."""
    model = context.model
    low, high = view.window(model) if view.range is not None else (model.begin, model.now)
    rows = [
        f"{time - model.begin:>11,.3f} s  {level:<8} {text}"
        for time, level, text in reversed(model.logs)
        if low <= time <= high + 1 and view.finds(level, text)
    ]
    return [_leaf(view, "logs", rows, "No line was logged" + (" that matches the filter." if view.search else "."))]


async def events(context: Context, view: View) -> list[Panel]:
    """What happened to the cluster: workers that came and went, stalls, gaps in the records."""
    model = context.model
    low, high = view.window(model) if view.range is not None else (model.begin, model.now)
    rows = [
        f"{each.time - model.begin:>11,.3f} s  {each.kind:<10} {each.text}"
        for each in sorted(model.events, key=lambda each: -each.time)
        if low <= each.time <= high + 1 and view.finds(each.kind, each.text)
    ]
    empty = "Nothing has happened to the cluster yet: no worker came or went, no loop stalled."
    return [_leaf(view, "events", rows, empty if not view.search else "No event matches the search.")]


def _leaf(view: View, name: str, rows: list[str], empty: str) -> Panel:
    pages = max(1, -(-len(rows) // _LINES))
    page = min(view.leaves.get(name, 0), pages - 1)
    shown = [cut(row, 2_000) for row in rows[page * _LINES : (page + 1) * _LINES]]
    made = panels.lines(name, shown, f"{count_text(len(rows))} lines, newest first.", empty)
    return made | {"page": page, "pages": pages, "total": len(rows)}
