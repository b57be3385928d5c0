"""A recording: what a cluster did between two marks, in typed columns, as a file of its own and inside the report.

Times inside are whole **ticks** of 100 ns, counted from the recording's start: a wall clock in doubles resolves no
more, and sums of integers are exact, which is what lets an account add up. A recording knows no cluster and draws
nothing.

The file is zlib-compressed msgpack with a version. Columns are stored as ``[code, delta, bytes]``: the smallest array
code that holds them, whether each value is the difference to the one before, and little-endian bytes.

Contents: Recording, Runs, Transfers, Worker, Totals, Pair, ErrorGroup, LogLine, Ledger, RecordingError, TICKS, load.
"""

from __future__ import annotations

import base64
import binascii
import sys
import zlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import msgpack

__all__ = [
    "TICKS",
    "ErrorGroup",
    "Ledger",
    "LogLine",
    "Pair",
    "Recording",
    "RecordingError",
    "Runs",
    "Totals",
    "Transfers",
    "Worker",
    "load",
]

#: Ticks in a second.
TICKS = 10_000_000

#: Version of the file; a reader refuses a greater one.
_VERSION = 1
_MAGIC = "gnomon-recording"


class RecordingError(ValueError):
    """A file that is no recording, is damaged, or was written by a newer version."""


class Worker(NamedTuple):
    """A worker that was there during the recording. ``joined`` and ``left`` in ticks; ``left`` is None if it stayed."""

    worker_id: int
    name: str
    address: str
    nthreads: int
    host: str
    joined: int
    left: int | None
    reason: str

    @property
    def label(self) -> str:
        """What to call it where people read: its name, said to be a worker's if it is only a number."""
        if self.name.isdigit():
            return f"worker {self.name}"
        return self.name or self.address or f"worker {self.worker_id}"


class Totals(NamedTuple):
    """Complete sums over the runs that ended inside the recording, by prefix (``name``) or worker (its id); ticks."""

    name: str | int
    tasks: int
    erred: int
    nbytes: int
    decode: int
    compute: int
    encode: int


class Pair(NamedTuple):
    """Complete sums of what one worker fetched from another. Ids: -1 unknown, -2 stands for all further pairs."""

    from_id: int
    to_id: int
    transport: str
    fetches: int
    nbytes: int
    ticks: int


class ErrorGroup(NamedTuple):
    """Errors alike: how many inside the recording, and the first that the scheduler saw. ``worker_id`` -1: none."""

    prefix: str
    type_name: str
    summary: str
    times: int
    key: str
    worker_id: int
    text: str


class LogLine(NamedTuple):
    """A line of the scheduler's log; ``time`` in ticks."""

    time: int
    level: str
    text: str


class Ledger(NamedTuple):
    """What became of one kind of record: all there were, and those that are in the recording."""

    seen: int
    kept: int

    @property
    def missed(self) -> int:
        """How many have no details here."""
        return self.seen - self.kept


@dataclass(slots=True)
class Runs:
    """Runs of tasks, one row each, in the order the scheduler heard of them.

    ``begins`` are in ticks from the start (negative: before it), then the lengths of the three parts, which follow each
    other without a gap. ``workers`` index ``Recording.workers``, ``prefixes`` index ``prefix_names``.
    """

    keys: list[str] = field(default_factory=list)
    prefix_names: list[str] = field(default_factory=list)
    prefixes: array[int] = field(default_factory=lambda: array("q"))
    workers: array[int] = field(default_factory=lambda: array("q"))
    threads: array[int] = field(default_factory=lambda: array("q"))
    begins: array[int] = field(default_factory=lambda: array("q"))
    decodes: array[int] = field(default_factory=lambda: array("q"))
    computes: array[int] = field(default_factory=lambda: array("q"))
    encodes: array[int] = field(default_factory=lambda: array("q"))
    nbytes: array[int] = field(default_factory=lambda: array("q"))
    ok: array[int] = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(slots=True)
class Transfers:
    """Fetches of one worker from another, one row each.

    ``froms`` and ``tos`` index ``Recording.workers``; -1 is unknown.
    """

    transport_names: list[str] = field(default_factory=list)
    transports: array[int] = field(default_factory=lambda: array("q"))
    froms: array[int] = field(default_factory=lambda: array("q"))
    tos: array[int] = field(default_factory=lambda: array("q"))
    begins: array[int] = field(default_factory=lambda: array("q"))
    lengths: array[int] = field(default_factory=lambda: array("q"))
    nbytes: array[int] = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        return len(self.nbytes)


#: Array codes from small to large, with what they hold; what none holds takes ``q``.
_CODES = (("B", 0, 255), ("H", 0, 65_535), ("I", 0, 2**32 - 1), ("i", -(2**31), 2**31 - 1))

_RUN_COLUMNS = ("prefixes", "workers", "threads", "begins", "decodes", "computes", "encodes", "nbytes", "ok")
_TRANSFER_COLUMNS = ("transports", "froms", "tos", "begins", "lengths", "nbytes")


