"""Who are you, and do you know the secret: the first four frames of every connection, control and bulk alike.

Sans-IO: ``Initiator`` and ``Responder`` take a frame and give the next one to send; who owns the socket moves them.
``handshake_blocking`` does that for a blocking socket.

    initiator                                   responder
    hello: versions, role, nonce, view  ---->
                                        <----   hello: versions, role, nonce, view
    proof                               ---->
                                        <----   proof  (or, at any step: refused, why)

A proof is HMAC-SHA-256 under the cluster's secret over a label of its direction, the channel binding and both hellos
byte for byte: so over roles, versions, both 32-byte nonces and everything said of oneself (such as a cluster's id). The
initiator proves first, for it chose whom to trust; a port scanner gets no proof to guess the secret from. The channel
binding is that of TLS where there is TLS. Without, each hello tells the **view**, the two addresses as that side sees
them; a difference on a loopback connection means that someone relays, who could take over after the proofs. The
connection itself is authenticated, not sealed: only TLS keeps others from reading it.

The first four fields of a hello keep their places in every version, so that any two versions can tell why they part.

Contents: PROTOCOL_VERSION, Identity, Initiator, Responder, handshake_blocking, channel_binding, socket_view,
foreign_error.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgpack

from gnomon.runtime.comm.base import Peer
from gnomon.runtime.comm.certificates import check_role
from gnomon.runtime.errors import AuthenticationError, HandshakeError, VersionMismatchError

__all__ = [
    "HELLO_LIMIT",
    "PROTOCOL_VERSION",
    "Identity",
    "Initiator",
    "Responder",
    "View",
    "channel_binding",
    "foreign_error",
    "handshake_blocking",
    "socket_view",
]

#: Number of the wire protocol: handshake, frames and messages. Raised with every incompatible change of any of them.
PROTOCOL_VERSION = 1

#: Bytes of one frame of the handshake, its length prefix not counted.
HELLO_LIMIT = 1024

_MAGIC = "gnomon"
_NONCE = 32
_PREFIX = struct.Struct("!I")
_REASON_LIMIT = 400
_WORD_LIMIT = 64

#: The two ends of a connection as one side sees them: own address, then the other's, as ``host:port``; empty: unknown.
View = tuple[str, str]


class Identity(NamedTuple):
    """What a side brings into its handshakes.

    Fields:
        role: ``scheduler``, ``worker``, ``client`` or ``peer``.
        secret: shared by the cluster; empty where TLS certificates alone are the proof.
        secret_origin: where the secret is from (``explicit``, ``user``, ``certificates``), to explain failures.
        accept: roles that the other side may have.
        info: what is said of oneself; ``name`` is shown in logs. Must fit in the hello with the rest (1 KiB).
        allow_relay: initiator only: go on though the two views of a loopback connection differ.
    """

    role: str
    secret: bytes
    secret_origin: str
    accept: frozenset[str]
    info: Mapping[str, Any] = {}
    allow_relay: bool = False

    def __repr__(self) -> str:
        return f"Identity(role={self.role!r}, secret=<{self.secret_origin}>, accept={sorted(self.accept)})"


class _Hello(NamedTuple):
    """A hello as sent; the fields up to ``python`` keep their places in every version."""

    magic: str
    kind: str
    protocol: int
    python: tuple[int, int]
    role: str
    accept: tuple[str, ...]
    nonce: bytes
    secret_origin: str
    view: tuple[str, str]
    info: dict[str, Any]


class _Side:
    """What both sides of a handshake share. One object serves one connection.

    Arguments:
        address: of the other end, for messages.
        view: see ``socket_view``. binding: see ``channel_binding``.
        certificate: the other end's, as by ``getpeercert()``; a role that it names is held against the role claimed.

    Fields:
        peer: the other side, once both proofs were right; None until then.
        farewell: after an error was raised, what to send before closing (may be empty): it tells the other side why.
    """

    _proof_label = b""
    _other_label = b""

    def __init__(
        self,
        identity: Identity,
        *,
        address: str,
        view: View = ("", ""),
        binding: bytes = b"",
        certificate: Mapping[str, Any] | None = None,
    ) -> None:
        self.farewell = b""
        self.peer: Peer | None = None
        self.address = address
        self._identity = identity
        self._certificate = certificate
        self._view = view
        self._binding = binding
        hello = _Hello(
            magic=_MAGIC,
            kind="hello",
            protocol=PROTOCOL_VERSION,
            python=sys.version_info[:2],
            role=identity.role,
            accept=tuple(sorted(identity.accept)),
            nonce=secrets.token_bytes(_NONCE),
            secret_origin=identity.secret_origin,
            view=view,
            info=dict(identity.info),
        )
        self._hello = _packed(hello)
        if len(self._hello) > HELLO_LIMIT:
            raise ValueError(f"info of {len(self._hello)} bytes does not fit into a hello of {HELLO_LIMIT}")
        self._nonce = hello.nonce
        self._theirs: _Hello | None = None
        self._transcript = b""

    def _take_hello(self, frame: bytes, *, initiator: bool) -> _Hello:
        """Their hello, if we may go on with it; both hellos become the transcript."""
        hello = self._parse_hello(frame)
        if hello.nonce == self._nonce:
            raise self._refuse(AuthenticationError, f"{self.address} sent our own challenge back")
        if hello.role not in self._identity.accept:
            wanted = " or ".join(sorted(self._identity.accept))
            raise self._part(f"{self.address} is a {hello.role}; this side talks to a {wanted}")
        if self._identity.role not in hello.accept:
            wanted = " or ".join(hello.accept)
            raise self._part(f"the {hello.role} at {self.address} talks to a {wanted}, not to a {self._identity.role}")
        try:
            check_role(self._certificate, hello.role, self.address)
        except AuthenticationError as exc:
            raise self._refuse(AuthenticationError, str(exc)) from None
        first, second = (self._hello, frame) if initiator else (frame, self._hello)
        parts = (self._binding, first, second)
        self._transcript = b"".join(_PREFIX.pack(len(part)) + part for part in parts)
        self._theirs = hello
        return hello

    def _parse_hello(self, frame: bytes) -> _Hello:
        fields = self._parse(frame)
        if len(fields) < 4 or fields[1] != "hello" or type(fields[2]) is not int or not _is_pair(fields[3], int):
            raise self._refuse(HandshakeError, f"{self.address} sent something else than a hello")
        protocol, python = fields[2], fields[3]
        if protocol != PROTOCOL_VERSION or python != sys.version_info[:2]:
            ours = f"protocol {PROTOCOL_VERSION} on Python {sys.version_info[0]}.{sys.version_info[1]}"
            theirs = f"protocol {protocol} on Python {python[0]}.{python[1]}"
            self._let_them_find_out()
            raise VersionMismatchError(
                f"this side runs gnomon's {ours}, {self.address} runs {theirs}; both need the same gnomon and Python"
            )
        hello = _Hello._make(fields) if len(fields) == len(_Hello._fields) else None
        if (
            hello is None
            or type(hello.accept) is not tuple
            or not all(_is_word(word) for word in (hello.role, *hello.accept))
            or type(hello.nonce) is not bytes
            or len(hello.nonce) != _NONCE
            or type(hello.secret_origin) is not str
            or not (_is_pair(hello.view, str) and all(_is_word(word) for word in hello.view))
            or type(hello.info) is not dict
            or type(hello.info.get("name", "")) is not str
        ):
            raise self._refuse(HandshakeError, f"{self.address} sent a malformed hello")
        return hello

    def _parse(self, frame: bytes) -> tuple[Any, ...]:
        """A frame's fields. Raises the error that a refusal stands for."""
        fields: Any = None
        if len(frame) <= HELLO_LIMIT:
            try:
                fields = msgpack.unpackb(frame, use_list=False, raw=False, strict_map_key=True, max_ext_len=0)
            except (ValueError, TypeError, msgpack.exceptions.UnpackException, RecursionError):
                fields = None
        if type(fields) is not tuple or len(fields) < 3 or fields[0] != _MAGIC:
            raise foreign_error(self.address, frame[:4])
        if fields[1] == "refused":
            error = AuthenticationError if fields[2] == "secret" else HandshakeError
            reason = fields[3] if len(fields) > 3 and type(fields[3]) is str else ""
            reason = "".join(c if c.isprintable() else "?" for c in reason[:_REASON_LIMIT])
            raise error(f"{self.address} refused this side: {reason}")
        return fields

    def _part(self, text: str) -> HandshakeError:
        """The error for two sides that are not made for each other."""
        self._let_them_find_out()
        return HandshakeError(text)

    def _let_them_find_out(self) -> None:
        """The other side has what it needs to find the same error itself, in its own words: our hello."""

    def _refuse(self, error: type[HandshakeError], text: str) -> HandshakeError:
        """The error for this side, after the other's copy was put into ``farewell``."""
        kind = "secret" if error is AuthenticationError else "other"
        self.farewell = _packed((_MAGIC, "refused", kind, text[:_REASON_LIMIT]))
        return error(text)

    def _proof(self, label: bytes) -> bytes:
        return hmac.digest(self._identity.secret, label + self._transcript, hashlib.sha256)

    def _check_proof(self, frame: bytes) -> None:
        """Their proof; then the handshake is done."""
        fields = self._parse(frame)
        if self._theirs is None or fields[1] != "proof" or type(fields[2]) is not bytes:
            raise self._refuse(HandshakeError, f"{self.address} sent something else than its proof")
        if not hmac.compare_digest(fields[2], self._proof(self._other_label)):
            raise self._refuse(AuthenticationError, self._secrets_differ(self._theirs))
        theirs = self._theirs
        self.peer = Peer(theirs.role, self.address, theirs.info.get("name", ""), theirs.info)

    def _secrets_differ(self, theirs: _Hello) -> str:
        mine, other = _ORIGINS.get(self._identity.secret_origin, "?"), _ORIGINS.get(theirs.secret_origin, "?")
        return (
            f"the {theirs.role} at {self.address} and this {self._identity.role} have different secrets: this one uses "
            f"{mine}, the other {other}; give both the same one (GNOMON_SECRET or security.secret_file)"
        )


