"""The one stream from the scheduler to the dashboard's model, whatever the number of viewers; none when nobody looks.

About once a second, while somebody looks, the scheduler is asked for what is new. The pause grows with what the answers
cost the scheduler. A scheduler that is gone is sought again, with growing pauses; viewers see how old their data are.

Contents: Feed, DashboardUnavailable.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from gnomon.reports.dashboard.looks import Look, Looks
from gnomon.reports.dashboard.model import Model
from gnomon.runtime import Client, CommError, GnomonError, Security

__all__ = ["DashboardUnavailable", "Feed"]

logger = logging.getLogger(__name__)

#: Seconds for which one who asked by plain HTTP counts as looking.
_LEASE = 5.0

#: The share of the scheduler's time that the stream may take.
_BUDGET = 0.005

#: Rows of each ring per question, questions in a row when they are more, and seconds between two of these.
_ROWS = 10_000
_PAGES = 3
_BREATH = 0.05

#: Runs that may wait for the next turn. Of more there is no hope to catch up with: they are left out.
_BEHIND = 3_000

_LONGEST_PAUSE = 5.0
_PATIENCE = 5.0
_CONNECT = 5.0

#: By this the scheduler knows that a client only looks.
_NAME = "gnomon-dashboard"


class DashboardUnavailable(OSError):  # noqa: N818 - a state of the world more than an error
    """The scheduler is gone, or silent."""


class Asker(Protocol):
    """What the feed needs of a connection."""

    def request(self, method: str, **arguments: Any) -> Awaitable[Any]:
        """Ask the scheduler."""

    def close(self) -> Any:
        """Hang up; awaited."""


class Feed:
    """See the module.

    Args:
        address: of the scheduler.
        security: as of any client.
        interval: seconds between two questions.
        connect: gives a connection; for tests.
    """

    def __init__(
        self,
        address: str,
        security: Security | None = None,
        *,
        model: Model | None = None,
        interval: float = 1.0,
        connect: Callable[[], Awaitable[Asker]] | None = None,
    ) -> None:
        self.model = model or Model()
        self.model.address = address
        self.looks = Looks(lambda: self.model.version, self._wake)
        self.requests = self.reconnects = 0
        self.scheduler_cost = 0.0
        self._address = address
        self._security = security
        self._interval = interval
        self._connect = connect or self._make_client
        self._client: Asker | None = None
        self._connecting = asyncio.Lock()
        self._lease = 0.0
        self._woken = asyncio.Event()
        self._hurry = asyncio.Event()
        self._waiting: set[asyncio.Future[None]] = set()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to watch for viewers; asks nothing before there is one."""
        self._task = asyncio.create_task(self._run(), name="gnomon dashboard feed")

    async def close(self) -> None:
        """End. Idempotent."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        await self._hang_up()

    # Viewers

    def look(self, interval: float = 1.0) -> Look:
        """A new viewer."""
        return self.looks.add(interval)

    @property
    def wanted(self) -> bool:
        """Whether anybody looks."""
        return self.looks.anybody or time.monotonic() < self._lease

    def age(self) -> float:
        """Seconds since the last answer."""
        return self.model.age(time.monotonic())

    async def fresh(self, age: float = 1.0, timeout: float = 2.0) -> None:
        """Have data that are no older than ``age`` seconds, if the scheduler answers within ``timeout``. Never raises.

        Counts as looking for some seconds.
        """
        self._lease = time.monotonic() + _LEASE
        self._wake()
        if self.age() <= age:
            return
        self._hurry.set()
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(answered)
        try:
            await asyncio.wait([answered], timeout=timeout)
        finally:
            self._waiting.discard(answered)

    async def request(self, method: str, **arguments: Any) -> Any:
        """Ask the scheduler something.

        Raises DashboardUnavailable if it is gone or silent, ValueError if it refuses.
        """
        try:
            async with asyncio.timeout(_PATIENCE):
                client = await self._connected()
                return await client.request(method, **arguments)
        except (CommError, OSError, TimeoutError) as exc:
            raise DashboardUnavailable(f"the scheduler at {self._address} does not answer: {exc}".rstrip(": ")) from exc
        except GnomonError as exc:
            raise ValueError(str(exc)) from exc

    def _wake(self) -> None:
        if self.wanted:
            self._woken.set()

    # The stream

    async def _run(self) -> None:
        failures = 0
        while True:
            while not self.wanted:
                self._woken.clear()
                await self._woken.wait()
            self._hurry.clear()
            began = time.monotonic()
            try:
                cost = await self._catch_up()
                failures = 0
                pause = min(max(self._interval, cost / _BUDGET), _LONGEST_PAUSE)
            except (GnomonError, OSError, TimeoutError) as exc:
                failures += 1
                self._lose(exc)
                await self._hang_up()
                pause = min(self._interval * 2 ** min(failures - 1, 3), _LONGEST_PAUSE) / 2
            except Exception:
                # An answer that nobody foresaw must not end the stream; what was half taken can't stay.
                if not failures:
                    logger.exception("What the scheduler answered could not be used; the dashboard begins anew")
                failures += 1
                self.model.begin_anew()
                await asyncio.sleep(self._interval)
                pause = _LONGEST_PAUSE
            self._tell()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, pause - (time.monotonic() - began))):
                    await self._hurry.wait()

    async def _catch_up(self) -> float:
        """Ask until there is no more for now, or that is enough; the seconds that this cost the scheduler."""
        client = await self._connected()
        cost, asked, first = 0.0, 0, self.model.next is None
        while True:
            self.requests += 1
            answer = await client.request("live", **self.model.question(), limit=_ROWS)
            asked += 1
            spent = float(answer["cost"])
            cost = spent if first else cost + spent
            self.scheduler_cost += spent
            self.model.retries = 0
            if self.model.apply(answer, time.monotonic()):
                return cost
            if self.model.next is None:  # another scheduler: from its beginning
                first = True
            elif not first and (asked >= _PAGES or cost > _BUDGET * self._interval):
                if self.model.behind > _BEHIND:
                    self.model.skip(answer)
                return cost
            self._tell()
            await asyncio.sleep(_BREATH)

    def _lose(self, exc: BaseException) -> None:
        if self.model.connected:
            logger.info("The scheduler at %s does not answer: %s", self._address, exc)
        self.model.lost_connection()
        self.model.retries += 1

    def _tell(self) -> None:
        """Let everybody know that the model has changed, or could not."""
        for answered in self._waiting:
            if not answered.done():
                answered.set_result(None)
        for look in self.looks:
            if look.on_data is not None:
                try:
                    look.on_data()
                except Exception:
                    logger.exception("A view could not be told of new data")

    # The connection

    async def _connected(self) -> Asker:
        async with self._connecting:
            if self._client is None:
                self._client = await self._connect()
                self.reconnects += 1
            return self._client

    async def _make_client(self) -> Asker:
        client: Asker = await Client(
            self._address,
            security=self._security,
            asynchronous=True,
            set_as_default=False,
            timeout=_CONNECT,
            name=f"{_NAME}-{os.getpid()}",
        )
        return client

    async def _hang_up(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(GnomonError, OSError):
                await client.close()
