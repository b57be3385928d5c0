"""What needs what: groups of tasks, and single tasks only where these are not too many and somebody asked.

Contents: graph, task_graph, levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnomon.reports.dashboard.context import Context, DashboardUnavailable
from gnomon.reports.dashboard.pages import panels
from gnomon.reports.dashboard.pages.colors import slots_of
from gnomon.reports.dashboard.pages.panels import Panel
from gnomon.reports.dashboard.pages.view import View
from gnomon.reports.palette import OTHER
from gnomon.reports.units import count_text, cut

__all__ = ["NODES", "graph", "levels", "task_graph"]

#: Nodes that are drawn at most.
NODES = 2_000

_NOTHING = "The scheduler knows no task now, so there is no graph. Tasks that were released are gone from it."


async def graph(context: Context, view: View) -> list[Panel]:
    """The groups, as a drawing and as a table, and how many single tasks there are."""
    try:
        answer = await context.request("group_graph", limit=NODES)
    except DashboardUnavailable as exc:
        return [panels.text("graph", f"The scheduler could not be asked for the graph: {exc}", "notice")]
    nodes, edges, total = answer["nodes"], answer["edges"], answer["total"]
    if not total:
        return [panels.text("group-graph", _NOTHING), panels.text("graph", _NOTHING)]
    colors = slots_of(context.model)
    drawing = panels.text("group-graph", _too_many(total, "groups"))
    if nodes:
        shown = [
            (str(name), _words(states), colors.get(prefix, OTHER), _done(states), panels.link_to("tasks", prefix))
            for name, prefix, states in nodes
        ]  # fmt: skip
        drawing = _drawing("group-graph", shown, [(a, b, count) for a, b, count in edges])
    needs = [0] * len(nodes)
    for _, target, _ in edges:
        needs[target] += 1
    rows = [
        [
            panels.cell(cut(str(name), 70), None, str(name), slot=colors.get(prefix, OTHER),
                        link=panels.link_to("tasks", prefix)),
            panels.count(sum(states.values())),
            panels.cell(_words(states)),
            panels.count(needs[at]),
        ]
        for at, (name, prefix, states) in enumerate(nodes)
    ]  # fmt: skip
    columns = (("group", False), ("tasks", True), ("by state", False), ("groups that it needs", True))
    known = 0 if context.model.counters is None else sum(context.model.counters.states.values())
    fits = (
        f"draw them ({count_text(known)} boxes)" if known <= NODES else f"too many to draw: at most {count_text(NODES)}"
    )
    note = f"{count_text(total)} groups of {count_text(known)} single tasks; {fits}."
    return [drawing, panels.table(view, "graph", columns, rows, caption="Groups of tasks", note=note, empty=_NOTHING)]


async def task_graph(context: Context, view: View) -> list[Panel]:
    """Single tasks, where these are not too many."""
    try:
        answer = await context.request("task_graph", limit=NODES)
    except DashboardUnavailable as exc:
        return [panels.text("graph", f"The scheduler could not be asked for the graph: {exc}", "notice")]
    nodes, total = answer["nodes"], answer["total"]
    if not nodes:
        sentence = _too_many(total, "tasks") if total else _NOTHING
        return [panels.text("group-graph", sentence), panels.text("graph", sentence)]
    colors = slots_of(context.model)
    shown = [
        (str(key), state, colors.get(prefix, OTHER), float(state == "memory"), panels.link_to("tasks", prefix))
        for key, prefix, state in nodes
    ]
    edges = [(a, b, 1) for a, b in answer["edges"]]
    rows = [
        [
            panels.cell(cut(str(key), 80), None, str(key), slot=colors.get(prefix, OTHER)),
            panels.of_prefix(prefix),
            panels.cell(state),
        ]
        for key, prefix, state in nodes
    ]
    columns = (("key", False), ("prefix", False), ("state", False))
    caption = f"All {count_text(total)} tasks that the scheduler knows"
    return [_drawing("group-graph", shown, edges), panels.table(view, "graph", columns, rows, caption=caption)]


def _too_many(total: int, what: str) -> str:
    return (
        f"There are {count_text(total)} {what}; at most {count_text(NODES)} are drawn, since more can't be told apart. "
        "The tables of tasks have all of them."
    )


def _words(states: dict[str, int]) -> str:
    return ", ".join(f"{count_text(number)} {state}" for state, number in states.items() if number)


def _done(states: dict[str, int]) -> float:
    whole = sum(states.values())
    return (states.get("memory", 0) + states.get("released", 0)) / whole if whole else 0.0


def _drawing(
    name: str, nodes: Sequence[tuple[str, str, int, float, str]], edges: Sequence[tuple[int, int, int]]
) -> Panel:
    """Boxes in columns by depth; each column's boxes in the order of what they need, so that few arrows cross."""
    depth = levels(len(nodes), [(a, b) for a, b, _ in edges])
    needs: list[list[int]] = [[] for _ in nodes]
    for source, target, _ in edges:
        needs[target].append(source)
    place: dict[int, float] = {}
    boxes: list[Any] = [None] * len(nodes)
    tallest = max((depth.count(level) for level in set(depth)), default=1)
    for level in range(max(depth, default=-1) + 1):
        column = [at for at in range(len(nodes)) if depth[at] == level]
        middle = {at: sum(place.get(n, 0.0) for n in needs[at]) / len(needs[at]) if needs[at] else 0.0 for at in column}
        for row, at in enumerate(sorted(column, key=lambda each: (middle[each], each))):
            place[at] = (row + 0.5) * tallest / len(column)
            label, words, slot, done, link = nodes[at]
            boxes[at] = (
                cut(label, 40),
                f"{label}: {words}"[:2_000],
                slot,
                round(done, 3),
                link,
                level,
                round(place[at], 3),
            )
    return {
        "kind": "graph",
        "name": name,
        "boxes": boxes,
        "edges": edges,
        "columns": max(depth, default=0) + 1,
        "rows": tallest,
        "note": "An arrow leads from what is needed to what needs it; the filled share of a box is done.",
    }


def levels(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """For each node the length of the longest way to it; nodes on a circle get that of the way into it."""
    after: list[list[int]] = [[] for _ in range(count)]
    open_ = [0] * count
    for source, target in edges:
        if source != target:
            after[source].append(target)
            open_[target] += 1
    depth = [0] * count
    ready = [at for at in range(count) if not open_[at]]
    while ready:
        at = ready.pop()
        for target in after[at]:
            depth[target] = max(depth[target], depth[at] + 1)
            open_[target] -= 1
            if not open_[target]:
                ready.append(target)
    return depth
