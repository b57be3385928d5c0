"""The timeline: the task stream, and below it on the same axis what processes measured of themselves.

Contents: LINES, timeline, quantity.
"""

from __future__ import annotations

from typing import Any

from gnomon.reports.figures.rectangles import Rectangles
from gnomon.reports.figures.resampled import resampled
from gnomon.reports.figures.task_stream import task_stream
from gnomon.reports.recording import Recording

__all__ = ["LINES", "quantity", "timeline"]

#: Lines of a series: dash and colours; both tell them apart. They are readable on light and on dark ground.
LINES = (("#0072b2", "solid"), ("#d55e00", "dashed"))


def timeline(recording: Recording, drawn: Rectangles) -> Any:
    """A Bokeh column named ``timeline``: the stream, then one small figure per measured quantity."""
    from bokeh.layouts import column

    stream = task_stream(recording, drawn)
    # The page makes no rectangle narrower than can be seen; an outline would double the time that drawing takes.
    stream.select_one({"name": "stream-bars"}).glyph.line_color = None
    measured = resampled(recording)
    below = [
        quantity(stream.x_range, title, unit, lines, last=number == len(measured) - 1)
        for number, (title, unit, lines) in enumerate(measured)
    ]
    return column(stream, *below, sizing_mode="stretch_width", name="timeline")


def quantity(x_range: Any, title: str, unit: str, lines: Any, *, last: bool) -> Any:
    """A figure of one quantity over time, from zero; where nothing was measured there is a gap."""
    from bokeh.models import BasicTicker, ColumnDataSource, Range1d
    from bokeh.models.annotations import Title
    from bokeh.plotting import figure

    peak = max((value for _, _, values in lines for value in values if value == value), default=0.0)
    words = ",  ".join(f"{mark} {label}" for (label, _, _), mark in zip(lines, ("━", "╍"), strict=False))
    plot = figure(
        x_range=x_range, y_range=Range1d(start=0, end=1.08 * peak or 1.0), height=96 + 24 * last,
        sizing_mode="stretch_width", toolbar_location=None, tools="", output_backend="canvas", min_border_left=110,
    )  # fmt: skip
    plot.title = Title(text=f"{title}, {unit}:  {words}", text_font_size="12px", text_font_style="normal")
    for (_, times, values), (color, dash) in zip(lines, LINES, strict=False):
        source = ColumnDataSource({"x": times, "y": values})
        plot.line("x", "y", source=source, line_color=color, line_dash=dash, line_width=1.6)
    plot.background_fill_alpha = plot.border_fill_alpha = 0
    plot.outline_line_alpha = 0.3
    plot.xaxis.visible = last
    plot.yaxis.ticker = BasicTicker(desired_num_ticks=3)
    return plot
