"""The dashboard of a cluster, as its owner sees it: a link that works at once, and a process only once somebody looks.

The owner binds the port and listens; the first visitor's knock starts the process, which is given the listening socket
and answers. So a cluster that nobody looks at pays for a socket. When the process dies, the owner still listens: the
next knock starts another, until too many died in a row. The process ends with its owner, whichever way that ends.

What runs in the process is named by the entry point ``dashboard`` of the group ``gnomon.dashboard``; without one there
is no dashboard. It is the child's class (see ``child``) and is given the scheduler's address and the options
``descriptors, security, token, prefix, hosts, name``.

A scheduler inside the owner's process (``inproc``) can't be reached from another. For it the owner opens a way in with
the first visitor: a loopback address, where whoever proves the cluster's secret is given a line to the scheduler.

Contents: DashboardDoor, parse_address, chosen_token.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import secrets
import socket
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points

from gnomon.runtime import config
from gnomon.runtime.clock import now
from gnomon.runtime.comm import Comm, Handlers, Listener, Security, connect, listen
from gnomon.runtime.comm.address import bracketed
from gnomon.runtime.deploy.process import ChildProcess
from gnomon.runtime.deploy.units import Unit
from gnomon.runtime.errors import ClusterError, CommClosedError, GnomonError
from gnomon.runtime.messages import Message

__all__ = ["DashboardDoor", "chosen_token", "parse_address"]

logger = logging.getLogger(__name__)

_GROUP = "gnomon.dashboard"
_TITLE = "the dashboard"

#: Visitors that may wait while the process starts.
_BACKLOG = 128

_QUICK_DEATH = 30.0  # seconds; a process that dies younger counts
_QUICK_DEATHS = 3  # in a row, after which there is no other
_PAUSE = 0.5  # seconds before a second start in a row; doubles with each

#: Characters of a token that was chosen by hand, at least.
_SHORTEST_TOKEN = 16


def parse_address(address: str | int | bool | None) -> tuple[str, int] | None:
    """Where to listen: host and port of ``host:port``, ``:port`` or a port; without a host this machine only.

    True means the setting ``dashboard.address``; None, False and empty text mean nowhere. Raises ValueError.
    """
    if address is True:
        address = config.get().dashboard.address
    if address is None or address is False or address == "":
        return None
    host, _, port = str(address).removeprefix("http://").rstrip("/").rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise ValueError(f"a dashboard's address is host:port or :port, not {address!r}")
    host = host.strip("[]")
    return ("127.0.0.1" if host in ("", "localhost") else host), int(port)


class DashboardDoor:
    """A listening socket, and the process behind it once somebody knocked; loop-bound after ``open``.

    Arguments:
        address: see ``parse_address``.
        security: of the cluster.
        name: of the cluster.
        hire: gives the unit to be started for a target and the descriptors that it inherits; for tests.

    Fields:
        link: for people, with the token; empty where there is no dashboard.
        starts: processes that were started.
    """

    def __init__(
        self,
        address: str | int | bool | None,
        security: Security,
        *,
        name: str = "",
        log_level: int = logging.WARNING,
        hire: Callable[[str, tuple[int, ...]], Unit] | None = None,
    ) -> None:
        self.link = ""
        self.starts = 0
        self._where = parse_address(address)
        self._security = security
        self._name = name
        self._hire = hire or (
            lambda target, given: ChildProcess(target, _TITLE, log_level=log_level, descriptors=given)
        )
        self._settings = config.get().dashboard
        self._token = chosen_token() if self._settings.token else ""
        self._target = ""
        self._scheduler = ""
        self._way_in: _WayIn | None = None
        self._socket: socket.socket | None = None
        self._unit: Unit | None = None
        self._life: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Of the process behind it, if there is one now."""
        return None if self._unit is None else self._unit.pid

    def open(self) -> str:
        """Listen; gives the link, empty where there is no dashboard. Visitors wait until ``serve``.

        A port that is taken is replaced by a free one. Raises ClusterError for an address that can't be had.
        """
        self._target = next((point.value for point in entry_points(group=_GROUP, name="dashboard")), "")
        if self._where is None or not self._target or sys.platform == "win32":
            return ""
        host, port = self._where
        try:
            self._socket = _listen(host, port)
        except OSError as exc:
            raise ClusterError(f"the dashboard can't listen at {host}, port {port}: {exc.strerror or exc}") from exc
        port = self._socket.getsockname()[1]
        shown = socket.gethostname() if host in ("0.0.0.0", "::") else bracketed(host)
        prefix = self._settings.prefix.strip("/")
        link = self._settings.link.format(host=shown, port=port, prefix=prefix) if self._settings.link else ""
        self.link = link or f"http://{shown}:{port}/" + (f"{prefix}/" if prefix else "")
        if self._token:
            self.link += ("&" if "?" in self.link else "?") + f"token={self._token}"
        return self.link

    def serve(self, scheduler_address: str) -> None:
        """From now on a knock starts the process."""
        self._scheduler = scheduler_address
        if self._socket is not None:
            self._listen_for_knocks()

    def _listen_for_knocks(self) -> None:
        assert self._socket is not None
        asyncio.get_running_loop().add_reader(self._socket, self._on_knock)

    def _on_knock(self) -> None:
        """Somebody waits at the socket: the process will see to it."""
        loop = asyncio.get_running_loop()
        if self._socket is not None:
            loop.remove_reader(self._socket)
        if self._life is None:
            self._life = loop.create_task(self._live(), name="gnomon dashboard")

    async def _live(self) -> None:
        """Run processes, one after the other, each from a knock on."""
        deaths = 0
        while True:
            began = now()
            how = await self._run_one()
            if self._closed:
                return
            deaths = deaths + 1 if now() - began < _QUICK_DEATH else 1
            if deaths > _QUICK_DEATHS:
                logger.error("%s; it died %d times in a row, there is no dashboard any more", how, deaths)
                self._shut()
                return
            logger.warning("%s; the next visitor starts another", how)
            if deaths > 1:
                await asyncio.sleep(_PAUSE * 2 ** (deaths - 2))
            await self._wait_for_knock()

    async def _wait_for_knock(self) -> None:
        loop, knocked = asyncio.get_running_loop(), asyncio.Event()
        assert self._socket is not None
        loop.add_reader(self._socket, knocked.set)
        try:
            await knocked.wait()
        finally:
            if self._socket is not None:
                loop.remove_reader(self._socket)

    async def _run_one(self) -> str:
        """Start a process and wait for its end; how it came about."""
        assert self._socket is not None
        given = (self._socket.fileno(),)
        unit = self._unit = self._hire(self._target, given)
        self.starts += 1
        options = {
            "descriptors": given,
            "security": self._security,
            "token": self._token,
            "prefix": self._settings.prefix,
            "hosts": tuple(self._settings.hosts.replace(",", " ").split()),
            "name": self._name,
        }
        try:
            await unit.prepare()
            await unit.start((await self._reachable(),), options)
        except (GnomonError, OSError) as exc:
            return str(exc)
        return await unit.wait_ended() or f"{_TITLE} has left"

    async def _reachable(self) -> str:
        """An address of the scheduler that another process can reach. Raises GnomonError, OSError."""
        if not self._scheduler.startswith("inproc://"):
            return self._scheduler
        if self._way_in is None:
            self._way_in = _WayIn(self._scheduler, self._security)
            await self._way_in.open()
        return self._way_in.address

    def _shut(self) -> None:
        """Listen no more."""
        self.link = ""
        sock, self._socket = self._socket, None
        if sock is not None:
            with contextlib.suppress(RuntimeError, OSError):
                asyncio.get_running_loop().remove_reader(sock)
            sock.close()

    async def close(self, reason: str) -> None:
        """End the process, if there is one, and listen no more. Safe to call twice."""
        self._closed = True
        unit, life = self._unit, self._life
        if unit is not None:
            await unit.close(reason)
        if life is not None:
            life.cancel()
            await asyncio.wait([life])
        if self._way_in is not None:
            await self._way_in.close()
        link = self.link
        self._shut()
        self.link = link  # what was printed stays what it was