_ORIGINS = {
    "explicit": "one given to it",
    "user": "its user's own secret file",
    "certificates": "none but its TLS certificates",
}


class Initiator(_Side):
    """The side that connected. Call ``start`` once, then ``receive`` with each frame until ``peer`` is set."""

    _proof_label = b"gnomon initiator proof 1\0"
    _other_label = b"gnomon responder proof 1\0"

    def start(self) -> bytes:
        """The first frame to send."""
        return self._hello

    def receive(self, frame: bytes) -> bytes:
        """Take a frame; the next one to send (empty: none).

        Raises HandshakeError or a subclass of it; then send ``farewell`` and close.
        """
        if self._theirs is None:
            hello = self._take_hello(frame, initiator=True)
            self._check_view(hello)
            return _packed((_MAGIC, "proof", self._proof(self._proof_label)))
        self._check_proof(frame)
        return b""

    def _check_view(self, hello: _Hello) -> None:
        if self._binding or self._identity.allow_relay or not all(self._view):
            return
        mine, theirs = self._view, (hello.view[1], hello.view[0])
        if mine != theirs and _is_loopback(self._view[1]):
            raise self._refuse(
                AuthenticationError,
                f"something relays the connection to {self.address} (this side sees {mine[0]} to {mine[1]}, the other "
                f"{theirs[0]} to {theirs[1]}) and could read and alter it; use tls://, or if that is a tunnel of yours "
                "set comm.allow_relay (GNOMON_COMM__ALLOW_RELAY=1)",
            )


