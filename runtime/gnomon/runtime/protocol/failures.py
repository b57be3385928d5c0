"""Exceptions that cross processes: rebuilt with type, traceback, cause and context, or at least readable.

An exception and everything it hangs on to (``__cause__``, ``__context__``, the members of a group) is a small graph.
Each of its exceptions is pickled by itself, so that one that can't be pickled, or can't be unpickled where it arrives,
takes only itself down: a ``RemoteError`` with its type's name and text stands in its place.

Contents: RemoteError, encode_error, decode_error.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import traceback
from functools import cache
from types import TracebackType
from typing import Any, NamedTuple, TypeAlias

from gnomon.runtime import errors
from gnomon.runtime.errors import TaskError
from gnomon.runtime.messages import ByReference, ErrorRecord
from gnomon.runtime.protocol.calls import PROTOCOL, by_value_wanted

__all__ = ["RemoteError", "decode_error", "encode_error"]

#: Bytes of a pickled exception, and characters of a text, beyond which it is not sent whole: an exception that carries
#: an array is no reason to send the array through the scheduler.
_MAX_EXCEPTION = 1 << 20
_MAX_TEXT = 1 << 16

#: Exceptions of one graph, and frames of one traceback, that are sent.
_MAX_NODES = 64
_MAX_FRAMES = 128

#: One frame: file name, function's name, line, module's name.
_FrameRow: TypeAlias = "tuple[str, str, int, str]"


class RemoteError(TaskError):
    """Stands for an exception that could not be pickled where it was raised, or not unpickled here.

    ``type_name`` is the qualified name of the exception's class, ``text`` its traceback as text.
    """

    def __init__(self, type_name: str, message: str, text: str = "") -> None:
        super().__init__(type_name, message, text)
        self.type_name = type_name
        self.message = message
        self.text = text

    def __str__(self) -> str:
        return f"{self.type_name}: {self.message}" if self.message else self.type_name


class _Node(NamedTuple):
    """One exception of the graph.

    Fields:
        blob: the pickled exception; empty if it can't be pickled, or is a plain group (rebuilt of its members).
        type_name, message: what is readable in any case.
        cause, context: index of the exception in that place, -1 for none.
        suppress: whether the context is hidden (``__suppress_context__``).
        members: indices of a group's exceptions; None if it is no group.
    """

    blob: bytes
    type_name: str
    message: str
    cause: int
    context: int
    suppress: bool
    members: tuple[int, ...] | None


def encode_error(exc: BaseException) -> ErrorRecord:
    """Any exception as a record. Never raises for what the exception's class does; the exception is not changed."""
    type_name = _type_name(exc)
    text = _text(exc)
    found = _graph(exc)
    index = {id(e): i for i, e in enumerate(found)}
    nodes = [_node(e, index) for e in found]
    frames = [_frame_rows(e.__traceback__) for e in found]
    return ErrorRecord(
        type_name, text, pickle.dumps([tuple(n) for n in nodes], PROTOCOL), pickle.dumps(frames, PROTOCOL)
    )


def decode_error(record: ErrorRecord) -> BaseException:
    """The exception of a record with its traceback attached, or a ``RemoteError`` that can be read in its place.

    Never raises for what the record holds.
    """
    if type(record.exception) is ByReference:
        original: BaseException = record.exception.value
        return original
    if not record.exception:
        return _of_our_own(record)
    try:
        nodes = [_Node._make(row) for row in pickle.loads(record.exception)]  # type: ignore[arg-type]
        rows: list[list[_FrameRow]] = pickle.loads(record.traceback)  # type: ignore[arg-type]
        exceptions = _rebuild(nodes, record.text)
        for exc, frames in zip(exceptions, rows, strict=True):
            exc.__traceback__ = _traceback(frames)
    except Exception:  # noqa: BLE001 - a record that can't be read still has its text
        return RemoteError(record.type_name, _last_line(record.text), record.text)
    return exceptions[0]


# ---- encoding ------------------------------------------------------------------------------------------------------


def _graph(exc: BaseException) -> list[BaseException]:
    """The exception and all it refers to, itself first, each once."""
    found = [exc]
    seen = {id(exc)}
    for current in found:  # grows while it is walked
        linked = [current.__cause__, current.__context__]
        if isinstance(current, BaseExceptionGroup):
            linked.extend(current.exceptions)
        for other in linked:
            if other is not None and id(other) not in seen and len(found) < _MAX_NODES:
                seen.add(id(other))
                found.append(other)
    return found


def _node(exc: BaseException, index: dict[int, int]) -> _Node:
    """One exception of the graph, given the others' places in it."""
    members: tuple[int, ...] | None = None
    if isinstance(exc, BaseExceptionGroup):
        members = tuple(index[id(e)] for e in exc.exceptions if id(e) in index)
    plain_group = type(exc) in (BaseExceptionGroup, ExceptionGroup)
    return _Node(
        b"" if plain_group else _pickle(exc),
        _type_name(exc),
        _message(exc),
        index.get(id(exc.__cause__), -1),
        index.get(id(exc.__context__), -1),
        exc.__suppress_context__,
        members,
    )


def _pickle(exc: BaseException) -> bytes:
    """The pickled exception, or nothing."""
    blob: bytes | None = None
    try:
        if not by_value_wanted():
            try:
                blob = _dumps(_Pickler, exc)
            except Exception:  # noqa: BLE001 - whatever stopped pickle, cloudpickle decides
                blob = None
        if blob is None or b"__main__" in blob:
            blob = _dumps(_by_value_pickler(), exc)
    except BaseException as failure:
        if isinstance(failure, KeyboardInterrupt):
            raise
        return b""
    return blob if len(blob) <= _MAX_EXCEPTION else b""


