"""Control connections: round trips, bandwidth, bursts of small messages; by transport, backend and loop."""

from __future__ import annotations

import asyncio
from typing import Any

from benchmarks import callgrind
from benchmarks.sizes import and_large
from benchmarks.stage import security_for
from gnomon.runtime import config
from gnomon.runtime.comm import Handlers, connect, listen, new_event_loop
from gnomon.runtime.comm.framing import USUAL_BUFFER, FrameReader, encode_batches, prefix
from gnomon.runtime.messages import Request

#: Transport, backend and loop side by side; inproc has no backend.
_WAYS = [
    "tcp/asyncio/uvloop",
    "tcp/asyncio/asyncio",
    "tcp/tornado/uvloop",
    "tcp/tornado/asyncio",
    "tls/asyncio/uvloop",
    "tls/asyncio/asyncio",
    "tls/tornado/asyncio",
    "inproc/-/uvloop",
    "inproc/-/asyncio",
]

_ROUND_TRIPS = 200
_BURST = 2_000


class _End:
    """One side: counts what arrives, and echoes if told to."""

    def __init__(self) -> None:
        self.seen = 0
        self.echo = False
        self.wanted = 0
        self.reached = asyncio.Event()
        self.comm: Any = None

    def on_messages(self, comm, messages):
        self.seen += len(messages)
        if self.echo:
            comm.send(messages)
        if self.seen >= self.wanted:
            self.reached.set()

    def on_close(self, comm, exc):
        self.reached.set()

    async def until(self, count):
        """Wait until so many messages have come in all."""
        self.wanted = count
        self.reached.clear()
        if self.seen < count:
            await self.reached.wait()


class _Pair:
    """A listener and a connection to it on a loop of their own."""

    def __init__(self, way: str) -> None:
        self.protocol, backend, loop = way.split("/")
        settings = {"comm.uvloop": loop == "uvloop", **({} if backend == "-" else {"comm.backend": backend})}
        with config.set(settings):
            self.runner = asyncio.Runner(loop_factory=new_event_loop)
            self.run = self.runner.run
            self.run(self._open())

    async def _open(self):
        address = "inproc://" if self.protocol == "inproc" else f"{self.protocol}://127.0.0.1:0"
        security = security_for(self.protocol)
        self.far, self.near = _End(), _End()

        def on_comm(comm):
            self.far.comm = comm
            return Handlers(self.far.on_messages, self.far.on_close)

        self.listener = await listen(address, on_comm, role="scheduler", security=security)
        self.near.comm = await connect(
            self.listener.contact_address,
            role="client",
            on_messages=self.near.on_messages,
            on_close=self.near.on_close,
            security=security,
        )
        self.far.echo = True
        self.near.comm.send([Request(0, "hello", {})])
        await self.near.until(1)
        self.far.echo = False

    def close(self):
        self.run(self._close())
        self.runner.close()

    async def _close(self):
        for end in (self.near, self.far):
            end.comm.close()
        for end in (self.near, self.far):
            await end.comm.wait_closed()
        self.listener.close()
        await self.listener.wait_closed()


class _OnPair:
    def setup(self, way, *rest):
        self.pair = _Pair(way)

    def teardown(self, way, *rest):
        self.pair.close()

    async def _send(self, batches):
        """Send batches, a loop turn each, until all have arrived."""
        near, far = self.pair.near, self.pair.far
        count = far.seen + sum(map(len, batches))
        for batch in batches:
            near.comm.send(batch)
            await asyncio.sleep(0)
        await far.until(count)


class Latency(_OnPair):
    """Round trips of one message, one after the other."""

    params = (_WAYS, [0, 100_000])
    param_names = ("way", "size")

    def time_round_trips(self, way, size):
        self.pair.run(self._round_trips({"data": bytes(size)}))

    async def _round_trips(self, arguments):
        near, far = self.pair.near, self.pair.far
        far.echo = True
        for i in range(_ROUND_TRIPS):
            near.comm.send([Request(i, "echo", arguments)])
            await near.until(near.seen + 1)
        far.echo = False


