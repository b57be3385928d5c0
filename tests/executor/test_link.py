"""Frames and descriptors between agent and child."""

import asyncio
import os
import socket
import struct

import pytest

from gnomon.runtime.messages import DropValues, PutSegments, PutValues, ValueEncoded
from gnomon.runtime.worker.executor.link import AgentLink, ChildLink, LinkError, frames
from gnomon.runtime.worker.executor.page import RunningPage


def test_one_frame_unless_there_are_very_many_descriptors():
    assert len(frames([DropValues((1,)), DropValues((2,))], [])) == 1
    rows = tuple(range(600))
    messages = [DropValues((1,)), PutSegments(rows, tuple((i,) for i in rows)), ValueEncoded(1, 1, (3,), None)]
    made = frames(messages, list(range(601)))
    assert [fd for _, fds in made for fd in fds] == list(range(601))
    assert max(len(fds) for _, fds in made) <= 250


def test_both_ways_with_descriptors_and_more_than_the_socket_takes():
    big = b"x" * 3_000_000
    read, write = os.pipe()

    async def main():
        ours, theirs = socket.socketpair()
        heard = []
        ended = asyncio.Event()
        link = AgentLink(
            asyncio.get_running_loop(), ours, lambda m, fds: heard.append((m, fds)), lambda error: ended.set()
        )
        child = ChildLink(theirs)
        link.send([PutValues((1,), (big,))])
        link.send([PutSegments((2,), ((5,),))], [write])
        assert await asyncio.to_thread(child.receive) == ([PutValues((1,), (big,))], [])
        messages, fds = await asyncio.to_thread(child.receive)
        assert messages == [PutSegments((2,), ((5,),))]
        assert not os.get_inheritable(fds[0])
        os.write(fds[0], b"hello")
        await asyncio.to_thread(child.send, [PutValues((3,), (big,)), ValueEncoded(1, 2, (5,), None)], fds)
        while not heard:
            await asyncio.sleep(0)
        ((messages, fds),) = heard
        assert messages[0].values == (big,)
        os.write(fds[0], b" again")
        os.close(fds[0])
        theirs.close()
        await ended.wait()
        link.close()
        link.close()
        link.send([DropValues((1,))], [os.dup(read)])  # closes it

    asyncio.run(main())
    assert os.read(read, 100) == b"hello again"
    assert os.read(read, 100) == b""  # no descriptor of the other end is left
    os.close(read)


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<QI", 1 << 40, 0),
        struct.pack("<QI", 1, 5000),
        struct.pack("<QI", 1, 3) + b"\x90",
        struct.pack("<QI", 3, 0) + b"abc",
    ],
)
def test_damaged_streams(data):
    async def main():
        ours, theirs = socket.socketpair()
        ends = []
        link = AgentLink(asyncio.get_running_loop(), ours, lambda m, fds: None, ends.append)
        theirs.sendall(data)
        while not ends:
            await asyncio.sleep(0)
        assert isinstance(ends[0], LinkError)
        link.close()
        theirs.close()

    asyncio.run(main())


def test_page():
    page = RunningPage.create()
    other = RunningPage(os.dup(page.fd))
    other.cells[6] = 1 << 62
    other.cells[7] = 3
    assert page.running() == [(1 << 62, 3)]
    other.cells[7] = 0
    assert page.running() == []
    other.close()
    page.close_fd()
    page.close()
