"""speedscope's JSON, one sampled profile per thread.

Contents: to_speedscope.
"""

from __future__ import annotations

import json
from typing import Any

from gnomon.profiler.export.ordered import by_thread
from gnomon.profiler.export.words import plain
from gnomon.profiler.sessions.session import MARKER, REGION, Function, Session

__all__ = ["to_speedscope"]

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def to_speedscope(session: Session, *, name: str = "") -> str:
    """The session as a file for speedscope, in seconds; inside a bucket the order of samples is a guess."""
    stacks: list[list[int]] = []
    for parent, function in zip(session.nodes.parent, session.nodes.function, strict=True):
        stacks.append([*stacks[parent], function] if parent >= 0 else [function])
    profiles = []
    for thread, samples in by_thread(session).items():
        weights = [sample.seconds for sample in samples]
        row = session.threads[thread]
        profiles.append(
            {
                "type": "sampled",
                "name": plain(f"{row.name} of {row.process}" if row.process else row.name),
                "unit": "seconds",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": [stacks[sample.node] for sample in samples],
                "weights": weights,
            }
        )
    whole = {
        "$schema": _SCHEMA,
        "exporter": "gnomon.profiler",
        "name": name or plain(str(session.meta.get("process") or "profile")),
        "activeProfileIndex": 0,
        "shared": {"frames": [_frame(function) for function in session.functions]},
        "profiles": profiles,
    }
    return json.dumps(whole, separators=(",", ":"))


def _frame(function: Function) -> dict[str, Any]:
    frame: dict[str, Any] = {"name": plain(function.name)}
    if function.file and function.file not in (REGION, MARKER):
        frame["file"] = plain(function.file)
        if function.first_line > 0:
            frame["line"] = function.first_line
    return frame
