"""The entry points: connect to an address, listen at one, whatever the transport.

Contents: connect, listen.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from gnomon.runtime import config
from gnomon.runtime.comm.address import Address, parse_address
from gnomon.runtime.comm.base import Comm, Handlers, Listener, OnClose, OnComm, OnMessages
from gnomon.runtime.comm.inproc import connect_inproc, listen_inproc
from gnomon.runtime.comm.security import Security
from gnomon.runtime.comm.tcp import connect_tcp
from gnomon.runtime.comm.tcp_listener import listen_tcp
from gnomon.runtime.errors import ConfigError, ListenRefusedError

__all__ = ["connect", "listen"]


async def connect(
    address: str,
    *,
    role: str,
    on_messages: OnMessages,
    on_close: OnClose,
    security: Security | None = None,
    info: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    expect: Collection[str] = ("scheduler",),
) -> Comm:
    """Connect, authenticate both ways, and return the comm. No callback comes before the caller's next ``await``.

    While nobody listens, it is tried again, with growing pauses, until the deadline.

    Arguments:
        address: ``tcp://host:port``, ``tls://host:port`` or ``inproc://name``.
        role: ``client``, ``worker``, ``scheduler`` or ``peer``.
        security: None: as the settings ``security.*`` and the environment say.
        info: what to tell of oneself (``name`` is shown in the peer's logs); about 600 bytes at most.
        timeout: seconds in total; None: ``comm.connect_timeout``.
        expect: roles that may answer there.

    Raises ConnectTimeoutError, HandshakeError or a subclass (VersionMismatchError, AuthenticationError), ConfigError,
    and ValueError for a malformed address.
    """
    security = security if security is not None else Security()
    timeout = config.get().comm.connect_timeout if timeout is None else timeout
    parsed = parse_address(address)
    handlers = Handlers(on_messages, on_close)
    if parsed.scheme == "inproc":
        return await connect_inproc(
            parsed, role=role, expect=expect, info=info or {}, timeout=timeout, handlers=handlers
        )
    if not parsed.host or not parsed.port:
        raise ValueError(f"{address!r} needs a host and a port, such as {parsed.scheme}://127.0.0.1:8786")
    if _is_too_open(parsed, security):
        raise ConfigError(f"{parsed} is not encrypted, but require_encryption is set: use a tls:// address")
    return await connect_tcp(
        parsed, role=role, expect=expect, security=security, info=info or {}, timeout=timeout, handlers=handlers
    )


async def listen(
    address: str,
    on_comm: OnComm,
    *,
    role: str,
    security: Security | None = None,
    info: Mapping[str, Any] | None = None,
    accept: Collection[str] = ("client", "worker"),
) -> Listener:
    """Listen at an address; ``on_comm`` is called with each comm that has authenticated, and gives its handlers.

    Arguments:
        address: without a port (or with 0), any free one; without a host, every interface.
        role: which this side acts in.
        security, info: as for ``connect``.
        accept: roles that may connect.

    Raises ListenRefusedError where others than this machine's could connect and neither TLS nor an explicit secret
    protects; OSError if the address is in use; ConfigError; ValueError for a malformed address.
    """
    security = security if security is not None else Security()
    parsed = parse_address(address)
    if parsed.scheme == "inproc":
        return await listen_inproc(parsed, on_comm, role=role, accept=accept, info=info or {})
    if _is_too_open(parsed, security):
        raise ListenRefusedError(
            f"{parsed} is not encrypted, but require_encryption is set: listen at a tls:// address"
        )
    return await listen_tcp(parsed, on_comm, role=role, accept=accept, security=security, info=info or {})


def _is_too_open(address: Address, security: Security) -> bool:
    return security.require_encryption and address.scheme not in ("tls", "inproc")
