"""A recording in formats that other tools read.

    export(load("report.html"), "perfetto", "trace.json")

Contents:
    FORMATS, export   the formats by name, and the one way to write them
    trace             Chrome's trace events, for Perfetto and chrome://tracing
    speedscope        task lanes as evented profiles
    tables            runs, transfers and prefixes as CSV or Parquet
    summary           the account as JSON
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from gnomon.reports.export.errors import ExportError
from gnomon.reports.export.speedscope import write_speedscope
from gnomon.reports.export.summary import summary, write_summary
from gnomon.reports.export.tables import write_csv, write_parquet
from gnomon.reports.export.trace import write_trace
from gnomon.reports.recording import Recording

__all__ = ["FORMATS", "ExportError", "Format", "export", "summary"]


class Format(NamedTuple):
    """A format: the ending that its file or folder has by custom, who reads it, and how it is written."""

    ending: str
    readers: str
    write: Callable[[Recording, Path], list[Path]]


FORMATS = {
    "chrome": Format(".trace.json", "chrome://tracing, Perfetto", write_trace),
    "perfetto": Format(".trace.json", "Perfetto, chrome://tracing", write_trace),
    "speedscope": Format(".speedscope.json", "speedscope", write_speedscope),
    "json": Format(".json", "the page's account as numbers", write_summary),
    "csv": Format("-csv", "a folder of runs, transfers and prefixes", write_csv),
    "parquet": Format("-parquet", "the same, typed; needs pyarrow", write_parquet),
}


def export(recording: Recording, name: str, path: str | PathLike[str]) -> list[Path]:
    """Write a recording in the format ``name`` to ``path`` (a folder for csv and parquet), and return what was written.

    Raises ExportError if the format is unknown or needs a package that isn't there, and OSError.
    """
    if name not in FORMATS:
        raise ExportError(f"unknown format {name!r}; known are {', '.join(FORMATS)}")
    return FORMATS[name].write(recording, Path(path))