@dataclass(slots=True)
class Recording:
    """Everything between two marks.

    Fields:
        start: scheduler's wall clock at the first mark, in seconds.
        duration: ticks between the marks.
        runs, transfers: details, as far as the scheduler still had them.
        prefixes, worker_totals, pairs: sums that are complete even where details are missing.
        ledgers: by kind (``runs``, ``transfers``, ``errors``, ``logs``, ``workers``) what there was and what is here.
        info: facts for reading: ``calling_code``, ``versions``, ``settings``, ``raised``...
    """

    start: float
    duration: int
    workers: list[Worker] = field(default_factory=list)
    runs: Runs = field(default_factory=Runs)
    transfers: Transfers = field(default_factory=Transfers)
    prefixes: list[Totals] = field(default_factory=list)
    worker_totals: list[Totals] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    errors: list[ErrorGroup] = field(default_factory=list)
    logs: list[LogLine] = field(default_factory=list)
    ledgers: dict[str, Ledger] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)

    def dumps(self) -> bytes:
        """The recording as bytes of its file format."""
        runs = {name: _pack(getattr(self.runs, name), delta=name == "begins") for name in _RUN_COLUMNS}
        transfers = {name: _pack(getattr(self.transfers, name), delta=name == "begins") for name in _TRANSFER_COLUMNS}
        body = {
            "format": _MAGIC,
            "version": _VERSION,
            "ticks": TICKS,
            "start": self.start,
            "duration": self.duration,
            "workers": self.workers,
            "runs": {"keys": "\n".join(map(_one_line, self.runs.keys)), "prefix_names": self.runs.prefix_names, **runs},
            "transfers": {"transport_names": self.transfers.transport_names, **transfers},
            "prefixes": self.prefixes,
            "worker_totals": self.worker_totals,
            "pairs": self.pairs,
            "errors": self.errors,
            "logs": self.logs,
            "ledgers": self.ledgers,
            "info": self.info,
        }
        data: bytes = msgpack.packb(body, use_bin_type=True, unicode_errors="replace")
        return zlib.compress(data, 6)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the recording to ``path`` (by custom ``*.gnomon``) and return the path. Raises OSError."""
        target = Path(path)
        target.write_bytes(self.dumps())
        return target

    @classmethod
    def loads(cls, data: bytes) -> Recording:
        """The recording that ``dumps`` made. Raises RecordingError."""
        try:
            body = msgpack.unpackb(zlib.decompress(data), raw=False, strict_map_key=False)
            if body["format"] != _MAGIC:
                raise RecordingError("this is not a gnomon recording")
            if body["version"] > _VERSION:
                raise RecordingError(f"the recording has version {body['version']}, this gnomon reads up to {_VERSION}")
            return cls._from_body(body)
        except RecordingError:
            raise
        except (zlib.error, ValueError, KeyError, TypeError, msgpack.exceptions.UnpackException) as exc:
            raise RecordingError(f"this is not a gnomon recording, or it is damaged: {exc}") from exc

    @classmethod
    def _from_body(cls, body: dict[str, Any]) -> Recording:
        runs, transfers = body["runs"], body["transfers"]
        rows = len(_unpack(runs["begins"]))
        return cls(
            start=body["start"],
            duration=body["duration"],
            workers=[Worker._make(row) for row in body["workers"]],
            runs=Runs(
                keys=runs["keys"].split("\n") if rows else [],
                prefix_names=runs["prefix_names"],
                **{name: _unpack(runs[name]) for name in _RUN_COLUMNS},
            ),
            transfers=Transfers(
                transport_names=transfers["transport_names"],
                **{name: _unpack(transfers[name]) for name in _TRANSFER_COLUMNS},
            ),
            prefixes=[Totals._make(row) for row in body["prefixes"]],
            worker_totals=[Totals._make(row) for row in body["worker_totals"]],
            pairs=[Pair._make(row) for row in body["pairs"]],
            errors=[ErrorGroup._make(row) for row in body["errors"]],
            logs=[LogLine._make(row) for row in body["logs"]],
            ledgers={name: Ledger._make(row) for name, row in body["ledgers"].items()},
            info=body["info"],
        )


def load(path: str | PathLike[str]) -> Recording:
    """Read a recording from a ``.gnomon`` file, or out of a report's HTML. Raises OSError, RecordingError."""
    data = Path(path).read_bytes()
    if data[:1] in (b"<", b"\n", b" ", b"\xef"):
        data = _embedded(data)
    return Recording.loads(data)


def _embedded(page: bytes) -> bytes:
    """The recording inside a report."""
    _, found, rest = page.partition(b'<script type="application/gnomon" id="recording">')
    if not found:
        raise RecordingError("there is no recording in this page")
    try:
        return base64.b64decode(rest[: rest.index(b"</script>")], validate=False)
    except (ValueError, binascii.Error) as exc:
        raise RecordingError(f"the recording in this page is damaged: {exc}") from exc


def _pack(column: array[int], *, delta: bool) -> list[Any]:
    """A column in its smallest form. Delta pays for times, which grow; the first value is the difference to 0."""
    values: Sequence[int] = column
    if delta and len(column):
        values = [column[0], *(b - a for a, b in pairwise(column))]
    low, high = (min(values), max(values)) if len(values) else (0, 0)
    code = next((code for code, least, most in _CODES if least <= low and high <= most), "q")
    return [code, delta, _little_endian(array(code, values)).tobytes()]


def _unpack(packed: Sequence[Any]) -> array[int]:
    code, delta, data = packed
    if code not in ("B", "H", "I", "i", "q"):
        raise RecordingError(f"unknown column code {code!r}")
    column = array(code)
    column.frombytes(data)
    values: Iterable[int] = _little_endian(column)
    return array("q", accumulate(values) if delta else values)


def _little_endian(column: array[int]) -> array[int]:
    if sys.byteorder != "little":
        column.byteswap()
    return column


def _one_line(key: str) -> str:
    """A key as it stands in the file, where a line break ends it."""
    return key.replace("\n", "␤")
