"""What all tests need, wherever they are run from."""

from __future__ import annotations

import signal
import threading

import pytest


@pytest.fixture(autouse=True)
def _ctrl_c() -> None:
    """Take Ctrl-C as a program started by hand does.

    A shell's background job is started deaf to it, as would be every program that tests start; and a loop that
    handled signals may leave its handler behind.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
