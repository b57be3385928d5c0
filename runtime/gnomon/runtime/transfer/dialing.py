"""Connecting to a data server and being connected to: sockets, TLS, handshake, and the way to shared memory.

A peer always comes by TCP (under TLS where the address says so) and shakes hands as on the control plane. If it is on
our machine, the server then tells it the path of a unix socket and a **token**: both sides shake hands there once more,
with the token mixed into the secret, and pass descriptors from then on. The socket lies in a private directory, and
either side checks that the other's process is the same user's. A peer that can't get there stays with TCP.

Contents: Doors, welcome, dial, dial_unix, Shortcut.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
import socket
import ssl
import struct
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gnomon.runtime.comm.address import Address, contact_host, is_loopback, is_wildcard, parse_address
from gnomon.runtime.comm.certificates import check_role
from gnomon.runtime.comm.handshake import Identity, handshake_blocking
from gnomon.runtime.comm.security import Security
from gnomon.runtime.errors import AuthenticationError, ConfigError, HandshakeError, ListenRefusedError
from gnomon.runtime.transfer.link import Link
from gnomon.runtime.transfer.records import TransferError

__all__ = ["Doors", "Shortcut", "dial", "dial_unix", "sweep", "welcome"]

_SERVER_ROLE = "worker"
_CLIENT_ROLES = ("worker", "peer", "client")

#: Bytes that the path of a unix socket may have, everywhere.
_PATH_LIMIT = 100
_FOLDER_PREFIX = "gnomon-data-"

#: Seconds a socket's folder is left alone, however dead it looks: its owner may be just about to listen.
_SWEEP_AGE = 60.0


class Shortcut(NamedTuple):
    """The way to a data server of this machine: its unix socket, and what proves that we were told of it.

    ``tls`` says whether it was told under TLS, which decides on the secret used.
    """

    path: str
    token: bytes
    tls: bool


# ---- the server's side -----------------------------------------------------------------------------------------------


class Doors:
    """The listening sockets of one data server.

    Fields:
        address, contact_address: as those of the server.
        listeners: all of them; ``unix`` is the one that shares memory, None if there is none.

    Raises ListenRefusedError, ConfigError, OSError.
    """

    def __init__(
        self, address: str, security: Security, host_id: str, *, shared_memory: bool, directory: str | None = None
    ) -> None:
        self.security = security
        self.host_id = host_id
        self.wanted = parse_address(address)
        self.tls = self.wanted.scheme == "tls"
        self.context = _tls_context(security, self.wanted, server=True) if self.tls else None
        self.unix: socket.socket | None = None
        self.path = ""
        self.token = secrets.token_bytes(16)
        tcp = _listen_tcp(self.wanted, security)
        self.listeners = [tcp]
        host, port = tcp.getsockname()[:2]
        self.address = str(Address(self.wanted.scheme, host, port))
        contact = self.wanted.host
        if is_wildcard(contact):
            contact = contact_host(tcp.family)
        self.contact_address = str(Address(self.wanted.scheme, contact, port))
        if shared_memory and hasattr(socket, "AF_UNIX") and hasattr(socket, "send_fds"):
            self._listen_unix([*([directory] if directory else []), tempfile.gettempdir(), "/tmp"])

    def _listen_unix(self, parents: Sequence[str]) -> None:
        """Listen in a private directory below the first of ``parents`` that can have one.

        Where none can (too long a path, no room), bytes go by TCP.
        """
        for parent in dict.fromkeys(parents):
            sweep(Path(parent))
            try:
                folder = tempfile.mkdtemp(prefix=_FOLDER_PREFIX, dir=parent)  # mode 0700
            except OSError:
                continue
            path = os.path.join(folder, "s")
            unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                if len(os.fsencode(path)) > _PATH_LIMIT:
                    raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
                unix.bind(path)
                unix.listen(128)
            except OSError:
                unix.close()
                shutil.rmtree(folder, ignore_errors=True)
                continue
            unix.setblocking(False)
            self.unix, self.path = unix, path
            self.listeners.append(unix)
            return

    def wrapped(self, sock: socket.socket) -> socket.socket:
        """An accepted socket as it will be used: under TLS, if we have it, whose handshake is still to come.

        Raises OSError if the peer is gone already.
        """
        if self.context is None or sock.family == getattr(socket, "AF_UNIX", None):
            return sock
        return self.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)

    def close(self) -> None:
        """Close the sockets, remove the directory."""
        for listener in self.listeners:
            listener.close()
        if self.path:
            shutil.rmtree(os.path.dirname(self.path), ignore_errors=True)


def _listen_tcp(wanted: Address, security: Security) -> socket.socket:
    """A TCP socket that listens, if it may."""
    host = "0.0.0.0" if wanted.host == "" else wanted.host
    family, _, _, _, where = socket.getaddrinfo(host, wanted.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    ip = str(where[0])
    if wanted.scheme != "tls":
        if security.require_encryption:
            raise ListenRefusedError(f"encryption is required: listen at tls://, not at {wanted}")
        if not is_loopback(ip) and not security.has_explicit_secret:
            raise ListenRefusedError(
                f"{wanted} can be reached from other machines, and neither TLS nor a secret set on purpose protects "
                "it: use tls:// with certificates, set GNOMON_SECRET on all machines, or listen at 127.0.0.1"
            )
    listener = socket.create_server(where[:2], family=family, backlog=1024)
    listener.setblocking(False)
    return listener


def welcome(
    sock: socket.socket, doors: Doors, *, by_unix: bool, handshake_timeout: float, stall_timeout: float
) -> Link:
    """Make an accepted (and wrapped) socket a link, once its peer has proved who it is. The caller closes it on errors.

    Raises HandshakeError and TransferError.
    """
    deadline = time.monotonic() + handshake_timeout
    sock.settimeout(handshake_timeout)
    who = f"a peer of {doors.address}"
    identity = doors.security.identity(_SERVER_ROLE, accept=_CLIENT_ROLES, tls=doors.tls)
    transport = "tls" if doors.tls else "tcp"
    if by_unix:
        transport = "shared-memory"
        _check_user(sock, who)
        identity = _with_token(identity, doors.token)
    else:
        _no_delay(sock)
        who = f"the peer at {_peer_name(sock)}"
        if isinstance(sock, ssl.SSLSocket):
            _tls_handshake(sock, who)
    peer = handshake_blocking(
        sock,
        identity,
        initiator=False,
        address=who,
        timeout=max(deadline - time.monotonic(), 0.001),
        check=lambda peer: check_role(_certificate(sock), peer.role, who),
    )
    link = Link(sock, address=who, transport=transport, stall_timeout=stall_timeout)
    if not by_unix:
        same_machine = bool(doors.path) and peer.info.get("host_id") == doors.host_id
        link.send((doors.path, doors.token) if same_machine else ("", b""))
    return link


# ---- the client's side -----------------------------------------------------------------------------------------------


def dial(
    address: str,
    *,
    security: Security,
    role: str,
    host_id: str,
    connect_timeout: float,
    stall_timeout: float,
) -> tuple[Link, Shortcut | None]:
    """Connect to a data server by TCP or TLS; the link, and the shortcut if there is one and ``host_id`` is not empty.

    Raises TransferError if it can't be reached in time, HandshakeError if it is not whom we may talk to.
    """
    deadline = time.monotonic() + connect_timeout
    to = parse_address(address)
    if to.scheme != "tls" and security.require_encryption:
        raise TransferError(f"encryption is required, but {address} has none")
    context = _tls_context(security, to, server=False, role=role) if to.scheme == "tls" else None
    try:
        sock = socket.create_connection((to.host, to.port), timeout=connect_timeout)
    except OSError as exc:
        raise TransferError(f"can't reach {address}: {exc}") from exc
    try:
        sock.settimeout(max(deadline - time.monotonic(), 0.001))
        _no_delay(sock)
        if context is not None:
            sock = context.wrap_socket(sock, server_hostname=to.host, do_handshake_on_connect=False)
            _tls_handshake(sock, address)
        identity = security.identity(
            role, accept=[_SERVER_ROLE], tls=context is not None, info={"host_id": host_id} if host_id else None
        )
        _shake_hands(sock, identity, address, deadline)
        transport = "tls" if context is not None else "tcp"
        link = Link(sock, address=address, transport=transport, stall_timeout=stall_timeout)
        header, _ = link.receive()
        if len(header) != 2 or type(header[0]) is not str or type(header[1]) is not bytes:
            raise TransferError(f"{address} sent a malformed welcome")
    except BaseException:
        sock.close()
        raise
    shortcut = Shortcut(header[0], header[1], context is not None) if header[0] and host_id else None
    return link, shortcut


def dial_unix(
    shortcut: Shortcut, address: str, *, security: Security, role: str, connect_timeout: float, stall_timeout: float
) -> Link | None:
    """Connect by the shortcut to the data server at ``address``; None if it leads nowhere.

    Raises HandshakeError if somebody else answers there.
    """
    deadline = time.monotonic() + connect_timeout
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(connect_timeout)
        try:
            sock.connect(shortcut.path)
        except OSError:
            sock.close()
            return None
        _check_user(sock, address)
        identity = security.identity(role, accept=[_SERVER_ROLE], tls=shortcut.tls)
        _shake_hands(sock, _with_token(identity, shortcut.token), address, deadline)
        return Link(sock, address=address, transport="shared-memory", stall_timeout=stall_timeout)
    except BaseException:
        sock.close()
        raise


# ---- both ------------------------------------------------------------------------------------------------------------


def _shake_hands(sock: socket.socket, identity: Identity, address: str, deadline: float) -> None:
    handshake_blocking(
        sock,
        identity,
        initiator=True,
        address=address,
        timeout=max(deadline - time.monotonic(), 0.001),
        check=lambda peer: check_role(_certificate(sock), peer.role, address),
    )


def _with_token(identity: Identity, token: bytes) -> Identity:
    return identity._replace(secret=hashlib.sha256(token + identity.secret).digest())


def _tls_context(security: Security, address: Address, *, server: bool, role: str = _SERVER_ROLE) -> ssl.SSLContext:
    arguments = security.get_listen_args(role) if server else security.get_connection_args(role)
    context: ssl.SSLContext | None = arguments["ssl_context"]
    if context is None:
        raise ConfigError(f"{address} needs TLS certificates: give a Security with tls_ca_file and the others")
    return context


def _tls_handshake(sock: ssl.SSLSocket, who: str) -> None:
    """Agree on TLS within the socket's timeout. Raises HandshakeError."""
    try:
        sock.do_handshake()
    except ssl.SSLError as exc:
        raise AuthenticationError(f"TLS with {who} failed: {exc.reason or exc}") from exc
    except (OSError, ValueError) as exc:
        raise HandshakeError(f"TLS with {who} failed: {exc}") from exc


