"""What happened between two marks, as plain typed columns; a file of its own, and a part of every report.

A recording knows nothing of clusters, charts or pages. Times are whole ticks of 100 ns since its start, so that sums of
parts are exact. The file is msgpack, compressed with zlib: it opens anywhere, also in the page's own script.

Contents: TICKS, Recording, RecordingError, load; and the records of ``records``.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import msgpack

from gnomon.reports.packing import RecordingError, pack, pack_floats, unpack
from gnomon.reports.records import (
    TICKS,
    Clock,
    Demand,
    ErrorGroup,
    Ledger,
    LogLine,
    LoopPart,
    Pair,
    RegionTotals,
    Runs,
    Series,
    SpanTotals,
    Stall,
    TaskProfile,
    Totals,
    Transfers,
    TypeTotals,
    Worker,
)

__all__ = [
    "TICKS",
    "Clock",
    "Demand",
    "ErrorGroup",
    "Ledger",
    "LogLine",
    "LoopPart",
    "Pair",
    "Recording",
    "RecordingError",
    "RegionTotals",
    "Runs",
    "Series",
    "SpanTotals",
    "Stall",
    "TaskProfile",
    "Totals",
    "Transfers",
    "TypeTotals",
    "Worker",
    "load",
]

#: Version of the file; a reader refuses a greater one. 2 added processor time, spans, series, stalls, demand, regions;
#: 3 deep profiles, parts and types of transfers, clocks, parts of the scheduler's loop.
_VERSION = 3
_MAGIC = "gnomon-recording"

_RUN_COLUMNS = ("prefixes", "workers", "threads", "begins", "decodes", "computes", "encodes", "nbytes", "ok")
_LATER_RUN_COLUMNS = ("cpus", "spans")
_TRANSFER_COLUMNS = ("transports", "froms", "tos", "begins", "lengths", "nbytes")
_LATER_TRANSFER_COLUMNS = ("types", "waits", "holds", "serialises")
_DEMAND_COLUMNS = ("times", "workers", "kinds", "values")


@dataclass(slots=True)
class Recording:
    """Everything between two marks.

    Fields:
        start: scheduler's wall clock at the first mark, in seconds.
        duration: ticks between the marks.
        runs, transfers: details, as far as the scheduler still had them.
        prefixes, worker_totals, pairs: sums that are complete even where details are missing.
        series, stalls, demand: what the cluster's processes measured of themselves, as far as it was kept.
        regions, spans: complete sums of what users marked in their code.
        types: complete sums of what was fetched, by type of value.
        clocks: how far the workers' clocks were off.
        loop: the parts of the time of the scheduler's event loop, over the whole recording; empty if nobody timed it.
        task_profiles: deep profiles of runs that were submitted with ``profile=True``, the latest ones.
        profiles: dicts of ``name``, ``kind`` and ``session`` (a profiler session in its plain form).
        ledgers: by kind (``runs``, ``transfers``, ``errors``, ``logs``...) what there was and what is here.
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
    types: list[TypeTotals] = field(default_factory=list)
    clocks: list[Clock] = field(default_factory=list)
    loop: list[LoopPart] = field(default_factory=list)
    errors: list[ErrorGroup] = field(default_factory=list)
    logs: list[LogLine] = field(default_factory=list)
    series: Series = field(default_factory=Series)
    stalls: list[Stall] = field(default_factory=list)
    demand: Demand = field(default_factory=Demand)
    regions: list[RegionTotals] = field(default_factory=list)
    spans: list[SpanTotals] = field(default_factory=list)
    profiles: list[dict[str, Any]] = field(default_factory=list)
    task_profiles: list[TaskProfile] = field(default_factory=list)
    ledgers: dict[str, Ledger] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)

    def dumps(self) -> bytes:
        """The recording as bytes of its file format."""
        runs = _packed(self.runs, (*_RUN_COLUMNS, *_LATER_RUN_COLUMNS))
        transfers = _packed(self.transfers, (*_TRANSFER_COLUMNS, *_LATER_TRANSFER_COLUMNS))
        body = {
            "format": _MAGIC,
            "version": _VERSION,
            "ticks": TICKS,
            "start": self.start,
            "duration": self.duration,
            "workers": self.workers,
            "runs": {
                "keys": _lines(self.runs.keys),
                "prefix_names": self.runs.prefix_names,
                "span_names": self.runs.span_names,
                **runs,
            },
            "transfers": {
                "transport_names": self.transfers.transport_names,
                "type_names": self.transfers.type_names,
                **transfers,
            },
            "prefixes": self.prefixes,
            "worker_totals": self.worker_totals,
            "pairs": self.pairs,
            "types": self.types,
            "clocks": self.clocks,
            "loop": self.loop,
            "errors": self.errors,
            "logs": self.logs,
            "series": {
                "times": pack(self.series.times, delta=True),
                "workers": pack(self.series.workers, delta=False),
                "processes": pack(self.series.processes, delta=False),
                "values": {name: pack_floats(column) for name, column in self.series.values.items()},
            },
            "stalls": self.stalls,
            "demand": {
                "known": self.demand.known,
                **{name: pack(getattr(self.demand, name), delta=name == "times") for name in _DEMAND_COLUMNS},
            },
            "regions": self.regions,
            "spans": self.spans,
            "profiles": self.profiles,
            "task_profiles": self.task_profiles,
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
        rows = len(unpack(runs["begins"]))
        return cls(
            start=body["start"],
            duration=body["duration"],
            workers=[Worker._make(row) for row in body["workers"]],
            runs=Runs(
                keys=runs["keys"].split("\n") if rows else [],
                prefix_names=runs["prefix_names"],
                span_names=[tuple(name) for name in runs.get("span_names", ())],
                **{name: unpack(runs[name]) for name in _RUN_COLUMNS},
                **{name: unpack(runs[name]) for name in _LATER_RUN_COLUMNS if name in runs},
            ),
            transfers=Transfers(
                transport_names=transfers["transport_names"],
                type_names=transfers.get("type_names", []),
                **{name: unpack(transfers[name]) for name in _TRANSFER_COLUMNS},
                **{name: unpack(transfers[name]) for name in _LATER_TRANSFER_COLUMNS if name in transfers},
            ),
            prefixes=[Totals(*row) for row in body["prefixes"]],
            worker_totals=[Totals(*row) for row in body["worker_totals"]],
            pairs=[Pair(*row) for row in body["pairs"]],
            types=[TypeTotals._make(row) for row in body.get("types", ())],
            clocks=[Clock._make(row) for row in body.get("clocks", ())],
            loop=[LoopPart._make(row) for row in body.get("loop", ())],
            errors=[ErrorGroup._make(row) for row in body["errors"]],
            logs=[LogLine._make(row) for row in body["logs"]],
            series=_series(body.get("series")),
            stalls=[Stall._make(row) for row in body.get("stalls", ())],
            demand=_demand(body.get("demand")),
            regions=[RegionTotals._make(row) for row in body.get("regions", ())],
            spans=[SpanTotals(tuple(name), *rest) for name, *rest in body.get("spans", ())],
            profiles=body.get("profiles", []),
            task_profiles=[TaskProfile._make(row) for row in body.get("task_profiles", ())],
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


def _packed(table: Runs | Transfers, names: tuple[str, ...]) -> dict[str, list[Any]]:
    return {name: pack(getattr(table, name), delta=name == "begins") for name in names}


def _series(body: dict[str, Any] | None) -> Series:
    if body is None:
        return Series()
    values: dict[str, array[float]] = {name: unpack(column) for name, column in body["values"].items()}
    return Series(unpack(body["times"]), unpack(body["workers"]), unpack(body["processes"]), values)


def _demand(body: dict[str, Any] | None) -> Demand:
    if body is None:
        return Demand()
    return Demand(body["known"], *(unpack(body[name]) for name in _DEMAND_COLUMNS))


def _lines(keys: Sequence[str]) -> str:
    """Keys as they stand in the file, where a line break ends each."""
    text = "\n".join(keys)
    if text.count("\n") < max(1, len(keys)):
        return text
    return "\n".join(key.replace("\n", "␤") for key in keys)
