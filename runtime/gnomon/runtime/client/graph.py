"""dask graphs to rows: what a mapping of keys to tasks means, task by task.

Two dialects live side by side in one graph, and both are read here: raw ones (tuples that start with a callable, keys
as references, lists, literals) and task nodes (``dask._task_spec``), whose classes ``dask_adapter`` names.
Only what the wanted keys need is converted. Order is the scheduler's business. No pickling here: see ``bundling``.

Contents: Conversion, GraphTask, NodeKinds, convert, topological, wire_key.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from operator import is_
from typing import Any, NamedTuple

from gnomon.runtime.client.entries import FLAT, NESTED, NODE, VALUE, Nested, place
from gnomon.runtime.client.future import Future, FutureState
from gnomon.runtime.messages import Key

__all__ = ["MAX_ROWS", "Conversion", "GraphTask", "NodeKinds", "convert", "topological", "wire_key"]

#: Tasks above which a graph is sent in several messages (74 bytes a task; a frame holds 64 MiB).
MAX_ROWS = 200_000


class NodeKinds(NamedTuple):
    """The classes of dask's task nodes, as far as they matter here. ``any``: nodes and references."""

    node: Any
    reference: Any
    task: Any
    alias: Any
    data: Any
    containers: dict[Any, Callable[[list[Any]], Any]]
    any: Any


class GraphTask(NamedTuple):
    """One task to run: its spec (see ``entries``) and the keys it needs, in the order of the spec's references."""

    spec: tuple[Any, ...]
    needs: list[Any]


class Conversion(NamedTuple):
    """What a graph came to.

    Fields:
        tasks: the tasks to run, by key, in the graph's order; very many with each behind what it needs.
        known: keys that stand for futures.
    """

    tasks: dict[Any, GraphTask]
    known: dict[Any, FutureState]


def convert(
    dsk: Mapping[Any, Any],
    wanted: Collection[Any],
    find: Callable[[Any], FutureState | None],
    state_of: Callable[[Any], FutureState],
    kinds: NodeKinds | None = None,
) -> Conversion:
    """The tasks of a graph that the wanted keys need.

    Args:
        dsk: the graph.
        wanted: keys whose results will be asked for.
        find: the client's future of a key that the graph refers to but doesn't hold.
        state_of: the state of a future found in the graph.
        kinds: dask's classes, if it is loaded.

    Raises KeyError for a key that is wanted or referred to, and neither in the graph nor known to the client.
    """
    return _Converter(dsk, wanted, find, state_of, kinds).run()


def wire_key(key: Any) -> Key:
    """A key as messages carry it: numbers of numpy become Python's.

    Raises TypeError for what can't be a key.
    """
    kind = type(key)
    if kind is str or kind is int:
        return key  # type: ignore[no-any-return]
    if kind is tuple:
        for part in key:
            if type(part) is not str and type(part) is not int:
                return tuple(wire_key(part) for part in key)
        return key  # type: ignore[no-any-return]
    if kind is bytes or kind is float:
        return key  # type: ignore[no-any-return]
    if isinstance(key, str):
        return str(key)
    if key is None or kind is bool:
        return key  # type: ignore[no-any-return]
    if hasattr(key, "item") and hasattr(key, "dtype"):
        return wire_key(key.item())
    if isinstance(key, tuple):
        return tuple(wire_key(part) for part in key)
    raise TypeError(f"a key must be a string, a number, bytes or a tuple of these, not {kind.__name__}: {key!r}")


class _OpaqueNode(Exception):  # noqa: N818 - not an error
    """A node whose inside this module doesn't read: it is sent as it is."""


#: Arguments of these types are never references.
_PLAIN = frozenset({bool, type(None), bytes, complex})


