"""Many graph tasks pickled in one go, so that what they share is pickled once.

A ``Bundle`` is a code blob like a function is. A task that runs one of its entries has the entry's index as payload,
and gives the entry the values of its dependencies in order. What entries are made of is the client's business.

Contents: Entry, Bundle, BundleError, dumps_bundle, dumps_index, loads_index.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any, Protocol

from gnomon.runtime.errors import SerializationError
from gnomon.runtime.messages import ByReference, Key, Payload
from gnomon.runtime.protocol.calls import PROTOCOL, dumps_code

__all__ = ["Bundle", "BundleError", "Entry", "dumps_bundle", "dumps_index", "loads_index"]


class BundleError(SerializationError):
    """An entry of a bundle can't be pickled; ``key`` names its task, ``__cause__`` says why."""

    def __init__(self, key: Key, reason: str) -> None:
        super().__init__(key, reason)
        self.key = key
        self.reason = reason

    def __str__(self) -> str:
        return f"task {self.key!r} can't be pickled: {self.reason}"


class Entry(Protocol):
    """One graph task of a bundle."""

    def run(self, values: list[Any]) -> Any:
        """The task's result, given its dependencies' values in the order of the row's ``dependencies``."""
        ...


class Bundle:
    """Graph tasks by index."""

    __slots__ = ("entries",)

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries

    def __reduce__(self) -> tuple[type[Bundle], tuple[Sequence[Entry]]]:
        return Bundle, (self.entries,)

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> Entry:
        return self.entries[index]


def dumps_bundle(entries: Sequence[Entry], keys: Sequence[Key]) -> bytes:
    """The entries as one code blob. ``keys`` names them, for the error only.

    Raises BundleError naming the first entry that can't be pickled.
    """
    try:
        return dumps_code(Bundle(entries))
    except Exception as failure:
        for entry, key in zip(entries, keys, strict=True):
            try:
                dumps_code(entry)
            except Exception as exc:
                raise BundleError(key, f"{type(exc).__name__}: {exc}") from exc
        raise BundleError(keys[0], f"{type(failure).__name__}: {failure}") from failure


def dumps_index(index: int) -> bytes:
    """The payload of a task that runs the ``index``-th entry of its bundle."""
    return pickle.dumps(index, PROTOCOL)


def loads_index(payload: Payload) -> int:
    """The entry's index in a payload."""
    index: int = payload.value if type(payload) is ByReference else pickle.loads(payload)  # type: ignore[arg-type]
    return index
