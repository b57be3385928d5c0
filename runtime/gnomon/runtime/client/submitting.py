"""Calls and graphs to tasks: what ``submit``, ``map`` and ``get`` do up to the point where something waits.

Nothing here blocks, asks the scheduler or hops to the loop: futures are registered, rows are queued, and that is all.

Contents: Submitter.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from gnomon.runtime.client import bundling, dask_adapter, entries, graph, outgoing
from gnomon.runtime.client.codes import Code, Codes
from gnomon.runtime.client.connection import Connection
from gnomon.runtime.client.future import Future, FutureState
from gnomon.runtime.client.keys import ATOMS, digest, is_plain, name_of, token_of, unique_keys
from gnomon.runtime.client.packing import Packed, options_of, pack, payload_of
from gnomon.runtime.messages import ByReference, Key, Payload, ReleaseFutures, TaskOptions, WantKeys
from gnomon.runtime.protocol import dumps_call

if TYPE_CHECKING:
    from gnomon.runtime.client.client import Client

__all__ = ["Submitter"]

#: Annotations that say how a task wants to be treated.
OPTIONS = frozenset({"priority", "retries", "workers", "allow_other_workers", "resources", "executor"})

#: Tasks of a map that travel in one message: the scheduler starts on the first while the client pickles the next.
CHUNK = 5_000


class Submitter:
    """What one client submits with.

    Args:
        client: whose futures are made.
        connection: its stream.
        parent_task: gives the id of the task that the calling thread runs, 0 for none.
    """

    def __init__(self, client: Client, connection: Connection, parent_task: Callable[[], int]) -> None:
        self._client = client
        self._connection = connection
        self._parent_task = parent_task
        self._number = itertools.count(1).__next__
        self._unique = unique_keys()
        self._codes = Codes(connection.queue, self._number)

    # One call

    def submit(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        key: Key | None,
        pure: bool,
        options: TaskOptions,
        fifo_timeout: float,
    ) -> Future:
        """One task."""
        connection = self._connection
        connection.check()
        if not callable(func):
            raise TypeError(f"the first argument of submit must be callable, not {func!r}")
        by_reference = connection.by_reference
        code = self._codes.of(func, by_reference)
        packed = pack(args, kwargs, self.state_of)
        payload: Payload | None = None
        if key is None:
            if pure:
                if packed.needs or not (is_plain(args) and is_plain(kwargs)):
                    payload = payload_of(code.name, packed.args, packed.kwargs, by_reference)
                key = f"{code.name}-{self._token(code, packed, payload)}"
            else:
                key = f"{code.name}-{self._unique()}"
        else:
            key = graph.wire_key(key)
        state = connection.find(key)
        if state is None:
            if payload is None:
                payload = payload_of(code.name, packed.args, packed.kwargs, by_reference)
            state = connection.register(key)
            needs = tuple([need.id for need in packed.needs]) if packed.needs else ()
            connection.push(
                outgoing.Row(key, code.number, payload, needs, state.id, options, fifo_timeout, self._parent_task())
            )
        return Future.of_state(state, self._client)

    def _token(self, code: Code, packed: Packed, payload: Payload | None) -> str:
        """A name for a call's content."""
        needs = [need.key for need in packed.needs]
        if payload is None:
            return digest(repr((code.token, packed.args, packed.kwargs)).encode("utf-8", "surrogatepass"))
        if type(payload) is ByReference or dask_adapter.loaded():
            return token_of((code.token, packed.args, packed.kwargs, needs), lambda obj: dumps_call((obj,), {}))
        assert isinstance(payload, bytes)
        return digest(code.token.encode(), payload, repr(needs).encode("utf-8", "surrogatepass"))

    def state_of(self, future: Future) -> FutureState:
        """This client's state for a future, which may be another client's of the same cluster."""
        state = future.state
        if type(state) is not FutureState:
            raise ValueError(f"{future!r} was released: it can't be an argument")
        if state.connection is self._connection:
            return state
        return self.want(state.key)

    def want(self, key: Key) -> FutureState:
        """The state of a key that the scheduler is expected to know."""
        state = self._connection.find(key)
        if state is None:
            state = self._connection.register(key)
            self._connection.push(WantKeys((key,), (state.id,)))
        return state

    # Many calls

    def map(
        self,
        func: Callable[..., Any],
        iterables: Collection[Iterable[Any]],
        kwargs: dict[str, Any],
        key: Any,
        pure: bool,
        options: TaskOptions,
        fifo_timeout: float,
        batch_size: int | None,
    ) -> list[Future]:
        """One task per tuple of the iterables."""
        connection = self._connection
        connection.check()
        if not callable(func):
            raise TypeError(f"the first argument of map must be callable, not {func!r}")
        if not iterables:
            raise TypeError("map needs at least one iterable")
        name = name_of(func)
        common = pack((), kwargs, self.state_of)
        if kwargs and not common.needs:
            # What all calls share travels once, with the function.
            func, kwargs = partial(func, **kwargs), {}
        code = self._codes.of(func, connection.by_reference)
        names = self._map_keys(key, name, code, pure)
        chunk = _Chunk(self, code._replace(name=name), kwargs, options, fifo_timeout, self._parent_task())
        size = min(batch_size or CHUNK, CHUNK)
        futures: list[Future] = []
        calls = zip(*iterables, strict=False)
        while args_list := list(itertools.islice(calls, size)):
            futures += chunk.submit(args_list, names, self._client)
        return futures

    def _map_keys(self, key: Any, name: str, code: Code, pure: bool) -> Callable[[Packed, Payload | None], Key]:
        """What names the tasks of one map: given keys, content, or a running number."""
        if isinstance(key, list | tuple):
            given: Iterator[Key] = iter([graph.wire_key(k) for k in key])

            def next_given(packed: Packed, payload: Payload | None) -> Key:
                try:
                    return next(given)
                except StopIteration:
                    raise ValueError("map got fewer keys than calls") from None

            return next_given
        if key is not None and not isinstance(key, str):
            raise TypeError("key of a map must be a string that its keys begin with, or a list of keys")
        prefix = f"{key or name}-"
        if pure:
            token = code.token

            def by_content(packed: Packed, payload: Payload | None) -> Key:
                if payload is None:
                    return prefix + digest(repr((token, packed.args)).encode("utf-8", "surrogatepass"))
                return prefix + self._token(code, packed, payload)

            return by_content
        unique = self._unique
        return lambda packed, payload: prefix + unique()

    # Graphs

    def graph(
        self,
        dsk: Mapping[Any, Any],
        wanted: Collection[Any],
        annotations: Mapping[str, Mapping[Any, Any]],
        options: dict[str, Any],
        fifo_timeout: float,
        profile: bool = False,
    ) -> dict[Any, Future]:
        """The tasks that the wanted keys need; gives their futures.

        Args:
            dsk: raw or of task nodes, or both.
            wanted: keys.
            annotations: by name of the option, the values of keys that have their own.
            options: of all other tasks, as ``options_of`` takes them.
            profile: run the tasks under the deep profiler.

        Raises KeyError, BundleError, ValueError (see ``graph`` and ``bundling``).
        """
        connection = self._connection
        connection.check()
        outputs: dict[Any, FutureState] = {}
        known: dict[Any, FutureState] = {}
        for key in wanted:
            state = connection.find(graph.wire_key(key))
            if state is not None:
                known[key] = state
        missing = [key for key in wanted if key not in known]
        if missing:
            conversion = graph.convert(dsk, missing, connection.find, self.state_of, dask_adapter.node_kinds())
            for key in missing:
                if key in conversion.known:
                    known[key] = conversion.known[key]
            if profile:
                for key, task in conversion.tasks.items():
                    conversion.tasks[key] = task._replace(spec=(entries.PROFILED, task.spec))
            default = options_of(**options)
            own = _own_options(annotations, options)
            codes, task_codes, payloads = bundling.bundle(conversion.tasks, self._number, connection.by_reference)
            outputs = {key: connection.register(graph.wire_key(key)) for key in missing if key not in known}
            wants = bundling.Wants(outputs, own, default, fifo_timeout, self._parent_task())
            parts, bridges = bundling.columns(conversion, task_codes, payloads, wants, connection.future_id)
            for code in codes:
                connection.queue(code)
            for part in parts:
                connection.push(part)
            if bridges:
                connection.push(ReleaseFutures(tuple(bridges)))
            for code in codes:
                connection.queue(outgoing.Forget(code.number))
        return {key: Future.of_state(outputs.get(key) or known[key], self._client) for key in dict.fromkeys(wanted)}


