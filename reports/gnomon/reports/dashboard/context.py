"""What the dashboard's pages are given: the model, the stream behind it, and where they are mounted.

Contents: Context, DashboardUnavailable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gnomon.reports.dashboard.feed import DashboardUnavailable, Feed
from gnomon.reports.dashboard.looks import Look
from gnomon.reports.dashboard.model import Model

__all__ = ["Context", "DashboardUnavailable"]


@dataclass(slots=True)
class Context:
    """Of one dashboard.

    ``prefix``: what all paths begin with, ``""`` or like ``/a/b``; ``bokeh``: whether there are charts; ``plots``: the
    charts that can be looked at alone; ``name``: of the cluster, for titles.
    """

    feed: Feed
    prefix: str = ""
    bokeh: bool = False
    name: str = ""
    plots: Sequence[Mapping[str, str]] = field(default_factory=list)

    @property
    def model(self) -> Model:
        """All that is known of the cluster."""
        return self.feed.model

    def link(self, path: str) -> str:
        """The path as a browser asks for it."""
        return self.prefix + path

    def look(self, interval: float = 1.0) -> Look:
        """A new viewer; see ``Look``."""
        return self.feed.look(interval)

    async def fresh(self, age: float = 1.0, timeout: float = 2.0) -> None:
        """See ``Feed.fresh``."""
        await self.feed.fresh(age, timeout)

    async def request(self, method: str, **arguments: Any) -> Any:
        """See ``Feed.request``."""
        return await self.feed.request(method, **arguments)

    @property
    def statistics(self) -> dict[str, float]:
        """What the dashboard itself does: viewers, questions, what these cost the scheduler in seconds."""
        feed = self.feed
        return {
            "looks": len(feed.looks),
            "requests": feed.requests,
            "connections": feed.reconnects,
            "skipped": feed.looks.skipped,
            "scheduler_cost": feed.scheduler_cost,
        }