class _WayIn:
    """A loopback address for clients of a scheduler inside this process; ``address`` is empty before ``open``."""

    def __init__(self, scheduler: str, security: Security) -> None:
        self.address = ""
        self._scheduler = scheduler
        self._security = security
        self._listener: Listener | None = None
        self._lines: dict[Comm, asyncio.Task[Comm]] = {}

    async def open(self) -> None:
        """Listen. Raises GnomonError, OSError."""
        where = "tls://127.0.0.1:0" if self._security.has_tls else "tcp://127.0.0.1:0"
        self._listener = await listen(
            where, self._on_comm, role="scheduler", security=self._security, accept=("client",)
        )
        self.address = self._listener.contact_address

    def _on_comm(self, outer: Comm) -> Handlers:
        """Give a client a line to the scheduler; what it says meanwhile is told in order once there is one."""
        line = self._lines[outer] = asyncio.create_task(
            connect(
                self._scheduler,
                role="client",
                info={"name": outer.peer.name},
                on_messages=lambda _, messages: _pass_on(messages, outer),
                on_close=lambda *_: outer.close(),
            )
        )
        return Handlers(
            lambda _, messages: line.add_done_callback(lambda _: self._tell(messages, outer)),
            lambda *_: self._hang_up(outer),
        )

    def _tell(self, messages: Sequence[Message], outer: Comm) -> None:
        """The line of a client is there, or can't be had."""
        line = self._lines.get(outer)
        if line is None:
            return
        if line.exception() is None:
            _pass_on(messages, line.result())
        else:
            outer.abort(f"no line to {self._scheduler}: {line.exception()}")

    def _hang_up(self, outer: Comm) -> None:
        line = self._lines.pop(outer)
        if not line.done():
            line.cancel()
        elif line.exception() is None:
            line.result().close()

    async def close(self) -> None:
        """Listen no more, and hang up."""
        if self._listener is not None:
            self._listener.close()
            outside = tuple(self._lines)
            for outer in outside:
                outer.close()
            await asyncio.gather(*(outer.wait_closed() for outer in outside), self._listener.wait_closed())


def _pass_on(messages: Sequence[Message], to: Comm) -> None:
    with contextlib.suppress(CommClosedError):  # its own on_close hangs up
        to.send(messages)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return _bound(family, host, port)
    except OSError as exc:
        if not port or exc.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        sock = _bound(family, host, 0)
        logger.warning(
            "Port %d is taken, perhaps by another cluster's dashboard; this one's is at port %d",
            port,
            sock.getsockname()[1],
        )
        return sock


def _bound(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    sock = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    sock.setblocking(False)
    return sock


def chosen_token() -> str:
    """The token of GNOMON_DASHBOARD_TOKEN, for who needs one that lasts, or a new one. Raises ValueError."""
    given = os.environ.get("GNOMON_DASHBOARD_TOKEN", "").strip()
    if not given:
        return secrets.token_urlsafe(32)
    if len(given) < _SHORTEST_TOKEN or not given.replace("-", "").replace("_", "").isalnum() or not given.isascii():
        raise ValueError(
            f"GNOMON_DASHBOARD_TOKEN needs {_SHORTEST_TOKEN} letters, digits, - or _ at least; "
            "make one by: openssl rand -hex 32"
        )
    return given
