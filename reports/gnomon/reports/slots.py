"""The runs of all workers laid into as many slots as these have threads, and the gaps in between.

A run takes the slot that its thread has; if that is still taken, the one that is free first, and begins when it is.
Columns are arrays of numpy.

Contents: Layout, lay_out.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from gnomon.reports.grouping import sums_by
from gnomon.reports.recording import Recording, Worker

__all__ = ["Layout", "lay_out"]


@dataclass(slots=True)
class Layout:
    """Where runs lie, and what is free.

    ``rows`` are runs, each worker's by their begin, and ``begins`` and ``ends`` what they take of a slot; runs of
    workers without threads are left out. Gaps end where a run begins, or (``gap_last``) where the worker left;
    ``gap_used`` says that a run was there before. By worker, in ticks: ``capacity`` of its slots, and what found no
    free slot (``alongside``).
    """

    rows: Any
    workers: Any
    begins: Any
    ends: Any
    gap_workers: Any
    gap_begins: Any
    gap_ends: Any
    gap_used: Any
    gap_last: Any
    capacity: Any
    alongside: Any


#: What is told of a gap: its worker, begin, end, whether a run was there before, and whether it is the last one.
_FIELDS = 5


def lay_out(recording: Recording) -> Layout:
    """Lay a recording's runs into slots."""
    import numpy

    runs, workers = recording.runs, recording.workers
    nthreads = numpy.asarray([worker.nthreads for worker in workers], "q")
    lows, highs = numpy.asarray([_presence(recording, worker) for worker in workers], "q").reshape(-1, 2).T
    owners, starts, stops = (numpy.asarray(column) for column in (runs.workers, runs.begins, runs.ends()))
    slots = numpy.append(nthreads, 0)[owners]  # -1 is no worker
    (alongside,) = sums_by(numpy.where(slots == 0, owners, -1), len(workers), [stops - starts])

    rows = numpy.flatnonzero(slots > 0)
    rows = rows[numpy.lexsort((starts[rows], owners[rows]))]
    owners = owners[rows]
    edges = numpy.flatnonzero(numpy.append(True, owners[1:] != owners[:-1])[: len(rows)])
    busy = owners[edges]
    places = zip(*(column[busy].tolist() for column in (nthreads, lows, highs)), strict=True)
    lists = starts[rows].tolist(), stops[rows].tolist(), numpy.asarray(runs.threads)[rows].tolist()
    begins, ends, gaps = array("q"), array("q"), array("q")
    for worker, place, (first, after) in zip(
        busy.tolist(), places, pairwise([*edges.tolist(), len(rows)]), strict=True
    ):
        alongside[worker] += _lay((begins, ends, gaps), worker, *(each[first:after] for each in lists), *place)
    gap_workers, gap_begins, gap_ends, gap_used, gap_last = numpy.asarray(gaps).reshape(-1, _FIELDS).T
    unused = numpy.where(highs > lows, nthreads, 0)
    unused[busy] = 0
    idle = numpy.repeat(numpy.arange(len(nthreads)), unused)  # a gap for each slot of a worker that has no run
    none = numpy.zeros(len(idle), bool)
    return Layout(
        rows, owners, numpy.asarray(begins), numpy.asarray(ends),
        numpy.append(gap_workers, idle), numpy.append(gap_begins, lows[idle]), numpy.append(gap_ends, highs[idle]),
        numpy.append(gap_used > 0, none), numpy.append(gap_last > 0, ~none),
        nthreads * (highs - lows), alongside,
    )  # fmt: skip


def _presence(recording: Recording, worker: Worker) -> tuple[int, int]:
    """From when to when the worker was there, inside the recording."""
    low = min(max(0, worker.joined), recording.duration)
    high = recording.duration if worker.left is None else min(worker.left, recording.duration)
    return low, max(low, high)


def _lay(
    columns: tuple[array[int], array[int], array[int]], worker: int,
    starts: list[int], stops: list[int], threads: list[int], nthreads: int, low: int, high: int,
) -> int:  # fmt: skip
    """Add a worker's runs and gaps to the columns; gives the ticks that found no slot.

    One run after the other, since each depends on those before.
    """
    begins, ends, gaps = columns
    until, used = [low] * nthreads, [0] * nthreads
    of_thread: dict[int, int] = {}
    alongside = 0
    for start, stop, thread in zip(starts, stops, threads, strict=True):
        slot = of_thread.get(thread, -1)
        if slot < 0 or until[slot] > start:
            slot = of_thread[thread] = until.index(min(until))
        free = until[slot]
        begin = start if start > free else free
        begin = begin if begin < high else high
        finish = stop if stop > begin else begin
        finish = finish if finish < high else high
        if begin != start:  # it waited for the slot or for the worker, or the worker had left
            alongside += max(0, min(begin, stop) - max(start, low))
        if begin > free:
            gaps.extend((worker, free, begin, used[slot], 0))
        begins.append(begin)
        ends.append(finish)
        if finish > free:
            until[slot] = finish
        used[slot] = 1
    for free, was in zip(until, used, strict=True):
        if high > free:
            gaps.extend((worker, free, high, was, 1))
    return alongside
