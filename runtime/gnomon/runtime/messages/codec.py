"""Batches of messages to bytes and back.

A batch is one msgpack array of messages, each ``[op, field, ...]``. What is read is checked before anyone sees it: the
number of bytes and of objects, the nesting, that each field and what it holds has its declared type, and that the
columns of a message are equally long. Anything else raises ``MessageError``, which is the peer's fault. No pickle here:
payloads stay opaque bytes.
"""

from __future__ import annotations

import typing
from array import array
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, NamedTuple

import msgpack

from gnomon.runtime.messages import client, executor, values, worker
from gnomon.runtime.messages.values import ErrorRecord, Message, TaskOptions

__all__ = ["Limits", "MessageError", "decode", "encode"]


class MessageError(ValueError):
    """Bytes that are no batch of messages, or a message with fields of the wrong type or length."""


class Limits(NamedTuple):
    """What a batch may hold; the default of ``frame`` is that of ``comm.max_frame``.

    Fields:
        frame: bytes of one batch.
        items: elements of one array or map.
        objects: elements of all arrays and maps together: one byte can become an object of 64.
        depth: arrays and maps within each other, in a key or in what a request carries.
    """

    frame: int = 64 << 20
    items: int = 1 << 22
    objects: int = 1 << 23
    depth: int = 32


_DEFAULT_LIMITS = Limits()

_ARRAYS = frozenset({tuple})
_INTEGERS = frozenset({int})
_CONTAINERS = frozenset({tuple, dict})

#: Bytes up to which the objects of a batch aren't counted: there can't be many.
_UNCOUNTED = 1 << 20

#: Every message type by its number on the wire. Numbers are part of the protocol version; append, never reuse.
_TYPES: tuple[type[Any], ...] = (
    values.Request,
    values.Response,
    values.Failure,
    client.UpdateGraph,
    client.ReleaseFutures,
    client.CancelFutures,
    client.RetryFutures,
    client.WantKeys,
    client.ScatterData,
    client.ForgetCodes,
    client.FuturesDone,
    client.FuturesErred,
    client.FuturesCancelled,
    client.FuturesPending,
    worker.RegisterWorker,
    worker.WorkerRegistered,
    worker.Codes,
    worker.DropCodes,
    worker.ComputeTasks,
    worker.FreeTasks,
    worker.StealTasks,
    worker.FetchReplicas,
    worker.Holders,
    worker.HeartbeatReply,
    worker.CloseWorker,
    worker.TasksFinished,
    worker.TasksErred,
    worker.TasksSeceded,
    worker.ReplicasAdded,
    worker.ReplicasMissing,
    worker.StealReplies,
    worker.ExecutorLost,
    worker.TransfersDone,
    worker.Heartbeat,
    executor.RunTasks,
    executor.CancelTasks,
    executor.PutValues,
    executor.PutSegments,
    executor.DropValues,
    executor.EncodeValues,
    executor.ShutdownExecutor,
    executor.ExecutorReady,
    executor.TasksReturned,
    executor.ValueEncoded,
    executor.ValueLost,
    worker.RegionsTimed,
    worker.DemandChanged,
    worker.TaskProfiled,
)

_OPS: dict[type[Any], int] = {cls: op for op, cls in enumerate(_TYPES)}

#: Fields that are arrays but no columns, by message.
_NOT_COLUMNS: dict[type[Any], frozenset[str]] = {
    client.UpdateGraph: frozenset({"codes", "externals", "options"}),
    client.ScatterData: frozenset({"workers"}),
    client.FuturesErred: frozenset({"errors"}),
    worker.RegisterWorker: frozenset({"resources"}),
    executor.ValueEncoded: frozenset({"layout"}),
}

#: Columns that may be left empty; their messages' docstrings say what that means.
_OPTIONAL_COLUMNS = frozenset({"dependencies", "resources", "executors", "option_rows", "parts", "types", "type_names"})


def encode(messages: Iterable[Message]) -> bytes:
    """The batch as bytes.

    Raises TypeError for a value that no wire carries (such as one by reference).
    """
    batch = [(_OPS[type(m)], *m) for m in messages]
    return typing.cast(bytes, msgpack.packb(batch, use_bin_type=True))


