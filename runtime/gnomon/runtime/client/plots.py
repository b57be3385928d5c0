"""Figures of what records say. They are made by the package that offers to (entry points ``gnomon.reports``).

Contents: check_plot, draw_task_stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

__all__ = ["check_plot", "draw_task_stream"]


def check_plot(plot: bool | str) -> None:
    """Raise ValueError for what is neither a truth value nor ``"save"``."""
    if not isinstance(plot, bool) and plot != "save":
        raise ValueError(f"plot is a truth value or 'save', not {plot!r}")


def draw_task_stream(
    rows: Sequence[dict[str, Any]], plot: bool | str, filename: str | Path, bokeh_resources: Any = None
) -> Any:
    """A Bokeh figure of runs (see ``records.task_rows``); ``plot="save"`` also writes it to ``filename``.

    Raises RuntimeError where no package offers to draw, OSError if it can't be written.
    """
    offered = entry_points(group="gnomon.reports", name="task_stream")
    if not offered:
        raise RuntimeError("a figure of the task stream needs the package gnomon.reports, which is not installed")
    return next(iter(offered)).load()(rows, filename if plot == "save" else None, bokeh_resources)
