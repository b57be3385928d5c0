"""LocalCluster: a scheduler and workers on this machine, for as long as the object is open.

With ``processes=True`` scheduler and worker agents run in fresh interpreters of their own; the script that makes the
cluster is never imported again, so no ``__main__`` guard is needed. With ``processes=False`` they share the loop thread
of the clients in this process, and tasks run in threads. The coroutines are the implementation; the sync face runs them
on the loop thread.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import itertools
import logging
import os
import sys
import uuid
import weakref
from collections.abc import Coroutine, Generator, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from gnomon.runtime.client import Client
from gnomon.runtime.client.notebook import shown_as_table
from gnomon.runtime.client.sync import LoopThread
from gnomon.runtime.comm import Security
from gnomon.runtime.deploy.crew import Crew
from gnomon.runtime.deploy.dashboard import DashboardDoor
from gnomon.runtime.deploy.link import SchedulerLink
from gnomon.runtime.deploy.machine import parse_bytes, split_processors
from gnomon.runtime.deploy.process import ChildProcess
from gnomon.runtime.deploy.units import InProcess, Unit
from gnomon.runtime.errors import ClusterError, CommError

__all__ = ["LocalCluster"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_SCHEDULER = "gnomon.runtime.scheduler:Scheduler"
_WORKER = "gnomon.runtime.worker:Worker"

_open: weakref.WeakSet[LocalCluster] = weakref.WeakSet()


class LocalCluster:
    """A scheduler and workers on this machine.

    Args:
        n_workers: how many workers; by default as many as the processors ask for.
        threads_per_worker: tasks that each runs at once; by default the processors divided by the workers.
        processes: whether scheduler and workers have processes of their own; else they are threads of this one.
        host: address to listen at. Beyond loopback needs TLS or an explicit secret.
        scheduler_port: 0 takes a free one.
        protocol: ``tcp``, ``tls`` or ``inproc``; by default ``tls`` where ``security`` brings certificates, ``inproc``
            without processes, else ``tcp``.
        security: certificates and secret; True makes certificates that live as long as the cluster.
        name: how the cluster names itself.
        asynchronous: whether it is used from coroutines (``async with``, ``await``).
        silence_logs: level of log messages that scheduler and workers print; False prints all from INFO on.
        loop: the event loop of another thread to run on, instead of the loop thread that sync clients share.
        resources: abstract resources that each worker offers.
        memory_limit: bytes of each worker (``"4 GB"`` works); None is no limit.
        dashboard_address: where the dashboard listens, ``host:port`` or ``:port`` (this machine only); True is the
            setting ``dashboard.address``, None is no dashboard. Its process starts when somebody opens the link.
        worker_kwargs: anything else that ``Worker`` takes.

    Raises ClusterError if it can't start, ValueError for arguments that make no sense.

    >>> with LocalCluster(n_workers=2) as cluster, Client(cluster) as client:      # doctest: +SKIP
    ...     client.submit(sum, [1, 2]).result()
    """

    def __init__(
        self,
        n_workers: int | None = None,
        threads_per_worker: int | None = None,
        processes: bool = True,
        *,
        host: str = "127.0.0.1",
        scheduler_port: int = 0,
        protocol: str | None = None,
        security: Security | bool | None = None,
        name: str | None = None,
        asynchronous: bool = False,
        silence_logs: int | bool = logging.WARNING,
        loop: asyncio.AbstractEventLoop | None = None,
        resources: Mapping[str, float] | None = None,
        memory_limit: str | int | None = None,
        dashboard_address: str | int | bool | None = True,
        **worker_kwargs: Any,
    ) -> None:
        n_workers, threads = split_processors(n_workers, threads_per_worker, processes=processes)
        self.name = name or f"local-{uuid.uuid4().hex[:8]}"
        self.asynchronous = asynchronous
        self.processes = processes
        self.security = _security(security)
        self.status = "created"
        self._protocol = _protocol(protocol, self.security, processes=processes, port=scheduler_port)
        self._log_level = logging.INFO if silence_logs is False else int(silence_logs)
        self._scheduler_options = {
            "host": host,
            "port": scheduler_port,
            "protocol": self._protocol,
            "security": self.security,
        }
        self._worker_options: dict[str, Any] = {
            "host": host,
            "protocol": self._protocol,
            "security": self.security,
            "nthreads": threads,
            "resources": dict(resources or {}),
            "memory_limit": 0 if memory_limit is None else parse_bytes(memory_limit),
            "nanny": processes,
            "sys_path": tuple(sys.path) if processes else (),
            **worker_kwargs,
        }
        self._n_workers = n_workers
        self._dashboard = DashboardDoor(dashboard_address, self.security, name=self.name, log_level=self._log_level)
        self._scheduler = self._unit(_SCHEDULER, "the scheduler")
        self._crew = Crew(lambda worker: self._unit(_WORKER, f"worker {worker}"))
        self._link: SchedulerLink | None = None
        self._info: dict[str, Any] = {}
        self._guard: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: LoopThread | None = None
        if not asynchronous:
            self._thread = LoopThread(loop)
            self._start_sync()

    def _unit(self, target: str, title: str) -> Unit:
        if self.processes:
            return ChildProcess(target, title, log_level=self._log_level)
        return InProcess(target, title)

    # Starting and closing

    def _start_sync(self) -> None:
        try:
            self._sync(self._start())
        except BaseException:
            # If we were interrupted, the coroutine is cancelled and cleans up on the loop, which must not go before.
            self._sync(self._wait_settled())
            self._give_thread_back()
            raise

    async def _wait_settled(self) -> None:
        async with self._lock:
            pass

    def _give_thread_back(self) -> None:
        if self._thread is not None:
            self._thread.close()
            self._thread = None

    async def _start(self) -> Self:
        """Start scheduler and workers side by side, as far as they can be."""
        if self.status != "created":
            return self
        self._loop = asyncio.get_running_loop()
        async with self._lock:
            self.status = "starting"
            names = [str(i) for i in range(self._n_workers)]
            try:
                await self._scheduler.prepare()
                await self._crew.prepare(names)
                link = self._dashboard.open()
                services = {"services": {"dashboard": link}} if link else {}
                await self._scheduler.start((), {**self._scheduler_options, **services})
                self._dashboard.serve(self.scheduler_address)
                await self._crew.start(self.scheduler_address, {name: self._spec(name) for name in names})
            except BaseException:
                await self._close_all("it could not start")
                self.status = "failed"
                raise
            self.status = "running"
            self._guard = asyncio.create_task(self._watch_scheduler())
            if not self.asynchronous:
                _open.add(self)
            return self

    async def _watch_scheduler(self) -> None:
        how = await self._scheduler.wait_ended()
        self._crew.stop_replacing()
        await self._dashboard.close("the scheduler is gone")
        if how:
            logger.error("%s; cluster %s is lost", how, self.name)
            self.status = "failed"
        elif self.status == "running":
            self.status = "closed"

    async def _close(self) -> None:
        async with self._lock:
            self.status = "closing"
            await self._close_all("the cluster closes")
            self.status = "closed"
            _open.discard(self)

    async def _close_all(self, reason: str) -> None:
        """Workers first, so that none reports a scheduler that it lost."""
        if self._link is not None:
            await self._link.close()
            self._link = None
        self._crew.stop_replacing()
        await self._dashboard.close(reason)
        try:
            await self._crew.close(reason)
        finally:
            await self._scheduler.close(reason)
        if self._guard is not None:
            await asyncio.wait([self._guard])

    def close(self, timeout: float | None = None) -> Any:
        """Close workers and scheduler and wait until nothing of them is left. Asynchronous: returns an awaitable.

        Raises TimeoutError if that takes longer than ``timeout`` seconds.
        """
        if self.asynchronous:
            return asyncio.wait_for(self._close(), timeout)
        if self._thread is not None:
            self._thread.run(self._close(), timeout)
            self._give_thread_back()
        return None

    def __enter__(self) -> Self:
        if self.asynchronous:
            raise TypeError("an asynchronous cluster is entered with 'async with'")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __await__(self) -> Generator[Any, None, Self]:
        return self._start().__await__()

    async def __aenter__(self) -> Self:
        return await self._start()

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    # What there is

    @property
    def scheduler_address(self) -> str:
        """Where the scheduler listens; empty before the start."""
        return self._scheduler.address

    @property
    def dashboard_link(self) -> str:
        """Where to look at the cluster in a browser, with the token that lets one in; empty where that is nowhere."""
        return self._dashboard.link

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that the cluster runs on."""
        loop = self._loop
        if loop is None:
            raise ClusterError(f"cluster {self.name} has not been started")
        return loop

    @property
    def workers(self) -> dict[str, Unit]:
        """The workers that this cluster started and that live, by name."""
        return dict(self._crew.units)

    @property
    def worker_spec(self) -> dict[str, dict[str, Any]]:
        """How each worker was started, by name."""
        return {name: {"cls": _WORKER, "options": self._spec(name)} for name in self._crew.units}

    @property
    def scheduler_info(self) -> dict[str, Any]:
        """The scheduler's description of itself and its workers.

        From coroutines this is as it was at the end of the last ``wait_for_workers``; else it is asked for now.
        """
        if not self.asynchronous:
            self._sync(self._refresh())
        return self._info

    async def _refresh(self) -> None:
        self._info = await self._ask("scheduler_info")

    async def _ask(self, method: str, **arguments: Any) -> Any:
        if self.status != "running":
            raise ClusterError(f"cluster {self.name} is {self.status}")
        if self._link is None:
            self._link = SchedulerLink(self.scheduler_address, self.security, name=self.name)
        return await self._link.ask(method, **arguments)

    def get_client(self) -> Client:
        """A new client of this cluster. Asynchronous: await it, or enter it with ``async with``."""
        return Client(self, asynchronous=self.asynchronous)

    def __repr__(self) -> str:
        workers = len(self._crew.units)
        threads = workers * self._worker_options["nthreads"]
        where = self.scheduler_address or self.status
        link = f", dashboard={self.dashboard_link!r}" if self.dashboard_link else ""
        return f"LocalCluster({self.name!r}, {where!r}, workers={workers}, threads={threads}{link})"

    def _repr_html_(self) -> str:
        """For notebooks."""
        workers = len(self._crew.units)
        rows = {
            "Scheduler": self.scheduler_address or self.status,
            "Workers": str(workers),
            "Threads": str(workers * self._worker_options["nthreads"]),
        }
        return shown_as_table(f"LocalCluster {self.name}", rows, self.dashboard_link)

    # More and fewer workers

    def scale(self, n: int) -> Any:
        """Start or close workers until there are ``n``. Asynchronous: returns an awaitable.

        A worker that closes gives its tasks back first.
        """
        return self._sync(self._scale(n))

    async def _scale(self, n: int) -> None:
        if n < 0:
            raise ValueError(f"a cluster can't have {n} workers")
        if self.status != "running":
            raise ClusterError(f"cluster {self.name} is {self.status}")
        async with self._lock:
            present = sorted(self._crew.units, key=int)
            if n < len(present):
                await self._retire(present[n:])
            elif n > len(present):
                free = (str(i) for i in itertools.count() if str(i) not in self._crew.units)
                new = itertools.islice(free, n - len(present))
                await self._crew.start(self.scheduler_address, {name: self._spec(name) for name in new})

    async def _retire(self, names: list[str]) -> None:
        try:
            await self._ask("retire_workers", workers=names)
        except (ClusterError, CommError) as exc:
            logger.warning("workers %s did not leave by themselves: %s", ", ".join(names), exc)
        await self._crew.dismiss(names, "the cluster shrinks")

    def _spec(self, name: str) -> dict[str, Any]:
        return {**self._worker_options, "name": name}

    def wait_for_workers(self, n_workers: int, timeout: float | None = None) -> Any:
        """Wait until the scheduler knows ``n_workers``. Asynchronous: returns an awaitable.

        Raises TimeoutError after ``timeout`` seconds.
        """
        return self._sync(self._wait_for_workers(n_workers, timeout))

    async def _wait_for_workers(self, n_workers: int, timeout: float | None) -> None:
        async with asyncio.timeout(timeout):
            await self._ask("wait_for_workers", n=n_workers)
            await self._refresh()

    # The sync face

    def _sync(self, work: Coroutine[Any, Any, T]) -> Any:
        """Run on the loop thread and wait; or, for a user of coroutines, hand back the coroutine."""
        if self.asynchronous:
            return work
        if self._thread is None:
            work.close()
            raise ClusterError(f"cluster {self.name} is {self.status}")
        return self._thread.run(work)


def _security(security: Security | bool | None) -> Security:
    if security is True:
        return Security.temporary()
    return security or Security()


def _protocol(protocol: str | None, security: Security, *, processes: bool, port: int) -> str:
    """The transport where the caller left it open. Raises ValueError for one that doesn't fit."""
    if protocol is None:
        if security.has_tls:
            return "tls"
        return "tcp" if processes or port else "inproc"
    protocol = protocol.removesuffix("://")
    if protocol not in ("tcp", "tls", "inproc"):
        raise ValueError(f"protocol must be tcp, tls or inproc, got {protocol!r}")
    if protocol == "inproc" and processes:
        raise ValueError("inproc works inside one process only; use processes=False")
    return protocol


def _close_at_exit() -> None:
    for cluster in list(_open):
        with contextlib.suppress(Exception):
            cluster.close(timeout=20)


atexit.register(_close_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open.clear)  # they are the parent's