class Responder(_Side):
    """The side that was connected to. Call ``receive`` with each frame until ``peer`` is set."""

    _proof_label = b"gnomon responder proof 1\0"
    _other_label = b"gnomon initiator proof 1\0"

    def receive(self, frame: bytes) -> bytes:
        """Take a frame; the next one to send.

        Raises HandshakeError or a subclass of it; then send ``farewell`` and close.
        """
        if self._theirs is None:
            self._take_hello(frame, initiator=False)
            return self._hello
        self._check_proof(frame)
        return _packed((_MAGIC, "proof", self._proof(self._proof_label)))

    def _let_them_find_out(self) -> None:
        self.farewell = self._hello


def foreign_error(address: str, start: bytes) -> HandshakeError:
    """The error for a peer that does not speak our protocol, from the first four bytes it sent."""
    for known, what in _FOREIGN.items():
        if start.startswith(known):
            return HandshakeError(f"{address} {what}")
    return HandshakeError(f"{address} does not speak gnomon's protocol")


_FOREIGN = {
    b"\x15\x03": "expects TLS, this side does not: use a tls:// address and certificates on both",
    b"\x16\x03": "speaks TLS, this side does not: use a tls:// address and certificates on both, or tcp:// on both",
    b"HTTP": "is an HTTP server, not a gnomon scheduler or worker; is that the dashboard's port?",
    b"GET ": "speaks HTTP, not gnomon's protocol",
    b"POST": "speaks HTTP, not gnomon's protocol",
    b"HEAD": "speaks HTTP, not gnomon's protocol",
    b"SSH-": "is an SSH server, not a gnomon scheduler or worker",
}


