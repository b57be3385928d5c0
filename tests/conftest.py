"""What all tests need, wherever they are run from; and that none leaves anything behind.

After the last test of a module, when its fixtures are gone too, no thread of the engine, no thread that would keep the
interpreter from ending, no child process and no socket may be there that was not there before. What fixtures of the
whole session start is theirs.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Generator, Iterator
from typing import Any

import psutil
import pytest

from tests.browser import chromium_started

# Tests and the programs they start listen at any free port: the usual one may be another's.
os.environ.setdefault("GNOMON_DASHBOARD__ADDRESS", "127.0.0.1:0")

#: Seconds that threads and processes have to end once they were told to.
_PATIENCE = 15.0

#: Helpers that Python starts for itself, and ends with itself.
_PYTHONS_OWN = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")


class Present:
    """Threads, child processes and sockets of this process at some time."""

    def __init__(self) -> None:
        self.threads = {
            thread for thread in threading.enumerate() if not thread.daemon or thread.name.startswith("gnomon")
        }
        self.children = {child for child in psutil.Process().children() if not _pythons_own(child)}
        self.sockets = _sockets()

    def without(self, other: Present) -> list[str]:
        """What is here and not there, in words."""
        return [
            *[f"thread {thread.name}" for thread in self.threads - other.threads if thread.is_alive()],
            *[f"process {child.pid} {_command(child)}" for child in self.children - other.children],
            *[f"socket {name}" for name in sorted(self.sockets - other.sockets)],
        ]

    def add(self, before: Present, after: Present) -> None:
        """Count as here what came between two times."""
        self.threads |= after.threads - before.threads
        self.children |= after.children - before.children
        self.sockets |= after.sockets - before.sockets


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:200]
    except psutil.Error:
        return "(ended)"


def _pythons_own(process: psutil.Process) -> bool:
    return any(name in _command(process) for name in _PYTHONS_OWN)


def _sockets() -> set[str]:
    """The sockets that are open, by the name that the kernel gives each; none where it doesn't tell."""
    found = set()
    try:
        numbers = os.listdir("/proc/self/fd")
    except OSError:
        return found
    for number in numbers:
        try:
            name = os.readlink(f"/proc/self/fd/{number}")
        except OSError:  # the folder's own, closed again
            continue
        if name.startswith("socket:"):
            found.add(name)
    return found


_of_the_session: list[tuple[Present, Present]] = []


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Generator[None, Any, Any]:
    """Remember what fixtures of the whole session start."""
    if fixturedef.scope != "session":
        return (yield)
    before = Present()
    try:
        return (yield)
    finally:
        _of_the_session.append((before, Present()))


@pytest.fixture(autouse=True, scope="module")
def _nothing_is_left() -> Iterator[None]:
    """Fail the module's last test if the module leaves something behind."""
    before = Present()
    known = len(_of_the_session)
    yield
    for started in _of_the_session[known:]:
        before.add(*started)
    deadline = time.monotonic() + _PATIENCE
    while left := Present().without(before):
        if time.monotonic() > deadline:
            pytest.fail("left behind by tests of this module: " + "; ".join(left))
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def _ctrl_c() -> None:
    """Take Ctrl-C as a program started by hand does.

    A shell's background job is started deaf to it, as would be every program that tests start; and a loop that
    handled signals may leave its handler behind.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under nohup, and children inherit that


@pytest.fixture(scope="module")  # while it lives, its loop runs in this thread: no other test could run one
def chromium() -> Iterator[Any]:
    """A browser; the test is skipped where there is none."""
    with chromium_started() as browser:
        yield browser
