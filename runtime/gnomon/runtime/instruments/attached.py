"""The instruments of an owner that has an event loop: imported and started beside it, once there is time.

Importing them takes as long as a tenth of a process's start-up; nobody waits for it. Until they are there nothing is
measured, and what is asked has no answer.

Contents: Attached.
"""

from __future__ import annotations

import asyncio
from math import nan
from typing import TYPE_CHECKING, Any

from gnomon.runtime.config import InstrumentSettings
from gnomon.runtime.instruments.looptime import LoopTime
from gnomon.runtime.instruments.offloop import off_loop

if TYPE_CHECKING:
    from gnomon.runtime.instruments.carried import Instruments

__all__ = ["Attached"]


class Attached:
    """See the module. All methods are called on the loop; arguments as those of ``carried.Instruments``."""

    def __init__(self, process: str, settings: InstrumentSettings, *, children: bool = False) -> None:
        self._process = process
        self._settings = settings
        self._children = children
        self._instruments: Instruments | None = None
        self._beginning: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, soon."""
        if self._settings.enabled:
            self._beginning = asyncio.get_running_loop().create_task(self._begin(), name="gnomon instruments")

    async def _begin(self) -> None:
        kind = await off_loop(_load, "gnomon-instruments")
        self._instruments = kind(self._process, self._settings, children=self._children)
        self._instruments.start(asyncio.get_running_loop())

    def stop(self) -> None:
        """End. Idempotent."""
        if self._beginning is not None:
            self._beginning.cancel()
        if self._instruments is not None:
            self._instruments.stop()

    def rest(self) -> None:
        """The owner has nothing to do for now."""
        if self._instruments is not None:
            self._instruments.rest()

    def wake(self) -> None:
        """It has again."""
        if self._instruments is not None:
            self._instruments.wake()

    def report(self, tasks: float = nan) -> dict[str, Any]:
        """What was measured since the last time; see ``carried.Instruments.report``."""
        return {} if self._instruments is None else self._instruments.report(tasks)

    def loop_time(self) -> LoopTime | None:
        """See ``carried.Instruments.loop_time``."""
        return None if self._instruments is None else self._instruments.loop_time()

    async def profile(self, start: float | None = None, stop: float | None = None) -> bytes:
        """The packed session of the threads that run no tasks, made off the loop; empty if nobody samples."""
        instruments = self._instruments
        if instruments is None:
            return b""
        return await off_loop(lambda: instruments.profile(start, stop), "gnomon-profile")


def _load() -> type[Instruments]:
    from gnomon.runtime.instruments.carried import Instruments  # see the module's head

    return Instruments
