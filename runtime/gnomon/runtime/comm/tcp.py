"""Connections over TCP, plain or under TLS: sockets, deadlines, retries, and who may come in.

What moves the bytes is a backend's business (``comm.backend``), what they mean ``stream``'s.

Contents: connect_tcp, and what it shares with the listener: attach_function, new_comm, prepare_socket, shake_hands,
tls_context, tls_error.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import random
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from gnomon.runtime import config
from gnomon.runtime.comm.address import Address
from gnomon.runtime.comm.base import Handlers
from gnomon.runtime.comm.handshake import Identity, Initiator, Responder, channel_binding, socket_view
from gnomon.runtime.comm.security import Security
from gnomon.runtime.comm.stream import ClosedInHandshakeError, StreamComm
from gnomon.runtime.errors import AuthenticationError, ConfigError, ConnectTimeoutError, HandshakeError

__all__ = ["attach_function", "connect_tcp", "new_comm", "prepare_socket", "shake_hands", "tls_context", "tls_error"]

_BACKENDS = {
    "asyncio": "gnomon.runtime.comm.asyncio_backend",
    "tornado": "gnomon.runtime.comm.tornado_backend",
}

#: How often a connection that was closed without a word during its handshake is tried again: it may have been dropped
#: from a full listener, or come just before the listener closed; but most likely it will never be welcome.
_UNEXPLAINED_RETRIES = 3
_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 1.0


def attach_function() -> Callable[..., Awaitable[None]]:
    """The chosen backend's ``attach``. Loaded when chosen, so that nobody pays for the other one's import."""
    attach: Callable[..., Awaitable[None]] = importlib.import_module(_BACKENDS[config.get().comm.backend]).attach
    return attach


def new_comm() -> StreamComm:
    """A comm on the running loop, without a transport yet."""
    settings = config.get().comm
    return StreamComm(asyncio.get_running_loop(), max_frame=settings.max_frame, close_timeout=settings.close_timeout)


def tls_context(security: Security, address: Address, role: str, *, server: bool) -> ssl.SSLContext | None:
    """The context an address asks for; None for plain TCP.

    Raises ConfigError if the address wants TLS and there are no certificates.
    """
    if address.scheme != "tls":
        return None
    arguments = security.get_listen_args(role) if server else security.get_connection_args(role)
    context: ssl.SSLContext | None = arguments["ssl_context"]
    if context is None:
        raise ConfigError(f"{address} needs certificates: give a Security with tls_ca_file and a tls_{role}_cert")
    return context


def prepare_socket(sock: socket.socket) -> None:
    """Small writes go at once, and a peer that vanished is noticed within ``comm.tcp_timeout``."""
    timeout = config.get().comm.tcp_timeout
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {
        "TCP_KEEPIDLE": max(1, int(timeout / 2)),
        "TCP_KEEPINTVL": max(1, int(timeout / 6)),
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": int(timeout * 1000),
    }
    for name, value in options.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def shake_hands(
    comm: StreamComm, kind: type[Initiator] | type[Responder], identity: Identity, scheme: str
) -> None:
    """The handshake of an attached comm. Raises HandshakeError."""
    transport = comm.transport
    assert transport is not None
    own, other = transport.get_extra_info("sockname"), transport.get_extra_info("peername")
    tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    view = socket_view(own, other)
    comm.local_address = f"{scheme}://{view[0]}"
    side = kind(
        identity,
        address=f"{scheme}://{view[1]}",
        view=view,
        binding=channel_binding(tls),
        certificate=tls.getpeercert() if tls is not None else None,
    )
    await comm.shake_hands(side)


async def connect_tcp(
    address: Address,
    *,
    role: str,
    expect: Collection[str],
    security: Security,
    info: Mapping[str, Any],
    timeout: float,
    handlers: Handlers,
) -> StreamComm:
    """See ``connect``."""
    context = tls_context(security, address, role, server=False)
    identity = security.identity(role, accept=expect, tls=context is not None, info=info)
    pause = _FIRST_PAUSE
    unexplained = 0
    last: OSError | None = None
    try:
        async with asyncio.timeout(timeout):
            while True:
                try:
                    comm = await _attempt(address, context, identity)
                    break
                except ClosedInHandshakeError as exc:
                    unexplained += 1
                    if unexplained > _UNEXPLAINED_RETRIES:
                        raise _explained(exc, address) from exc
                    last = exc
                except HandshakeError:
                    raise
                except OSError as exc:  # refused, unreachable, or a name that is not known yet
                    last = exc
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(pause * 2, _LONGEST_PAUSE)
    except TimeoutError as exc:
        why = f": {_reason(last)}" if last is not None else ""
        raise ConnectTimeoutError(f"nobody accepted a connection at {address} within {timeout:g} s{why}") from exc
    asyncio.get_running_loop().call_soon(comm.start, handlers)
    return comm


def _reason(exc: OSError) -> str:
    """The system's word for it; asyncio puts one of its own in place of that."""
    return os.strerror(exc.errno) if exc.errno is not None and exc.errno > 0 else str(exc)


