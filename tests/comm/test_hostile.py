"""Peers that are not ours, or not nice: garbage, floods, silence, other protocols; on sockets driven by hand."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

import msgpack
import pytest

from gnomon.runtime import config
from gnomon.runtime.comm import Security
from gnomon.runtime.comm.handshake import PROTOCOL_VERSION, Initiator, handshake_blocking, socket_view
from gnomon.runtime.errors import (
    AuthenticationError,
    CommClosedError,
    ConnectTimeoutError,
    HandshakeError,
    PeerError,
    VersionMismatchError,
)
from gnomon.runtime.messages import encode

from .conftest import Server, Transport, connected, message

Run = Callable[..., Any]


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def frame(body: bytes) -> bytes:
    return struct.pack("!I", len(body)) + body


async def raw(address: str, data: bytes) -> bytes:
    """Send bytes to a listener; what it answers until it closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(address))
    writer.write(data)
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()
        try:
            await writer.wait_closed()
        except ConnectionResetError:
            pass


def known_socket(address: str, security: Security | None = None) -> socket.socket:
    """A blocking socket that has shaken hands as a client."""
    sock = socket.create_connection(("127.0.0.1", port_of(address)))
    identity = (security or Security()).identity("client", accept=("scheduler",))
    handshake_blocking(sock, identity, initiator=True, address=address)
    return sock


