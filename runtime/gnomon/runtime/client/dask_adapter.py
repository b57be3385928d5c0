"""Everything that touches dask, so that nothing else does. dask is imported here only, and only if the user did.

Contents: loaded, node_kinds, ambient_annotations, as_graph, flat_keys, compute_graph, persist_graph, rebuild;
    use_as_scheduler, stop_as_scheduler.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NamedTuple

from gnomon.runtime.client.graph import NodeKinds

__all__ = [
    "CollectionGraph",
    "ambient_annotations",
    "as_collections",
    "as_graph",
    "compute_graph",
    "flat_keys",
    "is_collection",
    "loaded",
    "node_kinds",
    "persist_graph",
    "rebuild",
    "stop_as_scheduler",
    "use_as_scheduler",
]


class CollectionGraph(NamedTuple):
    """What collections came to.

    Fields:
        dsk: the graph.
        keys: per collection its keys, nested as the collection nests them.
        annotations: by name of the option, the values of keys that have their own.
    """

    dsk: Mapping[Any, Any]
    keys: list[Any]
    annotations: Mapping[str, Mapping[Any, Any]]


def loaded() -> bool:
    """Whether the program has imported dask."""
    return "dask.base" in sys.modules


def node_kinds() -> NodeKinds | None:
    """dask's classes of task nodes; None if nothing has imported them, for then no graph holds any."""
    return _node_kinds() if "dask._task_spec" in sys.modules else None


@lru_cache(maxsize=1)
def _node_kinds() -> NodeKinds:
    from dask._task_spec import Alias, DataNode, GraphNode, List, Set, Task, TaskRef, Tuple

    return NodeKinds(
        GraphNode, TaskRef, Task, Alias, DataNode, {List: list, Tuple: tuple, Set: set}, (GraphNode, TaskRef)
    )


def ambient_annotations() -> tuple[dict[str, Any], dict[str, Callable[[Any], Any]]]:
    """What an enclosing ``with dask.annotate(...)`` says of what is known here: values, and functions of the key."""
    if not loaded():
        return {}, {}
    from dask.base import get_annotations

    found = get_annotations()
    known = {name: found[name] for name in _ANNOTATIONS if name in found} if found else {}
    return (
        {name: value for name, value in known.items() if not callable(value)},
        {name: value for name, value in known.items() if callable(value)},
    )


_ANNOTATIONS = ("priority", "retries", "workers", "allow_other_workers", "resources", "executor")


def is_collection(obj: Any) -> bool:
    """Whether this is a dask collection."""
    if not loaded():
        return False
    from dask.base import is_dask_collection

    found: bool = is_dask_collection(obj)
    return found


def as_graph(dsk: Any) -> tuple[Mapping[Any, Any], Mapping[str, Mapping[Any, Any]]]:
    """The mapping and the annotations of what dask hands a scheduler: a mapping, a layered graph, or an expression."""
    if type(dsk) is dict:
        return dsk, {}
    # An expression must never be iterated as a mapping: it would index itself without end.
    if hasattr(dsk, "__dask_annotations__"):
        return dsk.__dask_graph__(), dsk.__dask_annotations__()
    if hasattr(dsk, "layers"):
        annotations: dict[str, dict[Any, Any]] = {}
        for layer in dsk.layers.values():
            for name, value in (layer.annotations or {}).items():
                values = {key: value(key) if callable(value) else value for key in layer}
                annotations.setdefault(name, {}).update(values)
        return dsk.to_dict(), annotations
    if isinstance(dsk, Mapping):
        return dict(dsk), {}
    raise TypeError(f"not a graph: {dsk!r}")


def flat_keys(keys: Any) -> list[Any]:
    """The keys in nested lists of keys."""
    if type(keys) is not list:
        return [keys]
    flat: list[Any] = []
    for key in keys:
        if type(key) is list:
            flat += flat_keys(key)
        else:
            flat.append(key)
    return flat


