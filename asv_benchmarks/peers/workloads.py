"""The workloads, written once against ``Feed``: what they measure is the system, so the tasks do next to nothing.

Where a system takes futures as arguments, dependent tasks are submitted at once. Where it doesn't, the client waits for
a level and passes the values on, which is what its users do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["WORKLOADS", "Feed", "Sizes", "Workload"]


class Feed(Protocol):
    """What the workloads ask of a system."""

    takes_futures: bool

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Start one task; give its future."""

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Start one task per item, by the way that the system has for many; give their futures."""

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """Wait for futures; give their values."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of each workload one round runs."""

    tasks: int = 10_000
    leaves: int = 2048
    partitions: int = 64
    part_bytes: int = 2000
    trips: int = 500


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload: ``run`` raises AssertionError where the result is wrong, and returns the number of its tasks."""

    name: str
    title: str
    run: Callable[[Feed, Sizes], int]


def increment(number: int) -> int:
    """The least a task can do."""
    return number + 1


def add(left: int, right: int = 0) -> int:
    """A step of the tree; the last of an odd level has no other."""
    return left + right


def split(partition: int, parts: int, size: int) -> list[bytes]:
    """A partition's parts, one for each partition to come."""
    return [bytes([(partition + part) % 256]) * size for part in range(parts)]


def pick(parts: list[bytes], number: int) -> bytes:
    """One part of a split partition."""
    return parts[number]


def total_bytes(*parts: bytes) -> int:
    """A partition of the new division, as far as we need it."""
    return sum(map(len, parts))


def run_map(feed: Feed, sizes: Sizes) -> int:
    """Many equal tasks in one call."""
    values = feed.gather(feed.map(increment, range(sizes.tasks)))
    assert values[-1] == sizes.tasks
    return sizes.tasks


def run_burst(feed: Feed, sizes: Sizes) -> int:
    """Many single submits in a row."""
    values = feed.gather([feed.submit(increment, number) for number in range(sizes.tasks)])
    assert values[-1] == sizes.tasks
    return sizes.tasks


def run_tree(feed: Feed, sizes: Sizes) -> int:
    """Pairwise sums until one is left."""
    level: list[Any] = feed.map(increment, range(sizes.leaves))
    tasks = len(level)
    while len(level) > 1:
        if not feed.takes_futures:
            level = feed.gather(level)
        level = [feed.submit(add, *level[at : at + 2]) for at in range(0, len(level), 2)]
        tasks += len(level)
    assert feed.gather(level) == [sizes.leaves * (sizes.leaves + 1) // 2]
    return tasks


def run_shuffle(feed: Feed, sizes: Sizes) -> int:
    """Every new partition needs a part of every old one; each part is a task, as in the task shuffle of data frames."""
    count = sizes.partitions
    whole = [feed.submit(split, number, count, sizes.part_bytes) for number in range(count)]
    if not feed.takes_futures:
        whole = feed.gather(whole)
    parts = [[feed.submit(pick, one, number) for one in whole] for number in range(count)]
    if not feed.takes_futures:
        parts = [feed.gather(row) for row in parts]
    new = [feed.submit(total_bytes, *row) for row in parts]
    assert sum(feed.gather(new)) == count * count * sizes.part_bytes
    return count * (count + 2)


def run_trips(feed: Feed, sizes: Sizes) -> int:
    """One task at a time: submit, wait, next."""
    for number in range(sizes.trips):
        assert feed.gather([feed.submit(increment, number)]) == [number + 1]
    return sizes.trips


WORKLOADS = (
    Workload("map", "map of tiny tasks", run_map),
    Workload("burst", "single submits in a row", run_burst),
    Workload("tree", "tree of pairwise sums", run_tree),
    Workload("shuffle", "task shuffle", run_shuffle),
    Workload("trip", "round trip of a lone task", run_trips),
)
