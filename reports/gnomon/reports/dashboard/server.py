"""The dashboard's process: one stream from the scheduler, one model, one HTTP server.

Where it listens is its own business only when it is started alone; started with a cluster it is given a socket that
listens already, so that the link works from the first moment and outlives this process.

Contents: Dashboard.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from tornado.httpserver import HTTPServer

from gnomon.reports.dashboard.access import Access, local_hosts
from gnomon.reports.dashboard.api import OPEN_PATHS
from gnomon.reports.dashboard.context import Context
from gnomon.reports.dashboard.feed import Feed
from gnomon.reports.dashboard.guard import Guard
from gnomon.reports.dashboard.mounts import Mounts, has_bokeh
from gnomon.runtime import Security

__all__ = ["Dashboard"]

logger = logging.getLogger(__name__)

#: Views at one time; charts are sessions of Bokeh's, which cost memory and time each.
_VIEWS = 20

_FULL = (
    f"There are {_VIEWS} views of this dashboard open, and more would make all of them slow. Close one and try again; "
    "it is let go of within a minute. The overview without charts is at /plain."
)

#: By how much it stands back behind a cluster's own processes.
_NICE = 5

#: Bytes of a request's headers and body.
_HEADERS = 64 << 10
_BODY = 64 << 10

#: Seconds that a connection may say nothing between two requests.
_IDLE = 300


class Dashboard:
    """A dashboard of one cluster.

    Args:
        scheduler_address: of the scheduler.
        security: as of any client of the cluster.
        descriptors: of sockets that listen already; else it listens at ``host`` and ``port``.
        host, port: where to listen; port 0 takes a free one.
        token: asked of every visitor; None makes one, "" asks for none.
        prefix: what all paths begin with, for reverse proxies.
        hosts: further names (with ports) that browsers may use for it.
        name: of the cluster, for titles.
        bokeh: whether to offer charts; by default where bokeh is installed.
        interval: seconds between two questions to the scheduler.

    Raises OSError if it can't listen.
    """

    def __init__(
        self,
        scheduler_address: str,
        *,
        security: Security | None = None,
        descriptors: Sequence[int] = (),
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        prefix: str = "",
        hosts: Iterable[str] = (),
        name: str = "",
        bokeh: bool | None = None,
        interval: float = 1.0,
    ) -> None:
        self.address = ""
        self.token = secrets.token_urlsafe(32) if token is None else token
        self._listen_on = (host, port)
        self._descriptors = tuple(descriptors)
        self._hosts = tuple(hosts)
        self._address = scheduler_address
        self._security = security
        self._interval = interval
        self._prefix = "/" + prefix.strip("/") if prefix.strip("/") else ""
        self._name = name
        self._bokeh = has_bokeh() if bokeh is None else bokeh
        self.context: Context
        self._mounted: Mounts
        self._charts: asyncio.Task[None] | None = None
        self._http: HTTPServer | None = None
        self._finished = asyncio.Event()

    async def start(self) -> None:
        """Listen and serve. Raises OSError."""
        if self._descriptors and hasattr(os, "nice"):
            os.nice(_NICE)  # started by a cluster, whose tasks come first
        sockets = [socket.socket(fileno=each) for each in self._descriptors] or _listen(*self._listen_on)
        for each in sockets:
            each.setblocking(False)
        host, port = sockets[0].getsockname()[:2]
        names = local_hosts(host, port, self._hosts)
        feed = Feed(self._address, self._security, interval=self._interval)
        self.context = Context(feed, self._prefix, self._bokeh, self._name)
        self._mounted = Mounts(self.context, names)
        access = Access(self.token, names, port=port, open_paths=OPEN_PATHS)
        guard = Guard(lambda: self._mounted.application, access, self._prefix, self._full)
        self._http = HTTPServer(guard, max_header_size=_HEADERS, max_body_size=_BODY, idle_connection_timeout=_IDLE)
        await feed.start()
        self._charts = asyncio.create_task(self._mounted.load_charts(), name="gnomon dashboard charts")
        self._http.add_sockets(sockets)
        shown = socket.gethostname() if host in ("0.0.0.0", "::") else _bracket(host)
        self.address = f"http://{shown}:{port}"
        logger.info("Dashboard of %s at %s%s", self._address, self.address, self._prefix)

    @property
    def link(self) -> str:
        """Where to look, with the token."""
        query = f"?token={quote(self.token)}" if self.token else ""
        return f"{self.address}{self._prefix}/{query}"

    @property
    def views(self) -> int:
        """How many views with charts are open."""
        return self._mounted.sessions()

    def _full(self, path: str) -> str:
        """The sentence for who would open a view too many."""
        chart = path.rstrip("/").removesuffix("/autoload.js")
        if chart in self._mounted.charts and not path.endswith("/ws") and self.views >= _VIEWS:
            return _FULL
        return ""

    async def finished(self) -> None:
        """Wait until it has closed."""
        await self._finished.wait()

    async def close(self, reason: str = "") -> None:
        """Stop serving. Safe to call twice."""
        http, self._http = self._http, None
        if http is not None:
            http.stop()
            if self._charts is not None:
                await asyncio.wait([self._charts])
            self._mounted.stop()
            await self.context.feed.close()
            await http.close_all_connections()
        self._finished.set()


def _listen(host: str, port: int) -> list[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.create_server((host, port), family=family, backlog=128)
    os.set_inheritable(sock.fileno(), False)
    return [sock]


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host