def _certificate(sock: socket.socket) -> Mapping[str, Any] | None:
    return sock.getpeercert() if isinstance(sock, ssl.SSLSocket) else None


def _check_user(sock: socket.socket, who: str) -> None:
    """Refuse a process of another user at the other end of a unix socket. Raises AuthenticationError."""
    if not hasattr(socket, "SO_PEERCRED"):
        return  # the directory's mode and the handshake are what there is
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    uid = struct.unpack("3i", credentials)[1]
    if uid != os.geteuid():
        raise AuthenticationError(f"{who} is a process of another user (uid {uid})")


def _no_delay(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _peer_name(sock: socket.socket) -> str:
    try:
        host, port = sock.getpeername()[:2]
    except OSError:
        return "(gone)"
    return f"{host}:{port}"


def sweep(parent: Path, *, age: float = _SWEEP_AGE) -> None:
    """Remove what killed processes of ours left: folders of data servers at whose socket nobody listens.

    Arguments:
        age: seconds that a folder must have been there.
    """
    if not hasattr(os, "geteuid"):
        return
    with contextlib.suppress(OSError):
        for folder in parent.glob(f"{_FOLDER_PREFIX}*"):
            with contextlib.suppress(OSError):
                status = folder.lstat()
                if status.st_uid != os.geteuid() or time.time() - status.st_mtime < age:
                    continue
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                    sock.settimeout(1.0)
                    try:
                        sock.connect(str(folder / "s"))
                    except (ConnectionRefusedError, FileNotFoundError):
                        shutil.rmtree(folder, ignore_errors=True)
