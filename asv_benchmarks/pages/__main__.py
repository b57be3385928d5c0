"""``python -m pages 10 20000 100000``: build a page of so many tasks, open it in a browser, print what that takes.

Nothing is asserted: what a machine of its own takes is for a person to read. Run it on a quiet one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from gnomon.reports.page import build_page

from .browser import Measures, measured
from .recordings import busy_recording

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="pages", description=__doc__)
    parser.add_argument("tasks", nargs="*", type=int, default=[10, 20_000, 100_000])
    parser.add_argument("--brushes", type=int, default=20)
    options = parser.parse_args(arguments)
    columns = []
    for tasks in options.tasks:
        recording = busy_recording(tasks)
        begin = time.perf_counter()
        text = build_page(recording)
        built = time.perf_counter() - begin
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report.html"
            path.write_text(text, "utf-8")
            columns.append(
                {
                    "tasks": f"{tasks:,}",
                    "built, s": f"{built:.2f}",
                    "size, MB": f"{path.stat().st_size / 1e6:.2f}",
                    **_rows(measured(path, brushes=options.brushes)),
                }
            )
    for name in columns[0]:
        sys.stdout.write(f"{name:28}" + "".join(f"{column[name]:>12}" for column in columns) + "\n")
    return 0


def _rows(taken: Measures) -> dict[str, str]:
    return {
        "text, ms": f"{taken.text:.0f}",
        "complete, ms": f"{taken.complete:.0f}",
        "longest block, ms": f"{taken.block:.0f}",
        "heap, MiB": f"{taken.heap:.0f}",
        **{f"first {name}, ms": f"{value:.0f}" for name, value in taken.tabs.items()},
        **{f"brush {name}, p95": f"{_p95(values):.0f}" for name, values in taken.brush.items()},
        **{f"search {name}, most": f"{max(values):.0f}" for name, values in taken.search.items()},
    }


def _p95(values: list[float]) -> float:
    return sorted(values)[max(0, round(0.95 * len(values)) - 1)]


if __name__ == "__main__":
    raise SystemExit(main())