HTTP = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "data",
    [
        HTTP,
        b"\x00\x00\x00\x05hello",
        b"\xff\xff\xff\xff" + bytes(100),
        b"\x00\x00\x00\x00",
        frame(bytes(1024)),
        frame(b"\x91" * 1024),
        struct.pack("!I", 1025),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        frame(msgpack.packb(("gnomon", "proof", bytes(32)))),
        frame(msgpack.packb(("gnomon", "refused", "other", "boo"))),
    ],
    ids=lambda data: repr(data[:16]),
)
def test_garbage_instead_of_a_handshake(
    run: Run, tcp: Transport, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        server = await Server().start(tcp.address)
        comm, end = await connected(server.address)
        await raw(server.address, data)
        comm.send([message(1)])
        assert await (await server.end()).received(1) == [message(1)]
        assert len(server.ends) == 1
        assert not end.closes
        await server.close()

    run(main())
    assert len(caplog.records) == 1
    assert "\n" not in caplog.records[0].getMessage()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"\xc1", "not a batch"),
        (b"\x01", "outermost value is no array"),
        (encode([message(1)])[:-1], "not a batch"),
        (b"\x91" * 5000 + b"\x90", "not a batch|known number"),
        (msgpack.packb([[99999]]), "known number"),
        (msgpack.packb([[0, "x", "y", {}]]), "Request.request_id is a str"),
        (b"\x91\xdd\xff\xff\xff\xff", "not a batch"),
    ],
    ids=["never-used", "no-array", "truncated", "over-nested", "unknown-op", "ill-typed", "array-bomb"],
)
def test_garbage_from_a_known_peer(
    run: Run, tcp: Transport, body: bytes, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        server = await Server().start(tcp.address)
        good, good_end = await connected(server.address)
        sock = await asyncio.to_thread(known_socket, server.address)
        with sock:
            await asyncio.to_thread(sock.sendall, frame(encode([message(1)])) + frame(body))
            bad = await server.end(1)
            cause = await bad.closed()
            assert isinstance(cause, PeerError)
            assert bad.messages == [message(1)], "what came before is heard"
        good.send([message(2)])
        assert await (await server.end(0)).received(1) == [message(2)]
        assert not good_end.closes
        await server.close()

    run(main())
    assert len(caplog.records) == 1
    assert caplog.records[0].levelno == logging.WARNING
    assert any(part in caplog.text for part in why.split("|"))


def test_a_frame_over_the_limit_is_not_even_allocated(
    run: Run, tcp: Transport, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        server = await Server().start(tcp.address)
        with await asyncio.to_thread(known_socket, server.address) as sock:
            sock.sendall(struct.pack("!I", (64 << 20) + 1))
            assert isinstance(await (await server.end()).closed(), PeerError)
        await server.close()

    run(main())
    assert "over the limit of 67108864" in caplog.text


def test_a_half_frame_and_then_nothing(run: Run, tcp: Transport) -> None:
    async def main() -> None:
        server = await Server().start(tcp.address)
        with await asyncio.to_thread(known_socket, server.address) as sock:
            sock.sendall(frame(encode([message(1)])) + struct.pack("!I", 1 << 20) + bytes(1000))
            end = await server.end()
            await end.received(1)
        assert isinstance(await end.closed(), CommClosedError)
        assert end.messages == [message(1)]
        await server.close()

    run(main())


def test_frames_byte_by_byte(run: Run, tcp: Transport) -> None:
    async def main() -> None:
        server = await Server().start(tcp.address)
        with await asyncio.to_thread(known_socket, server.address) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in frame(encode([message(1)])) + frame(encode([message(2)])):
                sock.sendall(bytes([byte]))
                await asyncio.sleep(0)
            assert await (await server.end()).received(2) == [message(1), message(2)]
            sock.sendall(bytes(4))  # the goodbye
            assert await server.ends[0].closed() is None
            assert sock.recv(100) == bytes(4)
        await server.close()

    run(main())


def test_silent_peers_are_dropped_at_the_deadline(run: Run, wire: Transport, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        with config.set({"comm.handshake_timeout": 0.3}):
            server = await Server().start(wire.address, security=wire.security)
        begin = time.monotonic()
        starts = (b"", b"", b"\x16", b"\x16\x03\x01") if wire.security else (b"", b"", b"\x00", b"\x00\x00\x00\x09abc")
        await asyncio.gather(*(raw(server.address, data) for data in starts))
        assert time.monotonic() - begin >= 0.25
        await connected(server.address, security=wire.security)
        await server.close()

    run(main())
    assert "did not complete the handshake within 0.3 s" in caplog.text
    assert "3 more connections" in caplog.text, "strangers get one line a second"


def test_few_half_open_connections_at_a_time(run: Run, wire: Transport, caplog: pytest.LogCaptureFixture) -> None:
    """A flood of silent connections pushes out its own oldest, and an honest client still gets in."""

    async def main() -> None:
        with config.set({"comm.half_open": 8, "comm.handshake_timeout": 60}):
            server = await Server().start(wire.address, security=wire.security)
        flood = [await asyncio.open_connection("127.0.0.1", port_of(server.address)) for _ in range(50)]
        comm, _ = await connected(server.address, security=wire.security)
        comm.send([message(1)])
        assert await (await server.end()).received(1) == [message(1)]
        ended = await asyncio.gather(*(_ended(reader) for reader, _ in flood[:40]))
        assert all(ended)
        for _, writer in flood:
            writer.close()
        await server.close()

    run(main())
    assert "too many connections" in caplog.text


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only 127.0.0.1 is this machine")
def test_a_flood_crowds_out_itself_before_others(run: Run, tcp: Transport) -> None:
    """However many come from one address, the oldest of another is not dropped for them."""

    async def main() -> None:
        with config.set({"comm.half_open": 8, "comm.handshake_timeout": 60}):
            server = await Server().start(tcp.address)
        port = port_of(server.address)
        honest = await asyncio.to_thread(socket.create_connection, ("127.0.0.1", port), 10)
        source = ("127.0.0.2", 0)
        flood = [await asyncio.open_connection("127.0.0.1", port, local_addr=source) for _ in range(50)]
        assert all(await asyncio.gather(*(_ended(reader) for reader, _ in flood[:40])))
        identity = Security().identity("client", accept=("scheduler",))
        await asyncio.to_thread(handshake_blocking, honest, identity, initiator=True, address=server.address)
        assert await server.end()
        for _, writer in flood:
            writer.close()
        honest.close()
        await server.close()

    run(main())


async def _ended(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


def test_a_listener_that_closes_drops_the_half_open(run: Run, wire: Transport) -> None:
    async def main() -> None:
        server = await Server().start(wire.address, security=wire.security)
        silent = [asyncio.create_task(raw(server.address, b"")) for _ in range(3)]
        await connected(server.address, security=wire.security)  # by then they were accepted
        await server.close()
        await asyncio.gather(*silent)

    run(main())


# -- A client that comes to the wrong door -----------------------------------------------------------------------------


async def fake_server(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any],
) -> tuple[asyncio.Server, str]:
    """Anything but a gnomon listener; its address."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    return server, f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


def test_an_http_server_is_recognized(run: Run, tcp: Transport) -> None:
    async def main() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

        server, address = await fake_server(answer)
        with pytest.raises(HandshakeError, match="is an HTTP server"):
            await connected(f"tcp://{address}")
        server.close()
        await server.wait_closed()

    run(main())


def test_a_server_that_closes_at_once_is_tried_a_few_times(run: Run, tcp: Transport) -> None:
    visits = 0

    async def main() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal visits
            visits += 1

        server, address = await fake_server(answer)
        with pytest.raises(HandshakeError, match="closed the connection during the handshake"):
            await connected(f"tcp://{address}")
        server.close()
        await server.wait_closed()

    run(main())
    assert visits == 4


def test_a_silent_server_is_given_up(run: Run, wire: Transport) -> None:
    async def main() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()

        server, address = await fake_server(answer)
        scheme = wire.address.partition("://")[0]
        with (
            config.set({"comm.handshake_timeout": 0.2}),
            pytest.raises(HandshakeError, match=r"did not complete the handshake within 0\.2 s"),
        ):
            await connected(f"{scheme}://{address}", security=wire.security)
        with pytest.raises(ConnectTimeoutError, match=r"within 0\.1 s"):
            await connected(f"{scheme}://{address}", security=wire.security, timeout=0.1)
        server.close()
        await server.wait_closed()

    run(main())


def test_versions_differ(run: Run, tcp: Transport, caplog: pytest.LogCaptureFixture) -> None:
    other = frame(msgpack.packb(("gnomon", "hello", PROTOCOL_VERSION + 1, sys.version_info[:2], "scheduler")))
    ours = f"protocol {PROTOCOL_VERSION} on Python"

    async def main() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(other)
            await reader.read()

        fake, address = await fake_server(answer)
        with pytest.raises(VersionMismatchError, match=f"{ours}.* runs protocol {PROTOCOL_VERSION + 1} on"):
            await connected(f"tcp://{address}")
        fake.close()
        await fake.wait_closed()
        server = await Server().start(tcp.address)
        answer_to_us = await raw(server.address, other)
        assert msgpack.unpackb(answer_to_us[4:], use_list=False)[2] == PROTOCOL_VERSION
        assert server.ends == []
        await server.close()

    run(main())
    assert ours in caplog.text


def test_secrets_differ(run: Run, wire: Transport, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        plain = (wire.security or Security(secret="0123456789abcdef")).to_dict()
        server = await Server().start(wire.address, security=Security.from_dict(plain))
        plain["secret"] = b"fedcba9876543210".hex()
        with pytest.raises(AuthenticationError, match="different secrets"):
            await connected(server.address, security=Security.from_dict(plain))
        assert server.ends == []
        await server.close()

    run(main())
    assert "different secrets" in caplog.text
    assert "fedcba" not in caplog.text


def test_a_recorded_connection_cannot_be_replayed(run: Run, tcp: Transport) -> None:
    async def main() -> None:
        server = await Server().start(tcp.address)
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server.address))
        view = socket_view(writer.get_extra_info("sockname"), writer.get_extra_info("peername"))
        side = Initiator(Security().identity("client", accept=("scheduler",)), address="x", view=view)
        sent = frame(side.start())
        writer.write(sent)
        hello = await reader.readexactly(struct.unpack("!I", await reader.readexactly(4))[0])
        proof = frame(side.receive(hello))
        sent += proof + frame(encode([message(1)]))
        writer.write(sent[len(frame(side.start())) :])
        assert await (await server.end()).received(1) == [message(1)]
        await raw(server.address, sent)
        assert len(server.ends) == 1
        writer.close()
        await writer.wait_closed()
        await server.ends[0].closed()
        await server.close()

    run(main())


@pytest.mark.parametrize("backend", ["asyncio", "tornado"])
@pytest.mark.parametrize("uvloop", [True, False])
def test_plain_client_at_a_tls_port(
    run: Run, backend: str, uvloop: bool, certificates: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        security = Security.from_dict(certificates)
        server = await Server().start("tls://127.0.0.1", security=security)
        with pytest.raises(HandshakeError, match="TLS"):
            await connected(server.address.replace("tls:", "tcp:"), security=security)
        await connected(server.address, security=security)
        await server.close()

    with config.set({"comm.backend": backend, "comm.uvloop": uvloop}):
        run(main())
    assert caplog.records


@pytest.mark.parametrize("backend", ["asyncio", "tornado"])
@pytest.mark.parametrize("uvloop", [True, False])
def test_tls_client_at_a_plain_port(
    run: Run, backend: str, uvloop: bool, certificates: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        security = Security.from_dict(certificates)
        server = await Server().start("tcp://127.0.0.1", security=security)
        with pytest.raises(HandshakeError, match="TLS"):
            await connected(server.address.replace("tcp:", "tls:"), security=security)
        await connected(server.address, security=security)
        await server.close()

    with config.set({"comm.backend": backend, "comm.uvloop": uvloop}):
        run(main())
    assert "speaks TLS" in caplog.text


def test_nobody_listens(run: Run, wire: Transport) -> None:
    async def main() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # bound, but does not listen: connections are refused
            scheme = wire.address.partition("://")[0]
            address = f"{scheme}://127.0.0.1:{taken.getsockname()[1]}"
            with pytest.raises(ConnectTimeoutError, match=rf"{address} within 0\.2 s: .*refused"):
                await connected(address, security=wire.security, timeout=0.2)

    run(main())


def test_an_unknown_host(run: Run, tcp: Transport) -> None:
    async def main() -> None:
        with pytest.raises(ConnectTimeoutError, match="no-such-host"):
            await connected("tcp://no-such-host.invalid:80", timeout=0.3)

    run(main())


def test_tls_1_2_is_refused(run: Run, certificates: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        security = Security.from_dict(certificates)
        server = await Server().start("tls://127.0.0.1", security=security)
        context: ssl.SSLContext = Security.from_dict(certificates).get_connection_args("client")["ssl_context"]
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionResetError)):
            await asyncio.open_connection(
                "127.0.0.1", port_of(server.address), ssl=context, server_hostname="127.0.0.1"
            )
        assert server.ends == []
        await server.close()

    with config.set({"comm.uvloop": False}):
        run(main())
    assert caplog.records
