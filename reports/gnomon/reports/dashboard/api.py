"""What machines ask the dashboard: tables as JSON, metrics, health; and the overview for browsers without websockets.

Contents: routes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tornado import web

from gnomon.reports.dashboard import metrics
from gnomon.reports.dashboard.context import Context, DashboardUnavailable
from gnomon.reports.dashboard.guard import PageHandler
from gnomon.reports.dashboard.plain import PLAIN, summary
from gnomon.reports.dashboard.tables import TABLES, BadQueryError, Query, Table, about, answer, page_of

__all__ = ["OPEN_PATHS", "PlainPage", "routes"]

#: What is told without a token: that the process lives.
OPEN_PATHS = ("/health",)

#: Nodes of a graph that are sent at most.
_NODES = 2_000


class _Health(PageHandler):
    """Whether the process lives, and in how far it hears of the cluster. Tells nothing of the cluster itself."""

    def get(self) -> None:
        self.send_json({"status": "ok", "connected": self.context.model.connected})


class _Metrics(PageHandler):
    """For Prometheus."""

    async def get(self) -> None:
        await self.context.fresh()
        self.set_header("Content-Type", metrics.CONTENT_TYPE)
        self.finish(metrics.exposition(self.context, self.context.feed.age()))


class _Summary(PageHandler):
    """The state of the cluster in one object."""

    async def get(self) -> None:
        await self.context.fresh()
        self.send_json(summary(self.context, self.context.feed.age()))


class _ApiHandler(PageHandler):
    """The base of what reads a query."""

    def query(self) -> Query:
        """What is asked for. Raises web.HTTPError."""
        try:
            return Query.of(self.request.query_arguments)
        except BadQueryError as exc:
            raise web.HTTPError(400, "%s", exc) from None


class _Table(_ApiHandler):
    """A table of the model."""

    async def get(self) -> None:
        query = self.query()
        await self.context.fresh()
        try:
            self.send_json(answer(self.context.model, self.given["table"], query, self.context.feed.age()))
        except BadQueryError as exc:
            raise web.HTTPError(400, "%s", exc) from None


class _Asked(_ApiHandler):
    """The base of what only the scheduler can tell."""

    async def ask(self, method: str, **arguments: Any) -> Any:
        """The scheduler's answer. Raises web.HTTPError."""
        try:
            return await self.context.request(method, **arguments)
        except DashboardUnavailable as exc:
            raise web.HTTPError(503, "%s", exc) from None
        except ValueError as exc:
            raise web.HTTPError(400, "%s", exc) from None


class _Tasks(_Asked):
    """Living tasks by state, prefix and text of the key, the latest defined first."""

    async def get(self) -> None:
        query = self.query()
        if query.sort:
            raise web.HTTPError(400, "%s", "living tasks come in one order, the latest defined first")
        first = (query.page - 1) * query.size
        found = await self.ask(
            "tasks_page", state=query.state, prefix=query.prefix, search=query.q, offset=first, limit=query.size
        )
        notice = ""
        if found["scanned"] < found["tasks"]:
            notice = f"The latest {found['scanned']} of {found['tasks']} tasks were looked at."
        columns = [("key", ""), ("prefix", ""), ("state", ""), ("worker", ""), ("attempt", ""), ("nbytes", "B")]
        page = page_of(Table(columns, found["rows"], notice), Query(size=query.size))
        page |= {"total": found["total"], "page": query.page}
        self.send_json({**page, **about(self.context.model, self.context.feed.age())})


class _Graph(_Asked):
    """The graph of groups; of tasks with ``?of=tasks``, where these are not too many."""

    async def get(self) -> None:
        method = {"groups": "group_graph", "tasks": "task_graph"}.get(self.get_query_argument("of", "groups"))
        if method is None:
            raise web.HTTPError(400, "%s", "of is groups or tasks")
        self.send_json(await self.ask(method, limit=_NODES))


class _Plots(PageHandler):
    """The charts that can be looked at alone; as a list, or as notebooks want it: addresses by title."""

    def get(self) -> None:
        plots = self.context.plots
        if self.given["by_title"]:
            self.send_json({plot["title"]: self.context.link(plot["path"]) for plot in plots})
        else:
            self.send_json([{**plot, "path": self.context.link(plot["path"])} for plot in plots])


class PlainPage(PageHandler):
    """The overview that polls JSON."""

    def get(self) -> None:
        """The page; the numbers come later."""
        self.send_page(PLAIN.replace("PREFIX", self.context.prefix))


def routes(context: Context) -> Sequence[tuple[str, type[web.RequestHandler], dict[str, Any]]]:
    """The rules of this room; paths without the prefix."""
    here = {"context": context}
    return [
        (r"/health", _Health, here),
        (r"/metrics", _Metrics, here),
        (r"/plain", PlainPage, here),
        (r"/individual-plots\.json", _Plots, {**here, "by_title": True}),
        (r"/api/v1/plots\.json", _Plots, {**here, "by_title": False}),
        (r"/api/v1/summary\.json", _Summary, here),
        (r"/api/v1/tasks\.json", _Tasks, here),
        (r"/api/v1/graph\.json", _Graph, here),
        *((rf"/api/v1/{name}\.json", _Table, {**here, "table": name}) for name in TABLES),
    ]
