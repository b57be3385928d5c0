"""How a client comes to be and ends: connecting, the loop it uses, its default cluster, closing, exit and fork.

Also what the other modules of this room need of a client: running its coroutines, and its futures' states.

Contents: ClientLife.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import logging
import threading
import time
import uuid
from collections.abc import Callable, Coroutine, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gnomon.runtime import config
from gnomon.runtime.client import dask_adapter, default
from gnomon.runtime.client.connection import Connection
from gnomon.runtime.client.effects import Effect, drive, drive_async
from gnomon.runtime.client.future import Future, FutureState, Waiter
from gnomon.runtime.client.gather import Results, decode_small, error_of, raisable
from gnomon.runtime.client.packing import seconds
from gnomon.runtime.client.scatter import Scatter
from gnomon.runtime.client.submitting import Submitter
from gnomon.runtime.client.sync import LoopThread
from gnomon.runtime.client.view import ClusterView
from gnomon.runtime.comm import Security
from gnomon.runtime.errors import ClusterError, CommError
from gnomon.runtime.messages import Key, Payload
from gnomon.runtime.transfer import Fetcher, host_identity
from gnomon.runtime.worker.executor import context

__all__ = ["ClientLife"]

logger = logging.getLogger("gnomon.client")

#: What makes a cluster on this machine when no address is given. Its room lies above this one: named, not imported.
_LOCAL_CLUSTER = ("gnomon.runtime.deploy", "LocalCluster")

#: Threads that fetch from or send to workers at one time.
_FETCHES = 8


class ClientLife(ClusterView):
    """See ``Client``, which is this with the calls that submit.

    Fields:
        status: ``created``, ``connecting``, ``running`` or ``closed``.
        cluster: the cluster object it was made with or made itself, else None.
    """

    rebuild_future: Callable[[Key], Future]

    def __init__(
        self,
        address: Any = None,
        loop: asyncio.AbstractEventLoop | None = None,
        timeout: float | str | None = None,
        set_as_default: bool = True,
        scheduler_file: str | Path | None = None,
        security: Any = None,
        asynchronous: bool = False,
        name: str | None = None,
        heartbeat_interval: Any = None,
        direct_to_workers: bool | None = None,
        *,
        _inside: bool = False,
        **kwargs: Any,
    ) -> None:
        if kwargs and (address is not None or scheduler_file is not None):
            raise TypeError(f"{', '.join(kwargs)}: only for a client that makes its own LocalCluster (no address)")
        self.name = name or f"client-{uuid.uuid4().hex[:12]}"
        self.asynchronous = asynchronous
        self.status = "created"
        self.cluster: Any = None
        self.security: Any = security
        limit = seconds(timeout)
        self._timeout = config.get().comm.connect_timeout if limit is None else limit
        self._address = address
        self._scheduler_file = scheduler_file
        self._cluster_options = kwargs
        self._owns_cluster = False
        self._as_default = set_as_default
        self._loop = loop
        self._thread: LoopThread | None = None
        self._lock = threading.Lock()
        self._connection = Connection(self.name)
        self._services: Any = None
        self._fetcher: Fetcher | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._callbacks: ThreadPoolExecutor | None = None
        me: Any = self
        self._submitter = Submitter(me, self._connection, _parent_task if _inside else _no_parent)
        self._results = Results(self._connection, self._get_fetcher, self._get_pool)
        self._scatter = Scatter(self._connection, self._results, self._get_fetcher, self._get_pool)
        if not asynchronous:
            self._start_sync()

    # Beginning

    def _start_sync(self) -> None:
        self.status = "connecting"
        try:
            address = self._find_address()
            self._thread = LoopThread(self._loop if self._loop is not None else self._loop_of_cluster(address))
            self._thread.run(self._open(address))
        except BaseException:
            self._give_up()
            raise

    def _find_address(self) -> str:
        """The scheduler's address; makes a local cluster if there is none to find."""
        if self._scheduler_file is not None:
            return _read_scheduler_file(self._scheduler_file, self._timeout)
        if self._address is None:
            self._make_cluster()
        elif isinstance(self._address, str):
            return self._address
        else:
            self.cluster = self._address
        return self._address_of_cluster()

    def _make_cluster(self) -> None:
        options = dict(self._cluster_options)
        if self.security is not None:
            options["security"] = self.security
        module, name = _LOCAL_CLUSTER
        make = getattr(importlib.import_module(module), name)
        self.cluster = make(asynchronous=self.asynchronous, **options)
        self._owns_cluster = True

    def _address_of_cluster(self) -> str:
        try:
            address: str = self.cluster.scheduler_address
        except AttributeError:
            raise TypeError(f"an address must be text or a cluster object, not {self.cluster!r}") from None
        if not isinstance(self.security, Security):
            self.security = getattr(self.cluster, "security", None)
        return address

    def _loop_of_cluster(self, address: str) -> asyncio.AbstractEventLoop | None:
        """Within one process, client and scheduler share a loop where they can."""
        loop = getattr(self.cluster, "loop", None) if address.startswith("inproc://") else None
        return loop if isinstance(loop, asyncio.AbstractEventLoop) else None

    async def _open(self, address: str) -> None:
        if self.security is None:
            self.security = Security()
        elif isinstance(self.security, dict):
            self.security = Security(**self.security)
        await self._connection.open(address, self.security, self._timeout, {})
        self.status = "running"
        me: Any = self
        default.add(me, self._as_default)
        if self._as_default and not self.asynchronous:
            dask_adapter.use_as_scheduler(self.get)

    async def _start(self) -> Self:
        if self.status != "created":
            return self
        self.status = "connecting"
        try:
            if self._scheduler_file is not None:
                address = await asyncio.to_thread(self._find_address)
            elif self._address is None:
                self._make_cluster()
                self.cluster = await self.cluster
                address = self._address_of_cluster()
            else:
                address = self._find_address()
            await self._open(address)
        except BaseException:
            self.status = "closed"
            if self._owns_cluster and self.cluster is not None:
                await self.cluster.close()
            raise
        return self

    def _give_up(self) -> None:
        """It did not come to a connection."""
        self.status = "closed"
        self._connection.refusal = self._connection.refusal or "this client did not get connected"
        if self._thread is not None:
            self._thread.close()
        if self._owns_cluster and self.cluster is not None:
            self.cluster.close()

    # End

    def close(self, timeout: float | str | None = None) -> Any:
        """Leave the cluster: pending futures will not be done. Closes a cluster that this client made. Idempotent."""
        if self.asynchronous:
            return self._close_async("the client is closed")
        self._close_sync("the client is closed", seconds(timeout))
        return None

    def _leave(self) -> bool:
        """Be no longer the default; False if closed already."""
        with self._lock:
            if self.status == "closed":
                return False
            self.status = "closed"
        me: Any = self
        default.remove(me)
        dask_adapter.stop_as_scheduler(self.get)
        return True

    def _close_sync(self, reason: str, timeout: float | None) -> None:
        if not self._leave():
            return
        thread = self._thread
        try:
            if thread is not None:
                thread.run(self._connection.close(reason), timeout)
        finally:
            self._free()
            if thread is not None:
                thread.close()
            if self._owns_cluster:
                self.cluster.close()

    async def _close_async(self, reason: str) -> None:
        if not self._leave():
            return
        try:
            await self._connection.close(reason)
        finally:
            await asyncio.to_thread(self._free)
            if self._owns_cluster and self.cluster is not None:
                await self.cluster.close()

    def _free(self) -> None:
        with self._lock:
            fetcher, self._fetcher = self._fetcher, None
            pools = [pool for pool in (self._pool, self._callbacks) if pool is not None]
            self._pool = self._callbacks = None
        if fetcher is not None:
            fetcher.close()
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)

    def shutdown(self) -> Any:
        """Close the cluster, scheduler and workers, and then the client."""
        if self.asynchronous:
            return self._shutdown_async()
        if self.status == "running" and self.cluster is None:
            with contextlib.suppress(CommError):
                drive(self._ask("shutdown", {}, 10.0))
        self._owns_cluster = self.cluster is not None
        self._close_sync("the client shut the cluster down", None)
        return None

    async def _shutdown_async(self) -> None:
        if self.status == "running" and self.cluster is None:
            with contextlib.suppress(CommError):
                await drive_async(self._ask("shutdown", {}, 10.0))
        self._owns_cluster = self.cluster is not None
        await self._close_async("the client shut the cluster down")

    def close_at_exit(self) -> None:
        """The interpreter ends: leave without a word."""
        if self.asynchronous:
            return  # its loop is gone, and so is what it could do
        with contextlib.suppress(CommError, ClusterError, RuntimeError, TimeoutError):
            self._close_sync("the program ended", 5.0)

    def close_when_lost(self) -> None:
        """Close by itself when the scheduler goes: for a client that nobody is there to close."""
        self._connection.on_lost = self._close_soon
        if self._connection.refusal is not None:
            self._close_soon()

    def _close_soon(self) -> None:
        # Closing waits for the loop, which may be what calls us.
        threading.Thread(target=self.close_at_exit, name="gnomon-close", daemon=True).start()

    def abandon(self) -> None:
        """In a forked child: this client is the parent's, and so are those who may hold its locks."""
        self.status = "closed"
        self._lock = threading.Lock()
        self._connection.abandon(
            "this client was made before the process forked and works in the parent only; make a new one here"
        )
        self._fetcher = self._pool = self._callbacks = None
        dask_adapter.stop_as_scheduler(self.get)

    def __enter__(self) -> Self:
        if self.asynchronous:
            raise TypeError("an asynchronous client is entered with 'async with'")
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __await__(self) -> Generator[Any, Any, Self]:
        if not self.asynchronous:
            raise TypeError("a sync client is not awaited; make it with asynchronous=True")
        return self._start().__await__()

    async def __aenter__(self) -> Self:
        await self
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._close_async("the client is closed")

    def __reduce__(self) -> Any:
        raise TypeError("a client stays in its process; inside a task, get_client() gives one of the same cluster")

    @property
    def scheduler_address(self) -> str:
        """Where the scheduler is."""
        return self._connection.address

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop that carries the connection; None if that is the caller's own."""
        return None if self._thread is None else self._thread.loop

    def as_current(self) -> contextlib.AbstractContextManager[Any]:
        """Within the block this client is meant where none is named."""
        me: Any = self
        return default.use(me)

    def get(self, dsk: Any, keys: Any, **kwargs: Any) -> Any:
        """See ``Client``."""
        raise NotImplementedError

    # For the other modules of this room

    def call(self, coroutine: Coroutine[Effect, Any, Any]) -> Any:
        """Run one of this room's coroutines to its end; asynchronous clients give an awaitable."""
        if self.asynchronous:
            return drive_async(coroutine)
        if self._thread is not None and self._thread.is_current():
            coroutine.close()
            raise RuntimeError("a sync client can't wait on its own loop's thread")
        return drive(coroutine)

    def call_async(self, coroutine: Coroutine[Effect, Any, Any]) -> Coroutine[Any, Any, Any]:
        """The same, awaited in any case."""
        return drive_async(coroutine)

    def done(self) -> Any:
        """What a call gives that has done its work already."""
        return _Done() if self.asynchronous else None

    def await_result(self, future: Future) -> Coroutine[Any, Any, Any]:
        """The value of a future, for coroutines on any loop."""
        return drive_async(self.result_of(future, None))

    async def result_of(self, future: Future, timeout: float | str | None) -> Any:
        """The value of a future."""
        state = future.state
        if type(state) is not FutureState:
            raise error_of(state)
        await self._results.wait((state,), seconds(timeout))
        payload = state.payload
        if payload is not None:
            return decode_small(payload)
        values, errors = await self._results.values((state,), True)
        if state.id in values:
            return values[state.id]
        raise raisable(errors[state.id], state)

    async def wait_for_states(self, futures: Iterable[Future], timeout: float | str | None) -> None:
        """Wait until all have ended."""
        await self._results.wait([s for f in futures if type(s := f.state) is FutureState], seconds(timeout))

    def watch(self, states: Iterable[FutureState], waiter: Waiter) -> list[FutureState]:
        """See ``Connection.watch``."""
        return self._connection.watch(states, waiter)

    def unwatch(self, states: Iterable[FutureState], waiter: Waiter) -> None:
        """See ``Connection.unwatch``."""
        self._connection.unwatch(states, waiter)

    def keep_until_done(self, future: Future) -> None:
        """Hold a future's task until it has ended, whoever drops it."""
        if type(future.state) is FutureState:
            self._connection.keep(future.state)

    def error_of(self, state: Any) -> BaseException:
        """Why a future that has ended has no value."""
        return error_of(state)

    def decode_small(self, payload: Payload) -> Any:
        """The value of a payload in one piece."""
        return decode_small(payload)

    def state_of(self, future: Future) -> FutureState | None:
        """This client's state for a future; None if it was released."""
        return self._submitter.state_of(future) if type(future.state) is FutureState else None

    def future_of_key(self, key: Key) -> Future:
        """A future of a task that the scheduler knows."""
        me: Any = self
        return Future.of_state(self._submitter.want(key), me)

    def add_callback(self, future: Future, fn: Callable[[Future], Any]) -> None:
        """Call ``fn(future)`` once it has ended: on the loop of an asynchronous client, else in a thread for that."""
        callback = _Callback(future, fn, self._run_callback)
        state = future.state
        if type(state) is not FutureState or self._connection.watch((state,), callback):
            self._run_callback(fn, future)

    def _run_callback(self, fn: Callable[[Future], Any], future: Future) -> None:
        if self.asynchronous:
            asyncio.get_running_loop().call_soon(fn, future)
            return
        with self._lock:
            if self._callbacks is None and self.status != "closed":
                self._callbacks = ThreadPoolExecutor(1, thread_name_prefix="gnomon-callbacks")
            pool = self._callbacks
        if pool is not None:
            pool.submit(_guarded, fn, future)

    def _get_fetcher(self) -> Fetcher:
        self._connection.check()
        with self._lock:
            if self._fetcher is None:
                self._fetcher = Fetcher(self.security, host_identity(), "client")
            return self._fetcher

    def _get_pool(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_FETCHES, thread_name_prefix="gnomon-fetch")
            return self._pool


