"""What idle threads wait for: kinds of demand, each of which is there or isn't, and the times at which that changed.

With the runs of a worker's threads these tell apart what an idle thread lacks: something to do, a scheduler that hands
it out, a value that is being fetched, runs that are handed over. A change costs one row; nothing is paid per task.

Contents: Demand; QUEUED, ASSIGNED, FETCHING, READY, NAMES.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["ASSIGNED", "FETCHING", "NAMES", "QUEUED", "READY", "Demand"]

#: At the scheduler: tasks that could run wait for a worker with room.
QUEUED = 1

#: At the scheduler, of one worker: it was given tasks whose ends are not known yet.
ASSIGNED = 2

#: On a worker: values that its runs need are being fetched, or wait to be.
FETCHING = 3

#: On a worker: runs could start that no thread has begun: the agent has them, or the executor more than it has threads.
READY = 4

#: What the kinds are called in records.
NAMES = {QUEUED: "queued", ASSIGNED: "assigned", FETCHING: "fetching", READY: "ready"}


class Demand:
    """Changes of one owner's demand, noted by ``set`` and taken by ``take``; ``now`` reads the clock."""

    __slots__ = ("_kinds", "_now", "_state", "_times", "_values")

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._state: dict[int, bool] = {}
        self._kinds: list[int] = []
        self._values: list[bool] = []
        self._times: list[float] = []

    def set(self, kind: int, value: bool) -> None:
        """Whether there is demand of a kind from now on."""
        if self._state.get(kind, False) != value:
            self._state[kind] = value
            self._kinds.append(kind)
            self._values.append(value)
            self._times.append(self._now())

    def take(self) -> tuple[tuple[int, ...], tuple[bool, ...], tuple[float, ...]] | None:
        """Kinds, values and times of the changes since this was last asked; None if there are none."""
        if not self._kinds:
            return None
        columns = tuple(self._kinds), tuple(self._values), tuple(self._times)
        self._kinds, self._values, self._times = [], [], []
        return columns
