"""One system's round: seconds and CPU seconds per task, by role, of every workload."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

import psutil

from .systems import System
from .workloads import WORKLOADS, Feed, Sizes, Workload

__all__ = ["Taken", "measure_system"]

CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Taken:
    """What one workload took."""

    workload: str
    tasks: int
    seconds: float
    cpu: dict[str, float]
    """CPU seconds by role."""


def measure_system(system: System, sizes: Sizes, warm_up: Sizes, names: Collection[str]) -> list[Taken]:
    """Start a system, run each of these workloads once to warm up and once for the record, and stop it."""
    chosen = [workload for workload in WORKLOADS if workload.name in names]
    with system.start() as feed:
        for workload in chosen:
            workload.run(feed, warm_up)
        return [_measure(workload, feed, sizes, system.role) for workload in chosen]


def _measure(workload: Workload, feed: Feed, sizes: Sizes, role: Callable[[psutil.Process], str]) -> Taken:
    before = _cpu_by_process(role)
    start = time.perf_counter()
    tasks = workload.run(feed, sizes)
    seconds = time.perf_counter() - start
    cpu: dict[str, float] = {}
    for process, (part, used) in _cpu_by_process(role).items():
        # A process that came meanwhile has used nothing before; one that went is lost, which none of these does.
        _, earlier = before.get(process, (part, 0.0))
        cpu[part] = cpu.get(part, 0.0) + used - earlier
    return Taken(workload.name, tasks, seconds, cpu)


def _cpu_by_process(role: Callable[[psutil.Process], str]) -> dict[psutil.Process, tuple[str, float]]:
    """Role and CPU seconds so far (in the system's ticks, mostly 10 ms) of this process and all its descendants."""
    here = psutil.Process()
    found = {}
    for process in (here, *here.children(recursive=True)):
        try:
            part = CLIENT if process == here else role(process)
            times = process.cpu_times()
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
        found[process] = (part, times.user + times.system)
    return found
