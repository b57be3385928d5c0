"""How clients and clusters show themselves in notebooks.

Contents: shown_as_table.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

__all__ = ["shown_as_table"]


def shown_as_table(title: str, rows: Mapping[str, str], dashboard_link: str = "") -> str:
    """A title, facts by name, and the link to the dashboard, as HTML."""
    cells = [(escape(name), escape(value)) for name, value in rows.items()]
    if dashboard_link:
        href = escape(dashboard_link, quote=True)
        shown = escape(dashboard_link.partition("?")[0])
        cells.append(("Dashboard", f'<a href="{href}" target="_blank" rel="noopener noreferrer">{shown}</a>'))
    lines = "".join(f'<tr><th style="text-align:left">{name}</th><td>{value}</td></tr>' for name, value in cells)
    return f"<div><strong>{escape(title)}</strong><table>{lines}</table></div>"