class _Chunk:
    """Makes the rows of a map, a chunk at a time."""

    def __init__(
        self,
        submitter: Submitter,
        code: Code,
        kwargs: dict[str, Any],
        options: TaskOptions,
        fifo_timeout: float,
        parent_task: int,
    ) -> None:
        self._code = code
        self._kwargs = kwargs
        self._state_of = submitter.state_of
        self._connection = submitter._connection
        self._tail = ((options,), (), fifo_timeout, parent_task)

    def submit(
        self, calls: list[tuple[Any, ...]], name: Callable[[Packed, Payload | None], Key], client: Client
    ) -> list[Future]:
        """The futures of some calls."""
        connection, kwargs, code = self._connection, self._kwargs, self._code
        by_reference, function = connection.by_reference, code.name
        find, register = connection.find, connection.register
        futures: list[Future] = []
        keys: list[Key] = []
        payloads: list[Payload] = []
        future_ids: list[int] = []
        dependencies: list[tuple[int, ...]] = []
        externals: dict[int, int] = {}
        nothing: list[FutureState] = []
        plain = not kwargs
        for args in calls:
            simple = plain
            for arg in args:
                if type(arg) not in ATOMS:
                    simple = False
            if simple:
                packed, payload = Packed(args, kwargs, nothing), None
            else:
                packed = pack(args, kwargs, self._state_of)
                payload = payload_of(function, packed.args, packed.kwargs, by_reference)
            key = name(packed, payload)
            state = find(key)
            if state is None:
                state = register(key)
                keys.append(key)
                payloads.append(payload_of(function, args, kwargs, by_reference) if payload is None else payload)
                future_ids.append(state.id)
                dependencies.append(
                    tuple([-1 - externals.setdefault(need.id, len(externals)) for need in packed.needs])
                    if packed.needs
                    else ()
                )
            futures.append(Future.of_state(state, client))
        if keys:
            connection.push(
                outgoing.Part(
                    tuple(keys),
                    (code.number,) * len(keys),
                    tuple(payloads),
                    tuple(dependencies) if externals else (),
                    tuple(externals),
                    tuple(future_ids),
                    *self._tail,
                )
            )
        return futures


def _own_options(annotations: Mapping[str, Mapping[Any, Any]], options: dict[str, Any]) -> dict[Any, TaskOptions]:
    """Options of the keys that have annotations of their own."""
    by_key: dict[Any, dict[str, Any]] = {}
    for option, values in annotations.items():
        if option in OPTIONS:
            for key, value in values.items():
                by_key.setdefault(key, dict(options))[option] = value
    made: dict[Any, TaskOptions] = {}
    for key, merged in by_key.items():
        made[key] = options_of(**merged)
    return made
