"""Data from here to workers.

Small values travel in the message to the scheduler. Larger ones are encoded in the caller's thread and sent straight to
the data servers that the scheduler chose, several at once; these report the replicas, and so the futures are done.

Contents: Scatter, named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, wait
from typing import Any, NamedTuple
from uuid import uuid4

from gnomon.runtime.client.connection import Connection
from gnomon.runtime.client.effects import SLICE, work
from gnomon.runtime.client.future import FutureState
from gnomon.runtime.client.gather import Results, answer, error_of
from gnomon.runtime.client.graph import wire_key
from gnomon.runtime.client.keys import name_of, token_of
from gnomon.runtime.errors import CommError, FutureLostError, SerializationError
from gnomon.runtime.messages import ByReference, Key, Payload, ScatterData
from gnomon.runtime.protocol import Encoded, encode_value, sizeof
from gnomon.runtime.transfer import Fetcher

__all__ = ["Scatter", "named"]

#: Bytes up to which a value travels in the message and stays with the scheduler.
SMALL = 512


class _Ready(NamedTuple):
    """A value made ready: a small payload, or what a data server is sent."""

    nbytes: int
    small: Payload | None
    large: Encoded | ByReference | None


class Scatter:
    """Scatters for one client; arguments as for ``Results``."""

    def __init__(
        self, connection: Connection, results: Results, fetcher: Callable[[], Fetcher], pool: Callable[[], Executor]
    ) -> None:
        self._connection = connection
        self._results = results
        self._fetcher = fetcher
        self._pool = pool

    async def send(
        self, items: Mapping[Key, Any], workers: tuple[str, ...], broadcast: bool | int, timeout: float | None
    ) -> dict[Key, FutureState]:
        """The states of the items, done.

        Raises SerializationError, TimeoutError, CommError if no worker takes a value.
        """
        connection = self._connection
        states = {key: state for key in items if (state := connection.find(key)) is not None}
        new = [key for key in items if key not in states]
        if not new:
            return states
        ready: list[_Ready] = await work(lambda: [self._encode(key, items[key]) for key in new])
        if any(each.large is not None for each in ready):
            await answer(connection.ask("wait_for_workers", {"n": 1}), timeout)
        fresh = [connection.register(key) for key in new]
        number, reply = connection.expect_reply()
        connection.push(
            ScatterData(
                number,
                tuple(new),
                tuple([state.id for state in fresh]),
                tuple([each.nbytes for each in ready]),
                tuple([each.small for each in ready]),
                workers,
                0 if broadcast is True else max(1, int(broadcast)),
            )
        )
        rows = await answer(reply, timeout)
        jobs = [
            (address, task_id, attempt, each.large)
            for (task_id, attempt, addresses), each in zip(rows, ready, strict=True)
            if each.large is not None
            for address in addresses
        ]
        for (_, _, addresses), each, state in zip(rows, ready, fresh, strict=True):
            if each.large is not None and not addresses:
                raise FutureLostError(f"no worker may hold {state.key!r}")
        await work(lambda: self._deliver(jobs))
        await self._results.wait(fresh, timeout)
        for state in fresh:
            if state.error is not None:
                raise error_of(state)
        return states | dict(zip(new, fresh, strict=True))

    def _encode(self, key: Key, value: Any) -> _Ready:
        if self._connection.by_reference:
            return _Ready(max(sizeof(value), 1), None, ByReference(value))
        try:
            encoded = encode_value(value)
        except Exception as exc:
            raise SerializationError(f"{key!r}, a {type(value).__name__}, can't be pickled: {exc}") from exc
        if encoded.nbytes <= SMALL and len(encoded.frames) == 1:
            return _Ready(encoded.nbytes, bytes(encoded.frames[0]), None)
        return _Ready(encoded.nbytes, None, encoded)

    def _deliver(self, jobs: list[tuple[str, int, int, Any]]) -> None:
        fetcher = self._fetcher()
        if len(jobs) <= 1:
            for job in jobs:
                fetcher.send(*job)
            return
        failures: list[CommError] = []
        running = [self._pool().submit(fetcher.send, *job) for job in jobs]
        while wait(running, SLICE).not_done:
            pass
        for future in running:
            try:
                future.result()
            except CommError as exc:
                failures.append(exc)
        if failures:
            raise failures[0]


def named(data: Any, by_content: bool) -> tuple[dict[Key, Any], Callable[[list[Any]], Any]]:
    """Keys for scattered data, and how to arrange futures (in the order of the keys) as the data was.

    A dict gives its own keys; a list, tuple, set or iterator is scattered item by item; anything else is one item.
    """
    if type(data) is dict:
        items = {wire_key(key): value for key, value in data.items()}
        names = list(data)
        return items, lambda futures: dict(zip(names, futures, strict=True))
    if type(data) in (list, tuple, set, frozenset) or isinstance(data, Iterator | range):
        kind = list if isinstance(data, Iterator | range) else type(data)
        values = list(data)
        keys = [_key(value, by_content) for value in values]
        return dict(zip(keys, values, strict=True)), lambda futures: kind(_expand(keys, futures))
    key = _key(data, by_content)
    return {key: data}, lambda futures: futures[0]


def _expand(keys: list[Key], futures: list[Any]) -> list[Any]:
    """One future per item, where equal items share a key."""
    by_key = dict(zip(dict.fromkeys(keys), futures, strict=True))
    return [by_key[key] for key in keys]


def _key(value: Any, by_content: bool) -> Key:
    return f"{name_of(type(value))}-{token_of(value) if by_content else uuid4().hex}"
