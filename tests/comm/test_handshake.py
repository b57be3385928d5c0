"""The handshake by itself: no socket but in the tests of its blocking driver."""

from __future__ import annotations

import socket
import ssl
import struct
import sys
import threading
from typing import Any

import msgpack
import pytest

from gnomon.runtime.comm import Security
from gnomon.runtime.comm.handshake import (
    HELLO_LIMIT,
    PROTOCOL_VERSION,
    Identity,
    Initiator,
    Responder,
    View,
    handshake_blocking,
    socket_view,
)
from gnomon.runtime.errors import AuthenticationError, HandshakeError, VersionMismatchError

SECRET = b"0123456789abcdef"
HERE: View = ("127.0.0.1:1000", "127.0.0.1:2000")
THERE: View = (HERE[1], HERE[0])


def client(
    secret: bytes = SECRET, role: str = "client", accept: tuple[str, ...] = ("scheduler",), **more: Any
) -> Identity:
    return Identity(role, secret, "explicit", frozenset(accept), **more)


def scheduler(
    secret: bytes = SECRET, role: str = "scheduler", accept: tuple[str, ...] = ("client", "worker"), **more: Any
) -> Identity:
    return Identity(role, secret, "user", frozenset(accept), **more)


def sides(ours: Identity, theirs: Identity, **more: Any) -> tuple[Initiator, Responder]:
    return (
        Initiator(ours, address="tcp://server", view=HERE, **more),
        Responder(theirs, address="tcp://client", view=THERE, **more),
    )


def test_both_prove_themselves_and_know_each_other() -> None:
    initiator, responder = sides(client(info={"name": "c", "x": 1}), scheduler(info={"name": "s"}))
    hello = responder.receive(initiator.start())
    proof = initiator.receive(hello)
    assert responder.peer is None
    answer = responder.receive(proof)
    assert responder.peer == ("client", "tcp://client", "c", {"name": "c", "x": 1})
    assert initiator.peer is None, "the responder has not proved itself yet"
    assert initiator.receive(answer) == b""
    assert initiator.peer == ("scheduler", "tcp://server", "s", {"name": "s"})


def test_every_frame_is_small() -> None:
    initiator, responder = sides(client(info={"name": "x" * 500}), scheduler())
    hello = responder.receive(initiator.start())
    proof = initiator.receive(hello)
    assert all(len(frame) <= HELLO_LIMIT for frame in (initiator.start(), hello, proof, responder.receive(proof)))
    with pytest.raises(ValueError, match="does not fit"):
        sides(client(info={"name": "x" * 1000}), scheduler())


def test_different_secrets_are_told_to_both() -> None:
    initiator, responder = sides(client(), scheduler(b"another secret...."))
    proof = initiator.receive(responder.receive(initiator.start()))
    with pytest.raises(AuthenticationError, match="different secrets: this one uses its user's own secret file"):
        responder.receive(proof)
    assert responder.peer is None
    with pytest.raises(AuthenticationError, match=r"tcp://server refused this side: .* different secrets"):
        initiator.receive(responder.farewell)
    assert initiator.peer is None


def test_a_responder_that_knows_no_secret_gets_nowhere() -> None:
    initiator, responder = sides(client(), scheduler())
    initiator.receive(responder.receive(initiator.start()))
    for lie in (bytes(32), b""):
        with pytest.raises(AuthenticationError):
            initiator.receive(msgpack.packb(("gnomon", "proof", lie)))
    assert initiator.peer is None


def test_own_challenge_sent_back() -> None:
    initiator = Initiator(client(accept=("client",)), address="tcp://mirror", view=HERE)
    with pytest.raises(AuthenticationError, match="our own challenge back"):
        initiator.receive(initiator.start())


def test_own_proof_sent_back() -> None:
    initiator, responder = sides(client(), scheduler())
    proof = initiator.receive(responder.receive(initiator.start()))
    with pytest.raises(AuthenticationError):
        initiator.receive(proof)


def test_a_recorded_conversation_is_worth_nothing() -> None:
    initiator, responder = sides(client(), scheduler())
    hello = initiator.start()
    proof = initiator.receive(responder.receive(hello))
    responder.receive(proof)
    another = Responder(scheduler(), address="tcp://client", view=THERE)
    another.receive(hello)
    with pytest.raises(AuthenticationError):
        another.receive(proof)
    assert another.peer is None


def test_a_challenge_passed_on_to_another_connection_is_noticed() -> None:
    """Who sits between client and server, and passes on what they say, has other ports."""
    initiator = Initiator(client(), address="tcp://server", view=HERE)
    responder = Responder(scheduler(), address="tcp://client", view=("127.0.0.1:3000", "127.0.0.1:4000"))
    with pytest.raises(AuthenticationError, match="relays the connection"):
        initiator.receive(responder.receive(initiator.start()))
    assert b"proof" not in initiator.farewell
    with pytest.raises(AuthenticationError, match="refused this side"):
        responder.receive(initiator.farewell)


