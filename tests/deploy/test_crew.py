"""The workers of a cluster: started together, replaced when they die, given up when they keep dying."""

from __future__ import annotations

import asyncio
import logging
import os
import signal

import pytest

from gnomon.runtime.deploy.crew import Crew
from gnomon.runtime.deploy.process import ChildProcess
from gnomon.runtime.errors import ClusterError

pytestmark = pytest.mark.usefixtures("stand_ins")


def make_crew(target="Quiet"):
    return Crew(lambda name: ChildProcess(f"stand_in_servers:{target}", f"worker {name}"))


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


def test_starts_closes_some_and_all():
    async def main():
        crew = make_crew()
        await crew.prepare(["a"])
        await crew.start("nowhere", {"a": {}, "b": {}, "c": {}})
        assert sorted(crew.units) == ["a", "b", "c"]
        await crew.dismiss(["b"], "too many")
        assert sorted(crew.units) == ["a", "c"]
        await crew.close("done")
        assert not crew.units
        await crew.wait_empty()

    asyncio.run(main())


def test_one_that_dies_is_replaced(caplog):
    async def main():
        crew = make_crew()
        await crew.start("nowhere", {"a": {}, "b": {}})
        kept, killed = crew.units["a"].pid, crew.units["b"].pid
        os.kill(killed, signal.SIGKILL)
        await until(lambda: crew.units["b"].pid not in (killed, None) and crew.units["b"].address)
        assert crew.units["a"].pid == kept
        await crew.close("done")

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert "was killed by SIGKILL; another one takes its place" in caplog.text


def test_one_that_leaves_in_order_is_not_replaced():
    async def main():
        crew = make_crew("Leaves")
        await crew.start("nowhere", {"a": {}})
        await crew.wait_empty()
        assert not crew.units

    asyncio.run(main())


def test_one_that_keeps_dying_is_given_up(tmp_path, caplog):
    async def main():
        crew = make_crew("DiesLater")
        fuse = tmp_path / "fuse"
        await crew.start("nowhere", {"a": {"fuse": str(fuse)}})
        fuse.touch()
        await crew.wait_empty()
        assert crew.given_up == ["a"]
        assert not crew.units

    asyncio.run(main())
    assert "is not replaced" in caplog.text


def test_the_dead_stay_dead_when_the_scheduler_is_gone():
    async def main():
        crew = make_crew()
        await crew.start("nowhere", {"a": {}})
        crew.stop_replacing()
        os.kill(crew.units["a"].pid, signal.SIGKILL)
        await crew.wait_empty()
        assert not crew.units

    asyncio.run(main())


def test_one_that_cannot_start_takes_the_others_with_it():
    def hire(name):
        return ChildProcess(f"stand_in_servers:{'Refuses' if name == 'bad' else 'Quiet'}", f"worker {name}")

    async def main():
        crew = Crew(hire)
        with pytest.raises(ClusterError, match="worker bad could not start"):
            await crew.start("nowhere", {"a": {}, "bad": {}})
        assert not crew.units

    asyncio.run(main())


def test_close_during_a_replacement():
    async def main():
        crew = make_crew()
        await crew.start("nowhere", {"a": {}})
        killed = crew.units["a"].pid
        os.kill(killed, signal.SIGKILL)
        await until(lambda: crew.units["a"].pid != killed)
        await crew.close("done")
        assert not crew.units

    asyncio.run(main())
