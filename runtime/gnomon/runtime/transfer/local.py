"""The data servers of this process, by their ``inproc://`` addresses. Values pass by reference, in the caller's thread.

Contents: register, unregister, find.
"""

from __future__ import annotations

import itertools
import os
import threading

from gnomon.runtime.transfer.records import Source

__all__ = ["find", "register", "unregister"]

_lock = threading.Lock()
_sources: dict[str, Source] = {}
_numbers = itertools.count(1)


def register(source: Source) -> str:
    """Enter a source; its new address, never used again."""
    with _lock:
        address = f"inproc://{os.getpid()}/data-{next(_numbers)}"
        _sources[address] = source
        return address


def unregister(address: str) -> None:
    """Take the source out. Idempotent."""
    with _lock:
        _sources.pop(address, None)


def find(address: str) -> Source | None:
    """The source at an address, or None if it is closed or in another process."""
    return _sources.get(address)