def test_a_tunnel_may_be_allowed() -> None:
    initiator = Initiator(client(allow_relay=True), address="tcp://server", view=HERE)
    responder = Responder(scheduler(), address="tcp://client", view=("127.0.0.1:3000", "127.0.0.1:4000"))
    responder.receive(initiator.receive(responder.receive(initiator.start())))
    assert responder.peer is not None


def test_another_channel_is_noticed() -> None:
    initiator = Initiator(client(), address="tls://server", view=HERE, binding=b"channel 1")
    responder = Responder(scheduler(), address="tls://client", view=THERE, binding=b"channel 2")
    proof = initiator.receive(responder.receive(initiator.start()))
    with pytest.raises(AuthenticationError):
        responder.receive(proof)


def test_every_changed_byte_is_noticed() -> None:
    """Whoever changes what is said on the way ends the handshake: with an error, or with no valid proof."""
    length = len(Initiator(client(), address="a", view=HERE).start())
    for position in range(length):
        initiator, responder = sides(client(), scheduler())
        hello = bytearray(initiator.start())
        hello[position] ^= 0x01
        with pytest.raises(HandshakeError):
            responder.receive(initiator.receive(responder.receive(bytes(hello))))
        assert responder.peer is None


@pytest.mark.parametrize("cut", [0, 1, 10, 60, 100])
def test_truncated_frames(cut: int) -> None:
    initiator, responder = sides(client(), scheduler())
    with pytest.raises(HandshakeError):
        responder.receive(initiator.start()[:cut])
    hello = Responder(scheduler(), address="x", view=THERE).receive(initiator.start())
    with pytest.raises(HandshakeError):
        initiator.receive(hello[:cut])


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\xc1",
        b"GET / HTTP/1.1",
        msgpack.packb(["gnomon"]),
        msgpack.packb(["gnomon", "hello", "1"]),
        msgpack.packb(["gnomon", "hello", PROTOCOL_VERSION, list(sys.version_info[:2])]),
        msgpack.packb(["gnomon", "proof", bytes(32)]),
        msgpack.packb(["other", "hello", 1, [3, 11]]),
        msgpack.packb({"gnomon": 1}),
        msgpack.packb(msgpack.ExtType(1, b"x")),
        b"\x91" * HELLO_LIMIT,
        bytes(HELLO_LIMIT + 1),
    ],
)
def test_garbage(frame: bytes) -> None:
    initiator, responder = sides(client(), scheduler())
    with pytest.raises(HandshakeError):
        responder.receive(frame)
    with pytest.raises(HandshakeError):
        initiator.receive(frame)
    assert initiator.peer is None
    assert responder.peer is None


def test_proof_before_hello_and_hello_twice() -> None:
    initiator, responder = sides(client(), scheduler())
    responder.receive(initiator.start())
    with pytest.raises(HandshakeError):
        responder.receive(initiator.start())


@pytest.mark.parametrize(("protocol", "python"), [(PROTOCOL_VERSION + 1, None), (PROTOCOL_VERSION, (3, 99))])
def test_versions_are_named_on_both_sides(
    protocol: int, python: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    initiator, responder = sides(client(), scheduler())
    other = msgpack.packb(("gnomon", "hello", protocol, python or sys.version_info[:2], "whatever", "comes", "then"))
    for side in (initiator, responder):
        with pytest.raises(VersionMismatchError) as error:
            side.receive(other)
        text = str(error.value)
        assert f"protocol {PROTOCOL_VERSION} on Python {sys.version_info[0]}.{sys.version_info[1]}" in text
        assert f"protocol {protocol} on" in text
        if python:
            assert "Python 3.99" in text
    assert responder.farewell, "the other side is to learn our versions"
    assert msgpack.unpackb(responder.farewell, use_list=False)[:4] == (
        "gnomon",
        "hello",
        PROTOCOL_VERSION,
        sys.version_info[:2],
    )


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (client(role="client"), scheduler(accept=("worker",))),
        (client(accept=("worker",)), scheduler()),
        (client(), scheduler(role="worker")),
        (client(role="scheduler"), scheduler()),
    ],
)
def test_roles_that_do_not_fit(ours: Identity, theirs: Identity) -> None:
    initiator, responder = sides(ours, theirs)
    with pytest.raises(HandshakeError, match="talks to a"):
        responder.receive(initiator.start())
    with pytest.raises(HandshakeError, match="talks to a"):
        initiator.receive(responder.farewell)


def test_a_certificate_names_its_roles() -> None:
    worker_certificate = {"subjectAltName": (("URI", "urn:gnomon:role:worker"), ("DNS", "localhost"))}
    initiator = Initiator(client(), address="tls://x", view=HERE, certificate=worker_certificate)
    responder = Responder(scheduler(), address="tls://y", view=THERE)
    with pytest.raises(AuthenticationError, match="acts as a scheduler with the certificate of a worker"):
        initiator.receive(responder.receive(initiator.start()))
    with pytest.raises(AuthenticationError, match="refused this side"):
        responder.receive(initiator.farewell)


