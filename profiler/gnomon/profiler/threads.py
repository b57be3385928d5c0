"""One record for each thread that has something to say about itself: found by the thread at once, by others by ident.

The record goes when its thread goes, so that a thread to which the system gives the same ident starts with none.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["PerThread"]

T = TypeVar("T")


class _Leave(Generic[T]):
    """Lives in a thread's own storage, and dies with the thread."""

    __slots__ = ("_by_ident", "_gone", "_ident", "_record")

    def __init__(self, by_ident: dict[int, T], record: T, gone: Callable[[int, T], None] | None) -> None:
        self._by_ident = by_ident
        self._record = record
        self._gone = gone
        self._ident = threading.get_ident()
        by_ident[self._ident] = record

    def __del__(self) -> None:
        if self._by_ident.get(self._ident) is self._record:
            del self._by_ident[self._ident]
            if self._gone is not None:
                self._gone(self._ident, self._record)


class PerThread(threading.local, Generic[T]):
    """``mine.record`` is the calling thread's record, made by ``make`` when first asked for; ``by_ident`` has all.

    ``gone`` is called with ident and record by a thread that ends.
    """

    def __init__(
        self, make: Callable[[], T], by_ident: dict[int, T], gone: Callable[[int, T], None] | None = None
    ) -> None:
        # Runs once in each thread, with the same arguments: that is how threading.local treats its subclasses.
        self.record: T = make()
        self._leave = _Leave(by_ident, self.record, gone)
        if threading.current_thread() is threading.main_thread():
            _keep_only_survivor(by_ident)


def _keep_only_survivor(by_ident: dict[int, T]) -> None:
    """In a forked child only the forking thread lives on."""

    def forked() -> None:
        mine = threading.get_ident()
        for ident in [ident for ident in by_ident if ident != mine]:
            del by_ident[ident]

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forked)
