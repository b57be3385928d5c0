"""Graph tasks as they travel and run: what a bundle of a dask graph holds.

This is the part of the client that executors import, so it imports next to nothing. A bundle's tasks are one list of
plain tuples, which pickle writes in one go, each shared object once; an ``Entry`` is made when a task is about to run.

Contents: Entries, Entry, Nested, the kinds of entry, place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnomon.runtime.protocol import Ref

__all__ = ["FLAT", "NESTED", "NODE", "PROFILED", "VALUE", "Entries", "Entry", "Nested", "place"]

#: ``(FLAT, function, args, kwargs)``: dependencies stand as ``Ref`` in ``args`` and ``kwargs`` themselves, no deeper.
FLAT = 0
#: ``(NESTED, template)``: dependencies and calls at any depth of lists, tuples, dicts, sets and ``Nested``.
NESTED = 1
#: ``(NODE, node, keys)``: a callable that wants a dict of its dependencies' values by these keys.
NODE = 2
#: ``(VALUE, value)``: no call, just this.
VALUE = 3
#: ``(PROFILED, spec)``: another, run under the deep profiler.
PROFILED = 4

_PLACES = [Ref(i) for i in range(256)]


def place(index: int) -> Ref:
    """The reference to the ``index``-th dependency: the same object each time, so that a pickle holds it once."""
    return _PLACES[index] if index < 256 else Ref(index)


class Nested:
    """A call inside the arguments of another."""

    __slots__ = ("args", "function", "kwargs")

    def __init__(self, function: Any, args: list[Any], kwargs: dict[str, Any] | None = None) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs or None

    def __reduce__(self) -> tuple[type[Nested], tuple[Any, ...]]:
        return Nested, (self.function, self.args, self.kwargs) if self.kwargs else (self.function, self.args)


class Entry:
    """One graph task, ready to run."""

    __slots__ = ("spec",)

    def __init__(self, spec: tuple[Any, ...]) -> None:
        self.spec = spec

    def __reduce__(self) -> tuple[type[Entry], tuple[tuple[Any, ...]]]:
        return Entry, (self.spec,)

    def run(self, values: list[Any]) -> Any:
        """The task's result, given its dependencies' values in order."""
        spec = self.spec
        kind = spec[0]
        if kind == FLAT:
            args = [values[a.index] if type(a) is Ref else a for a in spec[2]]
            if spec[3]:
                kwargs = {k: values[a.index] if type(a) is Ref else a for k, a in spec[3].items()}
                return spec[1](*args, **kwargs)
            return spec[1](*args)
        if kind == NESTED:
            return _evaluate(spec[1], values)
        if kind == NODE:
            return spec[1](dict(zip(spec[2], values, strict=True)))
        if kind == PROFILED:
            from gnomon.runtime.worker.executor import deep  # only where it is asked for

            return deep.run(Entry(spec[1]).run, (values,))
        return spec[1]


class Entries(Sequence[Entry]):
    """The tasks of one bundle, by index."""

    __slots__ = ("specs",)

    def __init__(self, specs: list[tuple[Any, ...]]) -> None:
        self.specs = specs

    def __reduce__(self) -> tuple[type[Entries], tuple[list[tuple[Any, ...]]]]:
        return Entries, (self.specs,)

    def __len__(self) -> int:
        return len(self.specs)

    def __getitem__(self, index: Any) -> Any:
        return Entry(self.specs[index])


def _evaluate(template: Any, values: list[Any]) -> Any:
    """A template with values in their places and its calls made."""
    kind = type(template)
    if kind is Ref:
        return values[template.index]
    if kind is list:
        return [_evaluate(item, values) for item in template]
    if kind is tuple:
        return tuple(_evaluate(item, values) for item in template)
    if kind is Nested:
        args = [_evaluate(item, values) for item in template.args]
        if template.kwargs:
            return template.function(*args, **{k: _evaluate(v, values) for k, v in template.kwargs.items()})
        return template.function(*args)
    if kind is dict:
        return {k: _evaluate(v, values) for k, v in template.items()}
    if kind is set or kind is frozenset:
        return kind(_evaluate(item, values) for item in template)
    return template
