"""What every transport promises, tested on each of them alike."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from gnomon.runtime import config
from gnomon.runtime.comm import Comm, new_event_loop
from gnomon.runtime.errors import (
    CommClosedError,
    ConnectTimeoutError,
    FrameTooLargeError,
    HandshakeError,
    PeerError,
)
from gnomon.runtime.messages import ByReference, Message, PutValues

from .conftest import End, Server, Transport, connected, message

Run = Callable[..., Any]


async def pair(transport: Transport) -> tuple[Server, Comm, End, End]:
    """A server with one client: the server, the client's comm, the client's end and the server's end."""
    server = await Server().start(transport.address, security=transport.security)
    comm, end = await connected(server.address, security=transport.security)
    return server, comm, end, await server.end()


def test_both_sides_know_who_they_talk_to(run: Run, transport: Transport) -> None:
    async def main() -> None:
        server = await Server().start(
            transport.address, security=transport.security, info={"name": "s", "cluster": "c1"}
        )
        comm, _ = await connected(server.address, security=transport.security, role="worker", info={"name": "w"})
        other = (await server.end()).comm
        assert other is not None
        assert (comm.peer.role, comm.peer.name, comm.peer.info) == ("scheduler", "s", {"name": "s", "cluster": "c1"})
        assert (other.peer.role, other.peer.name, other.peer.info) == ("worker", "w", {"name": "w"})
        assert comm.peer.address == server.address
        assert other.peer.address == comm.local_address
        assert comm.local_address.startswith(transport.address.partition("://")[0])
        await server.close()

    run(main())


def test_messages_arrive_in_order_both_ways(run: Run, transport: Transport) -> None:
    async def main() -> None:
        server, comm, end, other = await pair(transport)
        sent = [message(n) for n in range(2000)]
        for n in range(0, 2000, 4):
            comm.send(sent[n : n + 3])
            comm.send(sent[n + 3 : n + 4])
            other.comm.send(sent[n : n + 4])
            if n % 100 == 0:
                await asyncio.sleep(0)
        assert await other.received(2000) == sent
        assert await end.received(2000) == sent
        await server.close()

    run(main())


def test_what_is_sent_in_one_turn_is_one_write_and_one_callback(run: Run, transport: Transport) -> None:
    async def main() -> None:
        server, comm, _, other = await pair(transport)
        writes, received = comm.counters.writes, other.comm.counters.messages_received
        for n in range(50):
            comm.send([message(n)])
        await other.received(50)
        assert other.batches == [50]
        assert comm.counters.writes - writes == 1
        assert comm.counters.messages_sent == 50
        assert other.comm.counters.messages_received - received == 50
        if transport.by_socket:
            assert comm.counters.bytes_sent == other.comm.counters.bytes_received > 500
        else:
            assert comm.counters.bytes_sent == other.comm.counters.bytes_received == 0
        await server.close()

    run(main())


def test_an_empty_send_is_nothing(run: Run, transport: Transport) -> None:
    async def main() -> None:
        server, comm, _, other = await pair(transport)
        comm.send([])
        comm.send([message(1)])
        assert await other.received(1) == [message(1)]
        assert comm.counters.messages_sent == 1
        await server.close()

    run(main())


def test_large_batches_both_ways(run: Run, transport: Transport) -> None:
    async def main() -> None:
        server, comm, end, other = await pair(transport)
        large = [message(1), message(2, 20_000_000), message(3)]
        comm.send(large)
        other.comm.send(large)
        comm.send([message(4)])
        assert await other.received(4) == [*large, message(4)]
        assert await end.received(3) == large
        comm.send([message(5)])
        assert (await other.received(5))[-1] == message(5)
        await server.close()

    run(main())


@pytest.mark.parametrize("closer", ["client", "server"])
def test_close_flushes_and_the_other_side_sees_it(run: Run, transport: Transport, closer: str) -> None:
    async def main() -> None:
        server, comm, end, other = await pair(transport)
        sender, sender_end, receiver = (comm, end, other) if closer == "client" else (other.comm, other, end)
        sent = [message(1), message(2, 5_000_000), message(3)]
        sender.send(sent)
        sender.close()
        assert sender.closed
        with pytest.raises(CommClosedError):
            sender.send([message(4)])
        assert await receiver.closed() is None
        assert receiver.messages == sent
        assert await sender_end.closed() is None
        await sender.wait_closed()
        assert receiver.comm.closed
        with pytest.raises(CommClosedError):
            receiver.comm.send([message(4)])
        sender.close()
        await server.close()

    run(main())


def test_the_one_who_is_left_still_gets_its_last_words_out(run: Run, transport: Transport) -> None:
    async def main() -> None:
        server, comm, end, other = await pair(transport)
        other.on_batch = lambda comm, messages: comm.send([message(9)])
        comm.send([message(1)])
        comm.close()
        assert await other.closed() is None
        assert await end.closed() is None
        assert end.messages == [], "nothing is delivered after close"
        await server.close()

    run(main())