def decode(data: bytes | bytearray | memoryview, limits: Limits = _DEFAULT_LIMITS) -> list[Message]:
    """The messages of one batch, checked. Arrays come back as tuples.

    Raises MessageError.
    """
    if len(data) > limits.frame:
        raise MessageError(f"a batch of {len(data)} bytes is over the limit of {limits.frame}")
    hook = _counting(limits.objects) if len(data) > _UNCOUNTED else None
    try:
        batch = msgpack.unpackb(
            data,
            use_list=False,
            raw=False,
            strict_map_key=False,
            max_array_len=limits.items,
            max_map_len=limits.items,
            max_ext_len=0,
            list_hook=hook,
            object_hook=hook,
        )
    except (ValueError, TypeError, msgpack.exceptions.UnpackException, RecursionError) as exc:
        raise MessageError(f"not a batch of messages: {exc}") from exc
    if type(batch) is not tuple:
        raise MessageError("not a batch of messages: the outermost value is no array")
    return [_build(row, limits.depth) for row in batch]


def _counting(most: int) -> Callable[[Any], Any]:
    """A hook that sees each array and map, and raises ValueError once they hold too many elements together."""
    left = most

    def count(container: Any) -> Any:
        nonlocal left
        left -= len(container) + 1
        if left < 0:
            raise ValueError(f"more than {most} objects")
        return container

    return count


def _build(row: Any, depth: int) -> Message:
    """One message from its wire form, checked."""
    if type(row) is not tuple or not row or type(row[0]) is not int or not 0 <= row[0] < len(_TYPES):
        raise MessageError("a message must be an array that starts with a known number")
    schema = _SCHEMAS[row[0]]
    if len(row) != len(schema.checks) + 1:
        raise MessageError(f"{schema.cls.__name__} has {len(schema.checks)} fields, got {len(row) - 1}")
    fields = list(row[1:])
    for i, check in enumerate(schema.checks):
        if type(fields[i]) not in check.types:
            raise MessageError(f"{schema.cls.__name__}.{check.name} is a {type(fields[i]).__name__}")
        if check.elements is not None and fields[i]:
            _check_elements(schema, check, fields[i], depth)
        elif check.open:
            _check_depth(schema, check, (fields[i],), depth)
        if check.convert is not None:
            fields[i] = check.convert(fields[i])
    for group in schema.columns:
        length = len(fields[group[0]])
        for i in group:
            if len(fields[i]) != length and (fields[i] or not schema.checks[i].optional):
                raise MessageError(
                    f"{schema.cls.__name__}.{schema.checks[i].name} has {len(fields[i])} rows of {length}"
                )
    return typing.cast(Message, schema.cls._make(fields))


def _check_elements(schema: _Schema, check: _Check, column: tuple[Any, ...], depth: int) -> None:
    """What an array holds is of the declared types, at the declared depth. Takes no step of Python per element."""
    for _ in range(check.nested):
        if not _ARRAYS.issuperset(map(type, column)):
            raise MessageError(f"{schema.cls.__name__}.{check.name} holds something else than arrays")
        column = tuple(chain.from_iterable(column))
    assert check.elements is not None
    if check.elements is _INTEGERS:
        try:
            array("q", column)  # half the price of looking at each type
        except (TypeError, OverflowError):
            raise MessageError(f"{schema.cls.__name__}.{check.name} holds what is no 64-bit integer") from None
        return
    kinds = set(map(type, column))
    if not kinds <= check.elements:
        names = ", ".join(sorted(kind.__name__ for kind in kinds - check.elements))
        raise MessageError(f"{schema.cls.__name__}.{check.name} holds a {names}")
    if tuple in kinds:  # keys
        _check_depth(schema, check, column, depth)


def _check_depth(schema: _Schema, check: _Check, values: Iterable[Any], depth: int) -> None:
    """Arrays and maps lie not too deep in each other: whoever walks them later may do so by recursion."""
    level = [value for value in values if type(value) in _CONTAINERS]
    while level:
        if depth == 0:
            raise MessageError(f"{schema.cls.__name__}.{check.name} is nested too deep")
        depth -= 1
        inner = chain.from_iterable([c if type(c) is tuple else chain(c, c.values()) for c in level])
        level = [value for value in inner if type(value) in _CONTAINERS]


