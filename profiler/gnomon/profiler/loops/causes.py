"""Why an event loop stood still: the time of a stall, divided among its possible causes from what was measured.

Pure arithmetic on an ``Evidence``. The parts are exclusive and add up to the stall; the largest names the cause. They
are taken off one after the other, from what is known best to what is inferred: collections, waiting for a processor,
processor time of the loop's own thread (its code, or the kernel for it), and what is left was spent off the processor:
stopped with all of the process, in a blocking call, waiting for a page, or for the GIL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NamedTuple

__all__ = ["Cause", "Evidence", "Verdict", "decide", "describe_place"]

#: A fault takes less than this (seconds; the worst is a huge page to clear): more kernel time per fault is other work.
_FAULT = 4e-4


class Cause(StrEnum):
    """What kept the loop from turning."""

    PYTHON = "Python code"
    GC = "garbage collection"
    GIL = "waiting for the GIL"
    BLOCKING = "blocking call"
    PAGE_FAULTS = "page faults"
    STOPPED = "process stopped"
    NO_PROCESSOR = "no processor"


class Evidence(NamedTuple):
    """What was measured of the loop's thread between start and end of a stall; seconds and counts."""

    duration: float
    cpu: float = 0.0
    system_share: float = 0.0  # of the processor time, in the kernel
    queued: float = 0.0  # runnable, without a processor
    minor_faults: int = 0
    major_faults: int = 0
    voluntary: int = 0  # times that the thread went to sleep
    collecting: float = 0.0  # by any thread
    collecting_here: float = 0.0  # by the loop's own
    stopped: float = 0.0  # no thread of the process ran
    paged: float = 0.0  # the ticking thread itself waited for pages
    blocked: Mapping[str, float] = {}  # seen asleep, by the kernel's function
    wanting: float = 0.0  # seen waiting for the GIL
    held_elsewhere: float = 0.0  # another thread is known to have kept the GIL
    switch_interval: float = 0.005


class Verdict(NamedTuple):
    """The cause, what it consists of, and a word on where the thread slept."""

    cause: Cause
    parts: dict[Cause, float]
    detail: str


def decide(evidence: Evidence) -> Verdict:
    """Divide a stall among its causes. Deterministic; the parts add up to the duration."""
    parts = dict.fromkeys(Cause, 0.0)
    left = max(evidence.duration, 0.0)

    def take(cause: Cause, seconds: float) -> None:
        nonlocal left
        taken = min(max(seconds, 0.0), left)
        parts[cause] += taken
        left -= taken

    take(Cause.GC, evidence.collecting)
    # To ask for the GIL needs a processor, but with more of them it would have been refused as well.
    if evidence.voluntary * evidence.switch_interval >= 0.2 * evidence.held_elsewhere:
        take(Cause.GIL, evidence.held_elsewhere)
    own, queued = max(evidence.cpu - evidence.collecting_here, 0.0), max(evidence.queued, 0.0)
    if own + queued > left:  # they were measured over a little more than the stall
        own, queued = own * left / (own + queued), queued * left / (own + queued)
    take(Cause.NO_PROCESSOR, queued)
    in_kernel = own * evidence.system_share
    faults = evidence.minor_faults + evidence.major_faults
    if faults * _FAULT >= in_kernel:
        take(Cause.PAGE_FAULTS, in_kernel)
    elif evidence.system_share > 0.5:
        take(Cause.BLOCKING, in_kernel)
    take(Cause.PYTHON, own - parts[Cause.PAGE_FAULTS] - parts[Cause.BLOCKING])
    take(Cause.STOPPED, evidence.stopped)
    _divide_sleep(evidence, left, take)
    cause = max(parts, key=parts.__getitem__)
    return Verdict(cause, {each: seconds for each, seconds in parts.items() if seconds > 0}, _detail(evidence, cause))


def _divide_sleep(evidence: Evidence, left: float, take: Callable[[Cause, float], None]) -> None:
    """The time off the processor: by what samples saw, and where they saw nothing, by how often the thread slept."""
    if left <= 0:
        return
    asleep = sum(evidence.blocked.values())
    seen = asleep + evidence.wanting
    # Somebody who waits for the GIL wakes each switch interval to ask for it; a blocking call sleeps once.
    asks = evidence.voluntary * evidence.switch_interval >= 0.3 * left
    if evidence.major_faults and (evidence.paged > 0 or any(_is_paging(place) for place in evidence.blocked)):
        take(Cause.PAGE_FAULTS, left)
    elif seen >= 0.3 * left:
        take(Cause.BLOCKING, left * asleep / seen)
        take(Cause.GIL, left)
    elif asks:
        take(Cause.GIL, left)
    else:
        take(Cause.BLOCKING, left)


def describe_place(place: str) -> str:
    """What a thread does that sleeps in a function of the kernel, in words; the name itself where there are none."""
    for words, names in _PLACES:
        if any(name in place for name in names):
            return words
    return f"in {place}" if place.strip("?") else ""


_PLACES = (
    ("sleeps", ("nanosleep",)),
    ("waits for a lock", ("futex",)),
    ("waits for a process", ("do_wait", "wait4", "waitid")),
    ("waits for a pipe", ("pipe_", "anon_pipe")),
    ("waits for the disk", ("io_schedule", "folio_wait", "wait_on_page", "rq_qos_wait", "bit_wait", "jbd2", "ext4_")),
    ("waits for a socket", ("sk_wait", "skb", "tcp_", "inet_", "unix_", "wait_woken", "sock_")),
    ("polls descriptors", ("poll", "do_select", "ep_")),
    ("waits for a terminal", ("n_tty", "tty_")),
)


def _is_paging(place: str) -> bool:
    return describe_place(place) == "waits for the disk"


def _detail(evidence: Evidence, cause: Cause) -> str:
    if cause is Cause.BLOCKING:
        if evidence.blocked:
            return describe_place(max(evidence.blocked, key=evidence.blocked.__getitem__))
        return "works in the kernel" if evidence.system_share > 0.5 and evidence.cpu * 2 > evidence.duration else ""
    if cause is Cause.PAGE_FAULTS:
        return f"{evidence.minor_faults} minor, {evidence.major_faults} major"
    return ""
