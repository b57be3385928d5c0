"""What the columns of messages hold, and the messages that every role speaks.

Contents: Key, Payload, ByReference, ErrorRecord, TaskOptions, Request, Response, Failure.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

__all__ = [
    "NO_OPTIONS",
    "ByReference",
    "ErrorRecord",
    "Failure",
    "Key",
    "Message",
    "Payload",
    "Request",
    "Response",
    "TaskOptions",
]

#: Name of a task as users see it: a string, number, bytes, or a tuple of these (dask's keys are such tuples).
Key: TypeAlias = "str | bytes | int | float | tuple[Any, ...]"


class ByReference:
    """A user's object on its way inside one process: passed as it is, never copied, opened or serialized.

    Only the ``inproc`` transport carries it; any attempt to pickle or pack it is an error of ours.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        raise TypeError("a value passed by reference cannot leave its process")


#: What only the user's side opens: pickled bytes on a wire, or an object by reference inside a process.
Payload: TypeAlias = "bytes | ByReference"

#: Any record of this room.
Message: TypeAlias = "tuple[Any, ...]"


class ErrorRecord(NamedTuple):
    """A failure that crosses processes: what can be rebuilt, and what can always be read.

    Fields:
        type_name: qualified name of the exception's class.
        text: the exception and its traceback (with cause and context) as readable text.
        exception: the pickled exception; empty if it could not be pickled.
        traceback: the pickled traceback (tblib); empty if there is none.
    """

    type_name: str
    text: str
    exception: Payload = b""
    traceback: Payload = b""


class TaskOptions(NamedTuple):
    """How a task wants to be treated; shared by many rows of one graph.

    Fields:
        priority: the user's priority; higher runs first.
        retries: how often an exception of the task is answered by another run.
        workers: addresses, names or hosts it may run on; empty means any.
        allow_other_workers: whether ``workers`` is only a wish.
        resources: pairs of abstract resource and amount that it holds while it runs.
        executor: name of the worker's executor to run on; empty means the default.
        span: names of the nested blocks that it was submitted in, for the records; empty means none.
    """

    priority: int = 0
    retries: int = 0
    workers: tuple[str, ...] = ()
    allow_other_workers: bool = False
    resources: tuple[tuple[str, float], ...] = ()
    executor: str = ""
    span: tuple[str, ...] = ()


NO_OPTIONS = TaskOptions()


class Request(NamedTuple):
    """A question that wants one answer, told apart by ``request_id`` (unique per asking side of a stream)."""

    request_id: int
    method: str
    arguments: dict[str, Any]


class Response(NamedTuple):
    """The answer to a request."""

    request_id: int
    result: Any


class Failure(NamedTuple):
    """A request that failed."""

    request_id: int
    error: ErrorRecord
