"""The load of workers now: bars for each of a few, how many have which load for many.

Contents: WorkersLoad.
"""

from __future__ import annotations

from typing import Any

from gnomon.reports.dashboard.pages import panels
from gnomon.reports.dashboard.pages.overview import NO_WORKER
from gnomon.reports.dashboard.pages.sources import Drawn, Frame, Sources
from gnomon.reports.units import cut

__all__ = ["WorkersLoad"]

#: Workers that have a bar each; above, there is a histogram.
_BARS = 50
_BINS = 20

#: Readable on light and on dark ground, as those of lines.
_CPU, _MEMORY = "#0072b2", "#d55e00"


class WorkersLoad:
    """Two figures beside each other: processor, of one core; memory, of the limit (without one, of the largest)."""

    def __init__(self) -> None:
        import numpy
        from bokeh.layouts import row
        from bokeh.models import ColumnDataSource, DataRange1d, Range1d

        self._sources = Sources()
        self._source = ColumnDataSource({"y": [], "cpu": [], "memory": []})
        self._bins = ColumnDataSource({name: [] for name in _binned(numpy.zeros(0), numpy.zeros(0))})
        self._y_range = Range1d(start=1, end=0)
        self._bars, self._histograms = [], []
        self._labels: list[str] = []
        self._many: bool | None = None
        for column, title, color in (
            ("cpu", "Processor, % of one core", _CPU), ("memory", "Memory, % of the limit", _MEMORY),
        ):  # fmt: skip
            x_range = DataRange1d(start=0) if column == "cpu" else Range1d(start=0, end=100)
            bars = _plot(title, x_range, self._y_range)
            bars.hbar(y="y", right=column, height=0.72, source=self._source, color=color)
            bars.ygrid.grid_line_color = None
            counts = _plot(f"{title}: how many workers", Range1d(start=0, end=100), Range1d(start=0, end=1))
            counts.quad(left=f"{column}_left", right=f"{column}_right", bottom=0, top=column, source=self._bins,
                        fill_color=color, line_color=None)  # fmt: skip
            counts.visible = False
            self._bars.append(bars)
            self._histograms.append(counts)
        self.root = row(*self._bars, *self._histograms, sizing_mode="stretch_width")

    def draw(self, frame: Frame) -> Drawn:
        """The workers as they are."""
        import numpy

        now = frame.model.counters
        workers = [] if now is None else [each for each in now.workers.values() if _wanted(frame, each)]
        if not workers:
            return Drawn(empty=NO_WORKER if now is None or not now.workers else "No worker matches the search.")
        cpu = numpy.array([each.cpu for each in workers], "f4")
        used = numpy.array([each.memory for each in workers], "f8")
        limits = numpy.array([each.memory_limit or numpy.nan for each in workers], "f8")
        limits = numpy.where(numpy.isnan(limits), max(1.0, float(numpy.nanmax(used, initial=1.0))), limits)
        memory = (100 * used / limits).astype("f4")
        many = len(workers) > _BARS
        if many != self._many:
            self._many = many
            for plot in self._bars:
                plot.visible = not many
            for plot in self._histograms:
                plot.visible = many
        if many:
            columns = _binned(cpu, memory)
            for plot, name in zip(self._histograms, ("cpu", "memory"), strict=True):
                plot.x_range.end = float(columns[f"{name}_right"][-1])
                plot.y_range.end = 1.05 * float(columns[name].max())
            return Drawn(self._sources.put(self._bins, columns),
                         notes=[f"There are {len(workers):,} workers: the bars count those of each load."])  # fmt: skip
        self._label([panels.label_of(each.name or each.address) for each in workers])
        columns = {"y": numpy.arange(len(workers), dtype="f4") + 0.5, "cpu": cpu, "memory": memory}
        return Drawn(self._sources.put(self._source, columns))

    def _label(self, labels: list[str]) -> None:
        if labels == self._labels:
            return
        from bokeh.models import FixedTicker, PlainText

        self._labels = labels
        self._y_range.start = len(labels)
        for plot in self._bars:
            plot.height = min(700, 60 + 20 * len(labels))
            plot.yaxis[0].ticker = FixedTicker(ticks=[at + 0.5 for at in range(len(labels))])
            plot.yaxis[0].major_label_overrides = {
                at + 0.5: PlainText(text=cut(label, 20)) for at, label in enumerate(labels)
            }


def _wanted(frame: Frame, worker: Any) -> bool:
    wanted = frame.search.casefold()
    return not wanted or wanted in worker.name.casefold() or wanted in worker.address.casefold()


def _binned(cpu: Any, memory: Any) -> dict[str, Any]:
    """How many values lie in each of some equal bins."""
    import numpy

    top = max(100.0, float(numpy.nanmax(cpu, initial=0.0)))
    columns: dict[str, Any] = {}
    for name, values, most in (("cpu", cpu, top), ("memory", memory, 100.0)):
        counts, edges = numpy.histogram(values[~numpy.isnan(values)], _BINS, (0.0, most))
        columns |= {name: counts.astype("f4"), f"{name}_left": edges[:-1].astype("f4")}
        columns[f"{name}_right"] = edges[1:].astype("f4")
    return columns


def _plot(title: str, x_range: Any, y_range: Any) -> Any:
    from bokeh.models.annotations import Title
    from bokeh.plotting import figure

    plot = figure(
        x_range=x_range, y_range=y_range, height=180, sizing_mode="stretch_width", toolbar_location=None, tools="",
        output_backend="canvas",
    )  # fmt: skip
    plot.title = Title(text=title, text_font_size="12px", text_font_style="normal")
    plot.background_fill_alpha = plot.border_fill_alpha = 0
    plot.outline_line_alpha = 0.3
    return plot
