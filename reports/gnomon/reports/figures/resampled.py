"""Measurements of many processes as a few lines: sums or maxima over the workers, beside the scheduler's own.

Contents: QUANTITIES, Line, Quantity, resampled.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any, NamedTuple

from gnomon.reports.recording import TICKS, Recording

__all__ = ["QUANTITIES", "Line", "Quantity", "resampled"]

#: Points of a line at most.
_POINTS = 1_000

#: A value holds until the next one, but no longer than this many times the usual distance; then there is a gap.
_HOLD = 3.0


class Line(NamedTuple):
    """What a line is called, its times in seconds and its values (NaN: nothing was measured)."""

    label: str
    times: Any
    values: Any


class Quantity(NamedTuple):
    """What is drawn of a column of measurements; ``workers``: how those of workers join (sum, max, empty: not)."""

    title: str
    unit: str
    column: str
    factor: float
    workers: str
    scheduler: bool


#: What the timeline shows.
QUANTITIES = (
    Quantity("Processor", "processors in use", "cpu", 0.01, "sum", True),
    Quantity("Memory", "GiB", "memory", 2.0**-30, "sum", True),
    Quantity("Loop lag, 99 %", "ms", "lag_p99", 1e3, "max", True),
    Quantity("Received by machines", "MiB/s", "host_received", 2.0**-20, "max", False),
    Quantity("Tasks waiting for a worker", "tasks", "tasks", 1.0, "", True),
)


def resampled(recording: Recording, quantities: Sequence[Quantity] = QUANTITIES) -> list[tuple[str, str, list[Line]]]:
    """Title, unit and lines of each quantity that was measured at all."""
    series = recording.series
    if not len(series) or not recording.duration:
        return []
    import numpy

    times = numpy.frombuffer(series.times, "q") / TICKS
    workers = numpy.frombuffer(series.workers, "q")
    processes = numpy.frombuffer(series.processes, "q")
    usual = _usual(series.values.get("seconds"))
    end = recording.duration / TICKS
    grid = numpy.linspace(0.0, end, max(2, min(_POINTS, round(2 * end / usual) + 1)))
    result = []
    for quantity in quantities:
        if quantity.column not in series.values:
            continue
        values = numpy.frombuffer(series.values[quantity.column], "d") * quantity.factor
        lines = []
        for label, mine, joined in (
            (f"workers ({quantity.workers})", workers != -1, quantity.workers),
            ("scheduler", workers == -1, "sum" if quantity.scheduler else ""),
        ):
            if not joined:
                continue
            columns = []
            for worker, process in sorted(set(zip(workers[mine].tolist(), processes[mine].tolist(), strict=True))):
                rows = mine & (workers == worker) & (processes == process) & ~numpy.isnan(values)
                if rows.any():
                    columns.append(_held(times[rows], values[rows], grid, usual))
            if columns:
                table = numpy.vstack(columns)
                measured = ~numpy.isnan(table).all(axis=0)
                filled = numpy.nan_to_num(table, nan=0.0)
                total = filled.sum(axis=0) if joined == "sum" else filled.max(axis=0)
                lines.append(Line(label, grid.astype("f4"), numpy.where(measured, total, nan).astype("f4")))
        if lines:
            result.append((quantity.title, *_finer(quantity.unit, lines)))
    return result


def _finer(unit: str, lines: list[Line]) -> tuple[str, list[Line]]:
    """The next smaller unit, where these are small."""
    import numpy

    smaller = {"MiB/s": "KiB/s", "GiB": "MiB"}.get(unit)
    if smaller is None or max(float(numpy.nanmax(line.values)) for line in lines) >= 0.2:
        return unit, lines
    return smaller, [line._replace(values=line.values * 1024) for line in lines]


def _usual(lengths: Any) -> float:
    """The usual distance of two rows in seconds."""
    known = sorted(value for value in lengths or () if value == value and value > 0)
    return max(0.01, known[len(known) // 2]) if known else 1.0


def _held(times: Any, values: Any, grid: Any, usual: float) -> Any:
    """The values on a grid: each row speaks for the time before it."""
    import numpy

    order = numpy.argsort(times, kind="stable")
    times, values = times[order], values[order]
    at = numpy.searchsorted(times, grid, side="left")
    known = at < len(times)
    at = numpy.minimum(at, len(times) - 1)
    known &= times[at] - grid <= _HOLD * usual
    return numpy.where(known, values[at], nan)
