"""The few benchmarks that every change is judged by: those that would show a mistake in a room first.

Counters are exact, so two rounds of them are enough; what is measured in time takes many, and so is kept short.
``python -m benchmarks.gate [times | counters]`` prints the pattern that asv's ``--bench`` takes, of all or of a part.

Contents: TIMES, COUNTERS, PARTS, pattern.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

__all__ = ["COUNTERS", "PARTS", "TIMES", "pattern"]

#: Measured in time. Each is a regular expression for a benchmark's name, with its parameters where it has any.
TIMES = (
    r"core\.ZeroWorker\.time_graph\('(tree|random)', 10000, 100\)",  # reactor, transitions, outbox
    r"core\.Placement\.time_passes\('(map|random)', 100\)",
    r"core\.SmallValues\.time_graph\('tree', 10000\)",
    r"worker\.Brain\.time_tasks\('(free|fetched)', 10000\)",
    r"worker\.HandOff\.time_tasks\('process', 1000\)",
    r"protocol\.Values\.time_(encode|decode)\('(numpy|nested)', 100000\)",
    r"protocol\.Messages\.time_(encode|decode)\('(ComputeTasks|TasksFinished)'\)",
    r"comm\.Framing\.time_(read|write)$",
    r"comm\.Burst\.time_send\('(tcp|tls)/asyncio/uvloop', 'a turn each'\)",
    r"comm\.Latency\.time_round_trips\('tcp/asyncio/uvloop', 0\)",
    r"transfer\.Bandwidth\.time_fetch\('(tcp|shared-memory)', 4000000\)",
    r"client\.Futures\.time_(map_and_gather|submit_and_gather)\('tcp'\)",
    r"client\.Conversion\.time_convert\('array', 1000\)",
    r"profiler\.Ticks\.time_hundred\('(8|64) waiting', 100\)",  # sampling
    r"profiler\.Regions\.time_with\('watched'\)",
    r"reports\.Reports\.time_(account|page)\(1000\)",
)

#: Counted, the same on every machine: a difference is a difference. Instructions are counted where valgrind is.
COUNTERS = (
    r"core\.Counters\.track_(messages|bytes|writes|wakeups|transitions|placements|allocations)\(",
    r"(core|comm|profiler)\.\w*Instructions\.track_",
    r"worker\.BrainCounters\.track_",
    r"protocol\.\w+\.track_",
    r"comm\.Counters\.track_",
    r"client\.LoneTask\.track_",
)

PARTS = {"times": TIMES, "counters": COUNTERS}


def pattern(parts: Iterable[str] = PARTS) -> str:
    """One regular expression for some parts of the gate; for all of it, unless told."""
    return "^(" + "|".join([chosen for part in parts for chosen in PARTS[part]]) + ")"


if __name__ == "__main__":
    sys.stdout.write(pattern(sys.argv[1:] or PARTS) + "\n")