def test_what_strangers_say_cannot_spoil_a_log() -> None:
    _, responder = sides(client(), scheduler())
    hello = Initiator(client(role="evil\n2026 ERROR all is lost"), address="x", view=HERE).start()
    with pytest.raises(HandshakeError) as error:
        responder.receive(hello)
    assert "\n" not in str(error.value)
    initiator, _ = sides(client(), scheduler())
    with pytest.raises(HandshakeError) as error:
        initiator.receive(msgpack.packb(("gnomon", "refused", "other", "a\nb\x1b[0m")))
    assert str(error.value).endswith("a?b?[0m")


def test_an_identity_does_not_show_its_secret() -> None:
    assert "0123456789" not in repr(client())
    assert "0123456789" not in f"{client()}"


@pytest.mark.parametrize(
    ("own", "other", "view"),
    [
        (("127.0.0.1", 1), ("127.0.0.1", 2), ("127.0.0.1:1", "127.0.0.1:2")),
        (("::1", 1, 0, 0), ("fe80::1%eth0", 2, 0, 3), ("[::1]:1", "[fe80::1]:2")),
        (("::ffff:10.0.0.1", 1, 0, 0), ("10.0.0.2", 2), ("10.0.0.1:1", "10.0.0.2:2")),
        ("", "/run/x", ("", "")),
    ],
)
def test_views(own: Any, other: Any, view: View) -> None:
    assert socket_view(own, other) == view


# -- The blocking driver -----------------------------------------------------------------------------------------------


def shake(ours: Identity, theirs: Identity) -> list[Any]:
    """Both sides on a pair of sockets; their outcomes, and what lay behind the handshake for the initiator."""
    near, far = socket.socketpair()
    outcomes: list[Any] = [None, None]

    def respond() -> None:
        try:
            outcomes[1] = handshake_blocking(far, theirs, initiator=False, address="near", timeout=5)
            far.sendall(b"the next byte")
        except HandshakeError as exc:
            outcomes[1] = exc
        finally:
            far.close()

    thread = threading.Thread(target=respond)
    thread.start()
    with near:
        near.settimeout(7)
        try:
            outcomes[0] = handshake_blocking(near, ours, initiator=True, address="far", timeout=5)
            outcomes.append(near.recv(100))
            assert near.gettimeout() == 7
        except HandshakeError as exc:
            outcomes[0] = exc
        finally:
            thread.join()
    return outcomes


def test_blocking_sockets() -> None:
    ours, theirs, rest = shake(client(info={"name": "c"}), scheduler(info={"name": "s"}))
    assert ours.name == "s"
    assert theirs.name == "c"
    assert rest == b"the next byte"


def test_blocking_sockets_with_different_secrets() -> None:
    ours, theirs = shake(client(), scheduler(b"another secret...."))
    assert isinstance(ours, AuthenticationError)
    assert isinstance(theirs, AuthenticationError)


@pytest.mark.parametrize("initiator", [True, False])
@pytest.mark.parametrize("drip", [b"", b"\x00", struct.pack("!I", 10) + b"abc"])
def test_blocking_sockets_and_the_silent(initiator: bool, drip: bytes) -> None:
    near, far = socket.socketpair()
    with near, far:
        far.sendall(drip)
        with pytest.raises(HandshakeError, match=r"within 0\.1 s"):
            handshake_blocking(near, client(), initiator=initiator, address="far", timeout=0.1)


@pytest.mark.parametrize("initiator", [True, False])
def test_blocking_sockets_and_who_leaves(initiator: bool) -> None:
    near, far = socket.socketpair()
    far.close()
    with near, pytest.raises(HandshakeError, match="closed the connection"):
        handshake_blocking(near, client(), initiator=initiator, address="far", timeout=5)


def test_blocking_sockets_and_http() -> None:
    near, far = socket.socketpair()
    with near, far:
        far.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with pytest.raises(HandshakeError, match="HTTP server"):
            handshake_blocking(near, client(), initiator=True, address="far", timeout=5)


def test_blocking_sockets_under_tls(certificates: dict[str, Any]) -> None:
    security = Security.from_dict(certificates)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    outcomes: list[Any] = []

    def respond() -> None:
        sock, _ = listener.accept()
        context: ssl.SSLContext = security.get_listen_args("worker")["ssl_context"]
        with context.wrap_socket(sock, server_side=True) as tls:
            identity = security.identity("worker", accept=("peer",), tls=True)
            outcomes.append(handshake_blocking(tls, identity, initiator=False, address="x"))

    thread = threading.Thread(target=respond)
    thread.start()
    context: ssl.SSLContext = security.get_connection_args("peer")["ssl_context"]
    with (
        listener,
        context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="127.0.0.1") as tls,
    ):
        identity = security.identity("peer", accept=("worker",), tls=True)
        assert handshake_blocking(tls, identity, initiator=True, address="y").role == "worker"
        thread.join()
    assert outcomes[0].role == "peer"