def test_both_close_at_once(run: Run, transport: Transport) -> None:
    async def main() -> None:
        server, comm, end, other = await pair(transport)
        comm.send([message(1)])
        comm.close()
        other.comm.close()
        assert await end.closed() is None
        assert await other.closed() is None
        await server.close()

    run(main())


def test_close_from_within_the_callback(run: Run, transport: Transport) -> None:
    async def main() -> None:
        server, comm, end, other = await pair(transport)

        def answer_and_leave(comm: Comm, messages: list[Message]) -> None:
            comm.send([message(2)])
            comm.close()

        other.on_batch = answer_and_leave
        comm.send([message(1)])
        assert await end.closed() is None
        assert end.messages == [message(2)]
        assert await other.closed() is None
        await server.close()

    run(main())


@pytest.mark.parametrize("aborter", ["client", "server"])
def test_abort_is_seen_as_a_loss(run: Run, transport: Transport, aborter: str) -> None:
    async def main() -> None:
        server, comm, end, other = await pair(transport)
        victim, victim_end, survivor = (comm, end, other) if aborter == "client" else (other.comm, other, end)
        victim.abort("as a test")
        assert victim.closed
        cause = await survivor.closed()
        assert isinstance(cause, CommClosedError)
        own = await victim_end.closed()
        assert isinstance(own, CommClosedError)
        assert "as a test" in str(own)
        victim.abort()
        await server.close()

    run(main())


def test_many_peers(run: Run, transport: Transport) -> None:
    async def main() -> None:
        server = await Server().start(transport.address, security=transport.security)
        pairs = await asyncio.gather(
            *(connected(server.address, security=transport.security, info={"name": f"c{n}"}) for n in range(40))
        )
        for n, (comm, _) in enumerate(pairs):
            comm.send([message(n)])
        for n in range(40):
            end = await server.end(n)
            await end.received(1)
            end.comm.send(end.messages)
        for n, (comm, end) in enumerate(pairs):
            assert await end.received(1) == [message(n)]
            assert comm.peer.name == "the scheduler"
        assert {end.comm.peer.name for end in server.ends} == {f"c{n}" for n in range(40)}
        await server.close()

    run(main())


def test_no_callback_before_connect_has_returned(run: Run, transport: Transport) -> None:
    async def main() -> None:
        server = Server()
        server.greeting = [message(1), message(2)]
        await server.start(transport.address, security=transport.security)
        comm, end = await connected(server.address, security=transport.security)
        assert end.messages == []
        comm.send([message(3)])
        assert await end.received(2) == server.greeting
        assert await (await server.end()).received(1) == [message(3)]
        await server.close()

    run(main())


def test_a_peer_that_leaves_at_once_is_still_heard(run: Run, transport: Transport) -> None:
    async def main() -> None:
        server = Server()
        server.greeting = [message(1)]
        await server.start(transport.address, security=transport.security)
        loop = asyncio.get_running_loop()
        server.on_accept = lambda comm: loop.call_soon(comm.close)
        _, end = await connected(server.address, security=transport.security)
        assert await end.closed() is None
        assert end.messages == server.greeting
        await server.close()

    run(main())


