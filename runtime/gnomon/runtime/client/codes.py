"""Functions as numbered code: each is pickled once, sent once, and named by its number from then on.

An importable function is known by its identity. One that travels by value (a lambda, a closure, a function of a script
or notebook) is known by its identity too, but pickled again once something it refers to has changed. Any other callable
(a method, a partial, an object) is pickled each time, and recognized by its bytes.

Contents: Codes, Code.
"""

from __future__ import annotations

import os
import pickle
import threading
import types
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from gnomon.runtime.client import outgoing
from gnomon.runtime.client.keys import digest, name_of
from gnomon.runtime.errors import SerializationError
from gnomon.runtime.messages import ByReference, Payload
from gnomon.runtime.protocol import dumps_code

__all__ = ["Code", "Codes"]

#: Codes and bytes of code that a client keeps apart at the scheduler; beyond, the oldest is forgotten.
MAX_CODES = 1000
MAX_BYTES = 64 << 20


class Code(NamedTuple):
    """A function that the scheduler knows by ``number``; ``token`` names its content, ``name`` is for people."""

    number: int
    token: str
    name: str
    nbytes: int


class _Known(NamedTuple):
    """A function seen before. It is held, so that its identity can't become another's."""

    func: Any
    fingerprint: Any
    code: Code


#: Globals of these types don't change what a function means as long as their identity stays.
_STEADY = (
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    type,
    int,
    str,
    float,
    bool,
    type(None),
    bytes,
    complex,
)


class Codes:
    """The code of one client. Thread-safe.

    Args:
        queue: queues an entry for the scheduler.
        number: gives the next client code.
    """

    def __init__(self, queue: Callable[[Any], None], number: Callable[[], int]) -> None:
        self._queue = queue
        self._number = number
        self._lock = threading.Lock()
        self._by_function: OrderedDict[int, _Known] = OrderedDict()
        self._by_token: OrderedDict[str, Code] = OrderedDict()
        self._bytes = 0

    def of(self, func: Any, by_reference: bool) -> Code:
        """The code of a callable, sent if it is new.

        Raises SerializationError (a TypeError) if it can't be pickled, CommClosedError.
        """
        known = self._by_function.get(id(func))
        if (
            known is not None
            and known.func is func
            and (known.fingerprint is None or known.fingerprint == _fingerprint(func))
            and known.code.token in self._by_token
        ):
            return known.code
        return self._new(func, by_reference)

    def _new(self, func: Any, by_reference: bool) -> Code:
        fingerprint, lasting = None, isinstance(func, types.FunctionType | types.BuiltinFunctionType | type)
        blob: Payload
        if by_reference:
            # What has no name that others find it by stays unread: a code of its own, found by identity alone.
            blob, token, lasting = ByReference(func), _name_token(func) or os.urandom(16).hex(), True
        else:
            try:
                blob = dumps_code(func)
            except Exception as exc:
                raise SerializationError(f"the function {func!r} can't be pickled: {exc}") from exc
            token = digest(blob)
            if lasting and _travels_by_value(func, blob):
                fingerprint = _fingerprint(func)
                lasting = fingerprint is not None
        nbytes = len(blob) if isinstance(blob, bytes) else 0
        with self._lock:
            code = self._by_token.get(token)
            if code is None:
                code = Code(self._number(), token, name_of(func), nbytes)
                # Queued before it can be found: no thread names a code ahead of its blob.
                self._queue(outgoing.Code(code.number, blob))
                self._by_token[token] = code
                self._bytes += nbytes
            else:
                self._by_token.move_to_end(token)
            if lasting:
                self._by_function[id(func)] = _Known(func, fingerprint, code)
            self._shrink()
        return code

    def _shrink(self) -> None:
        while len(self._by_token) > 1 and (len(self._by_token) > MAX_CODES or self._bytes > MAX_BYTES):
            _, old = self._by_token.popitem(last=False)
            self._bytes -= old.nbytes
            self._queue(outgoing.Forget(old.number))
        while len(self._by_function) > MAX_CODES:
            self._by_function.popitem(last=False)


def _name_token(func: Any) -> str:
    """A token for a function that can be imported, the same as where it travels; empty for others."""
    if not isinstance(func, types.FunctionType | types.BuiltinFunctionType | type):
        return ""
    try:
        blob = pickle.dumps(func, 5)
    except Exception:  # noqa: BLE001 - a class may have a metaclass that raises anything
        return ""
    return "" if b"__main__" in blob else digest(blob)


def _travels_by_value(func: Any, blob: bytes) -> bool:
    return b"cloudpickle" in blob or getattr(func, "__module__", None) == "__main__"


def _fingerprint(func: Any) -> Any:
    """What a function pickled by value depends on; None if that can change without being seen here."""
    seen: set[int] = set()
    parts: list[Any] = []
    return tuple(parts) if _collect(func, parts, seen) else None


def _collect(func: Any, parts: list[Any], seen: set[int]) -> bool:
    if id(func) in seen:
        return True
    seen.add(id(func))
    if type(func) is not types.FunctionType or len(seen) > 50:
        return False
    parts += (func.__code__, func.__defaults__)
    if func.__kwdefaults__ or not all(isinstance(value, _STEADY) for value in func.__defaults__ or ()):
        return False
    try:
        values = [cell.cell_contents for cell in func.__closure__ or ()]
    except ValueError:
        return False  # a cell that is not filled yet
    names = _names(func.__code__)
    values += [func.__globals__[name] for name in names if name in func.__globals__]
    for value in values:
        if not isinstance(value, _STEADY):
            return False
        parts.append(value)
        if isinstance(value, type) and value.__module__ == "__main__":
            return False
        if (
            isinstance(value, types.FunctionType)
            and value.__module__ == func.__module__
            and not _collect(value, parts, seen)
        ):
            return False
    return True


def _names(code: types.CodeType) -> list[str]:
    """Global names that a code object and those inside it may refer to."""
    names = list(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            names += _names(const)
    return names
