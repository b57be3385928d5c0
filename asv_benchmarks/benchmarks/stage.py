"""A scheduler and workers in this process, on an event loop in a thread of its own, with their counters at hand.

For benchmarks only: everything shares one interpreter, so that nothing is left to chance by other processes.

Contents: LoopThread, Stage, certificates, security_for, total.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterable
from functools import lru_cache
from typing import Any, Self

from gnomon.runtime.comm import Comm, Security, new_event_loop
from gnomon.runtime.scheduler import Scheduler
from gnomon.runtime.worker import Worker

__all__ = ["LoopThread", "Stage", "certificates", "security_for", "total"]

_SECRET = "a secret of the benchmarks' own"


@lru_cache(maxsize=1)
def certificates() -> dict[str, Any]:
    """The plain form of one temporary Security; making keys takes a while."""
    return Security.temporary(require_encryption=False, secret=_SECRET).to_dict()


def security_for(protocol: str) -> Security:
    """What protects a cluster of this protocol."""
    return Security.from_dict(certificates()) if protocol == "tls" else Security(secret=_SECRET)


class LoopThread:
    """An event loop of the configured kind in a thread; a context manager."""

    def __init__(self) -> None:
        self.loop = new_event_loop()
        self._thread = threading.Thread(target=self._run, name="benchmark-loop", daemon=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def call(self, coroutine: Coroutine[Any, Any, Any], timeout: float = 60.0) -> Any:
        """Run a coroutine on the loop, and wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout)

    def cpu_seconds(self) -> float:
        """CPU seconds of the loop's thread."""
        seconds: float = self.call(_thread_time())
        return seconds

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()


class Stage:
    """A cluster on a loop thread; a context manager.

    Arguments:
        workers: with one thread each, in this process.
        protocol: ``tcp``, ``tls`` or ``inproc``.
    """

    def __init__(self, workers: int = 1, protocol: str = "inproc", nthreads: int = 1) -> None:
        self.security = security_for(protocol)
        self.thread = LoopThread()
        self.workers: list[Worker] = []
        self.scheduler = Scheduler(protocol=protocol, security=self.security)
        self._wanted = (workers, nthreads)

    @property
    def address(self) -> str:
        """The scheduler's."""
        return self.scheduler.address

    def __enter__(self) -> Self:
        self.thread.__enter__()
        try:
            self.thread.call(self._start())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        try:
            self.thread.call(self._close())
        finally:
            self.thread.__exit__()

    async def _start(self) -> None:
        await self.scheduler.start()
        count, nthreads = self._wanted
        for i in range(count):
            worker = Worker(
                self.address, name=str(i), nthreads=nthreads, nanny=False, security=self.security, host="127.0.0.1"
            )
            self.workers.append(worker)
            await worker.start()

    async def _close(self) -> None:
        for worker in self.workers:
            await worker.close("the benchmark is over")
        await self.scheduler.close("the benchmark is over")

    def counters(self) -> dict[str, int]:
        """What the scheduler's connections have done so far, all together."""
        streams: Iterable[Comm] = [stream.comm for stream in self.scheduler.workers.values()]
        return total([*streams, *[stream.comm for stream in self.scheduler.clients.values()]])


def total(comms: Iterable[Comm]) -> dict[str, int]:
    """The counters of several comms, added up."""
    found = {"messages": 0, "bytes": 0, "writes": 0, "wakeups": 0}
    for comm in comms:
        counters = comm.counters
        found["messages"] += counters.messages_sent + counters.messages_received
        found["bytes"] += counters.bytes_sent + counters.bytes_received
        found["writes"] += counters.writes
        found["wakeups"] += counters.reads
    return found


async def _thread_time() -> float:
    return time.thread_time()
