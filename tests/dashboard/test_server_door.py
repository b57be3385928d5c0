"""The door to a dashboard: a process per knock that needs one, another when it died, none when too many did."""

from __future__ import annotations

import asyncio
import socket
from urllib.parse import urlsplit

import pytest

from gnomon.runtime import Security
from gnomon.runtime.deploy import dashboard as module
from gnomon.runtime.deploy.dashboard import DashboardDoor, parse_address
from gnomon.runtime.errors import ClusterError


class StandIn:
    """A process that answers, dies, or can't start, as it is told."""

    def __init__(self, given, accepts, starts=True):
        self.title = "a stand-in"
        self.address = ""
        self.pid = 1
        self.options = None
        self.ended = asyncio.Event()
        self._given = given
        self._accepts = accepts
        self._starts = starts

    async def prepare(self):
        pass

    async def start(self, arguments, options):
        self.arguments, self.options = arguments, options
        if not self._starts:
            raise ClusterError("it could not start")
        if self._accepts:
            sock = socket.socket(fileno=__import__("os").dup(self._given[0]))
            sock.setblocking(True)
            sock.accept()[0].close()
            sock.close()
        return ""

    async def close(self, reason):
        self.ended.set()

    async def wait_ended(self):
        await self.ended.wait()
        return "the stand-in was killed"


def knock(link):
    return socket.create_connection((urlsplit(link).hostname, urlsplit(link).port), timeout=60)


def run(body, **options):
    """Run a body with a door, and the processes that it hired."""

    async def main():
        hired = []

        def hire(target, given):
            hired.append(StandIn(given, **options))
            return hired[-1]

        door = DashboardDoor(":0", Security(), hire=hire)
        link = door.open()
        door.serve("tcp://127.0.0.1:1")
        try:
            async with asyncio.timeout(60):
                await body(door, link, hired)
        finally:
            await door.close("the test ends")

    asyncio.run(main())


async def until(condition):
    while not condition():
        await asyncio.sleep(0.005)


def test_a_knock_starts_one_process(monkeypatch):
    async def body(door, link, hired):
        await asyncio.sleep(0.05)
        assert hired == []
        with knock(link), knock(link):
            await until(lambda: hired and hired[0].options)
            await asyncio.sleep(0.05)
            assert len(hired) == 1
        assert hired[0].arguments == ("tcp://127.0.0.1:1",)
        assert hired[0].options["token"] == urlsplit(link).query.partition("=")[2]

    run(body, accepts=False)


def test_after_its_death_the_next_knock_starts_another(caplog):
    async def body(door, link, hired):
        with knock(link):
            await until(lambda: hired and hired[0].options)
        hired[0].ended.set()
        await until(lambda: "the next visitor" in caplog.text)
        await asyncio.sleep(0.05)
        assert len(hired) == 1  # nobody knocked
        with knock(link):
            await until(lambda: len(hired) == 2 and hired[1].options)

    run(body, accepts=True)


def test_one_that_keeps_dying_is_given_up(caplog, monkeypatch):
    monkeypatch.setattr(module, "_PAUSE", 0.001)

    async def body(door, link, hired):
        with knock(link):
            await until(lambda: not door.link)
        assert len(hired) == 4
        assert "there is no dashboard any more" in caplog.text
        with pytest.raises(ConnectionRefusedError):
            knock(link)

    run(body, accepts=False, starts=False)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (":8787", ("127.0.0.1", 8787)), (8787, ("127.0.0.1", 8787)), ("0", ("127.0.0.1", 0)), (None, None), ("", None),
        ("localhost:1", ("127.0.0.1", 1)), ("0.0.0.0:1", ("0.0.0.0", 1)), ("[::1]:1", ("::1", 1)), (False, None),
        ("http://10.0.0.5:80/", ("10.0.0.5", 80)),
    ],
)  # fmt: skip
def test_addresses(text, where):
    assert parse_address(text) == where
