"""Who may see the dashboard: every request is judged here, before any page, chart or websocket is reached.

The token comes once, in the link; then a cookie made from it takes its place. Hosts and origins must be ones that this
dashboard is known by, exactly, so that a page of somebody else's can reach it neither by name nor across sites. Only
reading is possible: whatever is not GET or HEAD is refused.

Contents: Access, Asked, Verdict, local_hosts.
"""

from __future__ import annotations

import hashlib
import hmac
import socket
from collections.abc import Iterable, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import NamedTuple
from urllib.parse import urlsplit

import psutil

__all__ = ["Access", "Asked", "Verdict", "local_hosts"]

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Asked(NamedTuple):
    """The parts of a request that access depends on. ``token``: of the query; None: there is none in it."""

    method: str
    path: str
    host: str
    origin: str | None = None
    cookie: str = ""
    authorization: str = ""
    token: str | None = None
    websocket: bool = False


class Verdict(NamedTuple):
    """``status`` 0 lets the request in; else it is the HTTP status, and ``text`` says why.

    ``admit``: the token was in the link, so set the cookie and send the browser to the same place without it.
    """

    status: int
    text: str = ""
    admit: bool = False


_IN = Verdict(0)


class Access:
    """What a request must bring.

    Args:
        token: in the link once, or as a bearer; empty: none is asked for.
        hosts: names (with ports, as browsers send them) that the dashboard is known by.
        port: tells the cookies of two dashboards on one host apart.
        open_paths: what is told without a token.
    """

    def __init__(self, token: str, hosts: Iterable[str], *, port: int, open_paths: Iterable[str] = ()) -> None:
        self.hosts = frozenset(host.lower() for host in hosts)
        self.cookie_name = f"gnomon-dashboard-{port}"
        self._token = token
        self._open = frozenset(open_paths)

    @property
    def cookie_value(self) -> str:
        """What the cookie holds; the token can't be told from it."""
        return hmac.new(self._token.encode(), b"gnomon dashboard cookie", hashlib.sha256).hexdigest()

    def judge(self, asked: Asked) -> Verdict:
        """Whether a request may go on."""
        if asked.method not in ("GET", "HEAD"):
            return Verdict(405, "The dashboard only shows; nothing can be changed through it.")
        if asked.host.lower() not in self.hosts:
            return Verdict(
                403,
                f"This dashboard is not known as {asked.host!r}. Behind a proxy, name its public host in the setting "
                "dashboard.hosts.",
            )
        if asked.origin is None:
            if asked.websocket:
                return Verdict(403, "A websocket must say which page opens it.")
        elif not self._is_ours(asked.origin):
            return Verdict(403, f"Pages of {asked.origin!r} may not read this dashboard.")
        if not self._token or asked.path in self._open or self._has_cookie(asked.cookie):
            return _IN
        if _bearer(asked.authorization) is not None and _same(_bearer(asked.authorization) or "", self._token):
            return _IN
        if asked.token is not None and _same(asked.token, self._token):
            return Verdict(0, admit=True)
        return Verdict(
            401,
            "This dashboard needs the token of its link: open the link that the cluster, client or command printed.",
        )

    def _is_ours(self, origin: str) -> bool:
        parts = urlsplit(origin)
        plain = f"{parts.scheme}://{parts.netloc}" == origin
        return plain and parts.scheme in ("http", "https") and parts.netloc.lower() in self.hosts

    def _has_cookie(self, header: str) -> bool:
        try:
            cookie = SimpleCookie(header).get(self.cookie_name)
        except CookieError:
            return False
        return cookie is not None and _same(cookie.value, self.cookie_value)


def _bearer(authorization: str) -> str | None:
    kind, _, value = authorization.partition(" ")
    return value.strip() if kind.lower() == "bearer" else None


def _same(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), right.encode())


def local_hosts(address: str, port: int, extra: Iterable[str] = ()) -> list[str]:
    """The names that browsers may use for a dashboard that listens at ``address``, and further ones."""
    names: Iterable[str] = _LOOPBACK
    if address in ("0.0.0.0", "::", ""):
        names = {*_LOOPBACK, socket.gethostname(), socket.getfqdn(), *_own_addresses(psutil.net_if_addrs())}
    elif address not in ("127.0.0.1", "localhost", "::1"):
        names = (f"[{address}]" if ":" in address else address,)
    hosts = [f"{name}:{port}" for name in names]
    if port == 80:
        hosts += names
    return hosts + [name.strip() for name in extra if name.strip()]


def _own_addresses(interfaces: Mapping[str, Iterable[object]]) -> set[str]:
    found = set()
    for addresses in interfaces.values():
        for each in addresses:
            address = str(getattr(each, "address", "")).partition("%")[0]
            family = getattr(each, "family", None)
            if family == socket.AF_INET:
                found.add(address)
            elif family == socket.AF_INET6:
                found.add(f"[{address}]")
    return found