def _dumps(kind: Any, exc: BaseException) -> bytes:
    buffer = io.BytesIO()
    kind(buffer, PROTOCOL).dump(exc)
    return buffer.getvalue()


class _Pickler(pickle.Pickler):
    """Pickles exceptions as they do it themselves; see ``_by_itself``."""

    def reducer_override(self, obj: Any) -> Any:
        return _by_itself(obj) if isinstance(obj, BaseException) else NotImplemented


@cache
def _by_value_pickler() -> Any:
    """The same of cloudpickle's."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
        def reducer_override(self, obj: Any) -> Any:
            return _by_itself(obj) if isinstance(obj, BaseException) else super().reducer_override(obj)

    return Pickler


def _by_itself(exc: BaseException) -> Any:
    """How an exception pickles itself.

    tblib can teach the whole interpreter to pickle exceptions with cause, context and traceback, and some libraries
    have it do so when they are imported. Here each of them is sent alone: a chain would be sent as often as it is long.
    """
    reducer = copyreg.dispatch_table.get(type(exc))
    if getattr(reducer, "__module__", "").partition(".")[0] == "tblib":
        return exc.__reduce_ex__(PROTOCOL)
    return NotImplemented


def _type_name(exc: BaseException) -> str:
    kind = type(exc)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _message(exc: BaseException) -> str:
    try:
        return _shorten(exc.message if isinstance(exc, BaseExceptionGroup) else str(exc))
    except BaseException as failure:
        if isinstance(failure, KeyboardInterrupt):
            raise
        return "(its message could not be made)"


def _text(exc: BaseException) -> str:
    try:
        return _shorten("".join(traceback.format_exception(exc)))
    except BaseException as failure:
        if isinstance(failure, KeyboardInterrupt):
            raise
        return f"{_type_name(exc)}: {_message(exc)}"


def _shorten(text: str) -> str:
    """The text, without its middle if it is very long; always encodable as UTF-8."""
    if len(text) > _MAX_TEXT:
        half = _MAX_TEXT // 2
        text = f"{text[:half]}\n... {len(text) - _MAX_TEXT} characters left out ...\n{text[-half:]}"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _frame_rows(tb: TracebackType | None) -> list[_FrameRow]:
    """The frames of a traceback, the middle ones left out if there are very many."""
    rows: list[_FrameRow] = []
    while tb is not None:
        code = tb.tb_frame.f_code
        rows.append((code.co_filename, code.co_name, tb.tb_lineno, str(tb.tb_frame.f_globals.get("__name__", ""))))
        tb = tb.tb_next
    if len(rows) > _MAX_FRAMES:
        rows[_MAX_FRAMES // 4 : len(rows) - 3 * _MAX_FRAMES // 4] = []
    return rows


# ---- decoding ------------------------------------------------------------------------------------------------------


def _of_our_own(record: ErrorRecord) -> BaseException:
    """The exception of a record that names one of our own classes and was made without pickling it."""
    module, _, name = record.type_name.rpartition(".")
    kind = getattr(errors, name, None) if module == errors.__name__ and name in errors.__all__ else None
    if kind is not None:
        try:
            exc: BaseException = kind(record.text)
        except TypeError:
            pass  # a class that wants more than a text
        else:
            return exc
    return RemoteError(record.type_name, _last_line(record.text), record.text)


def _rebuild(nodes: list[_Node], text: str) -> list[BaseException]:
    """The exceptions of the graph, joined as they were."""
    built: list[BaseException] = [
        RemoteError(node.type_name, node.message, text if i == 0 else "") for i, node in enumerate(nodes)
    ]
    groups = [i for i, node in enumerate(nodes) if node.members]
    singles = [i for i, node in enumerate(nodes) if not node.members]
    for i in singles:
        built[i] = _unpickle(nodes[i].blob) or built[i]
    for i in reversed(groups):  # a group comes before those within it
        built[i] = _rebuild_group(nodes[i], built)
    for node, exc in zip(nodes, built, strict=True):
        exc.__cause__ = built[node.cause] if node.cause >= 0 else None
        exc.__context__ = built[node.context] if node.context >= 0 else None
        exc.__suppress_context__ = node.suppress
    return built


def _unpickle(blob: bytes) -> BaseException | None:
    """One exception by itself; None if it can't be had."""
    if not blob:
        return None
    try:
        exc = pickle.loads(blob)
    except BaseException as failure:
        if isinstance(failure, KeyboardInterrupt):
            raise
        return None  # unpickling is user code, which may even raise SystemExit
    return exc if isinstance(exc, BaseException) else None


def _rebuild_group(node: _Node, built: list[BaseException]) -> BaseException:
    """A group: of its own class if that can be had, and then its members are those unpickled with it."""
    members = node.members or ()
    exc = _unpickle(node.blob)
    if isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == len(members):
        for place, member in zip(members, exc.exceptions, strict=True):
            built[place] = member
        return exc
    return BaseExceptionGroup(node.message, [built[place] for place in members])


def _traceback(rows: list[_FrameRow]) -> TracebackType | None:
    """A traceback that renders like the one its frames were taken from."""
    if not rows:
        return None
    from tblib import Traceback

    top: Any = None
    last: Any = None
    for filename, name, line, module in rows:
        code = {"co_filename": filename, "co_name": name}
        frame = {
            "f_globals": {"__name__": module, "__file__": filename},
            "f_locals": {},
            "f_code": code,
            "f_lineno": line,
        }
        link = Traceback.from_dict({"tb_frame": frame, "tb_lineno": line, "tb_next": None})
        if last is None:
            top = link
        else:
            last.tb_next = link
        last = link
    result: TracebackType | None = top.as_traceback()
    return result


def _last_line(text: str) -> str:
    """The line of a formatted exception that says what happened."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""
