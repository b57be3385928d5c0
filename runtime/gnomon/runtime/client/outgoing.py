"""What goes out in one turn of the loop, merged into few messages.

Any thread appends entries to one deque; the loop drains it. Rows of single submits become one ``UpdateGraph``, releases
one ``ReleaseFutures``, however many there were, without changing what the scheduler makes of them: a row never travels
before the release of its own key's earlier registration, nor after a later cancel. No input or output here.

Contents: Row, Part, Code, Forget, Release, Outgoing.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from gnomon.runtime.messages import (
    NO_OPTIONS,
    ForgetCodes,
    Key,
    Message,
    Payload,
    ReleaseFutures,
    TaskOptions,
    UpdateGraph,
)

__all__ = ["Code", "Forget", "Outgoing", "Part", "Release", "Row"]

#: Rows and payload bytes after which an ``UpdateGraph`` is closed and the next begun; far below what a frame may hold.
MAX_ROWS = 20_000
MAX_BYTES = 8 << 20


class Row(NamedTuple):
    """One submitted task. ``needs`` are future ids of this client."""

    key: Key
    code: int
    payload: Payload
    needs: tuple[int, ...]
    future_id: int
    options: TaskOptions
    fifo_timeout: float
    parent_task: int


class Part(NamedTuple):
    """Columns that make one ``UpdateGraph`` of their own; its codes are those queued before it."""

    keys: tuple[Key, ...]
    task_codes: tuple[int, ...]
    payloads: tuple[Payload, ...]
    dependencies: tuple[tuple[int, ...], ...]
    externals: tuple[int, ...]
    future_ids: tuple[int, ...]
    options: tuple[TaskOptions, ...]
    option_rows: tuple[int, ...]
    fifo_timeout: float
    parent_task: int


class Code(NamedTuple):
    """A blob, ahead of the first row that runs it."""

    number: int
    blob: Payload


class Forget(NamedTuple):
    """A client code that no later row names."""

    number: int


class Release(NamedTuple):
    """A registration nobody holds any longer."""

    future_id: int
    key: Key


class Outgoing:
    """The queue, and the merging of what is in it. ``queue.append`` is for any thread, ``drain`` for one.

    ``released`` holds the releases of the last ``drain``.
    """

    def __init__(self) -> None:
        self.queue: deque[Any] = deque()
        self.released: list[Release] = []
        self._messages: list[Message] = []
        self._codes: list[tuple[int, Payload]] = []
        self._forgotten: list[int] = []
        self._released: list[int] = []
        self._released_keys: set[Key] = set()
        self._clear_rows()

    def drain(self) -> list[Message]:
        """Everything queued so far as messages, oldest first."""
        queue = self.queue
        self.released = []
        for _ in range(len(queue)):
            entry = queue.popleft()
            kind = type(entry)
            if kind is Row:
                self._add_row(entry)
            elif kind is Release:
                self.released.append(entry)
                self._released.append(entry.future_id)
                self._released_keys.add(entry.key)
            elif kind is Code:
                self._codes.append(entry)
                self._weigh(entry.blob)
            elif kind is Part:
                self._add_part(entry)
            elif kind is Forget:
                self._forgotten.append(entry.number)
            else:
                self._cut()
                self._messages.append(entry)
        self._cut()
        messages, self._messages = self._messages, []
        return messages

    def _clear_rows(self) -> None:
        self._rows: list[Row] = []
        self._row_of: dict[int, int] = {}
        self._externals: dict[int, int] = {}
        self._dependencies: list[tuple[int, ...]] = []
        self._bytes = 0

    def _add_row(self, row: Row) -> None:
        rows = self._rows
        if self._released_keys and row.key in self._released_keys:
            self._cut()
            rows = self._rows
        elif rows and (row.fifo_timeout != rows[0].fifo_timeout or row.parent_task != rows[0].parent_task):
            self._cut_rows()
            rows = self._rows
        if row.needs:
            self._dependencies.append(tuple([self._reference(number) for number in row.needs]))
        else:
            self._dependencies.append(())
        self._row_of[row.future_id] = len(rows)
        rows.append(row)
        self._weigh(row.payload)
        if len(rows) >= MAX_ROWS:
            self._cut_rows()

    def _reference(self, number: int) -> int:
        index = self._row_of.get(number)
        if index is not None:
            return index
        externals = self._externals
        return -1 - externals.setdefault(number, len(externals))

    def _weigh(self, payload: Payload) -> None:
        if type(payload) is bytes:
            self._bytes += len(payload)
            if self._bytes > MAX_BYTES:
                self._cut_rows()

    def _add_part(self, part: Part) -> None:
        if self._rows or not self._released_keys.isdisjoint(part.keys):
            self._cut()
        self._messages.append(UpdateGraph(self._take_codes(), *part))
        self._bytes = 0

    def _take_codes(self) -> tuple[tuple[int, Payload], ...]:
        codes = tuple([(number, blob) for number, blob in self._codes])
        self._codes = []
        return codes

    def _cut_rows(self) -> None:
        """Close the graph that is being gathered."""
        rows = self._rows
        if not rows and not self._codes:
            return
        keys, task_codes, payloads, _, future_ids, options, fifo, parents = (
            zip(*rows, strict=True) if rows else _NOTHING
        )
        distinct = tuple(dict.fromkeys(options)) or (NO_OPTIONS,)
        index = {option: i for i, option in enumerate(distinct)}
        self._messages.append(
            UpdateGraph(
                self._take_codes(),
                keys,
                task_codes,
                payloads,
                tuple(self._dependencies) if any(self._dependencies) else (),
                tuple(self._externals),
                future_ids,
                distinct,
                () if len(distinct) == 1 else tuple([index[option] for option in options]),
                fifo[0] if fifo else 0.0,
                parents[0] if parents else 0,
            )
        )
        self._clear_rows()

    def _cut(self) -> None:
        """Close everything that is being gathered."""
        self._cut_rows()
        if self._released:
            self._messages.append(ReleaseFutures(tuple(self._released)))
            self._released = []
            self._released_keys = set()
        if self._forgotten:
            self._messages.append(ForgetCodes(tuple(self._forgotten)))
            self._forgotten = []


_NOTHING: tuple[tuple[Any, ...], ...] = ((),) * 8
