"""The task stream alone, from the rows that a client gives: a figure, and a page with it that opens offline.

``Client.get_task_stream`` and ``get_task_stream`` find ``draw`` by the entry point ``task_stream`` of the group
``gnomon.reports``.

Contents: draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from gnomon.reports import palette
from gnomon.reports.figures import rectangles, task_stream
from gnomon.reports.recording import TICKS, Recording, Runs, Worker
from gnomon.reports.units import count_text, cut, time_text

__all__ = ["draw"]

_PARTS = (("deserialize", "decodes"), ("compute", "computes"), ("serialize", "encodes"))


def draw(rows: Sequence[dict[str, Any]], filename: str | PathLike[str] | None = None, resources: Any = None) -> Any:
    """A Bokeh figure of runs, as ``Client.get_task_stream`` gives them; also saved if there is a file name.

    ``resources`` say where the saved page takes Bokeh's scripts from; by default it holds them. Raises OSError.
    """
    recording = _recording(rows)
    runs = recording.runs
    by_time: dict[int, int] = dict.fromkeys(range(len(runs.prefix_names)), 0)
    for prefix, ticks in zip(runs.prefixes, runs.computes, strict=True):
        by_time[prefix] += ticks
    in_order = sorted(by_time, key=lambda prefix: -by_time[prefix])
    slots = palette.slots([runs.prefix_names[prefix] for prefix in in_order])
    drawn = rectangles(recording, [slots[name] for name in runs.prefix_names])
    plot = task_stream(recording, drawn)
    source = plot.select_one({"name": "stream-source"})
    several = "several runs, too short to draw alone"
    source.data["key"] = [cut(runs.keys[row], 200) if row >= 0 else several for row in drawn.rows]
    source.data["took"] = [
        time_text((right - left) * TICKS) for left, right in zip(drawn.left, drawn.right, strict=True)
    ]
    source.data["where"] = [recording.workers[runs.workers[row]].label if row >= 0 else "" for row in drawn.rows]
    plot.title.text = f"{count_text(len(runs))} runs" + (
        f"; the {count_text(drawn.merged)} shortest are merged into bars as high as the thread was busy"
        if drawn.merged
        else ""
    )
    if filename is not None:
        _save(plot, Path(filename), resources)
    return plot


def _save(plot: Any, path: Path, resources: Any) -> None:
    from bokeh.embed import file_html
    from bokeh.resources import INLINE

    path.write_text(file_html(plot, resources=resources or INLINE, title="Task stream"), "utf-8")


def _recording(rows: Sequence[dict[str, Any]]) -> Recording:
    """As much of a recording as a task stream needs."""
    begins = [row["startstops"][0]["start"] for row in rows]
    start = min(begins, default=0.0)
    stop = max((row["startstops"][-1]["stop"] for row in rows), default=start)
    names = {address: number for number, address in enumerate(dict.fromkeys(row["worker"] for row in rows))}
    prefixes = {prefix: number for number, prefix in enumerate(dict.fromkeys(row["prefix"] for row in rows))}
    runs = Runs(keys=[str(row["key"]) for row in rows], prefix_names=list(prefixes))
    for row, begin in zip(rows, begins, strict=True):
        lengths = {each["action"]: round((each["stop"] - each["start"]) * TICKS) for each in row["startstops"]}
        runs.begins.append(round((begin - start) * TICKS))
        for action, name in _PARTS:
            getattr(runs, name).append(lengths.get(action, 0))
        runs.prefixes.append(prefixes[row["prefix"]])
        runs.workers.append(names[row["worker"]])
        runs.threads.append(row["thread"])
        runs.nbytes.append(row["nbytes"])
        runs.ok.append(row["status"] == "OK")
    workers = [Worker(number + 1, "", address, 0, "", 0, None, "") for address, number in names.items()]
    return Recording(start, round((stop - start) * TICKS), workers=workers, runs=runs)
