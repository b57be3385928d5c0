"""What a sampler recorded, as one immutable value: plain columns that can be saved, sent, merged and compared.

A session knows nothing of frames, threads or clocks that live: everything in it is a number or a string, so it can be
packed by msgpack or JSON as it is (``to_plain``), and outlives the process it came from. Time is in seconds of the
wall clock. Filtering is the processors' business, rendering that of the exports.

How the columns hang together::

    samples.node  ->  nodes (parent, function, line)  ->  functions (name, file, first_line, module)
    samples.bucket -> buckets (start, stop, ticks)        samples.thread -> threads      samples.label -> labels

A count becomes seconds by its bucket alone: ``count * buckets[b].tick_seconds``, whatever the interval was then. A
sample counts for all of the sampler's points since the one before it: those that were left out, and those that
fell out because it came late. What kept it from the GIL is what it then sees.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

__all__ = [
    "FORMAT",
    "MARKER",
    "REGION",
    "VERSION",
    "Bucket",
    "Difference",
    "Function",
    "Nodes",
    "RegionTime",
    "Samples",
    "Session",
    "Thread",
    "read_plain",
]

#: What the plain form says it is.
FORMAT = "gnomon-profile"

#: Version of the plain form. A reader refuses what is newer than itself.
VERSION = 1

#: ``Function.file`` of a region: not code, but a name that the program gave to a part of its work.
REGION = "<region>"

#: ``Function.file`` of what the sampler put in itself, as "(cut)" where a stack was too deep.
MARKER = "<gnomon>"


class Function(NamedTuple):
    """A function, region or marker. ``name`` is the qualified name, ``module`` may be empty."""

    name: str
    file: str
    first_line: int
    module: str


class Nodes(NamedTuple):
    """The call tree as parallel columns. ``parent`` is -1 for a root, and always less than the node's own number."""

    parent: tuple[int, ...]
    function: tuple[int, ...]
    line: tuple[int, ...]


class Thread(NamedTuple):
    """A thread that was sampled. ``process`` tells threads of merged sessions apart."""

    ident: int
    name: str
    process: str


class Bucket(NamedTuple):
    """A stretch of time: ``ticks`` samples of all threads were taken in it.

    ``missed`` ticks fell out; ``late`` and ``late_max`` are the sum and maximum of the delay of ticks against their
    deadlines, in seconds; ``cpu`` is what the sampler itself used. ``points``: what the counts of a thread that was
    there all the time add up to; 0 says, as many as there are ticks.
    """

    start: float
    stop: float
    ticks: int
    missed: int
    late: float
    late_max: float
    cpu: float
    points: int = 0

    @property
    def tick_seconds(self) -> float:
        """The seconds that one count of one thread stands for."""
        points = self.points or self.ticks
        return (self.stop - self.start) / points if points else 0.0


class Samples(NamedTuple):
    """Counts of samples as parallel columns of numbers into ``buckets``, ``threads``, ``labels`` and ``nodes``."""

    bucket: tuple[int, ...]
    thread: tuple[int, ...]
    label: tuple[int, ...]
    node: tuple[int, ...]
    count: tuple[int, ...]  # type: ignore[assignment]  # the tuple's own method is not missed


class RegionTime(NamedTuple):
    """Exact times of a region on one thread in one bucket.

    ``count`` is how often it was entered, ``seconds`` the time inside, ``own_seconds`` that without regions nested in
    it. The seconds of a region that is still open count up to the bucket's end.
    """

    bucket: int
    thread: int
    name: str
    count: int  # type: ignore[assignment]
    seconds: float
    own_seconds: float


