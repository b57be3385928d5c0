"""A comparison as plain text, with columns aligned.

Contents: text.
"""

from __future__ import annotations

from gnomon.reports.compare import lineup
from gnomon.reports.compare.comparison import Comparison, Side
from gnomon.reports.compare.lineup import Cell, Table
from gnomon.reports.compare.words import conclusions, headline, notices
from gnomon.reports.units import cut, time_text

__all__ = ["text"]

#: Rows of a table; the page has them all.
_ROWS = 30
_WIDTH = 44


def text(comparison: Comparison) -> str:
    """The comparison as text, without a final line break."""
    lines = [headline(comparison), ""]
    lines += [_side(comparison.a), _side(comparison.b), ""]
    lines += [f"! {notice}" for notice in notices(comparison)]
    lines += [f"- {sentence}" for sentence in conclusions(comparison)]
    tables = (
        lineup.setup_table(comparison),
        lineup.verdict_table(comparison),
        lineup.prefix_table(comparison),
        lineup.whole_table(comparison),
        lineup.part_table(comparison),
        *(lineup.profile_table(profile) for profile in comparison.profiles),
        *(lineup.family_table(family, comparison) for family in comparison.families),
        lineup.stall_table(comparison),
        lineup.fetch_table(comparison),
        lineup.transfer_table(comparison),
        lineup.worker_table(comparison),
    )
    for table in tables:
        if table.rows:
            lines += ["", *_table(table)]
    return "\n".join(line.rstrip() for line in lines)


def _side(side: Side) -> str:
    first = side.samples[0]
    names = ", ".join(cut(each.name, _WIDTH) for each in side.samples[:6])
    more = f" and {len(side.samples) - 6} more" if len(side.samples) > 6 else ""
    return (
        f"{side.letter}: {names}{more} (n={len(side.samples)}; {first.workers} workers, {first.threads} threads, "
        f"{time_text(side.mean(lambda each: each.duration))})"
    )


def _table(table: Table) -> list[str]:
    labels = [Cell(label) for label, _ in table.columns]
    rows = [labels, *table.rows[:_ROWS]]
    shown = [[cut(cell.text, _WIDTH) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in shown) for i in range(len(labels))]
    lines = [table.caption]
    for row in shown:
        cells = [
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, (_, number) in zip(row, widths, table.columns, strict=True)
        ]
        lines.append("  " + "  ".join(cells))
    if len(table.rows) > _ROWS:
        lines.append(f"  ... and {len(table.rows) - _ROWS} more rows")
    if table.note:
        lines.append(f"  ({table.note})")
    return lines
