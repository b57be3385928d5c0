"""Speedscope's file format: each worker thread is an evented profile whose frames are tasks, decoding and encoding.

Frames of one profile must nest. Where two runs overlap on one thread's number (an executor that was replaced numbers
its threads anew), the later one begins when the earlier one ends; one that has nothing left is only counted.

Contents: write_speedscope, speedscope.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gnomon.reports.export.lanes import Lane, lanes
from gnomon.reports.recording import TICKS, Recording

__all__ = ["speedscope", "write_speedscope"]

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write_speedscope(recording: Recording, path: Path) -> list[Path]:
    """Write the profiles as JSON and return the path. Raises OSError."""
    path.write_text(json.dumps(speedscope(recording), separators=(",", ":")), "utf-8")
    return [path]


def speedscope(recording: Recording) -> dict[str, Any]:
    """The file's content."""
    names = [*recording.runs.prefix_names, "(decode)", "(encode)"]
    hidden = 0
    profiles = []
    for lane in lanes(recording):
        profile, left_out = _profile(recording, lane, len(names))
        profiles.append(profile)
        hidden += left_out
    title = "gnomon recording"
    if hidden:
        title += f" ({hidden} runs that lay wholly behind others are left out)"
    return {
        "$schema": _SCHEMA,
        "name": title,
        "exporter": "gnomon",
        "activeProfileIndex": 0 if profiles else None,
        "shared": {"frames": [{"name": name} for name in names]},
        "profiles": profiles,
    }


def _profile(recording: Recording, lane: Lane, frames: int) -> tuple[dict[str, Any], int]:
    """The profile of a lane, and how many of its runs are hidden behind others."""
    runs = recording.runs
    events: list[dict[str, Any]] = []
    first = min(0, runs.begins[lane.rows[0]])
    last, hidden = first, 0

    def span(frame: int, begin: int, end: int) -> None:
        if end > begin:
            events.append({"type": "O", "frame": frame, "at": begin / TICKS})
            events.append({"type": "C", "frame": frame, "at": end / TICKS})

    for row in lane.rows:
        begin = runs.begins[row]
        started = begin + runs.decodes[row]
        ended = started + runs.computes[row]
        end = ended + runs.encodes[row]
        if end <= last:
            hidden += end > begin
            continue
        begin, started, ended = max(begin, last), max(started, last), max(ended, last)
        frame = runs.prefixes[row]
        events.append({"type": "O", "frame": frame, "at": begin / TICKS})
        span(frames - 2, begin, started)
        span(frames - 1, ended, end)
        events.append({"type": "C", "frame": frame, "at": end / TICKS})
        last = end
    profile = {
        "type": "evented",
        "name": lane.label,
        "unit": "seconds",
        "startValue": first / TICKS,
        "endValue": max(last, recording.duration) / TICKS,
        "events": events,
    }
    return profile, hidden
