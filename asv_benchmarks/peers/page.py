"""The figures as a section of ``docs/performance.md`` between two markers, and as a plot (plain SVG)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

from .workloads import WORKLOADS

__all__ = ["BEGIN", "END", "insert_section", "section", "svg"]

BEGIN, END = "<!-- peers:begin -->", "<!-- peers:end -->"
ROLES = ("client", "scheduler", "worker")
COLOURS = {"client": "#4c78a8", "scheduler": "#e45756", "worker": "#9ecae9"}

Figures = Mapping[str, Any]
"""The JSON file: see ``__main__``."""


def insert_section(page: Path, text: str) -> None:
    """Replace what stands between the markers, or append it with markers where there are none.

    Raises ValueError if there is one marker without the other.
    """
    old = page.read_text(encoding="utf-8") if page.exists() else "# Performance\n"
    block = f"{BEGIN}\n{text.strip()}\n{END}"
    if (BEGIN in old) != (END in old) or (BEGIN in old and old.index(BEGIN) > old.index(END)):
        raise ValueError(f"{page} has one of the markers {BEGIN} and {END} without the other before or after it")
    if BEGIN in old:
        head, rest = old.split(BEGIN, 1)
        new = head + block + rest.split(END, 1)[1]
    else:
        new = f"{old.rstrip()}\n\n{block}\n"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(new, encoding="utf-8")


def section(figures: Figures, plot: str) -> str:
    """The section: circumstances, wall time per task, CPU per task by role, what was not available."""
    about = figures["about"]
    versions = ", ".join(f"{one['title']} {one['version']}" for one in figures["systems"])
    lines = [
        "## Side by side with peers",
        "",
        f"`nox -s bench-peers` on {about['when']}: {about['machine']}, Python {about['python']}; two single-threaded "
        f"workers each; {about['rounds']} interleaved rounds. {versions}.",
        "",
        f"![Time per task and CPU per task by role]({plot})",
        "",
        "A bar ends at the CPU per task of all roles together; its colours are shares of its length on that scale.",
        "",
        "Time per task (µs; median of the rounds):",
        "",
        *_table(figures, lambda runs: f"{_microseconds(runs):.0f}"),
        "",
        "CPU per task (µs; client + scheduler + worker, mean of the rounds):",
        "",
        *_table(figures, lambda runs: " + ".join(f"{_cpu(runs, role):.0f}" for role in ROLES)),
    ]
    for name, reason in figures["missing"].items():
        lines += ["", f"Not available here: {name} ({reason})."]
    return "\n".join(lines) + "\n"


def _table(figures: Figures, cell: Any) -> list[str]:
    systems = figures["systems"]
    rows = ["| workload | " + " | ".join(one["title"] for one in systems) + " |", "|---" * (len(systems) + 1) + "|"]
    for workload in WORKLOADS:
        cells = [cell(one["runs"][workload.name]) for one in systems]
        rows.append(f"| {workload.title} | " + " | ".join(cells) + " |")
    return rows


def _microseconds(runs: Sequence[Figures]) -> float:
    """The median over rounds of the time per task."""
    return 1e6 * float(median(run["seconds"] / run["tasks"] for run in runs))


def _cpu(runs: Sequence[Figures], role: str) -> float:
    """CPU per task over all rounds together, since one round's is counted in coarse ticks."""
    return 1e6 * float(sum(run["cpu"].get(role, 0.0) for run in runs)) / float(sum(run["tasks"] for run in runs))


def svg(figures: Figures) -> str:
    """Bars of CPU per task by role and a tick at the time per task, per workload and system, on a scale of logarithms.

    On that scale the parts of a bar are shares of its length, not lengths of their own.
    """
    systems = figures["systems"]
    bars = [(workload, one) for workload in WORKLOADS for one in systems]
    values = [
        value
        for workload, one in bars
        for value in (_microseconds(one["runs"][workload.name]), _cpu_total(one["runs"][workload.name]))
    ]
    low = 10 ** math.floor(math.log10(max(1.0, min(values))))
    high = 10 ** math.ceil(math.log10(max(values)))
    left, width, row, gap = 170, 520, 16, 26
    height = 60 + len(bars) * row + len(WORKLOADS) * gap

    def x(value: float) -> float:
        return left + width * math.log(max(value, low) / low) / math.log(high / low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 90} {height}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *_legend(left),
        *_grid(low, high, x, height),
    ]
    y = 40.0
    for number, (workload, one) in enumerate(bars):
        if number % len(systems) == 0:
            y += gap
            parts.append(f'<text x="8" y="{y - 6}" font-weight="bold">{escape(workload.title)}</text>')
        parts += _bar(one["title"], one["runs"][workload.name], y, x)
        y += row
    return "\n".join([*parts, "</svg>"]) + "\n"


def _cpu_total(runs: Sequence[Figures]) -> float:
    return sum(_cpu(runs, role) for role in ROLES)


def _legend(left: float) -> Iterable[str]:
    for place, role in enumerate(ROLES):
        at = left + place * 105
        yield f'<rect x="{at}" y="10" width="10" height="10" fill="{COLOURS[role]}"/>'
        yield f'<text x="{at + 14}" y="19">{role} CPU</text>'
    yield f'<line x1="{left + 325}" y1="9" x2="{left + 325}" y2="21" stroke="#222222" stroke-width="2"/>'
    yield f'<text x="{left + 331}" y="19">time per task (µs, log scale)</text>'


def _grid(low: float, high: float, x: Any, height: float) -> Iterable[str]:
    value = low
    while value <= high:
        yield f'<line x1="{x(value):.1f}" y1="44" x2="{x(value):.1f}" y2="{height - 8}" stroke="#dddddd"/>'
        yield f'<text x="{x(value):.1f}" y="40" text-anchor="middle" fill="#555555">{value:g}</text>'
        value *= 10


def _bar(title: str, runs: Sequence[Figures], y: float, x: Any) -> Iterable[str]:
    total, seconds = _cpu_total(runs), _microseconds(runs)
    start, whole = x(0), x(total) - x(0)
    yield f'<text x="{start - 6:.1f}" y="{y + 10}" text-anchor="end">{escape(title)}</text>'
    for role in ROLES:
        length = whole * _cpu(runs, role) / total if total else 0.0
        yield f'<rect x="{start:.1f}" y="{y + 1}" width="{length:.1f}" height="11" fill="{COLOURS[role]}"/>'
        start += length
    at = x(seconds)
    yield f'<line x1="{at:.1f}" y1="{y - 1}" x2="{at:.1f}" y2="{y + 14}" stroke="#222222" stroke-width="2"/>'
    yield f'<text x="{max(at, x(total)) + 6:.1f}" y="{y + 10}" fill="#333333">{seconds:.0f}</text>'
