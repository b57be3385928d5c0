"""Functions and their arguments as bytes, and the places that dependencies take in the arguments.

Plain pickle first. Its result is thrown away for cloudpickle's where it failed, or where it mentions ``__main__``: what
lives there exists by that name in this process only, so it has to travel by value. The same holds while the user has
modules registered to be pickled by value.

Contents: dumps_code, loads_code, dumps_call, loads_call, Ref, substitute; dumps_by_value for the other files here.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from typing import Any

from gnomon.runtime.messages import ByReference, Payload

__all__ = [
    "PROTOCOL",
    "Ref",
    "by_value_wanted",
    "dumps_by_value",
    "dumps_call",
    "dumps_code",
    "is_named_tuple",
    "loads_call",
    "loads_code",
    "substitute",
]

#: Pickle protocol of everything we write: the first with out-of-band buffers, and known to all supported versions.
PROTOCOL = 5

_dumps = pickle.dumps
_modules = sys.modules


class Ref:
    """Stands in a task's arguments for the value of its ``index``-th dependency."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def __reduce__(self) -> tuple[type[Ref], tuple[int]]:
        return Ref, (self.index,)

    def __eq__(self, other: object) -> bool:
        return type(other) is Ref and other.index == self.index

    def __hash__(self) -> int:
        return hash((Ref, self.index))

    def __repr__(self) -> str:
        return f"Ref({self.index})"


def by_value_wanted() -> bool:
    """Whether the user asked cloudpickle to pickle some module by value, which plain pickle would not do."""
    cloudpickle = _modules.get("cloudpickle")
    return cloudpickle is not None and bool(cloudpickle.list_registry_pickle_by_value())


def dumps_by_value(obj: Any, buffer_callback: Callable[[pickle.PickleBuffer], Any] | None = None) -> bytes:
    """The object pickled by cloudpickle: functions and classes of ``__main__``, lambdas and closures by value.

    Raises whatever the object raises when it is pickled.
    """
    import cloudpickle

    blob: bytes = cloudpickle.dumps(obj, protocol=PROTOCOL, buffer_callback=buffer_callback)
    return blob


def dumps_code(obj: Any) -> bytes:
    """A callable (or a ``Bundle``) as a code blob.

    Raises whatever the object raises when it is pickled.
    """
    if not by_value_wanted():
        try:
            blob = _dumps(obj, PROTOCOL)
        except Exception:  # noqa: BLE001 - whatever stopped pickle, cloudpickle decides
            return dumps_by_value(obj)
        if b"__main__" not in blob:
            return blob
    return dumps_by_value(obj)


def loads_code(blob: Payload) -> Any:
    """The callable or ``Bundle`` of a code blob.

    Raises whatever unpickling it raises (ModuleNotFoundError where its module isn't installed here, ...).
    """
    if type(blob) is ByReference:
        return blob.value
    return pickle.loads(blob)  # type: ignore[arg-type]


def dumps_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """Arguments as a payload; dependencies stand in them as ``Ref``. No arguments make an empty payload.

    Raises whatever the arguments raise when they are pickled.
    """
    if not args and not kwargs:
        return b""
    try:
        blob = _dumps((args, kwargs), PROTOCOL)
    except Exception:  # noqa: BLE001 - whatever stopped pickle, cloudpickle decides
        return dumps_by_value((args, kwargs))
    if b"__main__" in blob or ("cloudpickle" in _modules and by_value_wanted()):
        return dumps_by_value((args, kwargs))
    return blob


def loads_call(payload: Payload) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments ``(args, kwargs)`` of a payload, with ``Ref`` where dependencies go.

    Raises whatever unpickling them raises.
    """
    if type(payload) is ByReference:
        call: tuple[tuple[Any, ...], dict[str, Any]] = payload.value
        return call
    if not payload:
        return (), {}
    loaded: tuple[tuple[Any, ...], dict[str, Any]] = pickle.loads(payload)  # type: ignore[arg-type]
    return loaded


def substitute(
    args: tuple[Any, ...], kwargs: dict[str, Any], values: Sequence[Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with each ``Ref(i)`` replaced by ``values[i]``, at any depth of list, dict, set and
    tuple, named ones too.

    Containers that hold no reference are passed on as they are; the others are rebuilt, never changed in place.
    """
    new_args = tuple(values[arg.index] if type(arg) is Ref else _walk(arg, values) for arg in args)
    if kwargs:
        kwargs = {
            name: values[value.index] if type(value) is Ref else _walk(value, values) for name, value in kwargs.items()
        }
    return new_args, kwargs


def _walk(obj: Any, values: Sequence[Any]) -> Any:
    """One argument with its references replaced; the same object if it has none."""
    kind = type(obj)
    if kind is list:
        return _walk_items(obj, values)
    if kind is tuple:
        items = _walk_items(obj, values)
        return obj if items is obj else tuple(items)
    if kind is dict:
        return _walk_dict(obj, values)
    if kind is set or kind is frozenset:
        if not any(isinstance(item, _IN_SETS) for item in obj):
            return obj
        return kind(_walk_items(list(obj), values))
    if is_named_tuple(obj):
        items = _walk_items(obj, values)
        return obj if items is obj else kind._make(items)
    return obj


def is_named_tuple(obj: Any) -> bool:
    """Whether this is a tuple with named fields, which ``type(obj)._make`` builds."""
    return isinstance(obj, tuple) and hasattr(type(obj), "_make")


_CONTAINERS = frozenset({list, tuple, dict, set, frozenset})

#: What a set may hold that is, or holds, a reference.
_IN_SETS = (Ref, tuple, frozenset)


def _walk_items(items: Any, values: Sequence[Any]) -> Any:
    """A list with the references of ``items`` replaced; ``items`` itself if there are none."""
    new: list[Any] | None = None
    for i, item in enumerate(items):
        kind = type(item)
        if kind is Ref:
            value = values[item.index]
        elif kind in _CONTAINERS or isinstance(item, tuple):  # no call of ours for each of many plain items
            value = _walk(item, values)
            if value is item:
                continue
        else:
            continue
        if new is None:
            new = list(items)
        new[i] = value
    return items if new is None else new


def _walk_dict(obj: dict[Any, Any], values: Sequence[Any]) -> dict[Any, Any]:
    """A dict with references in its keys and values replaced; the same dict if it has none."""
    keys = list(obj)
    contents = list(obj.values())
    new_keys = _walk_items(keys, values)
    new_contents = _walk_items(contents, values)
    if new_keys is keys and new_contents is contents:
        return obj
    return dict(zip(new_keys, new_contents, strict=True))
