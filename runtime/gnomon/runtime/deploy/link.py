"""Questions that a cluster asks its scheduler, over a connection of its own that is made when first needed."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

from gnomon.runtime.comm import Comm, Security, connect
from gnomon.runtime.errors import ClusterError, CommClosedError
from gnomon.runtime.messages import Failure, Message, Request, Response

__all__ = ["SchedulerLink"]


class SchedulerLink:
    """A line to the scheduler that asks and waits for answers; loop-bound."""

    def __init__(self, address: str, security: Security, *, name: str, timeout: float = 10.0) -> None:
        self._address = address
        self._security = security
        self._name = name
        self._timeout = timeout
        self._comm: Comm | None = None
        self._connecting = asyncio.Lock()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)

    async def ask(self, method: str, **arguments: Any) -> Any:
        """The scheduler's answer.

        Raises ClusterError with the scheduler's reason if it refuses; CommError if it can't be reached.
        """
        comm = await self._connected()
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            comm.send([Request(number, method, arguments)])
            return await answer
        finally:
            del self._waiting[number]

    async def _connected(self) -> Comm:
        async with self._connecting:
            if self._comm is None:
                self._comm = await connect(
                    self._address,
                    role="client",
                    security=self._security,
                    timeout=self._timeout,
                    on_messages=self._on_messages,
                    on_close=self._on_close,
                    info={"name": self._name},
                )
            return self._comm

    def _on_messages(self, comm: Comm, messages: Sequence[Message]) -> None:
        for message in messages:
            if isinstance(message, Response | Failure):
                answer = self._waiting.get(message.request_id)
                if answer is None or answer.done():
                    continue
                if isinstance(message, Response):
                    answer.set_result(message.result)
                else:
                    answer.set_exception(ClusterError(message.error.text))

    def _on_close(self, comm: Comm, exc: BaseException | None) -> None:
        self._comm = None
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(CommClosedError("the scheduler is gone"))

    async def close(self) -> None:
        """Hang up."""
        comm = self._comm
        if comm is not None:
            comm.close()
            await comm.wait_closed()
