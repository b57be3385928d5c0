"""What all tests need, wherever they are run from."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Take Ctrl-C: a shell's background job is started deaf to it, and so would be every program that tests start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
