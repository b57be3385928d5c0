"""What is asked for and what comes back.

Contents: Held, Found, Sendable, Wanted, Source, Told, Fetched, TransferError, ValueEncodingError, size_of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

from gnomon.runtime.errors import CommError
from gnomon.runtime.messages import ByReference, ErrorRecord
from gnomon.runtime.protocol import Encoded, Segment

__all__ = [
    "Fetched",
    "Found",
    "Held",
    "Sendable",
    "Source",
    "Told",
    "TransferError",
    "ValueEncodingError",
    "Wanted",
    "size_of",
]

#: A value as its holder has it: small ones as bytes (one pickle stream), large ones as a segment, and within one
#: process as the object itself. Segments are closed by their last reference; who gets one may close it earlier if no
#: one else was given the same object.
Held: TypeAlias = "bytes | ByReference | Segment"

#: What a fetch brings of one value: the value; None if the holder does not have it; an error if it can't be encoded.
Found: TypeAlias = "bytes | ByReference | Segment | ErrorRecord | None"

#: What can be sent to a worker. Encoded frames are sent as they lie, without a copy in between.
Sendable: TypeAlias = "bytes | ByReference | Segment | Encoded"

#: Task id and attempt: the name of one value.
Wanted: TypeAlias = "tuple[int, int]"


class TransferError(CommError):
    """The holder can't be reached, vanished or stopped half way: no word on whether it has the value."""


class ValueEncodingError(Exception):
    """Raised by a source: the value is there, but it can't be made ready to leave. ``record`` says why."""

    def __init__(self, record: ErrorRecord) -> None:
        super().__init__(record.text)
        self.record = record


class Source(Protocol):
    """Where a data server has its values from; called from several of the server's threads at once."""

    def prepare(self, wanted: Sequence[Wanted]) -> None:
        """These will be asked for one after the other, now: the chance to encode them together. May do nothing."""
        ...

    def get(self, task_id: int, attempt: int, timeout: float) -> Held | None:
        """The value, or None if it isn't here. Waits while it is being encoded.

        Raises TimeoutError after ``timeout`` seconds, and is then called again (the peer is told that we live),
        ValueEncodingError if it can't be encoded.
        """
        ...

    def told(self) -> tuple[tuple[str, ...], float]:
        """Of what this thread was given since it called ``prepare``: the short name of each value's type, in order.

        It is "" where nobody knows, and where there was no value. And the seconds that making them ready took.
        """
        ...

    def put(self, task_id: int, attempt: int, value: Held) -> None:
        """Take a value that a client brings.

        Raises what the client is to be told.
        """
        ...


class Told(NamedTuple):
    """What a holder tells of its answer, for the records.

    Fields:
        type_names: of each value asked for the short name of its type, "" where nobody knows.
        hold: seconds that the answer waited until the values could be made ready: the holder's threads were busy.
        serialise: seconds that it waited while they were made ready.
    """

    type_names: tuple[str, ...]
    hold: float
    serialise: float

    @staticmethod
    def of(told: tuple[tuple[str, ...], float], waited: float) -> Told:
        """From what a source tells, and the seconds that it was waited for."""
        type_names, seconds = told
        serialise = min(seconds, waited)
        return Told(type_names, waited - serialise, serialise)


class Fetched(NamedTuple):
    """The outcome of one fetch.

    Fields:
        values: in the order asked for.
        nbytes: what was moved, of all values.
        transport: how it came: ``shared-memory``, ``tcp``, ``tls`` or ``inproc``.
        told: see ``Told``.
    """

    values: list[Found]
    nbytes: int
    transport: str
    told: Told


def size_of(found: Found) -> int:
    """Bytes that a value has where it crosses from process to process; 0 for one by reference, and for none."""
    if isinstance(found, bytes):
        return len(found)
    return found.nbytes if isinstance(found, Segment) else 0
