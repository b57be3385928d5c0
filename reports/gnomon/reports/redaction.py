"""A recording that can be given away: without calling code, keys, hosts, addresses, and texts that may tell of them.

Names of prefixes stay, as do all numbers: without them there is nothing to see.

Contents: redacted.
"""

from __future__ import annotations

from dataclasses import replace

from gnomon.reports.recording import Recording

__all__ = ["redacted"]

_LEFT_OUT = "(left out)"

#: What of the facts is about the software alone.
_KEPT = ("created", "versions", "build", "ring_length", "coarsened")


def redacted(recording: Recording) -> Recording:
    """A copy without private data. Workers are numbered, hosts too; errors keep their type and count."""
    hosts = {host: f"host-{number}" for number, host in enumerate(dict.fromkeys(w.host for w in recording.workers), 1)}
    workers = [
        worker._replace(
            name=f"worker-{number}",
            address="",
            host=hosts[worker.host],
            reason=_LEFT_OUT if worker.reason else "",
        )
        for number, worker in enumerate(recording.workers, 1)
    ]
    info = {name: value for name, value in recording.info.items() if name in _KEPT}
    info["redacted"] = True
    if "raised" in recording.info:
        info["raised"] = str(recording.info["raised"]).partition(":")[0]
    return replace(
        recording,
        workers=workers,
        runs=replace(recording.runs, keys=[""] * len(recording.runs)),
        errors=[
            group._replace(summary=group.type_name, key=_LEFT_OUT, text=group.type_name) for group in recording.errors
        ],
        logs=[line._replace(text=_LEFT_OUT) for line in recording.logs],
        stalls=[stall._replace(detail="", file="", line=0, stack=[], holder="") for stall in recording.stalls],
        profiles=[],
        info=info,
    )
