"""What a session shows, in the words of the tests."""

from __future__ import annotations

import time
from collections import Counter

__all__ = ["counts_by", "margin", "paths", "share", "spin"]


def spin(seconds):
    """Use a time of this thread's CPU, whatever else the machine does.

    Reading the clock is a system call: mostly it computes, or it would be in the kernel half of the time.
    """
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for _ in range(300):
            pass


def margin(session):
    """How far a share may be off by chance: three and a half standard deviations at the worst.

    Where the machine is busy, ticks fall out, and the others weigh the more: then there is more chance in it.
    """
    ticks, points = session.meta["ticks"], sum(bucket.points for bucket in session.buckets)
    return 3.5 * (0.25 / (ticks * ticks / points)) ** 0.5


def paths(session):
    """Seconds by the names of the functions from the root to the leaf."""
    names: list[tuple[str, ...]] = []
    for parent, function in zip(session.nodes.parent, session.nodes.function, strict=True):
        name = session.functions[function].name.rpartition(".")[2]
        names.append((*(names[parent] if parent >= 0 else ()), name))
    seconds: Counter = Counter()
    for node, own in enumerate(session.own_seconds()):
        if own:
            seconds[names[node]] += own
    return seconds


def share(seconds, *names):
    """The share of the paths that have all of these functions in them."""
    return sum(value for path, value in seconds.items() if set(names) <= set(path)) / sum(seconds.values())


def counts_by(session, column):
    """Samples by thread, label or bucket."""
    counts: Counter = Counter()
    for number, count in zip(getattr(session.samples, column), session.samples.count, strict=True):
        counts[number] += count
    return counts
