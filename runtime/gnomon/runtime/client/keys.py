"""Names of tasks: by content where a call is pure, never used twice where it isn't.

Plain data (numbers, strings, bytes and their nests) is named by what it looks like written down, dask's collections and
whatever dask knows how to name by dask where it is loaded, anything else by its pickle. The same content may get two
names (a cache miss); two contents never get one.

Contents: digest, token_of, is_plain, unique_keys, name_of.
"""

from __future__ import annotations

import itertools
import os
import pickle
import sys
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

__all__ = ["digest", "is_plain", "name_of", "token_of", "unique_keys"]

ATOMS = frozenset({int, str, float, bool, type(None), bytes, complex})


def digest(*parts: bytes | memoryview) -> str:
    """32 hexadecimal digits that stand for these bytes."""
    if len(parts) == 1:
        return blake2b(parts[0], digest_size=16).hexdigest()
    state = blake2b(digest_size=16)
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.hexdigest()


def is_plain(obj: Any) -> bool:
    """Whether ``repr`` says all there is to say of it: atoms, and exact lists, tuples and dicts of atoms."""
    kind = type(obj)
    if kind in ATOMS:
        return True
    if kind is tuple or kind is list:
        return all(type(item) in ATOMS or is_plain(item) for item in obj)
    if kind is dict:
        return all(is_plain(key) and is_plain(value) for key, value in obj.items())
    return False


def token_of(obj: Any, dumps: Callable[[Any], bytes] | None = None) -> str:
    """A name for the content of any object; a random one if nothing can be said of its content.

    ``dumps`` pickles what plain pickle doesn't.
    """
    if is_plain(obj):
        return digest(repr(obj).encode("utf-8", "surrogatepass"))
    dask = sys.modules.get("dask.tokenize")
    if dask is not None:
        token: str = dask.tokenize(obj)
        return token
    found = _by_pickle(obj, dumps)
    return digest(*found) if found else os.urandom(16).hex()


def _by_pickle(obj: Any, dumps: Callable[[Any], bytes] | None) -> list[Any]:
    """An object's content as bytes; empty if it can't be had."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        stream = pickle.dumps(obj, 5, buffer_callback=buffers.append)
        if b"__main__" not in stream:
            return [stream, *[buffer.raw() for buffer in buffers]]
    except Exception:  # noqa: BLE001 - the user's objects may raise anything when pickled
        buffers = []
    try:
        return [dumps(obj)] if dumps is not None else []
    except Exception:  # noqa: BLE001
        return []


def unique_keys() -> Callable[[], str]:
    """A source of 32 hexadecimal digits, different at each call, here and elsewhere."""
    start = os.urandom(10).hex()
    count = itertools.count().__next__

    def unique() -> str:
        return f"{start}{count():012x}"

    return unique


def name_of(func: Any) -> str:
    """A function's name as keys and reports show it: no module, no brackets, no dashes at its end."""
    name = getattr(func, "__name__", None)
    if name is None:
        inner = getattr(func, "func", None)  # functools.partial
        name = name_of(inner) if inner is not None and inner is not func else type(func).__name__
    if name == "<lambda>":
        return "lambda"
    name = str(name).strip("<>").replace("-", "_")
    return name if len(name) <= 100 else name[:100]