def test_a_callback_may_condemn_its_peer_and_no_other(
    run: Run, transport: Transport, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        server, comm, end, other = await pair(transport)
        good, good_end = await connected(server.address, security=transport.security)

        def condemn(comm: Comm, messages: list[Message]) -> None:
            raise PeerError("no such task")

        other.on_batch = condemn
        comm.send([message(1)])
        assert isinstance(await end.closed(), CommClosedError)
        cause = await other.closed()
        assert isinstance(cause, PeerError)
        assert "no such task" in str(cause)
        good.send([message(2)])
        assert await (await server.end(1)).received(1) == [message(2)]
        assert not good_end.closes
        await server.close()

    run(main())
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "no such task" in caplog.text


def test_a_callback_that_fails_is_our_fault_and_said(run: Run, transport: Transport) -> None:
    seen: list[dict[str, Any]] = []

    async def main() -> None:
        server, comm, end, other = await pair(transport)
        asyncio.get_running_loop().set_exception_handler(lambda _, context: seen.append(context))

        def fail(comm: Comm, messages: list[Message]) -> None:
            raise RuntimeError("a bug")

        other.on_batch = fail
        comm.send([message(1)])
        assert isinstance(await end.closed(), CommClosedError)
        assert isinstance(await other.closed(), CommClosedError)
        await server.close()

    run(main())
    assert [str(context["exception"]) for context in seen] == ["a bug"]


def test_an_owner_may_refuse_a_comm(run: Run, transport: Transport, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        server = Server()

        def refuse(comm: Comm) -> None:
            raise PeerError("not today")

        server.on_accept = refuse
        await server.start(transport.address, security=transport.security)
        _, end = await connected(server.address, security=transport.security)
        assert isinstance(await end.closed(), CommClosedError)
        await server.close()

    run(main())
    assert "not today" in caplog.text


def test_roles_are_held_to(run: Run, transport: Transport) -> None:
    async def main() -> None:
        server = await Server().start(transport.address, security=transport.security, accept=("worker",))
        with pytest.raises(HandshakeError, match="talks to a worker, not to a client"):
            await connected(server.address, security=transport.security)
        with pytest.raises(HandshakeError, match="is a scheduler; this side talks to a worker"):
            await connected(server.address, security=transport.security, role="worker", expect=("worker",))
        assert server.ends == []
        await server.close()

    run(main())


def test_comms_outlive_their_listener(run: Run, transport: Transport) -> None:
    async def main() -> None:
        server, comm, _, other = await pair(transport)
        server.listener.close()
        await server.listener.wait_closed()
        comm.send([message(1)])
        assert await other.received(1) == [message(1)]
        with pytest.raises(ConnectTimeoutError, match="nobody accepted"):
            await connected(server.address, security=transport.security, timeout=0.2)
        await server.close()

    run(main())


def test_connect_waits_for_one_who_comes_late(run: Run, transport: Transport) -> None:
    async def main() -> None:
        first = await Server().start(transport.address, security=transport.security)
        address = first.address
        await first.close()
        connecting = asyncio.create_task(connected(address, security=transport.security))
        await asyncio.sleep(0.05)  # some attempts are refused in the meantime
        assert not connecting.done()
        second = await Server().start(address, security=transport.security)
        comm, _ = await connecting
        comm.send([message(1)])
        assert await (await second.end()).received(1) == [message(1)]
        await second.close()

    run(main())


def test_an_address_is_free_again_after_close(run: Run, transport: Transport) -> None:
    async def main() -> None:
        first = await Server().start(transport.address, security=transport.security)
        address = first.address
        with pytest.raises(OSError, match=r"in use|bind"):
            await Server().start(address, security=transport.security)
        await connected(address, security=transport.security)
        await first.close()
        second = await Server().start(address, security=transport.security)
        await second.close()

    run(main())


@pytest.mark.parametrize("turns", [0, 1, 3, 8, 13])
def test_cancelling_connect_leaves_nothing(run: Run, transport: Transport, turns: int) -> None:
    async def main() -> None:
        server = await Server().start(transport.address, security=transport.security)
        connecting = asyncio.create_task(connected(server.address, security=transport.security))
        for _ in range(turns):
            await asyncio.sleep(0)
        connecting.cancel()
        try:
            comm, _ = await connecting
        except asyncio.CancelledError:
            pass
        else:
            comm.close()
            await comm.wait_closed()
        again, _ = await connected(server.address, security=transport.security)
        again.send([message(1)])
        await (await server.end(len(server.ends) - 1)).received(1)
        await server.close()

    run(main())


def test_loops_of_two_threads(run: Run, transport: Transport) -> None:
    """A server on a thread of its own; what is sent between the threads keeps its order."""

    async def serve(tell: Callable[[str], None]) -> None:
        server = Server()
        server.on_batch = lambda comm, messages: comm.send(messages)
        await server.start(transport.address, security=transport.security)
        tell(server.address)
        await (await server.end()).closed()
        await server.close()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        ready = loop.create_future()

        def thread() -> None:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(serve(lambda address: loop.call_soon_threadsafe(ready.set_result, address)))

        worker = threading.Thread(target=thread)
        worker.start()
        comm, end = await connected(await ready, security=transport.security)
        for n in range(500):
            comm.send([message(n)])
            if n % 10 == 0:
                await asyncio.sleep(0)
        assert await end.received(500) == [message(n) for n in range(500)]
        comm.close()
        assert await end.closed() is None
        await asyncio.to_thread(worker.join)

    run(main())


def test_objects_by_reference(run: Run, transport: Transport) -> None:
    async def main() -> None:
        server, comm, _, other = await pair(transport)
        lock = threading.Lock()
        by_reference = PutValues((1,), (ByReference(lock),))
        if transport.by_socket:
            with pytest.raises(TypeError):
                comm.send([message(1), by_reference])
            comm.send([message(2)])
            assert await other.received(1) == [message(2)]
        else:
            comm.send([by_reference])
            (received,) = await other.received(1)
            assert received is by_reference
        await server.close()

    run(main())


def test_batches_over_the_limit_are_split_and_one_message_is_refused(run: Run, wire: Transport) -> None:
    async def main() -> None:
        with config.set({"comm.max_frame": 100_000}):
            server, comm, _, other = await pair(wire)
        sent = [message(n, 30_000) for n in range(20)]
        comm.send(sent)
        with pytest.raises(FrameTooLargeError, match=r"Request of 100\d\d\d bytes"):
            comm.send([message(1), message(2, 100_000)])
        comm.send([message(99)])
        assert await other.received(21) == [*sent, message(99)]
        await server.close()

    run(main())


def test_the_backlog_of_a_slow_reader_is_seen_and_drains(run: Run, wire: Transport) -> None:
    async def main() -> None:
        server, comm, _, other = await pair(wire)
        for n in range(30):
            comm.send([message(n, 1_000_000)])
        assert comm.backlog > 29_000_000
        await other.received(30)
        assert comm.backlog < 1_000_000
        assert [request_id for request_id, _, _ in other.messages] == list(range(30))
        await server.close()

    run(main())
