"""The scheduler's brain alone: CPU, counters, memory and instructions per task, by shape of graph.

Compiled and interpreted are compared by asv's matrix over ``GNOMON_PURE``.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc

from benchmarks import callgrind
from benchmarks.graphs import SHAPES, message
from benchmarks.sizes import and_large
from benchmarks.zero_worker import ZeroCluster, brain_seconds, placement_seconds


class ZeroWorker:
    """CPU of the brain for a whole graph, from arrival to release."""

    params = (list(SHAPES), and_large([1_000, 10_000], 100_000), [10, 100, 1_000])
    param_names = ("shape", "tasks", "workers")
    timer = staticmethod(brain_seconds)
    timeout = 300

    def setup(self, shape, tasks, workers):
        self.message = message(shape, tasks)
        self.cluster = ZeroCluster(workers)
        gc.collect()

    def time_graph(self, shape, tasks, workers):
        self.cluster.run(self.message)


class Placement:
    """CPU of the placement passes alone: choosing a worker for each task, and giving it the task."""

    params = (["map", "random", "shuffle"], [100])
    param_names = ("shape", "workers")
    timer = staticmethod(placement_seconds)

    def setup(self, shape, workers):
        self.message = message(shape, 10_000)
        self.cluster = ZeroCluster(workers)
        gc.collect()

    def time_passes(self, shape, workers):
        self.cluster.run(self.message)


class SmallValues:
    """The same where results travel inside messages, and stay with the scheduler."""

    params = (list(SHAPES), [10_000])
    param_names = ("shape", "tasks")
    timer = staticmethod(brain_seconds)

    def setup(self, shape, tasks):
        self.message = message(shape, tasks)
        self.cluster = ZeroCluster(100, inline=True)
        gc.collect()

    def time_graph(self, shape, tasks):
        self.cluster.run(self.message)


class Counters:
    """What a task costs beside time; none of it depends on the machine."""

    params = (list(SHAPES),)
    param_names = ("shape",)

    def setup(self, shape):
        self.message = message(shape, 2_000)
        self.tasks = len(self.message.keys)

    def _counts(self):
        cluster = ZeroCluster(24, weigh=True)
        cluster.run(self.message)
        return cluster

    def track_messages(self, shape):
        return self._counts().counts.messages / self.tasks

    track_messages.unit = "messages/task"

    def track_bytes(self, shape):
        return self._counts().counts.bytes / self.tasks

    track_bytes.unit = "bytes sent/task"

    def track_writes(self, shape):
        return self._counts().counts.writes / self.tasks

    track_writes.unit = "writes/task"

    def track_wakeups(self, shape):
        return self._counts().counts.wakeups / self.tasks

    track_wakeups.unit = "wake-ups/task"

    def track_transitions(self, shape):
        return self._counts().transitions / self.tasks

    track_transitions.unit = "transitions/task"

    def track_placements(self, shape):
        return self._counts().counts.assignments / self.tasks

    track_placements.unit = "placements/task"

    def track_memory(self, shape):
        cluster = ZeroCluster(24)
        gc.collect()
        tracemalloc.start()
        try:
            cluster.load(self.message)
            gc.collect()
            return tracemalloc.get_traced_memory()[0] / self.tasks
        finally:
            tracemalloc.stop()

    track_memory.unit = "bytes held/task"

    def track_allocations(self, shape):
        cluster = ZeroCluster(24)
        gc.collect()
        before = sys.getallocatedblocks()
        cluster.load(self.message)
        gc.collect()
        return (sys.getallocatedblocks() - before) / self.tasks

    track_allocations.unit = "blocks held/task"


class Instructions(callgrind.Counted):
    """Instructions of the brain per task, by valgrind's callgrind."""

    params = (list(SHAPES),)
    param_names = ("shape",)

    def track_instructions(self, counted, shape):
        return counted[shape]

    track_instructions.unit = "instructions/task"


class PlacementInstructions(callgrind.Counted):
    """Instructions of a placement pass per task."""

    params = (["ready", "queued"],)
    param_names = ("tasks",)

    def track_pass(self, counted, tasks):
        return counted[f"place {tasks}"]

    track_pass.unit = "instructions/task"
