"""The few benchmarks that every change is judged by: those that would show a mistake in a room first.

Together they run in less than a quarter of an hour where two commits are compared. ``python -m benchmarks.gate`` prints
the pattern that asv's ``--bench`` takes.

Contents: GATE, COUNTERS, pattern.
"""

from __future__ import annotations

import sys

__all__ = ["COUNTERS", "GATE", "pattern"]

#: Measured in time. Each is a regular expression for a benchmark's name, with its parameters where it has any.
GATE = (
    r"core\.ZeroWorker\.time_graph\('(map|tree|shuffle|random)', 10000, 100\)",  # reactor, placement, outbox
    r"core\.ZeroWorker\.time_graph\('random', 10000, 1000\)",  # placement among many workers
    r"core\.SmallValues\.time_graph\('tree', 10000\)",
    r"worker\.Brain\.time_tasks\('(free|fetched)', 10000\)",
    r"worker\.HandOff\.time_tasks\('process', 1000\)",
    r"protocol\.Values\.time_(encode|decode)\('(numpy|nested)', 100000\)",
    r"protocol\.Messages\.time_(encode|decode)\('(ComputeTasks|TasksFinished)'\)",
    r"comm\.Burst\.time_send\('(tcp|tls)/asyncio/uvloop', '(one turn|a turn each)'\)",  # framing
    r"comm\.Latency\.time_round_trips\('tcp/asyncio/uvloop', 0\)",
    r"transfer\.Bandwidth\.time_fetch\('(tcp|shared-memory)', 4000000\)",
    r"client\.Futures\.time_(map_and_gather|submit_and_gather)\('tcp'\)",
    r"client\.Conversion\.time_convert\('array', 1000\)",
    r"offload\.Decoding\.time_decode\('inline', 'pandas'\)",
    r"profiler\.Ticks\.time_hundred\('(8|64) waiting', 100\)",  # sampling
    r"profiler\.Regions\.time_with\('watched'\)",
    r"reports\.Reports\.time_(account|page)\(1000\)",
)

#: Counted, the same on every machine: a difference is a difference.
COUNTERS = (
    r"core\.Counters\.track_(messages|bytes|writes|wakeups|transitions|placements|allocations)\(",
    r"core\.Instructions\.track_instructions\(",
    r"worker\.BrainCounters\.track_",
    r"protocol\.\w+\.track_",
    r"comm\.Counters\.track_",
    r"client\.LoneTask\.track_",
)


def pattern() -> str:
    """One regular expression for all of the gate."""
    return "^(" + "|".join((*GATE, *COUNTERS)) + ")"


if __name__ == "__main__":
    sys.stdout.write(pattern() + "\n")
