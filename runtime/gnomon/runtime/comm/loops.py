"""The event loop our processes run on: uvloop where it is installed and wanted, else the standard one.

Contents: new_event_loop, for ``asyncio.Runner(loop_factory=...)``.
"""

from __future__ import annotations

import asyncio

from gnomon.runtime import config

__all__ = ["new_event_loop"]


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A new event loop, as the setting ``comm.uvloop`` wants it."""
    if config.get().comm.uvloop:
        try:
            import uvloop
        except ImportError:  # not made for this platform
            return asyncio.new_event_loop()
        loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        return loop
    return asyncio.new_event_loop()