class _Converter:
    """One conversion at work. ``_needs`` and ``_places`` belong to the task being read."""

    def __init__(
        self,
        dsk: Mapping[Any, Any],
        wanted: Collection[Any],
        find: Callable[[Any], FutureState | None],
        state_of: Callable[[Any], FutureState],
        kinds: NodeKinds | None,
    ) -> None:
        self._dsk = dsk
        self._wanted = frozenset(wanted)
        self._find = find
        self._state_of = state_of
        self._kinds = kinds
        self._known: dict[Any, FutureState] = {}
        self._aliases: dict[Any, Any] = {}
        self._needs: list[Any] = []
        self._places: dict[Any, int] = {}

    def run(self) -> Conversion:
        """Convert what is reachable, and put it into the graph's order."""
        dsk, known = self._dsk, self._known
        done: dict[Any, GraphTask] = {}
        stack = list(self._wanted)
        push = stack.append
        while stack:
            key = stack.pop()
            if key in done or key in known:
                continue
            try:
                value = dsk[key]
            except KeyError:
                known[key] = self._elsewhere(key)
                continue
            task = self._convert(key, value)
            if task is not None:
                done[key] = task
                for need in task.needs:
                    if need not in done:
                        push(need)
        order = topological(done)
        if len(done) > MAX_ROWS:
            return Conversion({key: done[key] for key in order}, known)
        if len(done) == len(dsk):
            return Conversion({key: done[key] for key in dsk}, known)
        return Conversion({key: done[key] for key in dsk if key in done}, known)

    def _elsewhere(self, key: Any) -> FutureState:
        state = self._find(key)
        if state is None:
            raise KeyError(f"{key!r} is neither in the graph nor a future of this client")
        return state

    def _convert(self, key: Any, value: Any) -> GraphTask | None:
        """One task; None if its key stands for a future."""
        self._needs = []
        self._places = {}
        kinds = self._kinds
        if kinds is not None and isinstance(value, kinds.node):
            if type(value) is kinds.alias and value.target == key:
                self._known[key] = self._elsewhere(key)
                return None
            return GraphTask(self._node(value, kinds), self._needs)
        if type(value) is tuple and value and callable(value[0]):
            return GraphTask(self._call(value), self._needs)
        if self._is_future(value):
            self._known[key] = self._state_of(value)
            return None
        template = self._template(value)
        return GraphTask((VALUE, value) if template is value else (NESTED, template), self._needs)

    # Raw tasks

    def _call(self, task: tuple[Any, ...]) -> tuple[Any, ...]:
        args: list[Any] = []
        flat = True
        template = self._template
        first = True
        for arg in task:
            if first:
                first = False
                continue
            new = template(arg)
            if new is not arg and type(new) is not _REF:
                flat = False
            args.append(new)
        return (FLAT, task[0], args, None) if flat else (NESTED, Nested(task[0], args))

    def _template(self, value: Any) -> Any:
        """A raw value with references in the place of keys; the same object if it has none."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is str or kind is int or kind is float:
            return self._reference(value) if value in self._dsk else value
        if kind is tuple:
            return self._raw_tuple(value)
        if kind is list:
            return self._items(value)
        if kind is dict:
            return self._raw_dict(value)
        if kind is set or kind is frozenset:
            items = list(value)
            new = self._items(items)
            return value if new is items else kind(new)
        return self._other(value)

    def _raw_tuple(self, value: tuple[Any, ...]) -> Any:
        if value and callable(value[0]):
            return Nested(value[0], [self._template(arg) for arg in value[1:]])
        try:
            if value in self._dsk:
                return self._reference(value)
        except TypeError:
            pass  # it has an unhashable part, so it is no key
        new = self._items(value)
        return value if new is value else tuple(new)

    def _items(self, values: Any) -> Any:
        """A list or tuple's items; the same object if there is nothing to replace."""
        template = self._template
        new = [template(value) for value in values]
        for value, item in zip(values, new, strict=True):
            if item is not value:
                return new
        return values

    def _raw_dict(self, value: dict[Any, Any]) -> Any:
        """A dict is data: no keys are looked for in it, but nodes and futures are."""
        kinds = self._kinds
        for item in value.values():
            if self._is_future(item) or (kinds is not None and isinstance(item, kinds.any)):
                return {k: self._other(v) for k, v in value.items()}
        return value

    def _other(self, value: Any) -> Any:
        """Anything that is no plain data: nodes, futures, named tuples, strings of subclasses, the user's objects."""
        if self._is_future(value):
            state = self._state_of(value)
            self._known[state.key] = state
            return self._place(state.key)
        kinds = self._kinds
        if kinds is not None and isinstance(value, kinds.any):
            return self._node_template(value, kinds)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            new = self._items(tuple(value))
            return value if all(a is b for a, b in zip(new, value, strict=True)) else Nested(type(value), list(new))
        if isinstance(value, str | int | float):
            return self._reference(value) if value in self._dsk else value
        return value

    # Task nodes

    def _node(self, node: Any, kinds: NodeKinds) -> tuple[Any, ...]:
        if isinstance(node, kinds.data):
            return (VALUE, node.value)
        try:
            return self._node_call(node, kinds)
        except _OpaqueNode:
            self._places = {}
            self._needs = list(node.dependencies)
            return (NODE, node, tuple(self._needs))

    def _node_call(self, node: Any, kinds: NodeKinds) -> tuple[Any, ...]:
        if type(node) is not kinds.task:
            return (NESTED, self._node_template(node, kinds))
        interesting = kinds.any
        args = list(node.args)
        kwargs = dict(node.kwargs)
        nested = False
        for i, arg in enumerate(args):
            new = self._node_template(arg, kinds) if isinstance(arg, interesting) else self._data(arg)
            if new is not arg:
                args[i] = new
                nested = nested or type(new) is not _REF
        for name, arg in kwargs.items():
            new = self._node_template(arg, kinds) if isinstance(arg, interesting) else self._data(arg)
            if new is not arg:
                kwargs[name] = new
                nested = nested or type(new) is not _REF
        if nested:
            return (NESTED, Nested(node.func, args, kwargs))
        return (FLAT, node.func, args, kwargs or None)

    def _node_template(self, node: Any, kinds: NodeKinds) -> Any:
        """A node inside another's arguments."""
        if isinstance(node, kinds.reference):
            return self._reference(node.key)
        if isinstance(node, kinds.alias):
            return self._reference(node.target)
        if isinstance(node, kinds.data):
            return node.value
        interesting = kinds.any
        make = kinds.containers.get(type(node))
        if make is None and (type(node) is not kinds.task or node.kwargs):
            raise _OpaqueNode
        args = [
            self._node_template(arg, kinds) if isinstance(arg, interesting) else self._data(arg) for arg in node.args
        ]
        return Nested(node.func, args) if make is None else make(args)

    def _data(self, value: Any) -> Any:
        """Data among a node's arguments: no keys are looked for in it, but futures; the same object if it has none."""
        kind = type(value)
        if kind is Future:
            return self._other(value)
        if kind is list or kind is tuple or kind is set or kind is frozenset:
            items = [self._data(item) for item in value]
            return value if all(map(is_, items, value)) else kind(items)
        if kind is dict:
            items = [self._data(item) for item in value.values()]
            return value if all(map(is_, items, value.values())) else dict(zip(value, items, strict=True))
        return value

    # References

    def _is_future(self, value: Any) -> bool:
        return type(value) is Future or getattr(value, "__dask_future__", False) is True

    def _reference(self, key: Any) -> Any:
        """The place of a key's value, through aliases that nobody asks for."""
        aliases = self._aliases
        if aliases and key in aliases:
            return self._place(aliases[key])
        start, dsk, kinds = key, self._dsk, self._kinds
        while key not in self._wanted and key in dsk:
            value = dsk[key]
            kind = type(value)
            if kind is tuple or kind is str:
                if (kind is tuple and value and callable(value[0])) or not _contains(dsk, value) or value == start:
                    break
                key = value
            elif kinds is not None and kind is kinds.alias and value.target != key and value.target != start:
                key = value.target
            else:
                break
        if key is not start and key != start:
            aliases[start] = key
        return self._place(key)

    def _place(self, key: Any) -> Any:
        index = self._places.get(key)
        if index is None:
            index = self._places[key] = len(self._needs)
            self._needs.append(key)
        return place(index)


_REF = type(place(0))


def topological(tasks: Mapping[Any, GraphTask]) -> list[Any]:
    """The keys, each behind those it needs.

    Raises ValueError if a task needs itself, directly or through others: it would wait for ever.
    """
    left: dict[Any, int] = {}
    dependents: dict[Any, list[Any]] = {}
    order = []
    for key, task in tasks.items():
        count = 0
        for need in task.needs:
            if need in tasks:
                count += 1
                if need in dependents:
                    dependents[need].append(key)
                else:
                    dependents[need] = [key]
        if count:
            left[key] = count
        else:
            order.append(key)
    for done in order:  # grows while it is walked
        for key in dependents.get(done, ()):
            left[key] -= 1
            if not left[key]:
                del left[key]
                order.append(key)
    if left:
        some = ", ".join(repr(key) for key in list(left)[:5])
        raise ValueError(f"the graph has a cycle, through some of {some}")
    return order


def _contains(dsk: Mapping[Any, Any], value: Any) -> bool:
    try:
        return value in dsk
    except TypeError:
        return False
