"""Profiles on demand: what tasks, workers' loops or the scheduler were at, in a window, as a flame graph and a table.

Contents: profile, layout.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gnomon.profiler import Session
from gnomon.reports.collect.profiles import PROCESSES, add_profile
from gnomon.reports.dashboard.context import Context, DashboardUnavailable
from gnomon.reports.dashboard.pages import panels
from gnomon.reports.dashboard.pages.panels import Panel
from gnomon.reports.dashboard.pages.view import View
from gnomon.reports.figures.flames import Flame, flame
from gnomon.reports.recording import TICKS, Recording
from gnomon.reports.units import count_text, cut, time_text

__all__ = ["PROFILED", "Layout", "layout", "profile"]

#: What can be profiled, and what it is called.
PROFILED = (("executor", "Tasks"), ("agent", "Workers' own loops"), ("scheduler", "Scheduler"))

#: Frames below this share of all time are folded into their callers; frames drawn at most.
_SHARE = 0.001
_FRAMES = 5_000


class Layout(NamedTuple):
    """A flame graph laid out: frames as (name, left, depth, width), left and width as shares of all time."""

    names: list[str]
    frames: list[tuple[int, float, int, float]]
    seconds: float
    hidden: int
    own: dict[str, float]


async def profile(context: Context, view: View, process: str) -> list[Panel]:
    """Ask the cluster for its samples in the window, and lay them out."""
    process = process if process in PROCESSES else "executor"
    model = context.model
    start, stop = view.window(model)
    arguments: dict[str, Any] = {"process": process, "start": start, "stop": stop}
    if process == "executor" and view.prefix:
        arguments["prefix"] = view.prefix
    try:
        answers = await context.request("profile", **arguments)
    except DashboardUnavailable as exc:
        return [panels.text("flame", f"The cluster could not be asked for its samples: {exc}. Try again.", "notice"),
                panels.text("functions", "Without samples there are no functions to list.")]  # fmt: skip
    recording = Recording(start=start, duration=max(0, round((stop - start) * TICKS)))
    add_profile(recording, process, answers)
    what = dict(PROFILED)[process]
    if not recording.profiles:
        return [
            panels.text("functions", "Without samples there are no functions to list."),
            panels.text(
                "flame",
                f"No stack was sampled of “{what}” in this window ({view.words(model)}). Samples are taken while tasks "
                "run or a loop works; choose a longer window, or switch the cluster's instruments on.",
            ),
        ]
    first = recording.profiles[0]
    drawn = layout(flame(str(first["name"]), Session.from_plain(first["session"]), start), view.prefix)
    return [_panel(drawn, what, view.words(model)), _functions(view, drawn)]


def _panel(drawn: Layout, what: str, window: str) -> Panel:
    folded = f" {count_text(drawn.hidden)} frames below 0.1 % are folded into their callers." if drawn.hidden else ""
    return {
        "kind": "flame",
        "name": "flame",
        "names": drawn.names,
        "frames": drawn.frames,
        "seconds": drawn.seconds,
        "note": f"{what}: {time_text(drawn.seconds * TICKS)} of threads sampled, {window}.{folded} "
        "Click a frame to look at it alone, again to go back.",
    }


def _functions(view: View, drawn: Layout) -> Panel:
    whole = drawn.seconds or 1.0
    rows = [
        [
            panels.cell(cut(name, 90), None, name),
            panels.cell(time_text(seconds * TICKS), seconds),
            panels.cell(f"{100 * seconds / whole:.1f} %", seconds),
        ]
        for name, seconds in sorted(drawn.own.items(), key=lambda each: -each[1])
        if seconds > 0
    ]
    return panels.table(view, "functions", (("function", False), ("own time", True), ("share", True)), rows,
                        caption="Functions by own time", empty="No function was sampled.")  # fmt: skip


def layout(tree: Flame, prefix: str = "") -> Layout:
    """Place the frames of a tree, heaviest first; with a prefix, of its samples alone where samples have labels."""
    by_prefix = bool(prefix) and any(tree.labels)
    own = [0.0] * len(tree.parent)
    for label, node, seconds in zip(tree.label, tree.node, tree.seconds, strict=True):
        if not by_prefix or tree.labels[label] == prefix:
            own[node] += seconds
    functions: dict[str, float] = {}
    for node, seconds in enumerate(own):
        name = tree.names[tree.name[node]]
        functions[name] = functions.get(name, 0.0) + seconds
    total = list(own)
    for node in range(len(total) - 1, 0, -1):
        total[tree.parent[node]] += total[node]
    children: list[list[int]] = [[] for _ in total]
    for node in range(1, len(total)):
        children[tree.parent[node]].append(node)
    whole = total[0] if total else 0.0
    frames: list[tuple[int, float, int, float]] = []
    hidden = tree.hidden
    waiting = [(0, 0.0, 0)] if whole > 0 else []
    while waiting:
        node, left, depth = waiting.pop()
        width = total[node] / whole
        if width < _SHARE or len(frames) >= _FRAMES:
            hidden += width > 0
            continue
        frames.append((tree.name[node], round(left, 6), depth, round(width, 6)))
        for child in sorted(children[node], key=lambda each: -total[each]):
            waiting.append((child, left, depth + 1))
            left += total[child] / whole
    return Layout(tree.names, frames, whole, hidden, functions)
