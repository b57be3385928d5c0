"""The dashboard's pages: shells that a small script fills from JSON, and charts that live in sessions of Bokeh's.

Contents:
    catalogue   the table of pages and plots
    handlers    what is served: shells, numbers, files
    contents    what each page shows; overview, tasks, workers, scheduler, data, trouble, profile, graph: its panels
    panels      panels and tables as plain values; view: what a reader asks to see; colors: of prefixes
    charts      charts that live; sources, load: their parts
    session     a browser's session of charts
    page.html, dashboard.css, scripts/: the shell, its style and script
"""

from __future__ import annotations

from gnomon.reports.dashboard.pages.handlers import applications, plots, routes

__all__ = ["applications", "plots", "routes"]
