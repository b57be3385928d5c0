"""The runs of a worker laid into as many slots as it has threads, and the gaps in between.

A run takes the slot that its thread has; if that is still taken, the one that is free first, and begins when it is.
Columns are arrays of numpy.

Contents: Layout, lay_out.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gnomon.reports.records import Runs

__all__ = ["Layout", "lay_out"]


@dataclass(slots=True)
class Layout:
    """Where the runs of one worker lie, and what is free.

    ``rows`` are runs by their begin, and ``begins`` and ``ends`` what they take of a slot; runs that no slot could take
    are left out. Gaps end where a run begins, or (``gap_last``) where the worker left; ``gap_used`` says that a run was
    there before. ``alongside`` is what found no free slot, in ticks.
    """

    rows: Any
    begins: Any
    ends: Any
    gap_begins: Any
    gap_ends: Any
    gap_used: Any
    gap_last: Any
    alongside: int


def lay_out(runs: Runs, rows: Sequence[int], nthreads: int, low: int, high: int) -> Layout:
    """Lay the runs ``rows`` into the slots of a worker that was there from ``low`` to ``high``."""
    import numpy

    mine = numpy.asarray(rows, "q")
    starts = numpy.asarray(runs.begins)[mine]
    order = numpy.argsort(starts, kind="stable")
    mine, starts = mine[order], starts[order]
    stops = starts + sum(numpy.asarray(column)[mine] for column in (runs.decodes, runs.computes, runs.encodes))
    if not nthreads:
        none, never = numpy.zeros(0, "q"), numpy.zeros(0, bool)
        return Layout(none, none, none, none, none, never, never, int((stops - starts).sum()))
    begins, ends, gaps, alongside = _laid(
        starts.tolist(), stops.tolist(), numpy.asarray(runs.threads)[mine].tolist(), nthreads, low, high
    )
    gap_begins, gap_ends, gap_used, gap_last = (numpy.asarray(column) for column in gaps)
    return Layout(
        mine, numpy.asarray(begins), numpy.asarray(ends), gap_begins, gap_ends, gap_used > 0, gap_last > 0, alongside
    )


def _laid(
    starts: list[int], stops: list[int], threads: list[int], nthreads: int, low: int, high: int
) -> tuple[array[int], array[int], tuple[array[int], ...], int]:
    """What the runs take, the gaps, and what found no slot. One after the other, since each depends on those before."""
    begins, ends = array("q"), array("q")
    gap_begins, gap_ends, gap_used, gap_last = gaps = array("q"), array("q"), array("q"), array("q")
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
            gap_begins.append(free)
            gap_ends.append(begin)
            gap_used.append(used[slot])
            gap_last.append(0)
        begins.append(begin)
        ends.append(finish)
        if finish > free:
            until[slot] = finish
        used[slot] = 1
    for free, was in zip(until, used, strict=True):
        if high > free:
            gap_begins.append(free)
            gap_ends.append(high)
            gap_used.append(was)
            gap_last.append(1)
    return begins, ends, gaps, alongside
