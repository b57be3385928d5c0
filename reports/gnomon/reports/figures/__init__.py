"""Charts, as functions from a recording.

Contents:
    rectangles     what the task stream draws: lanes, and the level of detail
    task_stream    the task stream as a Bokeh figure
    resampled      measurements of many processes as a few lines
    timeline       the stream with these lines below it
    flames         what a flame graph draws
"""

from __future__ import annotations

from gnomon.reports.figures.flames import Flame, flame
from gnomon.reports.figures.rectangles import Lane, Rectangles, lanes, rectangles
from gnomon.reports.figures.resampled import Line, resampled
from gnomon.reports.figures.task_stream import task_stream
from gnomon.reports.figures.timeline import timeline

__all__ = [
    "Flame",
    "Lane",
    "Line",
    "Rectangles",
    "flame",
    "lanes",
    "rectangles",
    "resampled",
    "task_stream",
    "timeline",
]
