"""Functions and arguments to what a row of a graph holds: references in the place of futures, and a payload.

Contents: Packed, pack, payload_of, options_of, seconds, OptionsError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from gnomon.runtime.client.entries import place
from gnomon.runtime.client.future import CANCELLED, LOST, Future, FutureState
from gnomon.runtime.client.keys import ATOMS
from gnomon.runtime.errors import SerializationError
from gnomon.runtime.messages import NO_OPTIONS, ByReference, Payload, TaskOptions
from gnomon.runtime.protocol import dumps_call, is_named_tuple

__all__ = ["Packed", "options_of", "pack", "payload_of", "seconds"]

#: A payload above this is refused: a frame of the control plane must hold it, and the scheduler would keep it.
MAX_PAYLOAD = 48 << 20


class Packed(NamedTuple):
    """A call with its futures replaced, and the states they stood for."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    needs: list[FutureState]


def pack(args: tuple[Any, ...], kwargs: dict[str, Any], state_of: Callable[[Future], FutureState]) -> Packed:
    """Find the futures in a call, at any depth of exact lists, tuples, dicts and sets.

    Raises FutureCancelledError or FutureLostError for a future that will never be done.
    """
    for arg in args:
        if type(arg) not in ATOMS:
            break
    else:
        if not kwargs:
            return Packed(args, kwargs, _NONE)
    finder = _Finder(state_of)
    new_args = finder.items(args)
    new_kwargs = finder.walk(kwargs) if kwargs else kwargs
    return Packed(tuple(new_args), new_kwargs, finder.needs)


_NONE: list[FutureState] = []


class _Finder:
    """Replaces futures by references, and numbers the states behind them."""

    def __init__(self, state_of: Callable[[Future], FutureState]) -> None:
        self.needs: list[FutureState] = []
        self._places: dict[int, int] = {}
        self._state_of = state_of

    def walk(self, obj: Any) -> Any:
        """The object, rebuilt where it holds futures."""
        kind = type(obj)
        if kind in ATOMS:
            return obj
        if kind is list:
            return self.items(obj)
        if kind is tuple:
            new = self.items(obj)
            return obj if new is obj else tuple(new)
        if kind is dict:
            values = list(obj.values())
            new = self.items(values)
            return obj if new is values else dict(zip(obj, new, strict=True))
        if kind is set or kind is frozenset:
            values = list(obj)
            new = self.items(values)
            return obj if new is values else kind(new)
        if isinstance(obj, Future):
            return self._place(self._state_of(obj))
        if is_named_tuple(obj):
            new = self.items(obj)
            return obj if new is obj else kind._make(new)
        return obj

    def items(self, values: Any) -> Any:
        """The items as a list with futures replaced; the same object if there are none."""
        new: list[Any] | None = None
        for i, value in enumerate(values):
            if type(value) in ATOMS:
                continue
            item = self.walk(value)
            if item is not value:
                if new is None:
                    new = list(values)
                new[i] = item
        return values if new is None else new

    def _place(self, state: FutureState) -> Any:
        if state.status in (CANCELLED, LOST):
            assert isinstance(state.error, BaseException)
            raise state.error
        index = self._places.get(state.id)
        if index is None:
            index = self._places[state.id] = len(self.needs)
            self.needs.append(state)
        return place(index)


def payload_of(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], by_reference: bool) -> Payload:
    """The arguments as a payload.

    Raises SerializationError (a TypeError) naming the argument that can't be pickled, ValueError for too large ones.
    """
    if by_reference:
        return ByReference((args, kwargs))
    try:
        payload = dumps_call(args, kwargs)
    except Exception as exc:
        raise _unpicklable(name, args, kwargs, exc) from exc
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(
            f"the arguments of {name} are {len(payload) >> 20} MiB: send such data with client.scatter(...) "
            "and pass the future"
        )
    return payload


def _unpicklable(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], failure: Exception) -> SerializationError:
    """Which of the arguments it was."""
    for which, arg in [
        *((f"argument {i}", a) for i, a in enumerate(args)),
        *((f"argument {k!r}", a) for k, a in kwargs.items()),
    ]:
        try:
            dumps_call((arg,), {})
        except Exception as exc:  # noqa: BLE001 - the user's objects may raise anything when pickled
            return SerializationError(f"{which} of {name}, a {type(arg).__name__}, can't be pickled: {exc}")
    return SerializationError(f"the arguments of {name} can't be pickled: {failure}")


def options_of(
    priority: Any = 0,
    retries: Any = None,
    workers: Any = None,
    allow_other_workers: Any = False,
    resources: Mapping[str, float] | None = None,
    executor: str | None = None,
    span: tuple[str, ...] = (),
) -> TaskOptions:
    """The options of tasks as users write them.

    Raises TypeError or ValueError for what can't be meant.
    """
    if not (priority or retries or resources or allow_other_workers or executor or span) and workers is None:
        return NO_OPTIONS
    if allow_other_workers not in (True, False, None):
        raise TypeError("allow_other_workers must be True or False")
    names = worker_names(workers)
    if allow_other_workers and not names:
        raise ValueError("allow_other_workers=True needs workers= to choose from")
    return TaskOptions(
        priority=_whole("priority", priority),
        retries=_whole("retries", retries or 0),
        workers=names,
        allow_other_workers=bool(allow_other_workers),
        resources=tuple(sorted((str(k), float(v)) for k, v in (resources or {}).items())),
        executor=executor or "",
        span=span,
    )


def worker_names(workers: Any) -> tuple[str, ...]:
    """Addresses, names or hosts of workers: one or many."""
    if workers is None:
        return ()
    if isinstance(workers, str | int):
        return (str(workers),)
    if not isinstance(workers, Iterable):
        raise TypeError(f"workers must be an address, a name, a host, or a list of these, not {workers!r}")
    return tuple(str(worker) for worker in workers)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or (not isinstance(value, int | float) and not hasattr(value, "__index__")):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value != int(value):
        raise ValueError(f"{name} must be a whole number, not {value!r}")
    return int(value)


_UNITS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_LONG = {"second": "s", "sec": "s", "minute": "min", "hour": "h", "day": "d", "millisecond": "ms", "microsecond": "us"}


@lru_cache(maxsize=100)
def _parsed(text: str) -> float:
    found = re.fullmatch(r"\s*([0-9.eE+-]*)\s*([a-zA-Zµ]*)\s*", text)
    unit = found.group(2).replace("µ", "u") if found else ""
    unit = unit if unit in _UNITS else _LONG.get(unit.rstrip("s"), unit)
    if found is None or unit not in _UNITS:
        raise ValueError(f"not a time: {text!r}; write seconds, or text such as '300 ms' or '5 min'")
    return (float(found.group(1)) if found.group(1) else 1.0) * _UNITS[unit]


def seconds(value: Any) -> float | None:
    """A time as users give it: seconds, text with a unit, a timedelta, or None.

    Raises ValueError for what is no time.
    """
    if value is None:
        return None
    if isinstance(value, str):
        return _parsed(value)
    if hasattr(value, "total_seconds"):
        return float(value.total_seconds())
    return float(value)
