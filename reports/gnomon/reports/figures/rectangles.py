"""What a task stream draws: one lane per worker thread, and one rectangle per task as long as these can be told apart.

Above ``limit`` rectangles in view, tasks shorter than two columns of a grid are merged: each cell of lane and column
becomes one bar, as high as its busy share and in the colour of the prefix that took most of it. So are all tasks where
a row stands for several threads. Nothing is left out; ``Rectangles`` says how many tasks stand alone and
how many were merged. The page does the same while one zooms.

Contents: MAX_LANES, Lane, lanes, lane_rows, lane_labels, Rectangles, rectangles.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gnomon.reports.palette import ERRED
from gnomon.reports.recording import TICKS, Recording

__all__ = ["MAX_LANES", "Lane", "Rectangles", "lane_labels", "lane_rows", "lanes", "rectangles"]

#: Greatest number of columns that tasks are merged into.
_COLUMNS = 2_000

#: Lanes for single threads at most.
MAX_LANES = 200


class Lane(NamedTuple):
    """A thread of a worker: the worker's row in the recording (-1: unknown), and the thread's number."""

    worker: int
    thread: int


@dataclass(slots=True)
class Rectangles:
    """Rectangles in columns: seconds from the start, heights in lanes (lane ``i`` spans ``i`` to ``i + 1``), slots.

    ``rows`` is the run that a rectangle stands for, -1 if it stands for several. ``alone`` and ``merged`` count tasks,
    ``cell`` is the width of a column in seconds (0 if nothing was merged).
    """

    left: array[float] = field(default_factory=lambda: array("d"))
    right: array[float] = field(default_factory=lambda: array("d"))
    bottom: array[float] = field(default_factory=lambda: array("f"))
    top: array[float] = field(default_factory=lambda: array("f"))
    slot: array[int] = field(default_factory=lambda: array("B"))
    rows: array[int] = field(default_factory=lambda: array("i"))
    alone: int = 0
    merged: int = 0
    cell: float = 0.0

    def add(self, left: float, right: float, bottom: float, top: float, slot: int, row: int) -> None:
        """Append one rectangle."""
        self.left.append(left)
        self.right.append(right)
        self.bottom.append(bottom)
        self.top.append(top)
        self.slot.append(slot)
        self.rows.append(row)


def lanes(recording: Recording) -> list[Lane]:
    """The lanes in order of workers and threads: as many as a worker said it has, and every one that ran a task."""
    threads: list[set[int]] = [set() for _ in recording.workers]
    unknown: set[int] = set()
    for of_worker, thread in set(zip(recording.runs.workers, recording.runs.threads, strict=True)):
        (threads[of_worker] if of_worker >= 0 else unknown).add(thread)
    result = []
    for index, worker in enumerate(recording.workers):
        idle = iter(range(worker.nthreads))
        while len(threads[index]) < worker.nthreads:
            threads[index].add(next(idle))
        result += [Lane(index, thread) for thread in sorted(threads[index])]
    return result + [Lane(-1, thread) for thread in sorted(unknown)]


def lane_rows(recording: Recording) -> tuple[dict[Lane, int], list[int], list[str]]:
    """Which row each lane is drawn in, how many lanes share a row, and what the rows are called.

    Above ``MAX_LANES`` threads a row is a worker, above as many workers a host.
    """
    threads = lanes(recording)
    workers = recording.workers
    names: list[int | str | Lane]
    if len(threads) <= MAX_LANES:
        names = list(threads)
        labels = [f"{_label(recording, lane.worker)} · {lane.thread}" for lane in threads]
    elif len(workers) <= MAX_LANES:
        names = [lane.worker for lane in threads]
        labels = [_label(recording, lane.worker) for lane in threads]
    else:
        names = [workers[lane.worker].host if lane.worker >= 0 else -1 for lane in threads]
        labels = [workers[lane.worker].host or "unknown" if lane.worker >= 0 else "unknown" for lane in threads]
    rows = {name: row for row, name in enumerate(dict.fromkeys(names))}
    widths = [0] * len(rows)
    for name in names:
        widths[rows[name]] += 1
    of_row = dict(zip(names, labels, strict=True))
    return (
        {lane: rows[name] for lane, name in zip(threads, names, strict=True)},
        widths,
        [of_row[name] for name in rows],
    )


def lane_labels(recording: Recording) -> list[str]:
    """What the rows are called."""
    return lane_rows(recording)[2]


def _label(recording: Recording, worker: int) -> str:
    return recording.workers[worker].label if worker >= 0 else "unknown"


def rectangles(
    recording: Recording, slots: Sequence[int], *, begin: int = 0, end: int | None = None, limit: int = 10_000
) -> Rectangles:
    """The rectangles of the runs between two ticks. ``slots`` has the colour of each prefix of the recording."""
    runs = recording.runs
    end = recording.duration if end is None else end
    place, widths, _ = lane_rows(recording)
    visible = array("q")
    stops = array("q")
    for row, start in enumerate(runs.begins):
        stop = start + runs.decodes[row] + runs.computes[row] + runs.encodes[row]
        stops.append(stop)
        if stop >= begin and start <= end:
            visible.append(row)
    result = Rectangles()
    merged: list[int] = []
    cell = max(1, (end - begin) // max(1, min(_COLUMNS, 4 * limit // (5 * max(1, len(widths))))))
    single = list(visible)
    if len(widths) < len(place):
        single, merged = [], list(visible)
    elif len(visible) > limit:
        wide = [row for row in visible if stops[row] - runs.begins[row] >= 2 * cell]
        single = heapq.nlargest(limit // 5, wide, key=lambda row: stops[row] - runs.begins[row])
        alone = set(single)
        merged = [row for row in visible if row not in alone]
    for row in single:
        lane = place[Lane(runs.workers[row], runs.threads[row])]
        slot = slots[runs.prefixes[row]] if runs.ok[row] else ERRED
        result.add(runs.begins[row] / TICKS, stops[row] / TICKS, lane + 0.08, lane + 0.92, slot, row)
    result.alone, result.merged = len(single), len(merged)
    if merged:
        result.cell = cell / TICKS
        _merge(recording, merged, slots, (place, widths), result, begin=begin, end=end, cell=cell)
    return result


def _merge(
    recording: Recording,
    rows: Sequence[int],
    slots: Sequence[int],
    drawn_in: tuple[dict[Lane, int], list[int]],
    result: Rectangles,
    *,
    begin: int,
    end: int,
    cell: int,
) -> None:
    """Add one bar for each cell of lane and column that the tasks ``rows`` touch."""
    runs, (place, widths) = recording.runs, drawn_in
    busy: dict[tuple[int, int], dict[int, int]] = {}
    for row in rows:
        lane = place[Lane(runs.workers[row], runs.threads[row])]
        slot = slots[runs.prefixes[row]] if runs.ok[row] else ERRED
        start = max(runs.begins[row], begin)
        stop = min(runs.begins[row] + runs.decodes[row] + runs.computes[row] + runs.encodes[row], end)
        for column in range((start - begin) // cell, (stop - begin) // cell + 1):
            low = begin + column * cell
            ticks = min(stop, low + cell) - max(start, low)
            of_slot = busy.setdefault((lane, column), {})
            of_slot[slot] = of_slot.get(slot, 0) + max(0, ticks)
    for (lane, column), of_slot in busy.items():
        slot = max(of_slot, key=lambda each: (of_slot[each], -each))
        height = 0.84 * min(1.0, max(0.04, sum(of_slot.values()) / cell / widths[lane]))
        left = (begin + column * cell) / TICKS
        result.add(left, left + cell / TICKS, lane + 0.92 - height, lane + 0.92, slot, -1)  # the axis points down