@dataclass(frozen=True, slots=True)
class Session:
    """A profile. See the module's head for how its columns hang together.

    ``meta`` has at least ``start``, ``stop`` (wall clock, seconds), ``interval`` (mean seconds between ticks),
    ``samples`` (the sum of counts), ``ticks``, ``missed``, ``cpu`` (seconds of the sampler itself), ``pid``,
    ``process`` (a name) and ``python`` (version). ``labels[0]`` is "": no label.
    """

    meta: Mapping[str, Any]
    functions: tuple[Function, ...]
    nodes: Nodes
    buckets: tuple[Bucket, ...]
    threads: tuple[Thread, ...]
    labels: tuple[str, ...]
    samples: Samples
    regions: tuple[RegionTime, ...] = field(default=())

    @property
    def duration(self) -> float:
        """Seconds of wall clock from start to stop."""
        return float(self.meta["stop"]) - float(self.meta["start"])

    def own_seconds(self) -> list[float]:
        """For each node, the seconds of samples that ended in it. Thread seconds: two busy threads make two."""
        seconds = [0.0] * len(self.nodes.parent)
        weights = [bucket.tick_seconds for bucket in self.buckets]
        for bucket, node, count in zip(self.samples.bucket, self.samples.node, self.samples.count, strict=True):
            seconds[node] += count * weights[bucket]
        return seconds

    def total_seconds(self) -> list[float]:
        """For each node, the seconds of samples that ended in it or below."""
        seconds = self.own_seconds()
        parents = self.nodes.parent
        for node in range(len(parents) - 1, -1, -1):
            if parents[node] >= 0:
                seconds[parents[node]] += seconds[node]
        return seconds

    def to_plain(self) -> dict[str, Any]:
        """The session as dicts, lists, numbers and strings."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "meta": dict(self.meta),
            "functions": [list(row) for row in self.functions],
            "nodes": {name: list(column) for name, column in self.nodes._asdict().items()},
            "buckets": [list(row) for row in self.buckets],
            "threads": [list(row) for row in self.threads],
            "labels": list(self.labels),
            "samples": {name: list(column) for name, column in self.samples._asdict().items()},
            "regions": [list(row) for row in self.regions],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Session:
        """The inverse of ``to_plain``; raises ValueError for anything that is not a sound session."""
        return read_plain(plain)

    def save(self, path: str | Path) -> None:
        """Write it as gzipped JSON."""
        with gzip.open(path, "wt", encoding="utf-8") as file:
            json.dump(self.to_plain(), file, separators=(",", ":"))

    @classmethod
    def load(cls, path: str | Path) -> Session:
        """Read what ``save`` wrote; raises ValueError if it isn't that, OSError if it can't be read."""
        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                plain = json.load(file)
        except (gzip.BadGzipFile, zlib.error, EOFError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"{path} is not a saved profile: {error}") from error
        if not isinstance(plain, dict):
            raise ValueError(f"{path} is not a saved profile")
        return read_plain(plain)

    @classmethod
    def merge(cls, sessions: Iterable[Session]) -> Session:
        """Several sessions (of several processes, or times) as one: same functions and nodes are joined.

        Buckets stay as they are, side by side: where sessions of one process overlap in time, they count twice.
        Raises ValueError if there is no session.
        """
        return _merge(list(sessions))

    def diff(self, other: Session) -> Difference:
        """What changed from this session to the other."""
        tree = _Joined(by_line=False)
        columns: list[list[float]] = []
        moved = [tree.add(session) for session in (self, other)]
        for session, new in zip((self, other), moved, strict=True):
            seconds = [0.0] * len(tree.nodes)
            for node, own in enumerate(session.own_seconds()):
                seconds[new[node]] += own
            columns.append(seconds)
        return Difference(tuple(tree.functions), tree.columns(), tuple(columns[0]), tuple(columns[1]))


@dataclass(frozen=True, slots=True)
class Difference:
    """Two sessions on one tree. Functions are matched by module and name; lines are left out (0).

    ``before`` and ``after`` are own seconds per node. Compare ``shares()`` where the runs' lengths differ.
    """

    functions: tuple[Function, ...]
    nodes: Nodes
    before: tuple[float, ...]
    after: tuple[float, ...]

    def shares(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """``before`` and ``after`` as parts of their sums."""
        before, after = sum(self.before) or 1.0, sum(self.after) or 1.0
        return tuple(value / before for value in self.before), tuple(value / after for value in self.after)


class _Joined:
    """The trees of several sessions as one."""

    def __init__(self, *, by_line: bool) -> None:
        self.by_line = by_line
        self.functions: dict[Function, int] = {}
        self.nodes: dict[tuple[int, int, int], int] = {}
        self._same: dict[tuple[str, str], Function] = {}

    def add(self, session: Session) -> list[int]:
        """Take a session's nodes in; return their new numbers."""
        moved: list[int] = []
        for parent, function, line in zip(*session.nodes, strict=True):
            known = self._known(session.functions[function])
            number = self.functions.setdefault(known, len(self.functions))
            key = (moved[parent] if parent >= 0 else -1, number, line if self.by_line else 0)
            moved.append(self.nodes.setdefault(key, len(self.nodes)))
        return moved

    def _known(self, function: Function) -> Function:
        if self.by_line:
            return function
        return self._same.setdefault((function.module or function.file, function.name), function)

    def columns(self) -> Nodes:
        """The joined nodes."""
        return Nodes(*(tuple(key[at] for key in self.nodes) for at in range(3)))


