"""The columns of a process's measurements over time, and what its kinds are called. One row per heartbeat.

Contents: COLUMNS; SCHEDULER, AGENT, EXECUTOR.
"""

from __future__ import annotations

__all__ = ["AGENT", "COLUMNS", "EXECUTOR", "SCHEDULER"]

SCHEDULER = 0
AGENT = 1
EXECUTOR = 2

#: NaN stands for what was not measured. Times are in seconds, memory in bytes, rates per second; all over ``seconds``,
#: the time since the row before, or as of the row's own time.
COLUMNS = (
    "seconds",
    "cpu",  # percent of one processor; an executor's with the processes that tasks started
    "memory",  # resident bytes, likewise
    "threads",
    "fds",
    "lag_p50",  # of the event loop's timers
    "lag_p99",
    "lag_max",
    "busy",  # percent of the time that the event loop was not waiting
    "gc_seconds",
    "gc_max",
    "gil_contended",  # percent of the sampler's wake-ups that had to wait for the interpreter's lock
    "gil_wait_max",
    "host_received",  # bytes per second of the machine, on real interfaces
    "host_sent",
    "host_loopback",
    "host_disk_read",
    "host_disk_written",
    "host_cpu",  # percent of all processors
    "tasks",  # scheduler: tasks that could run and have no worker; agent: runs not handed to the executor
    "samples",
    "samples_missed",
    "own_cpu",  # seconds of processor time that the instruments themselves used; the next are parts of it
    "own_sampler",
    "own_loop",
    "own_gc",
    "own_gil",
    "own_system",
)
