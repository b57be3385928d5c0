"""The workers of a cluster: starting them side by side, closing some, and replacing those that die.

A worker that leaves in good order (told to, retired, or its scheduler is gone) is not replaced. One that dies is, under
the same name, unless it keeps dying. What a worker is, and where it runs, is the business of the units that
``hire`` makes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gnomon.runtime.clock import now
from gnomon.runtime.deploy.units import Unit
from gnomon.runtime.errors import ClusterError

__all__ = ["Crew"]

logger = logging.getLogger(__name__)

_QUICK_DEATH = 30.0  # seconds; a worker that dies younger counts against its name
_QUICK_DEATHS = 3  # in a row, after which a name is given up
_PAUSE = 0.5  # seconds before a second replacement in a row; doubles with each


class Crew:
    """Workers by name; loop-bound.

    Fields:
        units: those that are up, or were and are being replaced.
        given_up: names of those that kept dying.
    """

    def __init__(self, hire: Callable[[str], Unit]) -> None:
        self._hire = hire
        self._address = ""
        self._options: dict[str, Mapping[str, Any]] = {}
        self._ready: dict[str, Unit] = {}
        self._keepers: dict[str, asyncio.Task[None]] = {}
        self._replacing = True
        self.units: dict[str, Unit] = {}
        self.given_up: list[str] = []

    async def prepare(self, names: Iterable[str]) -> None:
        """Spawn these ahead of ``start``, while the scheduler comes up."""
        for name in names:
            unit = self._ready[name] = self._hire(name)
            await unit.prepare()

    async def start(self, scheduler_address: str, options: Mapping[str, Mapping[str, Any]]) -> None:
        """Start one worker per name in ``options``, all at once.

        Raises ClusterError if one can't start; those that did are closed again.
        """
        self._address = scheduler_address
        self._options.update(options)
        starting = {name: asyncio.ensure_future(self._start_one(name)) for name in options}
        try:
            for task in starting.values():
                await task
        except BaseException:
            for task in starting.values():
                task.cancel()
            await asyncio.wait(starting.values())
            await self.dismiss(options, "another worker could not start")
            raise
        for name in options:
            self._keepers[name] = asyncio.ensure_future(self._keep(name))

    async def _start_one(self, name: str) -> None:
        unit = self._ready.pop(name, None) or self._hire(name)
        self.units[name] = unit
        await unit.start((self._address,), self._options[name])

    async def _keep(self, name: str) -> None:
        """Follow one worker, and replace it when it dies."""
        deaths = 0
        while True:
            began = now()
            how = await self.units[name].wait_ended()
            if not how or not self._replacing:
                break
            deaths = deaths + 1 if now() - began < _QUICK_DEATH else 1
            if deaths > _QUICK_DEATHS:
                logger.error("%s; it died %d times in a row and is not replaced", how, deaths)
                self.given_up.append(name)
                break
            logger.warning("%s; another one takes its place", how)
            if deaths > 1:
                await asyncio.sleep(_PAUSE * 2 ** (deaths - 2))
            try:
                await self._start_one(name)
            except ClusterError as exc:
                logger.warning("%s", exc)
        self._forget(name)

    def _forget(self, name: str) -> None:
        self.units.pop(name, None)
        self._options.pop(name, None)
        self._keepers.pop(name, None)

    def stop_replacing(self) -> None:
        """From now on the dead stay dead: the scheduler is gone, or the cluster closes."""
        self._replacing = False

    async def dismiss(self, names: Iterable[str], reason: str) -> None:
        """Close these workers, side by side."""
        names = list(names)
        keepers = [keeper for name in names if (keeper := self._keepers.pop(name, None)) is not None]
        for keeper in keepers:
            keeper.cancel()
        if keepers:
            await asyncio.wait(keepers)
        units = [unit for name in names for unit in (self.units.get(name), self._ready.pop(name, None)) if unit]
        await asyncio.gather(*(unit.close(reason) for unit in units))
        for name in names:
            self._forget(name)

    async def close(self, reason: str) -> None:
        """Close all."""
        self.stop_replacing()
        await self.dismiss({**self.units, **self._ready}, reason)

    async def wait_empty(self) -> None:
        """Wait until no worker is left."""
        while self._keepers:
            await asyncio.wait(self._keepers.values())
