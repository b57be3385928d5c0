"""The cluster's demand over time, as changes with checkpoints: what held at any time is known without a replay of all.

Contents: DemandStates.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gnomon.reports.records import Demand

__all__ = ["DemandStates"]

_State = set[tuple[int, int]]


class _Batch(NamedTuple):
    """Changes that came together, in the order of their time for each worker; ``before``: what held before them."""

    before: frozenset[tuple[int, int]]
    low: int
    high: int
    rows: list[tuple[int, int, int, int]]


class DemandStates:
    """Changes of demand: (time, worker id, kind, value); worker 0 is the whole cluster.

    ``known_from``: from when on nothing is missing; None where nobody ever told of demand. ``since``: from when on
    there has been what there is now, by worker and kind.
    """

    def __init__(self) -> None:
        self.known_from: int | None = None
        self.since: dict[tuple[int, int], int] = {}
        self._from = 0
        self._now: _State = set()
        self._batches: deque[_Batch] = deque()
        self._rows = 0

    def restart(self, state: Iterable[Sequence[int]], when: int) -> None:
        """Changes are missing: this is what holds at a time, and what was before it is not known."""
        self._now = {(worker, kind) for worker, kind in state}
        self.since = dict.fromkeys(self._now, when)
        self._batches.clear()
        self._rows = 0
        self._from = when
        self.known_from = when if self._now or self.known_from is not None else None

    def append(self, times: Sequence[int], workers: Iterable[int], kinds: Iterable[int], values: Iterable[int]) -> None:
        """Take changes, in the order they came."""
        if not times:
            return
        if self.known_from is None:
            self.known_from = self._from
        rows = list(zip(times, workers, kinds, values, strict=True))
        self._batches.append(_Batch(frozenset(self._now), min(times), max(times), rows))
        self._rows += len(rows)
        _apply(self._now, rows)
        for time, worker, kind, value in rows:
            if value:
                self.since.setdefault((worker, kind), time)
            else:
                self.since.pop((worker, kind), None)

    def trim(self, limit: int) -> None:
        """Forget the oldest changes where there are more than ``limit``."""
        while self._rows > limit and len(self._batches) > 1:
            self._rows -= len(self._batches.popleft().rows)
            self.known_from = self._batches[0].low

    def window(self, low: int, high: int, ids: Mapping[int, int]) -> Demand:
        """Demand within a window, as a recording has it: what held at its start, and the changes in it.

        ``ids`` maps the ids of workers to their rows; others are left out.
        """
        state = set(self._now)
        changes: list[tuple[int, int, int, int]] = []
        for at, batch in enumerate(self._batches):
            if batch.high > low:
                state = set(batch.before)
                for later in list(self._batches)[at:]:
                    if later.low < high:
                        _apply(state, [row for row in later.rows if row[0] <= low])
                        changes += [row for row in later.rows if low < row[0] < high]
                break
        rows = {0: -1, **ids}
        demand = Demand(self.known_from is not None and self.known_from <= low)
        before = [(0, worker, kind, 1) for worker, kind in sorted(state)]
        for time, worker, kind, value in before + [(time - low, *rest) for time, *rest in changes]:
            if worker in rows:
                demand.times.append(time)
                demand.workers.append(rows[worker])
                demand.kinds.append(kind)
                demand.values.append(value)
        return demand


def _apply(state: _State, rows: Iterable[tuple[int, int, int, int]]) -> None:
    for _, worker, kind, value in rows:
        if value:
            state.add((worker, kind))
        else:
            state.discard((worker, kind))
