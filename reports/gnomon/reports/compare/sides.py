"""One side of a comparison: what each of its recordings boils down to.

A recording is summarised once and can then be forgotten, so that ten large ones fit in memory.

Contents: PrefixSample, Moved, Sample, sample, read.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from operator import add
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from gnomon.profiler.sessions.session import Session
from gnomon.reports.account import PARTS, account
from gnomon.reports.compare.families import Amount, amounts_of
from gnomon.reports.compare.noise import Level, levels_of, quantile
from gnomon.reports.compare.profiles import profiles_of
from gnomon.reports.compare.stalls import Stalled, stalls_of
from gnomon.reports.recording import Recording, RecordingError, load

__all__ = ["Moved", "PrefixSample", "Sample", "read", "sample"]

#: Sections of a recording's ``info`` that say how it was made.
_SECTIONS = ("versions", "machine", "settings")


class PrefixSample(NamedTuple):
    """One prefix in one recording. Counts, ``total`` and ``mean`` are complete; the rest is of runs with details.

    ``total`` is computing, decoding and encoding; ``mean``, ``median`` and ``p99`` are of computing. Ticks.
    """

    tasks: int
    erred: int
    nbytes: int
    total: int
    mean: float
    median: int | None
    p99: int | None
    levels: dict[str, Level]


class Moved(NamedTuple):
    """What went from one worker to another by one transport: fetches, bytes, ticks; and of these, where they went.

    ``wait`` is before the fetch began, the others inside its ticks; all 0 where they were not measured.
    """

    fetches: float
    nbytes: float
    ticks: float
    wait: float = 0
    hold: float = 0
    serialise: float = 0


@dataclass(slots=True)
class Sample:
    """One recording of a side. ``parts`` are the account's, by name; ``facts`` how it was made.

    ``families`` are spans, regions and fetches (see there); ``stalls`` None if nobody watched for them.
    ``missed`` are runs without details, ``unread`` profiles that can't be read. Times in ticks.
    """

    name: str
    duration: int
    capacity: int
    workers: int
    threads: int
    hosts: int
    tasks: int
    erred: int
    alongside: int
    missed: int
    parts: dict[str, int]
    prefixes: dict[str, PrefixSample]
    moved: dict[tuple[str, str, str], Moved]
    families: dict[str, dict[str, Amount]] = field(default_factory=dict)
    stalls: dict[tuple[str, str, str], Stalled] | None = None
    worker_busy: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    profiles: dict[str, Session] = field(default_factory=dict)
    unread: int = 0
    raised: str = ""
    code: str = ""

    @property
    def busy(self) -> int:
        """Ticks of worker threads in tasks."""
        return sum(prefix.total for prefix in self.prefixes.values())


def read(path: str | PathLike[str]) -> Sample:
    """Summarise the recording in a file. Raises OSError, RecordingError."""
    recording = load(path)
    if not recording.duration:
        raise RecordingError("the recording is of no time at all")
    return sample(recording, Path(path).name)


def sample(recording: Recording, name: str) -> Sample:
    """Summarise a recording; ``name`` is what to call it."""
    result = account(recording)
    profiles, unread = profiles_of(recording)
    code = recording.info.get("calling_code") or {}
    ledger = recording.ledgers.get("runs")
    return Sample(
        name=name,
        duration=recording.duration,
        capacity=result.capacity,
        workers=len(result.workers),
        threads=result.threads,
        hosts=len({worker.host for worker in recording.workers}),
        tasks=result.tasks,
        erred=result.erred,
        alongside=result.alongside,
        missed=ledger.missed if ledger else 0,
        parts=dict(zip(PARTS, result.parts.values(), strict=True)),
        prefixes=_prefixes(recording),
        moved=_moved(recording),
        families=amounts_of(recording),
        stalls=stalls_of(recording) if "stalls" in recording.ledgers else None,
        worker_busy={
            each.worker.label: (each.worker.nthreads, each.capacity, each.parts.busy) for each in result.workers
        },
        facts=_facts(recording),
        profiles=profiles,
        unread=unread,
        raised=str(recording.info.get("raised", "")),
        code=str(code.get("text", "")) if isinstance(code, dict) else "",
    )


def _prefixes(recording: Recording) -> dict[str, PrefixSample]:
    runs = recording.runs
    rows: list[array[int]] = [array("q") for _ in runs.prefix_names]
    for row, prefix in enumerate(runs.prefixes):
        if runs.ok[row]:  # a run that raised says nothing about how long the work takes
            rows[prefix].append(row)
    result = {}
    rows_of = dict(zip(runs.prefix_names, rows, strict=True))
    for totals in recording.prefixes:
        name = str(totals.name)
        in_time = sorted(rows_of.get(name, ()), key=runs.begins.__getitem__)
        computes = [runs.computes[row] for row in in_time]
        processor = [runs.cpus[row] for row in in_time] if len(runs.cpus) else []
        ordered = sorted(computes)
        result[name] = PrefixSample(
            tasks=totals.tasks,
            erred=totals.erred,
            nbytes=totals.nbytes,
            total=totals.decode + totals.compute + totals.encode,
            mean=totals.compute / totals.tasks if totals.tasks else 0.0,
            median=quantile(ordered, 0.5) if ordered else None,
            p99=quantile(ordered, 0.99) if ordered else None,
            levels=levels_of(computes, processor if min(processor, default=-1) >= 0 else ()) if computes else {},
        )
    return result


def _moved(recording: Recording) -> dict[tuple[str, str, str], Moved]:
    by_id = {worker.worker_id: worker.label for worker in recording.workers}
    result: dict[tuple[str, str, str], Moved] = {}
    for pair in recording.pairs:
        unknown = "all further pairs" if pair.from_id == -2 else "unknown"
        key = (by_id.get(pair.from_id, unknown), by_id.get(pair.to_id, unknown), pair.transport)
        before = result.get(key, Moved(0, 0, 0))
        more = (pair.fetches, pair.nbytes, pair.ticks, *(max(0, part) for part in pair[6:9]))
        result[key] = Moved(*map(add, before, more))
    return result


def _facts(recording: Recording) -> dict[str, str]:
    """How the recording was made, flat: ``version of numpy`` and so on."""
    facts = {}
    for section in _SECTIONS:
        values = recording.info.get(section)
        if isinstance(values, dict):
            facts.update({f"{section.removesuffix('s')} {name}": str(value) for name, value in values.items()})
    if "build" in recording.info:
        facts["build"] = str(recording.info["build"])
    return facts
