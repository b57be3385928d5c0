"""From the scheduler's answers to the profiles of a recording: one per kind of process, and deep ones of chosen tasks.

Contents: PROCESSES, MOST, add_profile, add_task_profiles.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgpack

from gnomon.profiler import Session
from gnomon.reports.recording import TICKS, Ledger, Recording, TaskProfile

__all__ = ["MOST", "PROCESSES", "add_profile", "add_task_profiles"]

#: Deep profiles that a recording holds, and the bytes of them that are asked for.
MOST = 50
_BYTES = 4 << 20

#: What a scheduler is asked for, and what it is called.
PROCESSES = {
    "scheduler": "The scheduler's process",
    "executor": "Tasks, on all workers",
    "agent": "The workers' agents",
}


def add_profile(recording: Recording, process: str, answers: Mapping[str, bytes] | None) -> None:
    """Add what came, if anything did. A session that can't be read counts as missing."""
    sessions = []
    for packed in (answers or {}).values():
        try:
            sessions.append(Session.from_plain(msgpack.unpackb(zlib.decompress(packed), strict_map_key=False)))
        except (zlib.error, ValueError, TypeError, KeyError, msgpack.exceptions.UnpackException):
            continue
    if sessions:
        session = Session.merge(sessions).to_plain()
        recording.profiles.append({"name": PROCESSES[process], "kind": process, "session": session})


def add_task_profiles(recording: Recording, rows: Sequence[Sequence[Any]], made: int) -> None:
    """Add the latest deep profiles of ``rows`` (number, key, prefix, bytes); the ledger says how many were ``made``.

    A task's time is told by its run, where that is here, for workers' clocks differ. One that can't be read counts as
    missing.
    """
    if made <= 0:
        return
    from gnomon.profiler import deep  # pyinstrument, only where there is something to read
    from gnomon.profiler.export.pyinstrument import from_pyinstrument

    latest: list[Sequence[Any]] = []
    size = 0
    for row in reversed(rows):
        size += len(row[3])
        if len(latest) == MOST or (latest and size > _BYTES):
            break
        latest.append(row)
    runs = recording.runs
    began = {key: runs.begins[at] + runs.decodes[at] for at, key in enumerate(runs.keys)}
    for _, key, prefix, packed in reversed(latest):
        try:
            session = from_pyinstrument(deep.load(packed))
        except ValueError:
            continue
        if key in began:
            session = _moved(session, recording.start + began[key] / TICKS)
        recording.task_profiles.append(TaskProfile(key, prefix, session.to_plain()))
    recording.ledgers["task profiles"] = Ledger(made, len(recording.task_profiles))


def _moved(session: Session, start: float) -> Session:
    """The session with another start."""
    by = start - session.meta["start"]
    buckets = tuple(each._replace(start=each.start + by, stop=each.stop + by) for each in session.buckets)
    meta = {**session.meta, "start": start, "stop": session.meta["stop"] + by}
    return replace(session, meta=meta, buckets=buckets)
