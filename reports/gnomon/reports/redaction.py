"""A recording that can be given away: without calling code, keys, hosts, addresses, and texts that may tell of them.

Names of prefixes stay, as do all numbers: without them there is nothing to see.

Contents: redacted.
"""

from __future__ import annotations

from dataclasses import replace

from gnomon.reports.recording import Recording
from gnomon.reports.units import count_text

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
    info["redacted"] = _said(recording)
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
        task_profiles=[],
        ledgers={name: ledger for name, ledger in recording.ledgers.items() if name != "task profiles"},
        info=info,
    )


def _said(recording: Recording) -> str:
    """What is left out, in numbers."""
    counts = (
        (sum(1 for key in recording.runs.keys if key), "keys"),
        (len(recording.profiles), "profiles"),
        (len(recording.task_profiles), "deep profiles"),
        (len(recording.errors), "texts of errors"),
        (len(recording.logs), "texts of log lines"),
        (len(recording.stalls), "stacks of stalls"),
    )
    gone = [*(f"{count_text(count)} {what}" for count, what in counts if count), "calling code, settings and machine"]
    return f"Left out on request: {', '.join(gone)}. Workers and hosts are numbered."
