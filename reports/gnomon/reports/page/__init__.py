"""The HTML of a report: one file that opens offline and asks no network for anything.

The summary is plain HTML, readable with scripts off; scripts add tabs, sorting, and the task stream's level of detail.
Every name that users chose is text, escaped.

Contents:
    build     ``build_page``: a recording to a page
    tables    the tables of the page
    report.html, report.css, scripts/
"""

from __future__ import annotations

from gnomon.reports.page.build import build_page

__all__ = ["build_page"]
