"""What a sampler recorded, as one immutable value: plain columns that can be saved, sent, merged and compared.

A session knows nothing of frames, threads or clocks that live: everything in it is a number or a string, so it can be
packed by msgpack or JSON as it is (``to_plain``), and outlives the process it came from. Time is in seconds of the
wall clock. Filtering is the processors' business, rendering that of the exports.

How the columns hang together::

    samples.node  ->  nodes (parent, function, line)  ->  functions (name, file, first_line, module)
    samples.bucket -> buckets (start, stop, ticks)        samples.thread -> threads      samples.label -> labels

A count of samples becomes seconds by its bucket alone: ``count * buckets[b].tick_seconds``, whatever the interval was
at that time.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

__all__ = [
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
]

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
    deadlines, in seconds; ``cpu`` is what the sampler itself used.
    """

    start: float
    stop: float
    ticks: int
    missed: int
    late: float
    late_max: float
    cpu: float

    @property
    def tick_seconds(self) -> float:
        """The seconds that one sample of one thread stands for."""
        return (self.stop - self.start) / self.ticks if self.ticks else 0.0


class Samples(NamedTuple):
    """Counts of samples as parallel columns of numbers into ``buckets``, ``threads``, ``labels`` and ``nodes``."""

    bucket: tuple[int, ...]
    thread: tuple[int, ...]
    label: tuple[int, ...]
    node: tuple[int, ...]
    count: tuple[int, ...]


class RegionTime(NamedTuple):
    """Exact times of a region on one thread in one bucket.

    ``count`` is how often it was entered, ``seconds`` the time inside, ``own_seconds`` that without regions nested in
    it. The seconds of a region that is still open count up to the bucket's end.
    """

    bucket: int
    thread: int
    name: str
    count: int
    seconds: float
    own_seconds: float


@dataclass(frozen=True, slots=True)
class Session:
    """A profile. See the module's head for how its columns hang together.

    ``meta`` has at least ``start``, ``stop`` (wall clock, seconds), ``interval`` (mean seconds between ticks),
    ``samples`` (stacks counted), ``ticks``, ``missed``, ``cpu`` (seconds of the sampler itself), ``pid``, ``process``
    (a name) and ``python`` (version). ``labels[0]`` is "": no label.
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
        raise NotImplementedError

    def total_seconds(self) -> list[float]:
        """For each node, the seconds of samples that ended in it or below."""
        raise NotImplementedError

    def to_plain(self) -> dict[str, Any]:
        """The session as dicts, lists, numbers and strings."""
        raise NotImplementedError

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Session:
        """The inverse of ``to_plain``; raises ValueError for anything that is not a sound session."""
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write it as gzipped JSON."""
        raise NotImplementedError

    @classmethod
    def load(cls, path: str | Path) -> Session:
        """Read what ``save`` wrote; raises ValueError if it isn't that, OSError if it can't be read."""
        raise NotImplementedError

    @classmethod
    def merge(cls, sessions: Iterable[Session]) -> Session:
        """Several sessions (of several processes, or times) as one: same functions and nodes are joined."""
        raise NotImplementedError

    def diff(self, other: Session) -> Difference:
        """What changed from this session to the other."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Difference:
    """Two sessions on one tree. Functions are matched by module and name, lines ignored.

    ``before`` and ``after`` are own seconds per node. Compare shares with ``shares()`` where the runs' lengths differ.
    """

    functions: tuple[Function, ...]
    nodes: Nodes
    before: tuple[float, ...]
    after: tuple[float, ...]

    def shares(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """``before`` and ``after`` as parts of their sums."""
        raise NotImplementedError
