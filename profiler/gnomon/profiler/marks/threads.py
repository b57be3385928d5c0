"""One record for each thread that has something to say about itself: found by the thread at once, by others by ident.

The record goes when its thread goes, so that a thread to which the system gives the same ident starts with none.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["PerThread", "new_table"]

T = TypeVar("T")


def new_table() -> dict[int, Any]:
    """A table of records by the ident of their threads; in a forked child the other threads' records are gone."""
    table: dict[int, Any] = {}

    def forked() -> None:
        mine = threading.get_ident()
        for ident in [ident for ident in table if ident != mine]:
            del table[ident]

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forked)
    return table


class _Leave(Generic[T]):
    """Lives in a thread's own storage, and dies with the thread."""

    __slots__ = ("_gone", "_ident", "_record", "_table")
    _finalizing = staticmethod(sys.is_finalizing)  # module globals may be gone by then

    def __init__(self, table: dict[int, T], record: T, gone: Callable[[int, T], None] | None) -> None:
        self._table = table
        self._record = record
        self._gone = gone
        self._ident = threading.get_ident()
        table[self._ident] = record

    def __del__(self) -> None:
        if self._finalizing():
            return
        if self._table.get(self._ident) is self._record:
            del self._table[self._ident]
            if self._gone is not None:
                self._gone(self._ident, self._record)


class PerThread(threading.local, Generic[T]):
    """``mine.record`` is the calling thread's record, made by ``make`` when first asked for and listed in ``table``.

    ``gone`` is called with ident and record by a thread that ends.
    """

    def __init__(
        self, make: Callable[[], T], table: dict[int, T], gone: Callable[[int, T], None] | None = None
    ) -> None:
        # Runs once in each thread, with the same arguments: that is how threading.local treats its subclasses.
        self.record: T = make()
        self._leave = _Leave(table, self.record, gone)