class Bandwidth(_OnPair):
    """Large messages one way."""

    params = (_WAYS, and_large([1_000_000], 16_000_000))
    param_names = ("way", "size")

    def setup(self, way, size):
        super().setup(way)
        self.batches = [[Request(i, "data", {"data": bytes(size)})] for i in range(max(2, 16_000_000 // size))]

    def time_send(self, way, size):
        self.pair.run(self._send(self.batches))


class Burst(_OnPair):
    """Many small messages: in one loop turn, and a turn each."""

    params = (_WAYS, ["one turn", "a turn each"])
    param_names = ("way", "turns")

    def setup(self, way, turns):
        super().setup(way)
        messages = [Request(i, "small", {"number": i}) for i in range(_BURST)]
        self.batches = [[message] for message in messages]
        self.at_once = turns == "one turn"

    def time_send(self, way, turns):
        self.pair.run(self._send_in_one_turn() if self.at_once else self._send(self.batches))

    async def _send_in_one_turn(self):
        near, far = self.pair.near, self.pair.far
        count = far.seen + _BURST
        for batch in self.batches:
            near.comm.send(batch)
        await far.until(count)


class Counters(_OnPair):
    """What a burst in one loop turn costs in bytes and system calls, whatever the machine."""

    params = (["tcp/asyncio/uvloop", "tls/asyncio/uvloop", "tcp/tornado/uvloop"],)
    param_names = ("way",)

    def setup(self, way):
        super().setup(way)
        self.batches = [[Request(i, "small", {"number": i})] for i in range(_BURST)]

    def _spent(self, field):
        counters = self.pair.near.comm.counters
        before = getattr(counters, field)
        self.pair.run(self._burst())
        return (getattr(counters, field) - before) / _BURST

    async def _burst(self):
        near, far = self.pair.near, self.pair.far
        count = far.seen + _BURST
        for batch in self.batches:
            near.comm.send(batch)
        await far.until(count)

    def track_bytes(self, way):
        return self._spent("bytes_sent")

    track_bytes.unit = "bytes/message"

    def track_writes(self, way):
        return self._spent("writes")

    track_writes.unit = "writes/message"


class Framing:
    """Frames without a socket: many small ones cut from the bytes of a stream, and made of small messages."""

    def setup(self):
        self.messages = [[Request(i, "small", {"number": i})] for i in range(_BURST)]
        self.stream = memoryview(b"".join(map(_framed, self.messages)))

    def time_read(self):
        for _ in range(10):
            reader = FrameReader(USUAL_BUFFER)
            reader.usual = USUAL_BUFFER
            at = found = 0
            while at < len(self.stream):
                buffer = reader.get_buffer()
                taken = self.stream[at : at + len(buffer)]
                buffer[: len(taken)] = taken
                reader.advance(len(taken))
                at += len(taken)
                while reader.next_frame() is not None:
                    found += 1
            if found != _BURST:
                raise AssertionError(f"{found} frames of {_BURST}")

    def time_write(self):
        for messages in self.messages:
            _framed(messages)


class Instructions(callgrind.Counted):
    """Instructions per small frame, by valgrind's callgrind."""

    params = (["read", "write"],)
    param_names = ("way",)

    def track_instructions(self, counted, way):
        return counted[f"{way} frames"]

    track_instructions.unit = "instructions/frame"


def _framed(messages):
    """The bytes of a small batch on the wire."""
    (body,) = encode_batches(messages, USUAL_BUFFER)
    return prefix(body) + body


class Connecting:
    """Connections with their handshakes, one after the other."""

    params = (["tcp", "tls", "inproc"],)
    param_names = ("protocol",)

    def time_connect(self, protocol):
        for _ in range(3):
            _Pair(f"{protocol}/-/uvloop").close()
