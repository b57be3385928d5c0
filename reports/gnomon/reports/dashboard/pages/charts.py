"""Charts that live: the report's figures, whose columns are put anew as the model goes on.

A chart is a root of a Bokeh document. ``draw`` puts columns that changed into its sources, and says how many bytes
these are, what to tell beside the chart, and why there is nothing to see, if so. Times on axes are seconds since the
run began. No chart sets a range: ranges belong to the reader (the page's script moves them while it follows).

Contents: Frame, Drawn, Chart, Sources, CHARTS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from gnomon.reports.dashboard.pages.colors import slots_of
from gnomon.reports.dashboard.pages.load import WorkersLoad
from gnomon.reports.dashboard.pages.loop import NOT_MEASURED
from gnomon.reports.dashboard.pages.overview import NO_WORKER
from gnomon.reports.dashboard.pages.sources import Drawn, Frame, Sources
from gnomon.reports.figures import Rectangles, rectangles, task_stream
from gnomon.reports.figures.rectangles import lane_rows, lanes
from gnomon.reports.figures.resampled import QUANTITIES, Quantity, resampled
from gnomon.reports.figures.timeline import LINES, quantity
from gnomon.reports.palette import ERRED, GREYED, HATCHED, OTHER
from gnomon.reports.recording import TICKS, Recording
from gnomon.reports.units import count_text, cut, time_text

__all__ = ["CHARTS", "Chart"]

#: Rectangles that a second's push has room for, and those drawn at most, of a range that stands still.
_FLOWING = 2_700
_STANDING = 10_000


class Chart(Protocol):
    """See the module."""

    root: Any

    def draw(self, frame: Frame) -> Drawn:
        """Put what changed."""


class TaskStream:
    """Who ran what, when: lanes of threads, a bar for each task."""

    def __init__(self) -> None:
        empty = Recording(start=0.0, duration=TICKS)
        self.root = task_stream(empty, Rectangles())
        self.root.x_range.bounds = None
        self.root.xaxis.axis_label = "seconds since the run began"
        self._sources = Sources()
        self._by_name = {model.name: model for model in self.root.references() if model.name}
        self._rows: list[str] = []
        self._limit = _FLOWING

    def draw(self, frame: Frame) -> Drawn:
        """The tasks in view, merged where they are too many."""
        recording = frame.recording()
        if not recording.workers:
            return Drawn(empty=NO_WORKER)
        if not len(recording.runs):
            return Drawn(
                empty=f"No task ran in this window ({time_text(recording.duration)}). Choose a longer one above, or "
                "wait: a task is drawn when it has ended."
            )
        place, widths, rows = lane_rows(recording)
        self._label(rows)
        colors = slots_of(frame.model)
        slots = [
            GREYED if frame.grey(name) else colors.get(name, OTHER) for name in recording.runs.prefix_names
        ]  # fmt: skip
        drawn = rectangles(recording, slots, limit=self._limit if frame.flowing else _STANDING)
        if frame.flowing:
            self._adapt(drawn)
        size = self._put(drawn, frame.offset)
        who: list[Any] = [None] * len(rows)
        for lane in lanes(recording) if len(widths) == len(place) else ():
            who[place[lane]] = (recording.workers[lane.worker].worker_id if lane.worker >= 0 else -1, lane.thread)
        names = {slot: name for name, slot in colors.items() if slot != OTHER}
        return Drawn(size, notes=_stream_notes(frame, drawn, grouped=len(widths) < len(place)),
                     facts={"rows": rows, "who": who, "slots": names})  # fmt: skip

    def _adapt(self, drawn: Rectangles) -> None:
        """Merged bars are as fine as a push has room for: many of their cells are empty."""
        total, here = drawn.alone + drawn.merged, len(drawn.left)
        if drawn.merged:
            wanted = min(self._limit * _FLOWING / max(1, here), 0.9 * total)
            self._limit = int(min(_STANDING, max(_FLOWING / 2, wanted)))
        elif here > _FLOWING:
            self._limit = _FLOWING

    def _label(self, rows: list[str]) -> None:
        """New lanes, where workers came or went."""
        if rows == self._rows:
            return
        from bokeh.models import FixedTicker, PlainText

        self._rows = list(rows)
        labelled = range(0, len(rows), max(1, len(rows) // 40))
        plot = self.root
        plot.y_range.start = max(1, len(rows))
        plot.height = min(900, max(160, 70 + 22 * len(rows)))
        plot.yaxis[0].ticker = FixedTicker(ticks=[at + 0.5 for at in labelled])
        plot.yaxis[0].major_label_overrides = {at + 0.5: PlainText(text=cut(rows[at], 28)) for at in labelled}

    def _put(self, drawn: Rectangles, offset: float) -> int:
        import numpy

        left, right = (numpy.array(side, dtype="f8") + offset for side in (drawn.left, drawn.right))
        kind = "f4" if not len(right) or right.max() < 1_000 else "f8"
        columns = {
            "left": left.astype(kind),
            "right": right.astype(kind),
            "bottom": numpy.array(drawn.bottom, dtype="f4"),
            "top": numpy.array(drawn.top, dtype="f4"),
            "slot": numpy.array(drawn.slot, dtype="u1"),
        }
        size = self._sources.put(self._by_name["stream-source"], columns)
        slot = columns["slot"]
        for name, marked in (("erred", slot == ERRED), ("repeated", (slot >= HATCHED) & (slot < GREYED))):
            size += self._sources.put(self._by_name[f"stream-{name}"], _outlines(columns, marked))
        return size


def _outlines(columns: Mapping[str, Any], marked: Any) -> dict[str, Any]:
    """The marked rectangles as one patch: corners in turn, and a gap behind each."""
    import numpy

    left, right, bottom, top = (columns[side][marked] for side in ("left", "right", "bottom", "top"))
    gap = numpy.full(len(left), numpy.nan, "f4")
    return {
        "x": numpy.column_stack((left, right, right, left, gap)).ravel().astype(left.dtype),
        "y": numpy.column_stack((bottom, bottom, top, top, gap)).ravel(),
    }


def _stream_notes(frame: Frame, drawn: Rectangles, *, grouped: bool) -> list[str]:
    """What the drawing leaves to the tables, in words."""
    notes = []
    total = drawn.alone + drawn.merged
    if grouped:
        notes.append(
            f"There are more than 200 threads, so each lane is a worker or a host: its {count_text(drawn.merged)} "
            f"tasks in view are merged into bars of {time_text(drawn.cell * TICKS)}, as high as its threads were busy."
        )
    elif drawn.merged:
        notes.append(
            f"Drawing {count_text(drawn.alone)} of {count_text(total)} tasks in view one by one; the "
            f"{count_text(drawn.merged)} shorter ones are merged into bars of {time_text(drawn.cell * TICKS)}, as high "
            "as the thread was busy. Zoom in to see single tasks. Totals use all tasks."
        )
    if frame.prefix or frame.search:
        notes.append("Tasks that the filter leaves out are grey.")
    return notes


class Measured:
    """Quantities that processes measure of themselves, one small figure each, on one axis of time."""

    def __init__(self, quantities: tuple[Quantity, ...]) -> None:
        from bokeh.layouts import column
        from bokeh.models import ColumnDataSource, DataRange1d, Range1d
        from bokeh.models.annotations import Title

        self._quantities = quantities
        self._sources = Sources()
        x_range = Range1d(start=0, end=60, tags=["time"])
        self._plots = []
        self._source = ColumnDataSource({"x": []})
        for at, each in enumerate(quantities):
            plot = quantity(x_range, each.title, each.unit, [], last=at == len(quantities) - 1)
            plot.y_range = DataRange1d(start=0)
            for number, (color, dash) in zip(range(len(_labels(each))), LINES, strict=False):
                self._source.data[f"{at}-{number}"] = []
                plot.line("x", f"{at}-{number}", source=self._source, line_color=color, line_dash=dash, line_width=1.6)
            plot.title = Title(text=each.title, text_font_size="12px", text_font_style="normal")
            plot.visible = False
            self._plots.append(plot)
        self.root = column(*self._plots, sizing_mode="stretch_width")

    def draw(self, frame: Frame) -> Drawn:
        """The lines of the window."""
        import numpy

        recording = frame.recording()
        found = {title: (unit, lines) for title, unit, lines in resampled(recording, self._quantities)}
        if not found:
            return Drawn(empty=NOT_MEASURED)
        first = next(iter(found.values()))[1][0]
        columns: dict[str, Any] = {"x": numpy.asarray(first.times, "f8") + frame.offset}
        # The newest heartbeats are not here from all workers: a sum of some would look like a fall.
        edge = columns["x"][-1] - 4 * (columns["x"][1] - columns["x"][0])
        for at, (each, plot) in enumerate(zip(self._quantities, self._plots, strict=True)):
            unit, lines = found.get(each.title, (each.unit, []))
            values = {line.label: line.values for line in lines}
            marks = []
            for number, label in enumerate(_labels(each)):
                gap = numpy.full(len(columns["x"]), numpy.nan, "f4")
                line = numpy.array(values.get(label, gap), "f4")
                if frame.flowing and "sum" in label:
                    line[columns["x"] > edge] = numpy.nan
                columns[f"{at}-{number}"] = line
                if label in values:
                    marks.append(f"{'━╍'[number]} {label}")
            plot.visible = bool(lines)
            title = f"{each.title}, {unit}:  {',  '.join(marks)}"
            if plot.title.text != title:
                plot.title.text = title
        return Drawn(self._sources.put(self._source, columns))


def _labels(each: Quantity) -> list[str]:
    """What the lines of a quantity are called, in their order."""
    return [*([f"workers ({each.workers})"] if each.workers else []), *(["scheduler"] if each.scheduler else [])]


_LOOP = (
    Quantity("Loop at work", "% of the time", "busy", 1.0, "", True),
    Quantity("Loop lag, median", "ms", "lag_p50", 1e3, "", True),
    Quantity("Loop lag, 99 %", "ms", "lag_p99", 1e3, "", True),
    Quantity("Processor", "% of one core", "cpu", 1.0, "", True),
)
_MEMORY = tuple(each for each in QUANTITIES if each.column == "memory")


#: What makes each chart, by name.
CHARTS: Mapping[str, Callable[[], Chart]] = {
    "task-stream": TaskStream,
    "measured": lambda: Measured(QUANTITIES),
    "loop-lag": lambda: Measured(_LOOP),
    "memory-series": lambda: Measured(_MEMORY),
    "workers-load": WorkersLoad,
}
