"""Panels as plain values that the page's script draws: tables sorted and paginated here, sentences, numbers, groups.

A cell travels as ``t`` (its text), ``h`` (a full text on hover), ``s`` (a colour slot), ``b`` (bars as class, percent,
words) and ``a`` (where a click leads, below the dashboard's root). What users named is text all the way.

Contents: Panel, LEAF, link_to, link_of, label_of; cell, count, size, time, of_prefix, of_worker; table, told_table,
text, strip, lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote, unquote

from gnomon.reports.dashboard.pages.view import View
from gnomon.reports.page.tables import Cell, Table
from gnomon.reports.units import bytes_text, count_text, cut, time_text

__all__ = [
    "LEAF",
    "Panel",
    "cell",
    "count",
    "label_of",
    "lines",
    "link_of",
    "link_to",
    "of_prefix",
    "of_worker",
    "size",
    "strip",
    "table",
    "text",
    "time",
    "told_table",
]

Panel = dict[str, Any]

#: Rows of a leaf of a table.
LEAF = 50


def link_to(what: str, name: str) -> str:
    """The page of a prefix (``what`` is "tasks") or of a worker ("workers"), below the root."""
    return f"{what}/{quote(name.encode('utf-8', 'replace'), safe='')}"


def link_of(go: str) -> str:
    """Where the report's filter by a name leads here."""
    what, _, name = go.partition("=")
    return link_to({"prefix": "tasks", "worker": "workers"}[what], unquote(name)) if go else ""


def cell(
    text: str,
    value: float | None = None,
    title: str = "",
    *,
    slot: int = -1,
    bars: Sequence[tuple[str, float, str]] = (),
    link: str = "",
) -> Panel:
    """A cell as it travels; ``v`` is what it sorts by and stays here."""
    told: Panel = {"t": text, "v": value}
    if title and title != text:
        told["h"] = title
    if slot >= 0:
        told["s"] = slot
    if bars:
        told["b"] = [(name, round(percent, 2), words) for name, percent, words in bars]
    if link:
        told["a"] = link
    return told


def _of_report(each: Cell) -> Panel:
    bars = [
        (name if name == "slot" else f"part-{name}", percent, "" if name == "slot" else f"{name} {percent:.1f} %")
        for name, percent in each.bars
    ]
    return cell(each.text, each.value, each.title, slot=each.slot, bars=bars, link=link_of(each.go))


def table(
    view: View,
    name: str,
    columns: Sequence[tuple[str, bool]],
    rows: Iterable[Sequence[Panel]],
    *,
    caption: str = "",
    last: Sequence[Panel] | None = None,
    note: str = "",
    empty: str = "",
    sortable: bool = True,
    leaf: int = LEAF,
) -> Panel:
    """A table's leaf that the view asks for, sorted as it asks; without rows, the sentence ``empty``."""
    found = list(rows)
    if view.search:
        found = [row for row in found if view.finds(*(each.get("h") or each["t"] for each in row))]
        empty = f"No row holds “{view.search}”. Clear the search to see all." if not found and rows else empty
    if not found and empty:
        return text(name, empty)
    sort = view.sorts.get(name) if sortable else None
    if sort is not None and sort[0] < len(columns):
        at, way = sort
        found.sort(key=lambda row: _sort_key(row[at]), reverse=way < 0)
    pages = max(1, -(-len(found) // leaf))
    page = min(view.leaves.get(name, 0), pages - 1)
    shown = found[page * leaf : (page + 1) * leaf]
    return {
        "kind": "table",
        "name": name,
        "caption": caption,
        "columns": list(columns),
        "rows": [[_travelling(each) for each in row] for row in shown],
        "last": None if last is None else [_travelling(each) for each in last],
        "note": note,
        "sortable": sortable,
        "sort": sort,
        "page": page,
        "pages": pages,
        "total": len(found),
    }


def told_table(view: View, made: Table, *, empty: str = "", leaf: int = LEAF) -> Panel:
    """A table of the report's as a panel."""
    return table(
        view,
        made.name,
        made.columns,
        [[_of_report(each) for each in row] for row in made.rows],
        caption=made.caption,
        last=None if made.last is None else [_of_report(each) for each in made.last],
        note=made.note.strip(),
        empty=empty,
        leaf=leaf,
    )


def text(name: str, sentence: str, tone: str = "empty") -> Panel:
    """A sentence: why there is nothing to see, and what to do."""
    return {"kind": "text", "name": name, "text": sentence, "tone": tone}


def strip(name: str, items: Sequence[tuple[str, str, str]]) -> Panel:
    """Single numbers: a name, the value, what it is."""
    return {"kind": "strip", "name": name, "items": items}


def lines(name: str, rows: Sequence[str], note: str = "", empty: str = "") -> Panel:
    """Lines of text."""
    return {"kind": "lines", "name": name, "lines": rows, "note": note} if rows else text(name, empty)


def count(number: int) -> Panel:
    """A count."""
    return cell(count_text(number), number)


def size(nbytes: float) -> Panel:
    """Bytes; a dash if they were not measured."""
    if nbytes != nbytes or nbytes < 0:
        return cell("-", -1, "not measured")
    return cell(bytes_text(nbytes), nbytes)


def time(ticks: float) -> Panel:
    """A time."""
    return cell(time_text(ticks), ticks)


def of_prefix(name: str, slot: int = -1, length: int = 48) -> Panel:
    """A prefix that leads to its page."""
    return cell(cut(name, length), None, name, slot=slot, link=link_to("tasks", name))


def of_worker(name: str, length: int = 36) -> Panel:
    """A worker, by name or address, that leads to its page."""
    label = label_of(name)
    return cell(cut(label, length), None, label, link=link_to("workers", name))


def label_of(name: str) -> str:
    """What to call a worker: its name, said to be a worker's if it is only a number."""
    return f"worker {name}" if name.isdigit() else name


def _travelling(each: Panel) -> Panel:
    return {name: value for name, value in each.items() if name != "v"}


def _sort_key(each: Panel) -> tuple[int, float, str]:
    value = each["v"]
    if value is None:
        return 1, 0.0, str(each.get("h") or each["t"]).casefold()
    return 0, (float("-inf") if value != value else float(value)), ""
