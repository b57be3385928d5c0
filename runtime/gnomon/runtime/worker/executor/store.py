"""Values and code that an executor holds; what came as bytes is decoded when a run first needs it, on its thread.

Dictionaries are read and changed by several threads; each step is one operation that the interpreter does not
interrupt. Decoding is done once, under the lock of the thing decoded, however many threads want it.

Contents: Store, Code, Undecoded.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from itertools import repeat
from math import nan
from typing import Any

from gnomon.runtime.messages import ByReference, Payload
from gnomon.runtime.protocol import Bundle, Segment, decode_value, loads_code

__all__ = ["Code", "Store", "Undecoded"]


class Undecoded:
    """A value as it came: pickled bytes, or a segment. ``type_name``: short name of its type, "" where nobody knows."""

    __slots__ = ("blob", "lock", "segment", "type_name")

    def __init__(self, blob: bytes | None, segment: Segment | None, type_name: str = "") -> None:
        self.blob = blob
        self.segment = segment
        self.type_name = type_name
        self.lock = threading.Lock()

    def decode(self) -> Any:
        """The value; on the caller's thread, which holds the lock."""
        if self.segment is not None:
            return decode_value(Segment.frames(self.segment.fd, self.segment.layout))
        return decode_value([self.blob or b""])

    def copy_raw(self) -> tuple[bytes | None, Segment | None] | None:
        """The bytes, or the segment by a descriptor of its own; None if it is just being decoded."""
        if not self.lock.acquire(blocking=False):
            return None
        try:
            if self.segment is None:
                return self.blob, None
            if self.segment.fd < 0:
                return None
            return None, Segment(os.dup(self.segment.fd), self.segment.layout)
        finally:
            self.lock.release()


class Code:
    """One code blob, decoded or not.

    Fields:
        blob: as it came; None once decoded.
        target: the callable or ``Bundle``, once decoded.
        is_bundle: which of the two.
        seconds: what its latest run took; negative before the first.
        cpu_share: part of that that the thread was on the processor, when it was last measured.
        unmeasured: runs until it is measured again.
        label: what profiles call the runs of keys that begin with ``key_stem`` and have ``key_length`` characters.
    """

    __slots__ = (
        "blob",
        "cpu_share",
        "is_bundle",
        "key_length",
        "key_stem",
        "label",
        "lock",
        "seconds",
        "target",
        "unmeasured",
    )

    def __init__(self, blob: Payload) -> None:
        self.blob: Payload | None = blob
        self.target: Any = None
        self.is_bundle = False
        self.seconds = -1.0
        self.cpu_share = nan
        self.unmeasured = 0
        self.label = self.key_stem = ""
        self.key_length = -1
        self.lock = threading.Lock()

    def decode(self) -> None:
        """Make ``target`` of ``blob``. Raises whatever unpickling raises; the next run tries again."""
        with self.lock:
            if self.blob is not None:
                self.target = loads_code(self.blob)
                self.is_bundle = type(self.target) is Bundle
                self.blob = None


class Store:
    """All that one executor holds.

    Fields:
        values: by task id; either the value itself or an ``Undecoded``.
        codes: by code id.
    """

    def __init__(self) -> None:
        self.values: dict[int, Any] = {}
        self.codes: dict[int, Code] = {}

    def put_values(self, task_ids: Iterable[int], payloads: Iterable[Payload]) -> None:
        """Values as bytes or by reference."""
        for task_id, payload in zip(task_ids, payloads, strict=True):
            self.values[task_id] = payload.value if isinstance(payload, ByReference) else Undecoded(payload, None)

    def put_segments(
        self,
        task_ids: Iterable[int],
        layouts: Iterable[tuple[int, ...]],
        fds: Sequence[int],
        type_names: Sequence[str] = (),
    ) -> None:
        """Values as segments, whose descriptors are ours now."""
        names: Iterable[str] = type_names or repeat("", len(fds))
        for task_id, layout, fd, name in zip(task_ids, layouts, fds, names, strict=True):
            self.values[task_id] = Undecoded(None, Segment(fd, layout), name)

    def put_codes(self, code_ids: Iterable[int], blobs: Iterable[Payload]) -> None:
        """Code that runs will name."""
        for code_id, blob in zip(code_ids, blobs, strict=True):
            self.codes[code_id] = Code(blob)

    def drop_codes(self, code_ids: Iterable[int]) -> None:
        """Code that no run names any more."""
        for code_id in code_ids:
            self.codes.pop(code_id, None)

    def clear(self) -> None:
        """Forget everything."""
        self.values.clear()
        self.codes.clear()

    def get(self, task_id: int) -> Any:
        """A value, decoded now if it was not.

        Raises KeyError if there is none, or whatever decoding it raises; the next run that needs it tries again.
        """
        value = self.values[task_id]
        return self._decoded(task_id, value) if type(value) is Undecoded else value

    def _decoded(self, task_id: int, raw: Undecoded) -> Any:
        with raw.lock:
            current = self.values.get(task_id, raw)
            if current is not raw and type(current) is not Undecoded:
                return current  # another thread was faster
            value = raw.decode()
            if current is raw and task_id in self.values:
                self.values[task_id] = value
                if raw.segment is not None:
                    raw.segment.close()
            return value
