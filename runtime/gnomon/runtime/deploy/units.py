"""One scheduler or worker of a cluster, wherever it runs, and the one that runs inside this process.

A ``Unit`` is started once and closed once. It says nothing of what the scheduler or worker does; it knows its address
and whether it lives.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

from gnomon.runtime.errors import ClusterError

__all__ = ["InProcess", "Unit"]


class Unit(Protocol):
    """What a cluster needs of a scheduler or worker that it started.

    Fields:
        title: names it in logs and errors.
        address: where it listens; empty until it is up.
        pid: of the process it runs in.
    """

    title: str
    address: str

    @property
    def pid(self) -> int | None:
        """Process id; None before there is a process."""

    async def prepare(self) -> None:
        """Do now what can be done before ``start``; needs the running loop."""
        ...

    async def start(self, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> str:
        """Start it and return its address. Raises ClusterError with the reason."""
        ...

    async def close(self, reason: str) -> None:
        """Close it in good order, and see that nothing of it is left; safe to call at any time and twice."""
        ...

    async def wait_ended(self) -> str:
        """Wait until it has left. Returns how: empty if in good order, else a sentence."""
        ...


class InProcess:
    """A scheduler or worker on the running loop of this process."""

    def __init__(self, target: str, title: str) -> None:
        self.title = title
        self.address = ""
        self.pid = None
        self._target = target
        self._instance: Any = None
        self._ended = asyncio.Event()

    async def prepare(self) -> None:
        """Nothing to do ahead."""

    async def start(self, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> str:
        """Build and start it. Raises ClusterError, with what was raised as its cause."""
        module, _, name = self._target.partition(":")
        instance = getattr(import_module(module), name)(*arguments, **options)
        try:
            await instance.start()
        except BaseException as exc:
            with contextlib.suppress(Exception):
                await instance.close(reason="it could not start")
            if not isinstance(exc, Exception):
                raise
            raise ClusterError(f"{self.title} could not start: {exc or type(exc).__name__}") from exc
        self._instance = instance
        self.address = str(instance.address)
        return self.address

    async def close(self, reason: str) -> None:
        """Close it."""
        if self._instance is not None:
            await self._instance.close(reason=reason)
        self._ended.set()

    async def wait_ended(self) -> str:
        """Wait until it closed, by us or by itself."""
        if self._instance is not None:
            await self._instance.finished()
        else:
            await self._ended.wait()
        return ""
