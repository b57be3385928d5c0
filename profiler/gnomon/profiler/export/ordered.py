"""The samples of a session in the order in which they most likely came, for formats that show time from left to right.

Contents: Sample, by_thread.
"""

from __future__ import annotations

from typing import NamedTuple

from gnomon.profiler.sessions.session import Session

__all__ = ["Sample", "by_thread"]


class Sample(NamedTuple):
    """Seconds that samples of one node in one bucket stand for."""

    node: int
    seconds: float


def by_thread(session: Session) -> dict[int, list[Sample]]:
    """For each thread its samples, bucket after bucket; inside a bucket what shares callers lies side by side."""
    rank = _depth_first(session)
    ticks = [bucket.tick_seconds for bucket in session.buckets]
    times = [bucket.start for bucket in session.buckets]
    rows = sorted(
        (thread, times[bucket], rank[node], bucket, node, count)
        for bucket, thread, _, node, count in zip(*session.samples, strict=True)
    )
    result: dict[int, list[Sample]] = {}
    for thread, _, _, bucket, node, count in rows:
        result.setdefault(thread, []).append(Sample(node, count * ticks[bucket]))
    return result


def _depth_first(session: Session) -> list[int]:
    """The place of each node in a walk from the roots down."""
    children: list[list[int]] = [[] for _ in range(len(session.nodes.parent) + 1)]
    for node, parent in enumerate(session.nodes.parent):
        children[parent].append(node)
    rank = [0] * len(session.nodes.parent)
    waiting, place = list(reversed(children[-1])), 0
    while waiting:
        node = waiting.pop()
        rank[node], place = place, place + 1
        waiting.extend(reversed(children[node]))
    return rank
