"""Values made ready to leave the executor.

Pickling runs user code, so it belongs to the executor's threads: a request becomes an errand of the pool that made the
value, which goes before queued runs but waits for those under way. Three things need no errand, and are served while
every thread is busy: values that came as bytes and were not decoded yet, objects by reference, and encodings that were
prepared. A thread prepares what it made lately before it begins a run that is long or of unknown length, where that is
cheap: small values, and those that are one large buffer, of which an encoding is only a view.

Large segments are written by a thread that does nothing else and runs no user code.

Contents: Server.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any, TypeAlias

from gnomon.runtime.clock import now
from gnomon.runtime.messages import ByReference, ErrorRecord, ValueEncoded, ValueLost
from gnomon.runtime.protocol import Encoded, Segment, encode_value, sizeof
from gnomon.runtime.worker.executor.context import Place
from gnomon.runtime.worker.executor.failing import record_failure
from gnomon.runtime.worker.executor.outgoing import Outgoing
from gnomon.runtime.worker.executor.page import Cells
from gnomon.runtime.worker.executor.store import Store, Undecoded

__all__ = ["Errand", "Server", "is_buffer", "type_name"]

#: The name of a type as the interpreter has it, whatever its metaclass would answer.
_NAME_OF_TYPE = type.__dict__["__name__"].__get__

#: Characters of a type's name that are told.
_NAME = 100

#: What a free thread does before any run.
Errand: TypeAlias = Callable[[Place], None]

#: Seconds that preparing may take before a run.
_PREPARE_SECONDS = 0.002

#: Estimated bytes up to which any value is prepared.
_PREPARE_BYTES = 1 << 16

#: Bytes from which a segment is written by the writing thread.
_WRITE_ASIDE = 1 << 20

_MISSING = object()


class Server:
    """Answers ``EncodeValues``.

    ``errand`` takes a pool's name and a call for one of its threads; ``write`` takes a call for the writing thread.
    """

    def __init__(
        self,
        store: Store,
        outgoing: Outgoing,
        cells: Cells,
        *,
        errand: Callable[[str, Errand], None],
        write: Callable[[Errand], None],
        message_bytes: int,
        by_reference: bool,
    ) -> None:
        self._store = store
        self._outgoing = outgoing
        self._cells = cells
        self._errand = errand
        self._write = write
        self._message_bytes = message_bytes
        self._by_reference = by_reference
        self._origins: dict[int, tuple[int, str]] = {}
        self._prepared: dict[int, tuple[Encoded | ErrorRecord, str]] = {}  # with the name of the value's type

    # ---- called by the threads that run tasks ------------------------------------------------------------------------

    def made(self, place: Place, task_id: int, attempt: int) -> None:
        """A run has made a value that may be asked for."""
        self._origins[task_id] = (attempt, place.executor)
        if self._prepared:
            self._prepared.pop(task_id, None)
        if not self._by_reference:
            place.fresh.append(task_id)

    def prepare(self, place: Place) -> None:
        """Encode what the thread made lately, the newest first, where it is cheap."""
        deadline = now() + _PREPARE_SECONDS
        while place.fresh and now() < deadline:
            task_id = place.fresh.pop()
            value = self._store.values.get(task_id, _MISSING)
            if value is _MISSING or type(value) is Undecoded or task_id in self._prepared:
                continue
            if sizeof(value) > _PREPARE_BYTES and not is_buffer(value):
                continue
            self._prepared[task_id] = self._encode(place, task_id, value), type_name(value)
            if task_id not in self._store.values:  # it was dropped meanwhile
                self._prepared.pop(task_id, None)
        place.fresh.clear()

    def _serve(self, place: Place, request_id: int, task_id: int) -> None:
        """Encode a value and answer, on a thread of the pool that made it."""
        value = self._store.values.get(task_id, _MISSING)
        if value is _MISSING:
            self._answer_lost(request_id, task_id, None)
            return
        if type(value) is Undecoded:
            with value.lock:  # the thread that was decoding it is done now
                pass
            self.ask(request_id, task_id)
            return
        prepared = self._prepared.get(task_id)
        if prepared is not None:
            self._answer(request_id, task_id, *prepared, 0.0)
            return
        begun = perf_counter()
        encoded = self._encode(place, task_id, value)
        self._answer(request_id, task_id, encoded, type_name(value), perf_counter() - begun)

    def _encode(self, place: Place, task_id: int, value: Any) -> Encoded | ErrorRecord:
        """The value encoded, or why it can't be. A death meanwhile is the fault of the run that made it."""
        attempt, _ = self._origins.get(task_id, (0, ""))
        self._cells[place.cell] = task_id
        self._cells[place.cell + 1] = attempt
        try:
            return encode_value(value)
        except BaseException as exc:  # noqa: BLE001 - methods of the user's objects ran, and may raise anything
            return record_failure(exc, "Raised while the task's result was pickled, for it is needed elsewhere.")
        finally:
            self._cells[place.cell + 1] = 0

    # ---- called by the thread that takes messages --------------------------------------------------------------------

    def ask(self, request_id: int, task_id: int) -> None:
        """See to it that a value is answered."""
        value = self._store.values.get(task_id, _MISSING)
        if value is _MISSING:
            self._answer_lost(request_id, task_id, None)
        elif type(value) is Undecoded and (raw := value.copy_raw()) is not None:
            self._answer_raw(request_id, task_id, *raw, value.type_name, 0.0)
        elif self._by_reference and type(value) is not Undecoded:
            self._outgoing.add(ValueEncoded(request_id, task_id, (), ByReference(value), type_name(value)))
            self._outgoing.flush()
        elif (prepared := self._prepared.get(task_id)) is not None:
            self._answer(request_id, task_id, *prepared, 0.0)
        else:
            _, pool = self._origins.get(task_id, (0, ""))
            self._errand(pool, lambda place: self._serve(place, request_id, task_id))

    def drop(self, task_ids: Iterable[int]) -> None:
        """Forget values. Those that may run user code when they die, die on a thread of the pool that made them."""
        doomed: dict[str, list[Any]] = {}
        for task_id in task_ids:
            self._prepared.pop(task_id, None)
            _, pool = self._origins.pop(task_id, (0, ""))
            value = self._store.values.pop(task_id, None)
            if not _dies_quietly(value):
                doomed.setdefault(pool, []).append(value)
            del value
        for pool, values in doomed.items():
            self._errand(pool, lambda place, values=values: values.clear())  # type: ignore[misc]

    def drop_all(self) -> None:
        """Forget what was prepared for values that are about to be dropped."""
        self._prepared.clear()
        self._origins.clear()

    # ---- answers -----------------------------------------------------------------------------------------------------

    def _answer(self, request_id: int, task_id: int, encoded: Encoded | ErrorRecord, name: str, seconds: float) -> None:
        """Answer with what encoding has made in ``seconds`` of a value whose type has this name."""
        if isinstance(encoded, ErrorRecord):
            self._answer_lost(request_id, task_id, encoded)
        elif encoded.nbytes <= self._message_bytes:
            self._answer_raw(request_id, task_id, encoded.packed(), None, name, seconds)
        elif encoded.nbytes < _WRITE_ASIDE:
            self._answer_segment(request_id, task_id, encoded, name, seconds)
        else:
            self._write(lambda place: self._answer_segment(request_id, task_id, encoded, name, seconds))

    def _answer_segment(self, request_id: int, task_id: int, encoded: Encoded, name: str, seconds: float) -> None:
        begun = perf_counter()
        try:
            segment = Segment.write(encoded.frames)
        except OSError as exc:
            self._answer_lost(request_id, task_id, record_failure(exc, "Raised while the task's result was written."))
            return
        self._answer_raw(request_id, task_id, None, segment, name, seconds + perf_counter() - begun)

    def _answer_raw(
        self, request_id: int, task_id: int, blob: bytes | None, segment: Segment | None, name: str, seconds: float
    ) -> None:
        if segment is None:
            self._outgoing.add(ValueEncoded(request_id, task_id, (), blob, name, seconds))
        else:
            fd, segment.fd = segment.fd, -1  # the message owns it now
            self._outgoing.add(ValueEncoded(request_id, task_id, segment.layout, None, name, seconds), [fd])
        self._outgoing.flush()

    def _answer_lost(self, request_id: int, task_id: int, error: ErrorRecord | None) -> None:
        self._outgoing.add(ValueLost(request_id, task_id, error))
        self._outgoing.flush()


_QUIET_TYPES = frozenset({int, float, bool, type(None), str, bytes, bytearray, complex, Undecoded})


def type_name(value: Any) -> str:
    """The short name of a value's type; runs no code of the user's."""
    name: str = _NAME_OF_TYPE(type(value))
    return name[:_NAME].encode("utf-8", "replace").decode()


def is_buffer(value: Any) -> bool:
    """Whether a value is one plain buffer: its encoding copies nothing, and it holds no other objects."""
    if type(value) is bytes or type(value) is bytearray:
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is numpy.ndarray and not value.dtype.hasobject


def _dies_quietly(value: Any) -> bool:
    """Whether no user code can run when a value dies (the insides of data frames are taken to be plain)."""
    kind = type(value)
    return kind in _QUIET_TYPES or is_buffer(value) or kind.__module__.partition(".")[0] in ("pandas", "pyarrow")