def compute_graph(collections: Sequence[Any], optimize_graph: bool) -> CollectionGraph:
    """The graph whose results are the collections', one key each."""
    from dask._expr import FinalizeCompute
    from dask.base import collections_to_expr

    finalize: Any = FinalizeCompute
    order = _order(collections, optimize_graph)
    expr = finalize(collections_to_expr([collections[i] for i in order], optimize_graph)).optimize()
    dsk, annotations = as_graph(expr)
    return CollectionGraph(dsk, _back(flat_keys(expr.__dask_keys__()), order), annotations)


def persist_graph(collections: Sequence[Any], optimize_graph: bool) -> CollectionGraph:
    """The graph whose results are the collections' parts."""
    from dask.base import collections_to_expr

    order = _order(collections, optimize_graph)
    expr: Any = collections_to_expr([collections[i] for i in order], optimize_graph).optimize()
    dsk, annotations = as_graph(expr)
    return CollectionGraph(dsk, _back(list(expr.__dask_keys__()), order), annotations)


def _order(collections: Sequence[Any], optimize_graph: bool) -> list[int]:
    """The collections in an order that dask keeps: it puts those of one optimizer together, with their keys."""
    optimizers: list[Any] = []
    groups: list[list[int]] = []
    for i, collection in enumerate(collections):
        optimizer = getattr(collection, "__dask_optimize__", None) if optimize_graph else None
        if optimizer in optimizers:
            groups[optimizers.index(optimizer)].append(i)
        else:
            optimizers.append(optimizer)
            groups.append([i])
    return [i for group in groups for i in group]


def _back(keys: list[Any], order: list[int]) -> list[Any]:
    """The keys in the order of the collections."""
    if len(keys) != len(order):
        raise ValueError(f"dask gave {len(keys)} keys for {len(order)} collections")
    return [key for _, key in sorted(zip(order, keys, strict=True), key=lambda pair: pair[0])]


def rebuild(collection: Any, parts: Mapping[Any, Any]) -> Any:
    """The collection on top of futures of its parts."""
    make, arguments = collection.__dask_postpersist__()
    return make(dict(parts), *arguments)


def as_collections(items: Iterable[Any], traverse: bool) -> list[Any]:
    """Containers that may hold collections become one collection each."""
    from dask.delayed import delayed

    kinds = (list, set, tuple, dict)
    return [delayed(item) if traverse and isinstance(item, kinds) else item for item in items]


# gnomon as dask's scheduler


class _OnImport(importlib.abc.MetaPathFinder):
    """Calls back once dask has been imported, so that it need not be imported ahead."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "dask":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._then)
        return spec


class _Loader(importlib.abc.Loader):
    """dask's own loader, and the call afterwards."""

    def __init__(self, inner: Any, then: Callable[[], None]) -> None:
        self._inner = inner
        self._then = then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._inner.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        self._inner.exec_module(module)
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        module.__loader__ = self._inner
        self._then()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


_schedulers: list[Callable[..., Any]] = []
_before: list[Any] = []
_hook: _OnImport | None = None


def use_as_scheduler(get: Callable[..., Any]) -> None:
    """Have dask collections computed by this ``get`` unless they name another scheduler, from dask's import on."""
    global _hook
    _schedulers.append(get)
    if "dask" in sys.modules:
        _apply()
    elif _hook is None or _hook not in sys.meta_path:
        _hook = _OnImport(_apply)
        sys.meta_path.insert(0, _hook)


def stop_as_scheduler(get: Callable[..., Any]) -> None:
    """Undo ``use_as_scheduler``: the one before it is in force again."""
    if get not in _schedulers:
        return
    _schedulers.remove(get)
    if "dask" in sys.modules:
        _apply()
    elif not _schedulers and _hook is not None and _hook in sys.meta_path:
        sys.meta_path.remove(_hook)


def _apply() -> None:
    """Make dask's setting what it should be: our last ``get``, or what it was before there was any."""
    import dask

    if _schedulers:
        if not _before:
            _before.append(dask.config.get("scheduler", None))
        dask.config.set(scheduler=_schedulers[-1])
    elif _before:
        old = _before.pop()
        if old is None:
            dask.config.config.pop("scheduler", None)
        else:
            dask.config.set(scheduler=old)
