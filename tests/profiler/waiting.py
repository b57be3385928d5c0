"""Waiting for a state, with a deadline."""

from __future__ import annotations

import time

__all__ = ["wait_until"]


def wait_until(condition, seconds=20.0):
    """Wait until it holds; fails if it does not come to pass."""
    end = time.perf_counter() + seconds
    while not condition():
        assert time.perf_counter() < end, "it did not come to pass"
        time.sleep(0.001)
