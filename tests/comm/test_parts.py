"""The small parts by themselves: addresses and frames."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections.abc import Callable
from typing import Any

import pytest

from gnomon.runtime import config
from gnomon.runtime.comm import new_event_loop
from gnomon.runtime.comm.address import Address, contact_host, is_loopback, is_wildcard, parse_address
from gnomon.runtime.comm.framing import FrameReader, FrameSizeError, encode_batches
from gnomon.runtime.errors import FrameTooLargeError, PeerError
from gnomon.runtime.messages import decode

from .conftest import Server, connected, message

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("tcp://127.0.0.1:8786", ("tcp", "127.0.0.1", 8786)),
        ("tls://host.example:1", ("tls", "host.example", 1)),
        ("tcp://[::1]:80", ("tcp", "::1", 80)),
        ("tcp://[fe80::1%eth0]:80", ("tcp", "fe80::1%eth0", 80)),
        ("host:80", ("tcp", "host", 80)),
        ("host", ("tcp", "host", 0)),
        (":80", ("tcp", "", 80)),
        ("tcp://", ("tcp", "", 0)),
        ("tcp://[::]", ("tcp", "::", 0)),
        ("inproc://1-2", ("inproc", "1-2", 0)),
        (" tcp://a:1 ", ("tcp", "a", 1)),
    ],
)
def test_addresses(text: str, address: tuple[str, str, int]) -> None:
    parsed = parse_address(text)
    assert parsed == address
    assert parse_address(str(parsed)) == parsed


@pytest.mark.parametrize(
    "text",
    ["udp://a:1", "tcp://::1:80", "tcp://[::1", "tcp://[::1]80", "tcp://a:b", "tcp://a:70000", "tcp://a:-1",
     "tcp://a b:1", "tcp://user@a:1", "tcp://a/b:1", "tcp://a:1/", "tcp://a:¹"],
)  # fmt: skip
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no|is written|no transport"):
        parse_address(text)


def test_kinds_of_hosts() -> None:
    assert str(Address("tcp", "::1", 5)) == "tcp://[::1]:5"
    assert is_loopback("127.0.0.1")
    assert is_loopback("127.9.9.9")
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("10.0.0.1")
    assert not is_loopback("fe80::1%eth0")
    assert is_wildcard("")
    assert is_wildcard("::")
    assert not is_wildcard("127.0.0.1")
    assert not is_wildcard(contact_host(socket.AF_INET))


def test_connecting_needs_a_host_and_a_port(run: Run) -> None:
    async def main() -> None:
        for address in ("tcp://127.0.0.1", "tcp://:80", "tls://"):
            with pytest.raises(ValueError, match="needs a host and a port"):
                await connected(address)

    run(main())


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_ipv6(run: Run) -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("no IPv6 loopback here")

    async def main() -> None:
        server = await Server().start("tcp://[::1]:0")
        assert server.address.startswith("tcp://[::1]:")
        comm, _ = await connected(server.address)
        assert comm.local_address.startswith("tcp://[::1]:")
        await server.close()

    run(main())


@pytest.mark.parametrize("wanted", [True, False])
def test_the_loop_is_the_one_wanted(wanted: bool) -> None:
    pytest.importorskip("uvloop")
    with config.set({"comm.uvloop": wanted}):
        loop = new_event_loop()
    try:
        assert type(loop).__module__.startswith("uvloop") is wanted
        assert isinstance(loop, asyncio.AbstractEventLoop)
    finally:
        loop.close()


# -- Frames ------------------------------------------------------------------------------------------------------------


def feed(reader: FrameReader, data: bytes, step: int) -> list[bytes]:
    """Put bytes into the reader as a transport would; the frames that come out."""
    frames = []
    while data:
        buffer = reader.get_buffer()
        assert len(buffer) > 0
        count = min(len(buffer), step, len(data))
        buffer[:count] = data[:count]
        data = data[count:]
        reader.advance(count)
        while (frame := reader.next_frame()) is not None:
            frames.append(bytes(frame))
    return frames


@pytest.mark.parametrize("step", [1, 3, 4, 1000, 4096, 1 << 30])
def test_frames_come_out_as_they_went_in(step: int) -> None:
    generator = random.Random(step)
    bodies = [generator.randbytes(generator.choice([0, 1, 5, 100, 4091, 4092, 4093, 9000])) for _ in range(60)]
    data = b"".join(struct.pack("!I", len(body)) + body for body in bodies)
    reader = FrameReader(10_000)
    assert feed(reader, data, step) == bodies
    assert reader.next_frame() is None


def test_a_large_frame_and_small_ones_after_it() -> None:
    reader = FrameReader(64 << 20)
    reader.usual = 64 << 10
    bodies = [b"a", bytes(20_000_000), b"b", bytes(100_000), b""]
    data = b"".join(struct.pack("!I", len(body)) + body for body in bodies)
    assert feed(reader, data, 1 << 20) == bodies
    assert len(reader.get_buffer()) <= 1 << 20, "the large buffer is given back"


def test_the_buffer_grows_with_what_arrived_not_with_what_was_announced() -> None:
    reader = FrameReader(64 << 20)
    feed(reader, struct.pack("!I", 64 << 20) + bytes(10_000), 1000)
    assert len(reader.get_buffer()) < 100_000


def test_a_frame_over_the_limit() -> None:
    reader = FrameReader(100)
    with pytest.raises(FrameSizeError) as error:
        feed(reader, struct.pack("!I", 101), 10)
    assert error.value.start == struct.pack("!I", 101)
    assert isinstance(error.value, PeerError)


def test_batches_are_split_in_order() -> None:
    messages = [message(n, 300) for n in range(50)]
    bodies = encode_batches(messages, 2000)
    assert len(bodies) > 5
    assert all(len(body) <= 2000 for body in bodies)
    assert [row for body in bodies for row in decode(body)] == messages
    assert len(encode_batches(messages, 1 << 20)) == 1
    with pytest.raises(FrameTooLargeError, match=r"comm\.max_frame"):
        encode_batches([message(1), message(2, 3000)], 2000)
