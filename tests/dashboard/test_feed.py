"""The stream: one whatever the number of viewers, none without; it comes back by itself, and never fails a viewer."""

from __future__ import annotations

import asyncio
import logging

import pytest

from gnomon.reports.dashboard import feed as module
from gnomon.reports.dashboard.feed import DashboardUnavailable, Feed
from gnomon.runtime import CommError
from gnomon.runtime.scheduler import counters


class Line:
    """A connection to a scheduler that is driven by hand, and what went over it."""

    def __init__(self, scheduler):
        self.scheduler = scheduler
        self.asked = []
        self.opened = 0
        self.down = False
        self.spoil = False
        self.news = asyncio.Event()

    async def connect(self):
        if self.down:
            raise CommError("nobody there")
        self.opened += 1
        return self

    async def request(self, method, **arguments):
        if self.down:
            raise CommError("gone")
        self.asked.append(method)
        self.news.set()
        if method != "live":
            return {"method": method, **arguments}
        answer = self.scheduler.live(**arguments)
        self.scheduler.now += 1.0
        return {"id": "x"} if self.spoil else answer

    async def close(self):
        pass

    async def questions(self, more):
        """Wait for so many further questions."""
        wanted = len(self.asked) + more
        while len(self.asked) < wanted:
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), 60)


@pytest.fixture
def running(by_hand):
    """Runs a coroutine function with a feed and its line."""

    def run(body):
        async def main():
            line = Line(by_hand())
            feed = Feed("tcp://nowhere", interval=0.01, connect=line.connect)
            await feed.start()
            try:
                async with asyncio.timeout(100):
                    await body(feed, line)
            finally:
                await feed.close()

        asyncio.run(main())

    return run


async def some_turns():
    for _ in range(20):
        await asyncio.sleep(0.005)


def test_nothing_is_asked_while_nobody_looks(running):
    async def body(feed, line):
        await some_turns()
        assert (line.asked, line.opened) == ([], 0)
        look = feed.look()
        await line.questions(3)
        look.close()
        await some_turns()
        asked = len(line.asked)
        await some_turns()
        assert len(line.asked) <= asked + 1  # one may have been under way

    running(body)


def test_hidden_viewers_stop_the_stream_and_it_goes_on_where_it_was(running):
    async def body(feed, line):
        look = feed.look()
        await line.questions(2)
        look.show(False)
        await some_turns()
        version, number = feed.model.version, feed.model.next
        await some_turns()
        assert feed.model.version == version
        look.show(True)
        await line.questions(2)
        assert feed.model.version > version
        assert feed.model.next >= number
        assert line.opened == 1

    running(body)


def test_many_viewers_share_one_stream(running):
    async def body(feed, line):
        heard = []
        looks = [feed.look() for _ in range(10)]
        for at, look in enumerate(looks):
            look.on_data = lambda at=at: heard.append(at)
        await line.questions(5)
        await some_turns()
        rounds = heard.count(0)
        assert rounds >= 4
        assert {heard.count(at) for at in range(10)} <= {rounds, rounds - 1}
        assert len(line.asked) <= rounds + 1
        assert line.opened == 1

    running(body)


def test_one_viewer_that_fails_takes_nothing_from_the_others(running, caplog):
    async def body(feed, line):
        heard = []
        feed.look().on_data = lambda: 1 / 0
        feed.look().on_data = lambda: heard.append(1)
        await line.questions(3)
        assert heard

    with caplog.at_level(logging.CRITICAL + 1):
        running(body)


def test_it_comes_back_when_the_scheduler_does(running):
    async def body(feed, line):
        feed.look()
        await line.questions(2)
        assert feed.model.connected
        line.down = True
        while feed.model.retries < 3:
            await asyncio.sleep(0.005)
        assert not feed.model.connected
        assert feed.model.counters is not None  # what was known is still shown
        assert feed.age() > 0
        with pytest.raises(DashboardUnavailable):
            await feed.request("story", key="x")
        line.down = False
        await line.questions(2)
        while not feed.model.connected:
            await asyncio.sleep(0.005)
        assert line.opened == 2
        assert feed.model.retries == 0
        assert [event.kind for event in feed.model.events].count("connection") == 1

    running(body)


def test_an_answer_that_makes_no_sense_is_survived_and_told_once(running, caplog):
    async def body(feed, line):
        feed.look()
        await line.questions(1)
        line.spoil = True
        await line.questions(3)
        line.spoil = False
        await line.questions(2)
        while feed.model.counters is None:
            await asyncio.sleep(0.005)

    with caplog.at_level(logging.ERROR):
        running(body)
    assert len([record for record in caplog.records if record.exc_info]) == 1


def test_fresh_data_are_waited_for_but_not_for_ever(running):
    async def body(feed, line):
        await feed.fresh(age=1.0)
        assert feed.model.counters is not None
        asked = len(line.asked)
        await feed.fresh(age=1000.0)
        assert asked <= len(line.asked) <= asked + 1
        line.down = True
        await feed.fresh(age=0.0, timeout=0.05)  # gives up

    running(body)


def test_the_scheduler_knows_that_it_only_looks():
    assert module._NAME == counters.DASHBOARD


def test_questions_of_pages(running):
    async def body(feed, line):
        assert await feed.request("story", key="x") == {"method": "story", "key": "x"}
        assert line.asked == ["story"]

    running(body)


def test_rows_that_come_too_fast_are_left_out(running):
    async def body(feed, line):
        feed.model.limit = 200_000  # so that none has to go for want of room
        line.scheduler.join(1)
        feed.look()
        await line.questions(1)
        for _ in range(30):
            line.scheduler.run(*[("a", 1, line.scheduler.now, 0.001)] * 5_000)
            line.scheduler.now += 1.0
            await line.questions(1)
        while feed.model.recording(feed.model.begin).prefixes[0].tasks < 150_000:
            await asyncio.sleep(0.01)
        without_rows = sum(gap.rows for gap in feed.model.gaps)
        assert feed.model.missed.get("runs", 0) == without_rows
        kept = len(feed.model.recording(feed.model.begin).runs.begins)
        assert kept + without_rows + feed.model.behind == 150_000

    running(body)
