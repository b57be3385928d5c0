"""The task stream: who ran what, when.

Contents: task_stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnomon.reports.figures.rectangles import Rectangles, lane_labels
from gnomon.reports.palette import LIGHT
from gnomon.reports.recording import TICKS, Recording
from gnomon.reports.units import cut

__all__ = ["task_stream"]


def task_stream(recording: Recording, drawn: Rectangles) -> Any:
    """A Bokeh figure of the rectangles.

    Its source has typed columns only. The hover tool shows columns of text (``key``, ``took``, ``where``) that are for
    the caller to add; a page tells it in another way. The models' names are for the page's script.
    """
    from bokeh.models import (
        BoxZoomTool,
        ColumnDataSource,
        FixedTicker,
        HoverTool,
        LinearColorMapper,
        PanTool,
        PlainText,
        Range1d,
        ResetTool,
        SaveTool,
        WheelZoomTool,
    )
    from bokeh.models.annotations import BoxAnnotation
    from bokeh.plotting import figure
    from bokeh.transform import transform

    rows = lane_labels(recording)
    duration = max(recording.duration, 1) / TICKS
    hover = HoverTool(
        tooltips=[("task", "@key"), ("took", "@took"), ("on", "@where")], point_policy="follow_mouse",
        name="stream-hover",
    )  # fmt: skip
    wheel = WheelZoomTool(dimensions="width")
    plot = figure(
        x_range=Range1d(start=0, end=duration, bounds=(-0.02 * duration, 1.02 * duration)),
        y_range=Range1d(start=max(1, len(rows)), end=0),
        height=min(900, max(160, 70 + 22 * len(rows))),
        sizing_mode="stretch_width",
        tools=[PanTool(dimensions="width"), BoxZoomTool(dimensions="width"), wheel, ResetTool(), SaveTool(), hover],
        active_scroll=wheel,
        toolbar_location="above",
        x_axis_label="seconds since the block began",
        output_backend="canvas",
        lod_threshold=None,
        name="stream",
    )
    plot.toolbar.logo = None
    source = ColumnDataSource(_columns(drawn), name="stream-source")
    mapper = LinearColorMapper(palette=list(LIGHT), low=-0.5, high=len(LIGHT) - 0.5, name="stream-colors")
    color = transform("slot", mapper)
    bars = plot.quad(
        left="left", right="right", bottom="bottom", top="top", source=source, fill_color=color, line_color=color,
        line_width=0.5, hover_line_color="#ff8800", name="stream-bars",
    )  # fmt: skip
    hover.renderers = [bars]
    # Hatches lie over the rectangles in a patch of their own: a pattern per rectangle costs as much as all of them.
    for name, pattern in (("erred", "x"), ("repeated", "/")):
        marks = ColumnDataSource({"x": [], "y": []}, name=f"stream-{name}")
        plot.patch(
            "x", "y", source=marks, fill_alpha=0, line_alpha=0, hatch_pattern=pattern, hatch_color="#ffffff",
            hatch_alpha=0.8, hatch_scale=7, hatch_weight=1.2,
        )  # fmt: skip
    # What lies outside of the chosen range.
    for outside in (
        BoxAnnotation(fill_alpha=0.7, line_alpha=0, name="outside-left", level="overlay", right=-1e9),
        BoxAnnotation(fill_alpha=0.7, line_alpha=0, name="outside-right", level="overlay", left=1e9),
    ):
        plot.add_layout(outside)
    plot.add_layout(BoxAnnotation(fill_alpha=0, line_width=3, name="found-box", level="overlay", visible=False))
    plot.background_fill_alpha = plot.border_fill_alpha = 0
    plot.outline_line_alpha = 0.3
    plot.ygrid.grid_line_color = None
    plot.yaxis.ticker = FixedTicker(ticks=[number + 0.5 for number in _labelled(len(rows))])
    plot.yaxis.major_label_overrides = {
        number + 0.5: PlainText(text=cut(rows[number], 28)) for number in _labelled(len(rows))
    }
    return plot


def _columns(drawn: Rectangles) -> dict[str, Any]:
    """The source's columns, typed."""
    import numpy

    return {
        name: numpy.array(column, dtype=kind)
        for name, column, kind in (
            ("left", drawn.left, "f4" if drawn.right and max(drawn.right) < 1_000 else "f8"),
            ("right", drawn.right, "f4" if drawn.right and max(drawn.right) < 1_000 else "f8"),
            ("bottom", drawn.bottom, "f4"),
            ("top", drawn.top, "f4"),
            ("slot", drawn.slot, "u1"),
        )
    }


def _labelled(count: int) -> Sequence[int]:
    """Which lanes have room for a label."""
    return range(0, count, max(1, count // 40))
