"""The client: what users hold to submit work to a cluster and to bring results home.

This is the public face, and thin: packing, graphs, waiting, fetching and the stream are rooms of their own. Calls that
wait are coroutines of ``effects``: a sync client drives them in the calling thread, an asynchronous one in the
caller's task.

Contents: Client, own_client, future_of_key.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from gnomon.runtime.client import dask_adapter, default
from gnomon.runtime.client.future import ERROR, Future, find_futures
from gnomon.runtime.client.gather import Nest, raisable
from gnomon.runtime.client.keys import name_of
from gnomon.runtime.client.life import ClientLife
from gnomon.runtime.client.packing import options_of, seconds, worker_names
from gnomon.runtime.client.scatter import named
from gnomon.runtime.client.spans import current_span
from gnomon.runtime.comm import Security
from gnomon.runtime.messages import CancelFutures, Key, RetryFutures, TaskOptions
from gnomon.runtime.worker.executor import context
from gnomon.runtime.worker.executor.deep import Profiled

__all__ = ["Client", "future_of_key", "own_client"]

_OPTION_NAMES = ("workers", "allow_other_workers", "resources", "retries", "priority")


def future_of_key(key: Key) -> Future:
    """A future of a task that the scheduler knows: what a pickled future becomes where it is unpickled."""
    return default.current_client().future_of_key(key)


class Client(ClientLife):
    """A connection to a cluster, to submit work and to bring results home.

    Args:
        address: of the scheduler (``tcp://host:port``, ``tls://...``), or a cluster object; without one a
            ``LocalCluster`` is made of ``kwargs`` and closed with the client.
        loop: a running event loop of another thread to use, in place of the one that sync clients share.
        timeout: seconds (or ``"10 s"``) within which the connection must stand; default ``comm.connect_timeout``.
        set_as_default: whether this client is meant where none is named, by dask collections too.
        scheduler_file: JSON file with the scheduler's ``address``; waited for until ``timeout``.
        security: certificates and secret (``Security``); default those of the settings.
        asynchronous: used from coroutines: calls that wait give awaitables; make it with ``await Client(...)`` or
            ``async with Client(...)``.
        name: what the scheduler calls it in logs.
        heartbeat_interval: not needed: the connection itself tells whether the other side lives.
        direct_to_workers: not needed: results always come straight from the workers that hold them.

    Raises CommError (ConnectTimeoutError, HandshakeError) if it can't connect, ClusterError if no local cluster starts.

    >>> with Client(n_workers=2) as client:      # doctest: +SKIP
    ...     client.submit(sum, [1, 2]).result()
    3
    """

    rebuild_future = staticmethod(future_of_key)

    # Submitting

    def submit(
        self,
        func: Callable[..., Any],
        *args: Any,
        key: Key | None = None,
        workers: Any = None,
        resources: Mapping[str, float] | None = None,
        retries: int | None = None,
        priority: int = 0,
        fifo_timeout: float | str = "100 ms",
        allow_other_workers: bool = False,
        actor: bool = False,
        pure: bool = True,
        profile: bool = False,
        **kwargs: Any,
    ) -> Future:
        """Run ``func(*args, **kwargs)`` on the cluster; futures among the arguments stand for their results.

        Args:
            key: name of the task; default made of the function's name and the call's content.
            workers: addresses, names or hosts that it may run on.
            resources: amounts of abstract resources that it holds while it runs.
            retries: how often an exception is answered by another run.
            priority: higher runs first.
            fifo_timeout: time within which calls count as one batch, whose order is the scheduler's choice.
            allow_other_workers: ``workers`` are only preferred.
            pure: the same call gives the same result, so that it need not run twice. False gives a key of its own.
            profile: run it under the deep profiler, a stack each millisecond; see ``Future.profile``.

        Raises SerializationError (a TypeError) naming what can't be pickled, CommClosedError if the client is closed.
        """
        if actor:
            raise NotImplementedError("actors are not available yet")
        options = self._options(workers, allow_other_workers, resources, retries, priority)
        if profile:
            func = Profiled(func, name_of(func))
        return self._submitter.submit(func, args, kwargs, key, pure, options, seconds(fifo_timeout) or 0.0)

    def map(
        self,
        func: Callable[..., Any],
        *iterables: Iterable[Any],
        key: Any = None,
        workers: Any = None,
        retries: int | None = None,
        resources: Mapping[str, float] | None = None,
        priority: int = 0,
        allow_other_workers: bool = False,
        fifo_timeout: float | str = "100 ms",
        actor: bool = False,
        pure: bool = True,
        batch_size: int | None = None,
        profile: bool = False,
        **kwargs: Any,
    ) -> list[Future]:
        """Run a function on each tuple of the iterables, as ``zip`` makes them; gives one future each.

        Args:
            key: what the keys begin with, or a list of keys.
            batch_size: tasks sent in one message.
            kwargs: passed to every call.

        The other arguments, and what is raised, are as in ``submit``.
        """
        if actor:
            raise NotImplementedError("actors are not available yet")
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size!r}")
        options = self._options(workers, allow_other_workers, resources, retries, priority)
        fifo = seconds(fifo_timeout) or 0.0
        if profile:
            func = Profiled(func, name_of(func))
        return self._submitter.map(func, iterables, kwargs, key, pure, options, fifo, batch_size)

    def get(
        self,
        dsk: Any,
        keys: Any,
        workers: Any = None,
        allow_other_workers: bool | None = None,
        resources: Mapping[str, float] | None = None,
        sync: bool = True,
        asynchronous: bool | None = None,
        direct: bool | None = None,
        retries: int | None = None,
        priority: int = 0,
        fifo_timeout: float | str = "60 s",
        actors: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Run a dask graph: the results of the keys, nested as these are, or their futures if not ``sync``.

        Args:
            dsk: raw (keys to tuples that start with a callable, to other keys, or to data) or of dask's task nodes.
            keys: one key, or nested lists of keys.
            kwargs: not used (other schedulers of dask take more).

        Raises KeyError for a key that is nowhere, ValueError for a cycle, else as ``submit`` and ``gather``.
        """
        if actors:
            raise NotImplementedError("actors are not available yet")
        graph, annotations = dask_adapter.as_graph(dsk)
        options = dict(zip(_OPTION_NAMES, (workers, allow_other_workers, resources, retries, priority), strict=True))
        futures = self._graph(graph, dask_adapter.flat_keys(keys), annotations, options, fifo_timeout)
        packed = _nested(keys, futures)
        if not sync:
            return packed
        del futures
        if context.cluster() is not None:
            with contextlib.suppress(RuntimeError):  # outside of a task
                context.secede()
        return self.gather(packed)

    # Results

    def gather(
        self, futures: Any, errors: str = "raise", direct: bool | None = None, asynchronous: bool | None = None
    ) -> Any:
        """The values of futures, in the nested lists, tuples, sets and dicts that the futures are in.

        Args:
            errors: ``raise`` the first error, or ``skip`` futures that failed.
            direct: not needed: values always come straight from the workers that hold them.

        Raises what a task raised, FutureCancelledError, FutureLostError, CommClosedError.
        """
        if errors not in ("raise", "skip"):
            raise ValueError(f"errors must be 'raise' or 'skip', not {errors!r}")
        return self.call(self._gather(futures, errors == "raise"))

    async def _gather(self, futures: Any, strict: bool) -> Any:
        nest = Nest(futures)
        values, failures = await self._results.values(nest.states, strict)
        if failures and strict:
            raise next(raisable(failures[state.id], state) for state in nest.states if state.id in failures)
        return nest.fill(values)

    def scatter(
        self,
        data: Any,
        workers: Any = None,
        broadcast: bool | int = False,
        direct: bool | None = None,
        hash: bool = True,  # noqa: A002 - the name users know
        timeout: float | str | None = None,
        asynchronous: bool | None = None,
    ) -> Any:
        """Put data on workers: a future for each item of a list, tuple, set or dict, or one for anything else.

        Args:
            workers: addresses, names or hosts that may hold it.
            broadcast: True puts a copy on every worker, a number on so many.
            hash: name items by their content, so that the same data is sent once.
            timeout: seconds.

        Raises SerializationError (a TypeError), TimeoutError, CommError.
        """
        items, arrange = named(data, hash)
        return self.call(self._send(items, arrange, worker_names(workers), broadcast, seconds(timeout)))

    async def _send(
        self,
        items: dict[Key, Any],
        arrange: Callable[[list[Future]], Any],
        workers: tuple[str, ...],
        broadcast: bool | int,
        timeout: float | None,
    ) -> Any:
        states = await self._scatter.send(items, workers, broadcast, timeout)
        return arrange([Future.of_state(states[key], self) for key in items])

    # dask collections

    def compute(
        self,
        collections: Any,
        sync: bool = False,
        optimize_graph: bool = True,
        workers: Any = None,
        allow_other_workers: bool = False,
        resources: Mapping[str, float] | None = None,
        retries: int | None = 0,
        priority: int = 0,
        fifo_timeout: float | str = "60 s",
        traverse: bool = True,
        profile: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Compute dask collections: a future for each, or the values if ``sync``. Other objects are passed through.

        Args:
            collections: one, or a list of them.
            optimize_graph: let dask optimize.
            traverse: look for collections in lists, tuples, sets and dicts.
            profile: run each task under the deep profiler; see ``Future.profile``.

        The other arguments are as in ``submit``.
        """
        many = isinstance(collections, list | tuple | set | frozenset)
        items = dask_adapter.as_collections(collections if many else [collections], traverse)
        chosen = [item for item in items if dask_adapter.is_collection(item)]
        result: list[Any] = items
        if chosen:
            graph = dask_adapter.compute_graph(chosen, optimize_graph)
            options = dict(
                zip(_OPTION_NAMES, (workers, allow_other_workers, resources, retries, priority), strict=True)
            )
            futures = self._graph(graph.dsk, graph.keys, graph.annotations, options, fifo_timeout, profile)
            keys = iter(graph.keys)
            result = [futures[next(keys)] if dask_adapter.is_collection(item) else item for item in items]
        if sync:
            return self.gather(result if many else result[0])
        return result if many else result[0]

    def persist(
        self,
        collections: Any,
        optimize_graph: bool = True,
        workers: Any = None,
        allow_other_workers: bool | None = None,
        resources: Mapping[str, float] | None = None,
        retries: int | None = None,
        priority: int = 0,
        fifo_timeout: float | str = "60 s",
        **kwargs: Any,
    ) -> Any:
        """Start to compute dask collections and keep their parts on the cluster: the same collections, on futures.

        Arguments as in ``compute``.
        """
        many = isinstance(collections, list | tuple | set | frozenset)
        items = list(collections) if many else [collections]
        for item in items:
            if not dask_adapter.is_collection(item):
                raise TypeError(f"persist takes dask collections, not {item!r}")
        graph = dask_adapter.persist_graph(items, optimize_graph)
        options = dict(zip(_OPTION_NAMES, (workers, allow_other_workers, resources, retries, priority), strict=True))
        keys = [dask_adapter.flat_keys(part) for part in graph.keys]
        futures = self._graph(
            graph.dsk, [key for part in keys for key in part], graph.annotations, options, fifo_timeout
        )
        rebuilt = [
            dask_adapter.rebuild(item, {key: futures[key] for key in part})
            for item, part in zip(items, keys, strict=True)
        ]
        return rebuilt if many else rebuilt[0]

    def _graph(
        self,
        dsk: Mapping[Any, Any],
        keys: Collection[Any],
        annotations: Mapping[str, Mapping[Any, Any]],
        options: dict[str, Any],
        fifo_timeout: float | str,
        profile: bool = False,
    ) -> dict[Any, Future]:
        """Futures of a graph's keys. What is said at the call wins over an annotation of the block it is in."""
        ambient, by_key = dask_adapter.ambient_annotations()
        given = {name: value for name, value in options.items() if value}
        span = current_span()
        if span:
            given["span"] = span
        for name, value in by_key.items():
            annotations = {name: {key: value(key) for key in dsk}, **annotations}
        fifo = seconds(fifo_timeout) or 0.0
        return self._submitter.graph(dsk, keys, annotations, {**ambient, **given}, fifo, profile)

    def _options(self, workers: Any, allow_other: Any, resources: Any, retries: Any, priority: Any) -> TaskOptions:
        if dask_adapter.loaded():
            ambient, _ = dask_adapter.ambient_annotations()
            if ambient:
                given = dict(zip(_OPTION_NAMES, (workers, allow_other, resources, retries, priority), strict=True))
                chosen = {**ambient, **{name: value for name, value in given.items() if value}}
                return options_of(**chosen, span=current_span())
        return options_of(priority, retries, workers, allow_other, resources, span=current_span())

    # Steering

    def cancel(
        self, futures: Any, asynchronous: bool | None = None, force: bool = False, reason: str = "", msg: str = ""
    ) -> Any:
        """Withdraw from tasks, and stop those not begun that nobody else wants. Their futures raise from now on.

        Args:
            futures: nested as you like, or dask collections.
            force: also for other clients that want them.
            reason, msg: told by the FutureCancelledError.
        """
        self._connection.check()
        states = [state for future in find_futures(futures) if (state := self.state_of(future)) is not None]
        if states:
            word = reason or "cancelled"
            self._connection.disown(states, word, msg)
            self._connection.push(CancelFutures(tuple([state.id for state in states]), force, word, msg))
        return self.done()

    def retry(self, futures: Any, asynchronous: bool | None = None) -> Any:
        """Run failed tasks again."""
        states = [state for future in find_futures(futures) if (state := self.state_of(future)) is not None]
        erred = self._connection.reopen([state for state in states if state.status == ERROR])
        if erred:
            self._connection.push(RetryFutures(tuple([state.id for state in erred])))
        return self.done()


def _nested(keys: Any, futures: Mapping[Any, Future]) -> Any:
    if type(keys) is list:
        return [_nested(key, futures) for key in keys]
    return futures[keys]


_own: dict[tuple[int, str], Client] = {}
_own_lock = threading.Lock()


def own_client() -> Client:
    """The client of this executor process for tasks that want one, made by the first of them; it goes with its cluster.

    Raises RuntimeError outside of executors.
    """
    cluster = context.cluster()
    if cluster is None:
        raise RuntimeError("there is no cluster here: this is not an executor")
    place = (os.getpid(), cluster.address)
    with _own_lock:
        client = _own.get(place)
        if client is None or client.status == "closed":
            for gone in [place for place, other in _own.items() if other.status == "closed"]:
                del _own[gone]
            security = Security.from_dict(cluster.security) if cluster.security else None
            client = _own[place] = Client(
                cluster.address, security=security, set_as_default=False, name=f"task-{os.getpid()}", _inside=True
            )
            client.close_when_lost()
    return client


default.provide_own_client(own_client)
