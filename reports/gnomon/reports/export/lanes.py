"""Runs by lane: the order of time on each worker thread.

Contents: Lane, lanes.
"""

from __future__ import annotations

from typing import NamedTuple

from gnomon.reports.recording import Recording

__all__ = ["Lane", "lanes"]


class Lane(NamedTuple):
    """A thread of a worker with its runs by beginning. ``worker`` is the row in the recording, -1 if unknown."""

    worker: int
    thread: int
    rows: list[int]
    label: str


def lanes(recording: Recording) -> list[Lane]:
    """The lanes that ran something, by worker and thread; unknown workers come last."""
    runs = recording.runs
    rows: dict[tuple[int, int], list[int]] = {}
    for row, place in enumerate(zip(runs.workers, runs.threads, strict=True)):
        rows.setdefault(place, []).append(row)
    result = []
    for worker, thread in sorted(rows, key=lambda place: (place[0] < 0, place)):
        name = recording.workers[worker].label if worker >= 0 else "unknown worker"
        ordered = sorted(rows[worker, thread], key=runs.begins.__getitem__)
        result.append(Lane(worker, thread, ordered, f"{name}, thread {thread}"))
    return result
