"""Addresses that dask's users know, and their successors here.

Contents: OLD, routes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tornado import web

from gnomon.reports.dashboard.context import Context
from gnomon.reports.dashboard.guard import PageHandler

__all__ = ["OLD", "routes"]

#: By pattern, the path that took its place.
OLD = {
    r"/status": "/",
    r"/info/?": "/workers",
    r"/info/main/workers\.html": "/workers",
    r"/info/worker/.*": "/workers",
    r"/info/call-stacks?/.*": "/workers",
    r"/info/call-stack/.*": "/workers",
    r"/info/logs(/.*)?\.html": "/logs",
    r"/info/logs/.*": "/logs",
    r"/info/task/.*": "/tasks",
    r"/info/metrics": "/metrics",
    r"/json/counts\.json": "/api/v1/summary.json",
    r"/json/identity\.json": "/api/v1/workers.json",
    r"/json/index\.html": "/api/v1/plots.json",
    r"/tasks-stream|/task-stream": "/timeline",
    r"/system": "/scheduler",
    r"/profile-server": "/profile",
    r"/bandwidth": "/comm",
    r"/shuffle": "/comm",
    r"/fine-performance-metrics|/hardware|/cluster-map": "/workers",
    r"/groups": "/graph",
}


class _Moved(PageHandler):
    """Sends on for good."""

    def get(self, *args: str) -> None:
        """To the successor, whatever followed."""
        self.redirect(self.context.link(self.given["to"]), permanent=True)


def routes(context: Context) -> Sequence[tuple[str, type[web.RequestHandler], dict[str, Any]]]:
    """The rules of this room; paths without the prefix."""
    return [(pattern, _Moved, {"context": context, "to": to}) for pattern, to in OLD.items()]