def _merge(sessions: list[Session]) -> Session:
    if not sessions:
        raise ValueError("there is no session to merge")
    tree = _Joined(by_line=True)
    labels: dict[str, int] = {"": 0}
    threads: dict[Thread, int] = {}
    buckets: list[Bucket] = []
    samples: tuple[list[int], ...] = ([], [], [], [], [])
    regions: list[RegionTime] = []
    for session in sessions:
        first = len(buckets)
        buckets += session.buckets
        moved = tree.add(session)
        of_label = [labels.setdefault(label, len(labels)) for label in session.labels]
        of_thread = [threads.setdefault(thread, len(threads)) for thread in session.threads]
        columns = session.samples
        samples[0].extend(first + bucket for bucket in columns.bucket)
        samples[1].extend(of_thread[thread] for thread in columns.thread)
        samples[2].extend(of_label[label] for label in columns.label)
        samples[3].extend(moved[node] for node in columns.node)
        samples[4].extend(columns.count)
        regions += [row._replace(bucket=first + row.bucket, thread=of_thread[row.thread]) for row in session.regions]
    return Session(
        meta=_merged_meta([session.meta for session in sessions], buckets),
        functions=tuple(tree.functions),
        nodes=tree.columns(),
        buckets=tuple(buckets),
        threads=tuple(threads),
        labels=tuple(labels),
        samples=Samples(*(tuple(column) for column in samples)),
        regions=tuple(regions),
    )


def _merged_meta(metas: list[Mapping[str, Any]], buckets: list[Bucket]) -> dict[str, Any]:
    """What the sessions say alike, and sums of what can be added up."""
    alike = {key: value for key, value in metas[0].items() if all(meta.get(key) == value for meta in metas)}
    ticks = sum(bucket.ticks for bucket in buckets)
    processes = dict.fromkeys(str(meta.get("process", "")) for meta in metas)
    return {
        "pid": 0,
        "python": "",
        **alike,
        "start": min(float(meta["start"]) for meta in metas),
        "stop": max(float(meta["stop"]) for meta in metas),
        "process": next(iter(processes)) if len(processes) == 1 else f"{len(processes)} processes",
        "interval": sum(bucket.stop - bucket.start for bucket in buckets) / ticks if ticks else 0.0,
        "samples": sum(int(meta.get("samples", 0)) for meta in metas),
        "ticks": ticks,
        "missed": sum(bucket.missed for bucket in buckets),
        "cpu": sum(bucket.cpu for bucket in buckets),
    }


def read_plain(plain: Mapping[str, Any]) -> Session:
    """A session from its plain form, every number of which is checked; raises ValueError."""
    if plain.get("format") != FORMAT:
        raise ValueError("this is not a profile")
    version = plain.get("version")
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        raise ValueError(f"a profile of version {version!r} can't be read: this is version {VERSION}")
    try:
        session = Session(
            meta=dict(plain["meta"]),
            functions=tuple(Function(str(n), str(f), int(line), str(m)) for n, f, line, m in plain["functions"]),
            nodes=Nodes(*(_integers(plain["nodes"][name]) for name in Nodes._fields)),
            buckets=tuple(_bucket(*row) for row in plain["buckets"]),
            threads=tuple(Thread(int(ident), str(name), str(process)) for ident, name, process in plain["threads"]),
            labels=tuple(str(label) for label in plain["labels"]),
            samples=Samples(*(_integers(plain["samples"][name]) for name in Samples._fields)),
            regions=tuple(
                RegionTime(int(bucket), int(thread), str(name), int(count), float(seconds), float(own))
                for bucket, thread, name, count, seconds, own in plain["regions"]
            ),
        )
        meta = session.meta
        for name in ("start", "stop"):
            if not math.isfinite(float(meta[name])):
                raise ValueError(f"{name} is {meta[name]!r}")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"this profile is damaged: {error!r}") from error
    _check(session)
    return session


def _bucket(
    start: float, stop: float, ticks: int, missed: int, late: float, late_max: float, cpu: float, points: int = 0
) -> Bucket:
    times = (float(late), float(late_max), float(cpu))
    return Bucket(float(start), float(stop), int(ticks), int(missed), *times, int(points))


def _integers(column: Sequence[Any]) -> tuple[int, ...]:
    if not isinstance(column, list | tuple) or not all(type(value) is int for value in column):
        raise ValueError("a column is not of integers")
    return tuple(column)


def _check(session: Session) -> None:
    nodes, samples = session.nodes, session.samples
    if len({len(column) for column in nodes}) != 1 or len({len(column) for column in samples}) != 1:
        raise ValueError("this profile is damaged: columns of different lengths")
    if not session.labels or session.labels[0] != "":
        raise ValueError("this profile is damaged: its first label is not empty")
    if any(not -1 <= parent < node for node, parent in enumerate(nodes.parent)):
        raise ValueError("this profile is damaged: a node comes before its parent")
    for what, column, size in (
        ("function", nodes.function, len(session.functions)),
        ("bucket", samples.bucket, len(session.buckets)),
        ("thread", samples.thread, len(session.threads)),
        ("label", samples.label, len(session.labels)),
        ("node", samples.node, len(nodes.parent)),
        ("bucket", tuple(row.bucket for row in session.regions), len(session.buckets)),
        ("thread", tuple(row.thread for row in session.regions), len(session.threads)),
    ):
        if column and not 0 <= min(column) <= max(column) < size:
            raise ValueError(f"this profile is damaged: it has no such {what} as some of its rows name")
