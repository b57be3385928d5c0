"""From the answers to ``profile`` to the profiles of a recording: one per kind of process, all workers as one.

Contents: PROCESSES, add_profile.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import msgpack

from gnomon.profiler import Session
from gnomon.reports.recording import Recording

__all__ = ["PROCESSES", "add_profile"]

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
