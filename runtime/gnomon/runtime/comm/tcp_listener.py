"""Accepting connections over TCP and TLS: few half-open ones at a time, each with a deadline, complaints in moderation.

Contents: TcpListener, listen_tcp.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
import sys
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from gnomon.runtime import config
from gnomon.runtime.comm.address import Address, contact_host, is_loopback, is_wildcard
from gnomon.runtime.comm.base import Listener, OnComm
from gnomon.runtime.comm.handshake import Identity, Responder
from gnomon.runtime.comm.security import Security
from gnomon.runtime.comm.stream import StreamComm
from gnomon.runtime.comm.tcp import attach_function, new_comm, prepare_socket, shake_hands, tls_context, tls_error
from gnomon.runtime.errors import HandshakeError, ListenRefusedError, PeerError

__all__ = ["TcpListener", "listen_tcp"]

logger = logging.getLogger("gnomon.comm")

_OUT_OF_SOMETHING = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_ACCEPT_PAUSE = 0.2


async def listen_tcp(
    address: Address,
    on_comm: OnComm,
    *,
    role: str,
    accept: Collection[str],
    security: Security,
    info: Mapping[str, Any],
) -> TcpListener:
    """See ``listen``."""
    context = tls_context(security, address, role, server=True)
    loop = asyncio.get_running_loop()
    host = address.host or "0.0.0.0"
    entries = await loop.getaddrinfo(host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, name = min(entries, key=lambda entry: entry[0] != socket.AF_INET)
    if context is None and not is_loopback(str(name[0])) and not security.has_explicit_secret:
        raise ListenRefusedError(_ADVICE.format(address=address))
    identity = security.identity(role, accept=accept, tls=context is not None, info=info)
    sock = _listening_socket(family, kind, protocol, name)
    port = sock.getsockname()[1]
    shown = address._replace(host=address.host or host, port=port)
    contact = shown._replace(host=contact_host(family)) if is_wildcard(shown.host) else shown
    return TcpListener(sock, str(shown), str(contact), on_comm, identity, context)


_ADVICE = (
    "refused to listen at {address}: other machines could connect, and neither TLS nor a secret protects the cluster. "
    "Set the same secret on every machine (export GNOMON_SECRET=$(openssl rand -hex 32), the file "
    "security.secret_file, or Security(secret=...)), or use tls:// with certificates; or listen at 127.0.0.1 for this "
    "machine alone"
)


def _listening_socket(family: int, kind: int, protocol: int, name: Any) -> socket.socket:
    sock = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":  # where it would let others take the port
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.setblocking(False)
        sock.bind(name)
        sock.listen(config.get().comm.listen_backlog)
    except BaseException:
        sock.close()
        raise
    return sock


class TcpListener(Listener):
    """See ``Listener``. Runs one task that accepts, and one per connection until its handshake is over."""

    def __init__(
        self,
        sock: socket.socket,
        address: str,
        contact_address: str,
        on_comm: OnComm,
        identity: Identity,
        context: ssl.SSLContext | None,
    ) -> None:
        self.address = address
        self.contact_address = contact_address
        self._sock = sock
        self._on_comm = on_comm
        self._identity = identity
        self._context = context
        self._scheme = "tls" if context is not None else "tcp"
        self._loop = asyncio.get_running_loop()
        self._attach = attach_function()
        self._patience = config.get().comm.handshake_timeout
        self._room = config.get().comm.half_open
        self._half_open: dict[asyncio.Task[None], tuple[socket.socket, str]] = {}  # with the host it is from
        self._complaints = _Complaints(address, self._loop)
        self._accepting = self._loop.create_task(self._accept(), name=f"accept at {address}")
        # In a callback, for a task that is cancelled before its first step never gets to a finally.
        self._accepting.add_done_callback(lambda _: self._sock.close())

    async def _accept(self) -> None:
        while True:
            try:
                sock, name = await self._loop.sock_accept(self._sock)
            except OSError as exc:
                if exc.errno in _OUT_OF_SOMETHING:
                    self._complaints.add(f"could not accept a connection: {exc.strerror}")
                    self._drop_one()
                    await asyncio.sleep(_ACCEPT_PAUSE)
                continue  # others mean that the peer has gone again
            if len(self._half_open) >= self._room:
                self._drop_one()
            task = self._loop.create_task(self._admit(sock), name=f"handshake at {self.address}")
            self._half_open[task] = (sock, str(name[0]))
            task.add_done_callback(self._admitted)
            await asyncio.sleep(0)  # accepting does not wait while connections are queued, and others want their turn

    def _drop_one(self) -> None:
        """Make room: the oldest connection of the host that has the most. Who floods us crowds out itself first."""
        waiting = [(task, host) for task, (_, host) in self._half_open.items() if not task.cancelling()]
        if waiting:
            counts = Counter(host for _, host in waiting)
            most = max(counts.values())
            next(task for task, host in waiting if counts[host] == most).cancel()
            self._complaints.add("dropped the oldest of too many connections whose handshake was not over")

    def _admitted(self, task: asyncio.Task[None]) -> None:
        sock, _ = self._half_open.pop(task)
        if task.cancelled():
            sock.close()
        elif task.exception() is not None:
            context = {"message": f"the callback for comms at {self.address} failed", "exception": task.exception()}
            self._loop.call_exception_handler(context)

    async def _admit(self, sock: socket.socket) -> None:
        """One connection's TLS and handshake; then it is the owner's."""
        comm = new_comm()
        who = _name_of(sock)
        try:
            prepare_socket(sock)
            async with asyncio.timeout(self._patience):
                await self._attach(sock, comm, tls=self._context, server_hostname=None)
                await shake_hands(comm, Responder, self._identity, self._scheme)
            if comm.closed:
                return  # it has gone again
            handlers = self._on_comm(comm)
        except TimeoutError:
            self._drop(sock, comm, f"{who} did not complete the handshake within {self._patience:g} s")
        except ssl.SSLError as exc:
            self._drop(sock, comm, str(tls_error(who, exc)))
        except HandshakeError as exc:
            self._complaints.add(str(exc))
            if not comm.closed:
                comm.abort(str(exc))  # the owner refused it; else it is closing after a farewell
        except (PeerError, OSError) as exc:
            self._drop(sock, comm, f"{who}: {exc}")
        except BaseException:
            self._drop(sock, comm, "")
            raise
        else:
            comm.start(handlers)

    def _drop(self, sock: socket.socket, comm: StreamComm, complaint: str) -> None:
        if complaint:
            self._complaints.add(complaint)
        if comm.transport is not None:
            comm.abort(complaint)
        sock.close()

    def close(self) -> None:
        """See ``Listener.close``."""
        self._accepting.cancel()
        for task in list(self._half_open):
            task.cancel()
        self._complaints.flush()

    async def wait_closed(self) -> None:
        """See ``Listener.wait_closed``."""
        await asyncio.wait([self._accepting, *self._half_open])


def _name_of(sock: socket.socket) -> str:
    try:
        name = sock.getpeername()
    except OSError:
        return "a peer that has gone again"
    return f"[{name[0]}]:{name[1]}" if ":" in name[0] else f"{name[0]}:{name[1]}"


class _Complaints:
    """Log lines about strangers, at most one a second: whoever can connect must not be able to fill a disk."""

    _INTERVAL = 1.0

    def __init__(self, address: str, loop: asyncio.AbstractEventLoop) -> None:
        self._address = address
        self._loop = loop
        self._next = 0.0
        self._kept = 0

    def add(self, text: str) -> None:
        now = self._loop.time()
        if now < self._next:
            self._kept += 1
            return
        self.flush()
        self._next = now + self._INTERVAL
        logger.warning("%s: %s", self._address, text)

    def flush(self) -> None:
        """Say how many were kept back."""
        if self._kept:
            logger.warning("%s: %d more connections were refused or dropped", self._address, self._kept)
            self._kept = 0
