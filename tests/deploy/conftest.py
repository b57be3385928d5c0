"""What the tests of deployment share: waiting for states, stand-in servers, and the check that nothing is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.waiting import is_gone, nothing_left, waiter

DEADLINE = 30


@pytest.fixture
def wait_until():
    """Wait for a condition; fails with its name when the deadline passes."""
    return waiter(DEADLINE)


@pytest.fixture
def gone(wait_until):
    """Wait until processes are gone; zombies count as gone."""

    def wait(pids, timeout=DEADLINE):
        wait_until(lambda: all(map(is_gone, pids)), f"the end of {pids}", timeout)

    return wait


@pytest.fixture
def stand_ins(monkeypatch):
    """Make the stand-in servers importable, here and so in children."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "stand_ins"))


@pytest.fixture(autouse=True)
def no_leftovers(wait_until):
    """No process and no thread but daemons outlives a test."""
    with nothing_left(wait_until, 10):
        yield
