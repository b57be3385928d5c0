"""What the tests of deployment share: waiting for states, stand-in servers, and the check that nothing is left."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import psutil
import pytest

DEADLINE = 30


@pytest.fixture
def wait_until():
    """Wait for a condition; fails with its name when the deadline passes."""

    def wait(condition, what="the condition", timeout=DEADLINE):
        deadline = time.monotonic() + timeout
        while not (result := condition()):
            if time.monotonic() > deadline:
                pytest.fail(f"{what} did not come about in {timeout} s")
            time.sleep(0.01)
        return result

    return wait


@pytest.fixture
def gone(wait_until):
    """Wait until processes are gone; zombies count as gone."""

    def is_gone(pid):
        try:
            return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    def wait(pids, timeout=DEADLINE):
        wait_until(lambda: all(is_gone(pid) for pid in pids), f"the end of {pids}", timeout)

    return wait


@pytest.fixture
def stand_ins(monkeypatch):
    """Make the stand-in servers importable, here and so in children."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "stand_ins"))


@pytest.fixture(autouse=True)
def no_leftovers(wait_until):
    """No process and no thread but daemons outlives a test."""
    processes = {child.pid for child in psutil.Process().children(recursive=True)}
    threads = set(threading.enumerate())
    yield

    def left():
        return [child for child in psutil.Process().children(recursive=True) if child.pid not in processes] or [
            thread for thread in threading.enumerate() if thread not in threads and not thread.daemon
        ]

    wait_until(lambda: not left(), f"the end of {left()}", 10)
