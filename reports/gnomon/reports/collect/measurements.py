"""From the scheduler's pages to a recording: what processes measured of themselves (series, stalls, demand).

The pages are described in the scheduler's ``telemetry``. This room converts; the conversation is ``collect``'s.

Contents: add_series, add_stalls, add_demand, ticks, typed.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gnomon.reports.recording import Recording
from gnomon.reports.records import TICKS, Stall

__all__ = ["add_demand", "add_series", "add_stalls", "all_ticks", "begin_demand", "ticks", "typed"]

#: The row of a process that is nobody's any more.
_UNKNOWN = -2


def ticks(seconds: float) -> int:
    """Whole ticks; a clock that shows no number, or one out of all range, counts as the start."""
    if not math.isfinite(seconds) or abs(seconds) > 1e10:
        return 0
    return round(seconds * TICKS)


def all_ticks(seconds: Any) -> Any:
    """``ticks`` of a column of numpy."""
    import numpy

    known = numpy.isfinite(seconds) & (numpy.abs(seconds) <= 1e10)
    return numpy.rint(numpy.where(known, seconds, 0.0) * TICKS).astype("q")


def typed(code: str, data: bytes, byteorder: str) -> array[Any]:
    """The array whose bytes a page holds."""
    column: array[Any] = array(code)
    column.frombytes(data)
    if byteorder != sys.byteorder:
        column.byteswap()
    return column


def _row(worker_id: int, ids: Mapping[int, int]) -> int:
    """The worker's row; 0 is the scheduler's id, and -1 its row."""
    return -1 if worker_id == 0 else ids.get(worker_id, _UNKNOWN)


def add_series(recording: Recording, page: Mapping[str, Any], rows: int, ids: Mapping[int, int]) -> None:
    """Append at most ``rows`` rows of a page's measurements."""
    import numpy

    part, order, series = page["series"], page["byteorder"], recording.series
    times = typed("d", part["times"], order)[:rows]
    series.times.frombytes(all_ticks(numpy.asarray(times) - recording.start).tobytes())
    series.workers.extend(_row(i, ids) for i in typed("q", part["workers"], order)[:rows])
    series.processes.extend(typed("b", part["processes"], order)[:rows].tolist())
    names: Sequence[str] = part["columns"]
    values = typed("d", part["values"], order)
    for at, name in enumerate(names):
        column = series.values.setdefault(name, array("d"))
        column.extend(values[at :: len(names)][: len(times)])


def add_stalls(recording: Recording, page: Mapping[str, Any], rows: int, ids: Mapping[int, int]) -> None:
    """Append at most ``rows`` stalls of a page."""
    part, order = page["stalls"], page["byteorder"]
    starts = typed("d", part["starts"], order)[:rows]
    workers = typed("q", part["workers"], order)
    processes = typed("b", part["processes"], order)
    durations = typed("d", part["durations"], order)
    for start, worker, process, length, what in zip(starts, workers, processes, durations, part["rows"], strict=False):
        recording.stalls.append(
            Stall(
                ticks(start - recording.start), ticks(length), _row(worker, ids), process, what["cause"],
                what["detail"], what["function"], what["file"], what["line"], what["stack"], what["holder"],
            )
        )  # fmt: skip


def begin_demand(recording: Recording, first: Iterable[Sequence[int]], ids: Mapping[int, int]) -> None:
    """Note the demand that there was at the first mark."""
    demand = recording.demand
    for worker_id, kind in first:
        demand.times.append(0)
        demand.workers.append(_row(worker_id, ids))
        demand.kinds.append(kind)
        demand.values.append(1)


def add_demand(recording: Recording, page: Mapping[str, Any], rows: int, ids: Mapping[int, int]) -> None:
    """Append at most ``rows`` changes of demand of a page."""
    import numpy

    part, order, demand = page["demand"], page["byteorder"], recording.demand
    times = numpy.asarray(typed("d", part["times"], order)[:rows])
    demand.times.frombytes(all_ticks(times - recording.start).tobytes())
    demand.workers.extend(_row(i, ids) for i in typed("q", part["workers"], order)[:rows])
    demand.kinds.extend(typed("b", part["kinds"], order)[:rows].tolist())
    demand.values.extend(typed("b", part["values"], order)[:rows].tolist())
