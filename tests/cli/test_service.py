"""Running in the foreground: signals, exit codes, files."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading

import click
import pytest

from gnomon.runtime.cli.service import process_file, read_scheduler_file, scheduler_file, serve
from gnomon.runtime.errors import ClusterError


class StandIn:
    """A server that remembers how it was treated."""

    def __init__(self, error=None, starts=True):
        self.error = error
        self.starts = starts
        self.reason = None
        self.end = asyncio.Event()

    async def start(self):
        if self.error is not None:
            raise self.error
        if not self.starts:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(600)

    async def close(self, reason=""):
        self.reason = reason
        self.end.set()

    async def finished(self):
        await self.end.wait()


def signal_me(number):
    return lambda: os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_closes(number):
    built = []
    serve("it", lambda: built.append(StandIn()) or built[0], signal_me(number))
    assert built[0].reason == f"got {number.name}"


def test_signal_while_it_starts():
    built = []
    serve("it", lambda: built.append(StandIn(starts=False)) or built[0], lambda: pytest.fail("it never started"))
    assert built[0].reason == "got SIGTERM"


def test_end_by_itself():
    built = []
    serve("it", lambda: built.append(StandIn()) or built[0], lambda: built[0].end.set())  # noqa: PLW0108
    assert built[0].reason is None


@pytest.mark.parametrize("error", [ClusterError("no luck"), OSError("no luck"), ValueError("no luck")])
def test_failure_to_start_is_one_line(error):
    with pytest.raises(click.ClickException, match=r"^(it: )?no luck$") as caught:
        serve("it", lambda: StandIn(error), lambda: pytest.fail("it never started"))
    assert caught.value.exit_code == 1


def test_process_file(tmp_path):
    path = tmp_path / "pid"
    with process_file(str(path)):
        assert int(path.read_text()) == os.getpid()
    assert not list(tmp_path.iterdir())
    with process_file(None):
        pass


def test_process_file_that_cannot_be_written(tmp_path):
    with pytest.raises(click.ClickException, match="can't be written"), process_file(str(tmp_path / "no" / "pid")):
        pytest.fail("unreachable")


def test_scheduler_file(tmp_path):
    path = tmp_path / "scheduler.json"
    with scheduler_file(str(path)) as write:
        assert not path.exists()
        write("tcp://127.0.0.1:5000")
        assert read_scheduler_file(str(path)) == "tcp://127.0.0.1:5000"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", "[]", "5", json.dumps({"adress": "x"})])
def test_no_scheduler_file(tmp_path, text):
    path = tmp_path / "scheduler.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="no scheduler file"):
        read_scheduler_file(str(path))


def test_no_thread_is_left():
    before = threading.active_count()
    serve("it", StandIn, signal_me(signal.SIGINT))
    assert threading.active_count() == before
