"""What a recording consists of: rows and typed columns. All times are in ticks since the recording's start.

Contents: TICKS; Worker, Totals, Pair, ErrorGroup, LogLine, Ledger, Stall, RegionTotals, SpanTotals, TaskProfile,
TypeTotals, Clock, LoopPart; Runs, Transfers, Series, Demand.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = [
    "TICKS",
    "Clock",
    "Demand",
    "ErrorGroup",
    "Ledger",
    "LogLine",
    "LoopPart",
    "Pair",
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
]

#: Ticks in a second.
TICKS = 10_000_000


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
    """Complete sums over the runs that ended inside the recording, by prefix (``name``) or worker (its id); ticks.

    ``cpu`` is time on the processor, and ``measured`` how much of ``compute`` it was measured in (0: not measured).
    """

    name: str | int
    tasks: int
    erred: int
    nbytes: int
    decode: int
    compute: int
    encode: int
    cpu: int = 0
    measured: int = 0


class Pair(NamedTuple):
    """Complete sums of what one worker fetched from another. Ids: -1 unknown, -2 stands for all further pairs.

    Of ``ticks``, the holder's threads were busy for ``hold``, and it pickled for ``serialise``; the rest was the wire.
    ``wait`` was before that: from when values were asked for until their fetch began. -1: not measured.
    """

    from_id: int
    to_id: int
    transport: str
    fetches: int
    nbytes: int
    ticks: int
    wait: int = -1
    hold: int = -1
    serialise: int = -1


class TypeTotals(NamedTuple):
    """Complete sums of what was fetched by type of value; counts values, not fetches. The times are a pair's."""

    name: str
    values: int
    nbytes: int
    ticks: int
    wait: int
    hold: int
    serialise: int


class Clock(NamedTuple):
    """How far a worker's clock was off: ``offset`` seconds were added to its times, give or take ``uncertainty``.

    ``worker`` indexes ``Recording.workers``. No ``samples``: it reads the scheduler's own clock, or has not told of a
    round trip (uncertainty NaN).
    """

    worker: int
    offset: float
    uncertainty: float
    samples: int


class LoopPart(NamedTuple):
    """A part of the time of the scheduler's event loop, exclusive of the others; ``source``: timed, sampled or rest.

    ``times``: how often it was timed, or how many samples it rests on.
    """

    name: str
    source: str
    ticks: int
    times: int


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


class Stall(NamedTuple):
    """An event loop that did not come round in time: when, for how long, and why.

    ``worker`` indexes ``Recording.workers`` (-1: the scheduler); ``process``: 0 scheduler, 1 agent, 2 executor;
    ``holder`` is the thread that held the interpreter's lock, if one did; ``stack`` is outermost first.
    """

    begin: int
    length: int
    worker: int
    process: int
    cause: str
    detail: str
    function: str
    file: str
    line: int
    stack: list[list[str]]
    holder: str


class RegionTotals(NamedTuple):
    """Complete sums of a user's region within the tasks of a prefix; ``own`` is without regions nested in it."""

    prefix: str
    name: str
    times: int
    ticks: int
    own: int


class SpanTotals(NamedTuple):
    """Complete sums over the runs of a span, named by its words, outermost first; as ``Totals``."""

    name: tuple[str, ...]
    tasks: int
    erred: int
    nbytes: int
    compute: int
    decode: int = 0
    encode: int = 0
    cpu: int = 0
    measured: int = 0


class TaskProfile(NamedTuple):
    """The deep profile of one run, a stack each millisecond: ``session`` is a profiler session in its plain form.

    Its times are the scheduler's where the run has details here, else the worker's.
    """

    key: str
    prefix: str
    session: dict[str, Any]


@dataclass(slots=True)
class Runs:
    """Runs of tasks, one row each, in the order the scheduler heard of them.

    ``begins`` are in ticks from the start (negative: before it), then the lengths of the three parts, which follow each
    other without a gap. ``workers`` index ``Recording.workers``, ``prefixes`` index ``prefix_names``, ``spans`` index
    ``span_names``. ``cpus`` are ticks on the processor during ``computes``, -1 where that was not measured. Both of the
    last columns may be empty: then nothing is known of any row.
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
    cpus: array[int] = field(default_factory=lambda: array("q"))
    span_names: list[tuple[str, ...]] = field(default_factory=list)
    spans: array[int] = field(default_factory=lambda: array("q"))

    def ends(self) -> array[int]:
        """When each run ended, in ticks."""
        import numpy

        columns = (self.begins, self.decodes, self.computes, self.encodes)
        return array("q", sum(numpy.asarray(column) for column in columns).tobytes())  # type: ignore[union-attr]

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(slots=True)
class Transfers:
    """Fetches of one worker from another, one row each.

    ``froms`` and ``tos`` index ``Recording.workers``; -1 is unknown. ``types`` index ``type_names`` ("": not known).
    ``waits``, ``holds`` and ``serialises`` are a ``Pair``'s, -1 where not measured. The last four may be empty.
    """

    transport_names: list[str] = field(default_factory=list)
    transports: array[int] = field(default_factory=lambda: array("q"))
    froms: array[int] = field(default_factory=lambda: array("q"))
    tos: array[int] = field(default_factory=lambda: array("q"))
    begins: array[int] = field(default_factory=lambda: array("q"))
    lengths: array[int] = field(default_factory=lambda: array("q"))
    nbytes: array[int] = field(default_factory=lambda: array("q"))
    type_names: list[str] = field(default_factory=list)
    types: array[int] = field(default_factory=lambda: array("q"))
    waits: array[int] = field(default_factory=lambda: array("q"))
    holds: array[int] = field(default_factory=lambda: array("q"))
    serialises: array[int] = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        return len(self.nbytes)


@dataclass(slots=True)
class Series:
    """What processes measured of themselves, one row per process and heartbeat.

    ``workers`` index ``Recording.workers`` (-1: the scheduler), ``processes``: 0 scheduler, 1 agent, 2 executor.
    ``values`` are columns by name; NaN is what was not measured.
    """

    times: array[int] = field(default_factory=lambda: array("q"))
    workers: array[int] = field(default_factory=lambda: array("q"))
    processes: array[int] = field(default_factory=lambda: array("q"))
    values: dict[str, array[float]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.times)


@dataclass(slots=True)
class Demand:
    """What idle threads waited for: from a time on there is demand of a kind, or isn't.

    ``workers`` index ``Recording.workers`` (-1: the whole cluster). ``kinds``: 1 tasks wait for a worker with room,
    2 a worker was given tasks whose ends are not known yet, 3 a worker fetches values, 4 a worker has runs that no
    thread has begun. Not ``known``: the cluster did not tell, or records of it are gone.
    """

    known: bool = False
    times: array[int] = field(default_factory=lambda: array("q"))
    workers: array[int] = field(default_factory=lambda: array("q"))
    kinds: array[int] = field(default_factory=lambda: array("q"))
    values: array[int] = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        return len(self.times)
