"""What tests of processes wait for: a condition with a deadline, and that nothing is left behind.

Contents: waiter, is_gone, nothing_left.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest


def waiter(deadline: float, pause: float = 0.01) -> Callable[..., Any]:
    """A function that waits for a condition and gives its value; fails with its name when the deadline passes."""

    def wait(condition, what="the condition", timeout=deadline):
        until = time.monotonic() + timeout
        while not (result := condition()):
            if time.monotonic() > until:
                pytest.fail(f"{what} did not come about in {timeout} s")
            time.sleep(pause)
        return result

    return wait


def is_gone(pid: int) -> bool:
    """Whether a process has ended; zombies have."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@contextmanager
def nothing_left(wait: Callable[..., Any], patience: float) -> Iterator[None]:
    """No process and no thread but daemons outlives the block by more than ``patience`` seconds."""
    processes = {child.pid for child in psutil.Process().children(recursive=True)}
    threads = set(threading.enumerate())
    yield

    def left():
        return [child for child in psutil.Process().children(recursive=True) if child.pid not in processes] or [
            thread for thread in threading.enumerate() if thread not in threads and not thread.daemon
        ]

    wait(lambda: not left(), f"the end of {left()}", patience)