def channel_binding(tls: ssl.SSLObject | ssl.SSLSocket | None) -> bytes:
    """What is unique to this TLS connection and known to its two ends alone; empty without TLS.

    OpenSSL gives the client's Finished message, which under TLS 1.3 too depends on all of the key exchange. Python
    before 3.15 has no exporter, and sessions are never resumed here.
    """
    return (tls.get_channel_binding("tls-unique") or b"") if tls is not None else b""


def socket_view(own: Any, other: Any) -> View:
    """The view from ``getsockname()`` and ``getpeername()``; empty for sockets without host and port."""
    return _endpoint(own), _endpoint(other)


def _endpoint(name: Any) -> str:
    if not (isinstance(name, tuple) and len(name) >= 2):
        return ""
    host = str(name[0]).partition("%")[0].removeprefix("::ffff:")
    return f"[{host}]:{name[1]}" if ":" in host else f"{host}:{name[1]}"


def _is_loopback(endpoint: str) -> bool:
    return endpoint.startswith(("127.", "[::1]"))


def _is_word(value: Any) -> bool:
    """Whether a stranger's text may be shown in messages and logs."""
    return type(value) is str and len(value) <= _WORD_LIMIT and value.isascii() and value.isprintable()


def _is_pair(value: Any, kind: type[Any]) -> bool:
    return type(value) is tuple and len(value) == 2 and type(value[0]) is kind and type(value[1]) is kind


def _packed(fields: tuple[Any, ...]) -> bytes:
    packed: bytes = msgpack.packb(fields, use_bin_type=True)
    return packed


def handshake_blocking(
    sock: socket.socket,
    identity: Identity,
    *,
    initiator: bool,
    address: str,
    timeout: float = 5.0,
    check: Callable[[Peer], None] | None = None,
) -> Peer:
    """Shake hands over a connected blocking socket (TCP, TLS after its own handshake, or unix); who the peer is.

    Reads not one byte more than the handshake's own, so the connection is the caller's from the next byte on. The
    socket's timeout is restored. On any error the caller closes the socket.

    Arguments:
        identity: see ``Security.identity``, which makes it from a role.
        address: of the other end, for messages.
        timeout: seconds in total.
        check: a further condition on the peer, called before it is told of success; raises HandshakeError.

    Raises HandshakeError (and its subclasses VersionMismatchError and AuthenticationError), also when the other side
    closes or stays silent.
    """
    deadline = time.monotonic() + timeout
    before = sock.gettimeout()
    tls = sock if isinstance(sock, ssl.SSLSocket) else None
    view = socket_view(sock.getsockname(), sock.getpeername())
    kind = Initiator if initiator else Responder
    side = kind(
        identity,
        address=address,
        view=view,
        binding=channel_binding(tls),
        certificate=tls.getpeercert() if tls is not None else None,
    )
    try:
        if isinstance(side, Initiator):
            _send_frame(sock, side.start(), deadline)
        peer: Peer | None = None
        while peer is None:
            try:
                answer = side.receive(_receive_frame(sock, address, deadline))
                peer = side.peer
                if peer is not None and check is not None:
                    check(peer)
            except HandshakeError:
                if side.farewell:
                    _send_frame(sock, side.farewell, deadline)
                raise
            if answer:
                _send_frame(sock, answer, deadline)
        sock.settimeout(before)
        return peer
    except TimeoutError as exc:
        raise HandshakeError(f"{address} did not complete the handshake within {timeout:g} s") from exc
    except ssl.SSLError as exc:
        raise AuthenticationError(f"TLS with {address} failed: {exc.reason or exc}") from exc
    except HandshakeError:
        raise
    except OSError as exc:
        raise HandshakeError(f"{address} closed the connection during the handshake: {exc}") from exc


def _send_frame(sock: socket.socket, frame: bytes, deadline: float) -> None:
    sock.settimeout(max(deadline - time.monotonic(), 0.001))
    sock.sendall(_PREFIX.pack(len(frame)) + frame)


def _receive_frame(sock: socket.socket, address: str, deadline: float) -> bytes:
    (length,) = _PREFIX.unpack(_receive_exactly(sock, _PREFIX.size, address, deadline))
    if length > HELLO_LIMIT:
        raise foreign_error(address, _PREFIX.pack(length))
    return _receive_exactly(sock, length, address, deadline)


def _receive_exactly(sock: socket.socket, count: int, address: str, deadline: float) -> bytes:
    data = b""
    while len(data) < count:
        sock.settimeout(max(deadline - time.monotonic(), 0.001))
        part = sock.recv(count - len(data))
        if not part:
            raise HandshakeError(f"{address} closed the connection during the handshake")
        data += part
    return data
