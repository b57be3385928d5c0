"""What the cluster's processes report of themselves: measurements over time, stalls of loops, demand, user regions.

Numbered rings beside those of runs and transfers; see ``telemetry`` for how they are read.

Contents: Observations, RINGS.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from gnomon.runtime.instruments.demand import NAMES
from gnomon.runtime.instruments.series import AGENT, COLUMNS, EXECUTOR, SCHEDULER
from gnomon.runtime.messages import DemandChanged, RegionsTimed
from gnomon.runtime.scheduler.pace import Pace, Page
from gnomon.runtime.scheduler.ring import Column, Ring, table

__all__ = ["RINGS", "Observations"]

#: The rings, in the order of their numbers.
RINGS = ("series", "stalls", "demand", "regions")

_WIDTH = len(COLUMNS)
_SERIES = (Column("d"), Column("q"), Column("b"), Column("d", _WIDTH))
_STALLS = (Column("d"), Column("q"), Column("b"), Column("d"), Column("O"))
_DEMAND = (Column("d"), Column("q"), Column("b"), Column("b"))
_REGIONS = (Column("d"), Column("q"), Column("O"), Column("q"), Column("d", 2))

#: Of a stall, what is kept, and characters of each.
_STALL_TEXTS = ("cause", "detail", "function", "file", "holder")
_TEXT = 500

#: Names of regions, and frames of a stack, that a peer may bring.
_NAME = 200
_MOST = 1 << 50
_FRAMES = 100

_PROCESSES = {"scheduler": SCHEDULER, "agent": AGENT, "executor": EXECUTOR}


class Observations:
    """The rings. ``length``: rows of each; ``groups``: totals of regions kept by prefix and name."""

    def __init__(self, length: int, groups: int) -> None:
        self._series = Ring(_SERIES, length)
        self._stalls = Ring(_STALLS, length)
        self._demand = Ring(_DEMAND, 4 * length)
        self._regions = Ring(_REGIONS, length)
        self._rings = (self._series, self._stalls, self._demand, self._regions)
        self._state: dict[tuple[int, int], bool] = {}
        self._totals: dict[tuple[str, str], list[Any]] = {}
        self._groups = groups

    def append_report(self, worker_id: int, report: Mapping[str, Any], offset: float = 0.0) -> None:
        """Record what a process measured of itself and of others (see ``instruments.report``).

        ``worker_id`` is 0 for the scheduler; ``offset`` is added to all times. Raises ValueError for what is no report.
        """
        if not isinstance(report, Mapping):
            raise ValueError(f"a {type(report).__name__} is no report")
        for process, (time, values) in report.get("series", {}).items():
            row = array("d", values)
            if len(row) != _WIDTH:
                raise ValueError(f"a row of measurements has {len(row)} values, not {_WIDTH}")
            self._series.extend(([float(time) + offset], [worker_id], [_PROCESSES[process]], row), 1)
        for process, stalls in report.get("stalls", {}).items():
            for stall in stalls:
                told: dict[str, Any] = {name: str(stall[name])[:_TEXT] for name in _STALL_TEXTS}
                told["line"] = int(stall["line"])
                told["stack"] = [[str(part)[:_TEXT] for part in frame] for frame in stall["stack"][-_FRAMES:]]
                start, duration = float(stall["start"]) + offset, float(stall["duration"])
                self._stalls.extend(([start], [worker_id], [_PROCESSES[process]], [duration], [told]), 1)

    def append_demand(self, worker_id: int, changes: DemandChanged, offset: float = 0.0) -> None:
        """Record that what idle threads wait for has changed; ``worker_id`` is 0 for the whole cluster."""
        # Arrays at once: a row that is none must not leave a part of itself in the ring.
        times = array("d", [time + offset for time in changes.times])
        kinds = array("b", [kind for kind in changes.kinds if kind in NAMES])
        values = array("b", [1 if value else 0 for value in changes.values])
        rows = len(times)
        if len(kinds) != rows:
            raise ValueError("an unknown kind of demand")
        self._demand.extend((times, [worker_id] * rows, kinds, values), rows)
        for kind, value in zip(changes.kinds, changes.values, strict=True):
            if value:
                self._state[worker_id, kind] = True
            else:
                self._state.pop((worker_id, kind), None)

    def append_regions(self, worker_id: int, message: RegionsTimed, offset: float = 0.0) -> None:
        """Record what tasks spent in the user's regions."""
        rows = len(message.names)
        names = [(prefix[:_NAME], name[:_NAME]) for prefix, name in zip(message.prefixes, message.names, strict=True)]
        pairs = [
            value if isfinite(value) else 0.0
            for pair in zip(message.seconds, message.own_seconds, strict=True)
            for value in pair
        ]
        times = array("d", [message.time + offset]) * rows
        counts = array("q", [min(count, _MOST) for count in message.counts])
        self._regions.extend((times, [worker_id] * rows, names, counts, array("d", pairs)), rows)
        for row, name in enumerate(names):
            if name not in self._totals and len(self._totals) >= self._groups:
                name = ("(other prefixes)", "(other regions)")
            total = self._totals.setdefault(name, [0, 0.0, 0.0])
            total[0] += counts[row]
            total[1] += pairs[2 * row]
            total[2] += pairs[2 * row + 1]

    def worker_left(self, worker_id: int, now: float) -> None:
        """A worker is gone, and its demand with it."""
        kinds = [kind for owner, kind in self._state if owner == worker_id]
        if kinds:
            self.append_demand(worker_id, DemandChanged(tuple(kinds), (False,) * len(kinds), (now,) * len(kinds)))

    def numbers(self) -> tuple[int, ...]:
        """The numbers of the rows that come next."""
        return tuple([ring.next for ring in self._rings])

    def demand(self) -> list[tuple[int, int]]:
        """Pairs of worker and kind that there is demand of."""
        return [(worker_id, kind) for worker_id, kind in self._state]

    def mark(self) -> dict[str, Any]:
        """Where demand and totals stand; part of the answer to ``telemetry_mark``."""
        return {
            "demand": self.demand(),
            "regions": [(*name, *total) for name, total in self._totals.items()],
        }

    def since(self, numbers: Sequence[int], limit: int, pace: Pace) -> tuple[dict[str, Any], list[int], list[int]]:
        """Pages by name, rows missed, and the numbers to go on with."""
        builders = (self._series_page, self._stalls_page, self._demand_page, self._regions_page)
        pages: dict[str, Any] = {}
        gone, after = [], []
        for name, build, number in zip(RINGS, builders, numbers, strict=True):
            pages[name], missed, next_number = pace.take(name, build, number, limit)
            gone.append(missed)
            after.append(next_number)
        return pages, gone, after

    def _series_page(self, number: int, limit: int) -> Page:
        (times, workers, processes, values), missed, after = self._series.read(number, limit)
        page = {
            "columns": COLUMNS,
            "times": times.tobytes(),
            "workers": workers.tobytes(),
            "processes": processes.tobytes(),
            "values": values.tobytes(),
        }
        return page, missed, after

    def _stalls_page(self, number: int, limit: int) -> Page:
        (starts, workers, processes, durations, what), missed, after = self._stalls.read(number, limit)
        page = {
            "starts": starts.tobytes(),
            "workers": workers.tobytes(),
            "processes": processes.tobytes(),
            "durations": durations.tobytes(),
            "rows": what,
        }
        return page, missed, after

    def _demand_page(self, number: int, limit: int) -> Page:
        (times, owners, kinds, states), missed, after = self._demand.read(number, limit)
        page = {
            "times": times.tobytes(),
            "workers": owners.tobytes(),
            "kinds": kinds.tobytes(),
            "values": states.tobytes(),
        }
        return page, missed, after

    def _regions_page(self, number: int, limit: int) -> Page:
        (times, workers, names, counts, seconds), missed, after = self._regions.read(number, limit)
        name_table, rows = table(names)
        page = {
            "times": times.tobytes(),
            "workers": workers.tobytes(),
            "name_table": name_table,
            "names": rows.tobytes(),
            "counts": counts.tobytes(),
            "seconds": seconds.tobytes(),
        }
        return page, missed, after