class _Check(NamedTuple):
    """What one field must be.

    Fields:
        types: allowed of the field itself.
        elements: allowed of what its arrays hold, below ``nested`` further arrays; None: nothing is declared.
        open: whether it may hold anything.
        convert: how nested records are rebuilt.
        optional: whether the column may be empty.
    """

    name: str
    types: frozenset[type[Any]]
    elements: frozenset[type[Any]] | None
    nested: int
    open: bool
    convert: Callable[[Any], Any] | None
    optional: bool


class _Schema(NamedTuple):
    """What one message must be: its fields, and which of them are columns of equal length (by group)."""

    cls: type[Any]
    checks: tuple[_Check, ...]
    columns: tuple[tuple[int, ...], ...]


def _errors(rows: tuple[Any, ...]) -> tuple[ErrorRecord, ...]:
    return tuple(_error(row) for row in rows)


def _error(row: Any) -> ErrorRecord:
    try:
        record = ErrorRecord._make(row)
    except TypeError as exc:
        raise MessageError(f"not an error record: {exc}") from None
    if not (
        type(record.type_name) is str
        and type(record.text) is str
        and type(record.exception) is bytes
        and type(record.traceback) is bytes
    ):
        raise MessageError("an error record with fields of the wrong type")
    return record


def _maybe_error(row: Any) -> ErrorRecord | None:
    return None if row is None else _error(row)


def _options(rows: tuple[Any, ...]) -> tuple[TaskOptions, ...]:
    try:
        return tuple(TaskOptions._make(row) for row in rows)
    except TypeError as exc:
        raise MessageError(f"not task options: {exc}") from None


_CONVERT: dict[str, Callable[[Any], Any]] = {
    "tuple[ErrorRecord, ...]": _errors,
    "ErrorRecord": _error,
    "ErrorRecord | None": _maybe_error,
    "tuple[TaskOptions, ...]": _options,
}

_SIMPLE: dict[str, frozenset[type[Any]]] = {
    "int": frozenset({int}),
    "float": frozenset({float, int}),
    "bool": frozenset({bool}),
    "str": frozenset({str}),
    "bytes": frozenset({bytes}),
    "Payload": frozenset({bytes}),
    "Payload | None": frozenset({bytes, type(None)}),
    "ErrorRecord": frozenset({tuple}),
    "ErrorRecord | None": frozenset({tuple, type(None)}),
    "dict[str, Any]": frozenset({dict}),
    "Any": frozenset({type(None), bool, int, float, str, bytes, tuple, dict}),
}


#: What a key may be, and the records that ``_CONVERT`` rebuilds from arrays.
_KEY = frozenset({str, bytes, int, float, tuple})
_CONVERTED = frozenset({"ErrorRecord", "TaskOptions"})


def _elements(annotation: str) -> tuple[frozenset[type[Any]] | None, int]:
    """Of an array's annotation: the types of its elements, and in how many further arrays these lie."""
    nested = -1
    while annotation.startswith("tuple["):
        annotation = annotation[len("tuple[") : -1].removesuffix(", ...")
        nested += 1
    if annotation in _CONVERTED:
        return _ARRAYS, nested
    types: set[type[Any]] = set()
    for name in annotation.split(", "):
        types |= _KEY if name == "Key" else _SIMPLE[name]
    return _INTEGERS if types == _INTEGERS else frozenset(types), nested


def _schema(cls: type[Any]) -> _Schema:
    """Read the declared field types of a message, once, at import."""
    checks: list[_Check] = []
    columns: list[int] = []
    dependency_columns: list[int] = []
    for index, (name, annotation) in enumerate(cls.__annotations__.items()):
        text = annotation.__forward_arg__ if isinstance(annotation, typing.ForwardRef) else str(annotation)
        if text.startswith("tuple["):
            types = frozenset({tuple})
            if name.startswith("dep_"):
                dependency_columns.append(index)
            elif name not in _NOT_COLUMNS.get(cls, ()):
                columns.append(index)
        else:
            types = _SIMPLE[text]
        elements, nested = _elements(text) if text.startswith("tuple[") else (None, 0)
        is_open = text in ("Any", "dict[str, Any]")
        checks.append(_Check(name, types, elements, nested, is_open, _CONVERT.get(text), name in _OPTIONAL_COLUMNS))
    groups = tuple(tuple(group) for group in (columns, dependency_columns) if group)
    return _Schema(cls, tuple(checks), groups)


_SCHEMAS: tuple[_Schema, ...] = tuple(_schema(cls) for cls in _TYPES)
