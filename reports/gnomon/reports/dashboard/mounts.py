"""Puts the pages, the charts and what machines ask into one web application, with Bokeh's server or without it.

Contents: Mounts, has_bokeh.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import logging
from typing import Any

from tornado import web
from tornado.ioloop import IOLoop

from gnomon.reports.dashboard import api, old_routes, pages
from gnomon.reports.dashboard.context import Context
from gnomon.reports.dashboard.guard import NotFound, PageHandler

__all__ = ["Mounts", "has_bokeh"]

logger = logging.getLogger(__name__)

#: Bokeh's sessions: how often they are looked through, how long one may lie unused, and how often a browser is pinged.
_CHECK = 5_000
_UNUSED = 10_000
_PING = 15_000


def has_bokeh() -> bool:
    """Whether there can be charts."""
    return importlib.util.find_spec("bokeh") is not None


class Mounts:
    """The web application as it is now: without charts at first, with them once Bokeh is there.

    Bokeh takes a second to import, in which the pages and their numbers are served already; who asks for a chart
    meanwhile waits. ``origins``: hosts whose pages may open Bokeh's websockets.

    Fields:
        application: what serves now.
        charts: paths that open a session of Bokeh's.
    """

    def __init__(self, context: Context, origins: list[str]) -> None:
        self.charts: frozenset[str] = frozenset()
        self.ready = asyncio.Event()
        self._context = context
        self._origins = origins
        self._bokeh: Any = None
        context.plots = pages.plots(context)
        self._rules: list[Any] = [*api.routes(context), *old_routes.routes(context), *pages.routes(context)]
        prefixed = [(context.prefix + pattern, *rest) for pattern, *rest in self._rules]
        last = _Wait if context.bokeh else NotFound
        prefixed.append((r".*", last, {"context": context, "ready": self.ready}))
        self.application: web.Application = web.Application(prefixed)

    async def load_charts(self) -> None:
        """Import Bokeh and serve its charts, if there are to be any."""
        if not self._context.bokeh:
            return
        try:
            await asyncio.to_thread(_import_bokeh)
            self._bokeh = self._with_bokeh()
            self._bokeh.start()
            self.application = self._bokeh
        except Exception:
            logger.exception("There are no charts: Bokeh could not be used")
            prefixed = [(self._context.prefix + pattern, *rest) for pattern, *rest in self._rules]
            self.application = web.Application([*prefixed, (r".*", NotFound, {"context": self._context})])
        self.ready.set()

    def _with_bokeh(self) -> Any:
        from bokeh.server.tornado import BokehTornado

        context = self._context
        for name in ("bokeh.server.tornado", "tornado.access"):
            logging.getLogger(name).setLevel(logging.WARNING)  # a line for each visit is no news
        logging.getLogger("bokeh.server.views.ws").setLevel(logging.ERROR)  # nor is one for each view that was closed
        charts: dict[str, Any] = pages.applications(context)
        server: Any = BokehTornado(
            charts,
            prefix=context.prefix,
            extra_patterns=[tuple(rule) for rule in self._rules],
            extra_websocket_origins=self._origins,
            use_index=False,
            check_unused_sessions_milliseconds=_CHECK,
            unused_session_lifetime_milliseconds=_UNUSED,
            keep_alive_milliseconds=_PING,
            include_headers=[],
            include_cookies=[],
            default_handler_class=NotFound,
            default_handler_args={"context": context},
        )
        server.initialize(IOLoop.current())
        self.charts = frozenset(charts)
        return server

    def sessions(self) -> int:
        """How many sessions of Bokeh's there are."""
        if self._bokeh is None:
            return 0
        return sum(len(list(each.sessions)) for each in self._bokeh.applications.values())

    def stop(self) -> None:
        """End what works beside the requests."""
        if self._bokeh is not None:
            self._bokeh.stop(wait=False)


class _Wait(PageHandler):
    """What may be Bokeh's, once it is there."""

    async def get(self, *args: str) -> None:
        """Wait, then ask again."""
        await self.given["ready"].wait()
        self.redirect("/" + self.request.uri.lstrip("/") if self.request.uri else "/", status=307)


def _import_bokeh() -> None:
    for name in ("bokeh.models", "bokeh.plotting", "bokeh.server.tornado"):
        importlib.import_module(name)