class _Callback:
    """Waits in a state for its end."""

    __slots__ = ("fn", "future", "left", "run")

    def __init__(self, future: Future, fn: Callable[[Future], Any], run: Callable[..., None]) -> None:
        self.future = future
        self.fn = fn
        self.run = run
        self.left = 0

    def settle(self, state: FutureState) -> None:
        """It has ended."""
        self.run(self.fn, self.future)


class _Done:
    """Awaited, it gives None at once; not awaited, nobody complains."""

    def __await__(self) -> Generator[Any, Any, None]:
        return
        yield


def _guarded(fn: Callable[[Future], Any], future: Future) -> None:
    try:
        fn(future)
    except Exception:
        logger.exception("The callback %r of %r failed", fn, future)


def _no_parent() -> int:
    return 0


def _parent_task() -> int:
    try:
        return context.current_task().task_id
    except RuntimeError:
        return 0


def _read_scheduler_file(path: str | Path, timeout: float) -> str:
    """The address in a scheduler file; waits for the file.

    Raises TimeoutError.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            address: str = json.loads(Path(path).read_text())["address"]
        except (OSError, ValueError, KeyError):
            if time.monotonic() > deadline:
                raise TimeoutError(f"no scheduler wrote its address to {path} within {timeout:g} s") from None
            time.sleep(0.05)
        else:
            return address
