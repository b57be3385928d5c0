"""Growth: the brain with many simulated workers and tasks, and the whole scheduler with a swarm over real sockets."""

from __future__ import annotations

import gc
import operator
import tracemalloc

import psutil

from benchmarks.graphs import frame_shuffle, graph, message_of
from benchmarks.growth import exponent
from benchmarks.sizes import and_large
from benchmarks.stage import Stage
from benchmarks.swarm import Swarm
from benchmarks.zero_worker import ZeroCluster, brain_seconds
from gnomon.runtime import Client, LocalCluster

_TASKS = 5_000


class Workers:
    """The brain's CPU for the same graph, by how many workers there are."""

    params = (["map", "random"], and_large([10, 100, 1_000], 10_000))
    param_names = ("shape", "workers")
    timer = staticmethod(brain_seconds)
    timeout = 300

    def setup(self, shape, workers):
        self.message = message_of(graph(shape, _TASKS))
        self.cluster = ZeroCluster(workers)
        gc.collect()

    def time_graph(self, shape, workers):
        self.cluster.run(self.message)


class Memory:
    """What a worker costs the scheduler's brain in memory, by how many there are."""

    params = (and_large([10, 1_000], 10_000),)
    param_names = ("workers",)

    def track_memory(self, workers):
        tracemalloc.start()
        try:
            cluster = ZeroCluster(workers)
            gc.collect()
            return tracemalloc.get_traced_memory()[0] / len(cluster.model.workers)
        finally:
            tracemalloc.stop()

    track_memory.unit = "bytes held/worker"


class Resident:
    """Memory of a whole cluster of two workers in processes of their own, idle after a thousand tasks, by part."""

    params = (["scheduler", "workers"],)
    param_names = ("part",)
    timeout = 120

    def track_memory(self, part):
        """Shared pages count by their share, where the system tells it."""
        with (
            LocalCluster(n_workers=2, threads_per_worker=1) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            client.gather(client.map(operator.neg, range(1_000)))
            agents = {unit.pid for unit in cluster.workers.values()}
            found = 0
            for process in psutil.Process().children(recursive=True):
                if bool({process.pid, process.ppid()} & agents) == (part == "workers"):
                    memory = process.memory_full_info()
                    found += getattr(memory, "pss", memory.uss)
        return found / 1e6

    track_memory.unit = "MB"


class Growth:
    """Exponents of the brain's CPU for a whole graph: 1 with tasks is linear, 0 with workers is no growth."""

    params = (["map", "random", "shuffle"],)
    param_names = ("shape",)
    timeout = 600

    def track_with_tasks(self, shape):
        sizes = and_large([1_000, 4_000, 16_000], 64_000, 256_000)
        graphs = [message_of(graph(shape, size)) for size in sizes]
        return exponent([len(message.keys) for message in graphs], [_seconds(100, message) for message in graphs])

    track_with_tasks.unit = "exponent"

    def track_with_workers(self, shape):
        message = message_of(graph(shape, _TASKS))
        crews = and_large([10, 100, 1_000], 10_000)
        return exponent(crews, [_seconds(crew, message) for crew in crews])

    track_with_workers.unit = "exponent"


class FrameShuffle:
    """The shuffle of a data frame of hourly partitions as a task graph: of a week, a month, a year."""

    params = (and_large([168, 730], 8_760),)
    param_names = ("partitions",)
    timer = staticmethod(brain_seconds)
    repeat = (1, 3, 20.0)
    timeout = 600

    def setup(self, partitions):
        self.message = message_of(frame_shuffle(partitions))
        self.cluster = ZeroCluster(100)
        gc.collect()

    def time_graph(self, partitions):
        self.cluster.run(self.message)

    def track_cpu(self, partitions):
        return ZeroCluster(100).run(self.message).microseconds

    track_cpu.unit = "us/task"

    def track_messages(self, partitions):
        cluster = ZeroCluster(100)
        cluster.run(self.message)
        return cluster.counts.messages / len(self.message.keys)

    track_messages.unit = "messages/task"


class Sockets:
    """A scheduler with its real connections, and a process of simulated workers at their other ends."""

    params = (["tcp", "tls"], and_large([10, 100], 300))
    param_names = ("protocol", "workers")
    timeout = 300
    repeat = 3
    number = 1
    warmup_time = 0

    def setup(self, protocol, workers):
        self.stage = Stage(0, protocol)
        self.stage.__enter__()
        self.swarm = Swarm(self.stage.address, self.stage.security, workers)
        self.swarm.__enter__()
        self.swarm.run("map", 500)

    def teardown(self, protocol, workers):
        self.swarm.__exit__()
        self.stage.__exit__()

    def time_map(self, protocol, workers):
        self.swarm.run("map", _TASKS)

    def _spent(self, shape):
        """What a graph cost the scheduler: CPU seconds, and its counters."""
        cpu, counters = self.stage.thread.cpu_seconds(), self.stage.counters()
        self.swarm.run(shape, _TASKS)
        now = self.stage.counters()
        return self.stage.thread.cpu_seconds() - cpu, {name: now[name] - counters[name] for name in now}

    def track_cpu(self, protocol, workers):
        return self._spent("map")[0] / _TASKS * 1e6

    track_cpu.unit = "us/task"

    def track_communication_share(self, protocol, workers):
        """The part of the scheduler's CPU that the brain alone would not have used."""
        spent, _ = self._spent("map")
        return max(0.0, 1 - _seconds(workers, message_of(graph("map", _TASKS))) / spent) * 100

    track_communication_share.unit = "%"

    def track_bytes(self, protocol, workers):
        return self._spent("map")[1]["bytes"] / _TASKS

    track_bytes.unit = "bytes/task"

    def track_writes(self, protocol, workers):
        return self._spent("map")[1]["writes"] / _TASKS

    track_writes.unit = "writes/task"


def _seconds(workers, message):
    """CPU of the brain for a graph, the better of two runs."""
    return min(sum(ZeroCluster(workers).run(message)[1:]) for _ in range(2))