async def _attempt(address: Address, context: ssl.SSLContext | None, identity: Identity) -> StreamComm:
    """One connection, and its handshake. Raises HandshakeError, or OSError if there is no connection."""
    patience = config.get().comm.handshake_timeout
    sock = await _open_socket(address)
    comm = new_comm()
    try:
        async with asyncio.timeout(patience):
            await attach_function()(sock, comm, tls=context, server_hostname=address.host)
            await shake_hands(comm, Initiator, identity, address.scheme)
    except BaseException as exc:
        if comm.transport is not None:
            comm.abort()
        sock.close()
        if isinstance(exc, TimeoutError):
            raise HandshakeError(
                f"{address} took the connection, but did not complete the handshake within {patience:g} s; "
                "is a gnomon scheduler or worker listening there?"
            ) from exc
        if isinstance(exc, ssl.SSLError):
            raise tls_error(str(address), exc) from exc
        if isinstance(exc, OSError) and not isinstance(exc, HandshakeError):
            raise ClosedInHandshakeError(str(address), exc) from exc
        raise
    return comm


async def _open_socket(address: Address) -> socket.socket:
    """A connected socket to the first of the host's addresses that takes it. Raises OSError."""
    loop = asyncio.get_running_loop()
    entries = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    error: OSError | None = None
    for family, kind, protocol, _, name in entries:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            await loop.sock_connect(sock, name)
            if sock.getsockname() == sock.getpeername():
                # Happens on one machine when nobody listens at a port that the system hands out to clients as well.
                raise ConnectionRefusedError(f"nobody listens at port {address.port}")
            prepare_socket(sock)
        except BaseException as exc:
            sock.close()
            if not isinstance(exc, OSError):
                raise
            error = exc
        else:
            return sock
    raise error or OSError(f"{address.host} has no address")


def tls_error(address: str, exc: ssl.SSLError) -> HandshakeError:
    """The clear error for one of OpenSSL's. Its texts name the cause in one word or two, if you know them."""
    reason = exc.reason or str(exc)
    if isinstance(exc, ssl.SSLCertVerificationError):
        return AuthenticationError(f"the certificate of {address} is refused: {exc.verify_message}")
    if "ALERT" in reason:
        return AuthenticationError(f"{address} refused this side's certificate or TLS version ({reason})")
    if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNEXPECTED_EOF_WHILE_READING"):
        return HandshakeError(f"{address} does not speak TLS, or gave up ({reason}); is it a tcp:// address?")
    return AuthenticationError(f"TLS with {address} failed: {reason}")


def _explained(exc: ClosedInHandshakeError, address: Address) -> HandshakeError:
    """What may be the cause of a connection that is closed without a word every time."""
    if isinstance(exc.__cause__, ssl.SSLError):
        return tls_error(str(address), exc.__cause__)
    if address.scheme == "tls":
        return AuthenticationError(
            f"{exc}; it refused this side's certificate, or it does not speak TLS (is it a tcp:// address?)"
        )
    return HandshakeError(f"{exc}; does it expect TLS (a tls:// address), or is it no gnomon process?")
