"""Charts, as functions from a recording.

Contents:
    rectangles     what the task stream draws: lanes, and the level of detail
    task_stream    the task stream as a Bokeh figure
"""

from __future__ import annotations

from gnomon.reports.figures.rectangles import Lane, Rectangles, lanes, rectangles
from gnomon.reports.figures.task_stream import task_stream

__all__ = ["Lane", "Rectangles", "lanes", "rectangles", "task_stream"]
