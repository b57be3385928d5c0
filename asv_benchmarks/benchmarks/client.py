"""What users call: map, submit, gather, as_completed, graphs of dask collections; and what a lone task costs.

The cluster shares this process, so that the client's own cost stands out; ``Processes`` has everything apart, as users
do.
"""

from __future__ import annotations

import operator
import statistics

from benchmarks.sizes import and_large
from benchmarks.stage import Stage
from gnomon.runtime import Client, LocalCluster, as_completed, wait
from gnomon.runtime.client.graph import convert

_TASKS = 1_000


class _OnStage:
    """A client of a cluster in this process."""

    protocol = "inproc"
    workers = 1

    def setup(self, *params):
        self.stage = Stage(self.workers, self.protocol)
        self.stage.__enter__()
        self.client = Client(self.stage.address, security=self.stage.security, set_as_default=False)
        self.client.submit(operator.neg, 1).result(30)

    def teardown(self, *params):
        self.client.close()
        self.stage.__exit__()


class Futures(_OnStage):
    """A thousand empty tasks, one way and another."""

    params = (["inproc", "tcp", "tls"],)
    param_names = ("protocol",)

    def setup(self, protocol):
        self.protocol = protocol
        super().setup()
        self.done = self.client.map(operator.neg, range(_TASKS))
        wait(self.done, timeout=60)

    def time_map_and_gather(self, protocol):
        self.client.gather(self.client.map(operator.neg, range(10**6, 10**6 + _TASKS)))

    def time_submit_and_gather(self, protocol):
        self.client.gather([self.client.submit(operator.neg, -i) for i in range(1, _TASKS)])

    def time_as_completed(self, protocol):
        futures = self.client.map(operator.neg, range(10**6, 10**6 + _TASKS))
        if sum(1 for _ in as_completed(futures)) != _TASKS:
            raise AssertionError("not all futures came")

    def time_gather_done(self, protocol):
        self.client.gather(self.done)

    def time_round_trips(self, protocol):
        for i in range(50):
            self.client.submit(operator.neg, i, pure=False).result(30)


class LoneTask(_OnStage):
    """What one task after the other costs the scheduler's connections: no batch hides a message."""

    params = (["tcp", "tls"],)
    param_names = ("protocol",)

    def setup(self, protocol):
        self.protocol = protocol
        super().setup()

    def _spent(self, name):
        """The median over tasks, so that a heartbeat in between doesn't count."""
        spent = []
        for i in range(41):
            before = self.stage.counters()[name]
            future = self.client.submit(operator.neg, 1_000 + i)
            future.result(30)
            del future
            self.client.request("nthreads")  # its release is on its way before the answer
            spent.append(self.stage.counters()[name] - before)
        return statistics.median(spent)

    def track_messages(self, protocol):
        return self._spent("messages")

    track_messages.unit = "messages/task"

    def track_bytes(self, protocol):
        return self._spent("bytes")

    track_bytes.unit = "bytes/task"

    def track_writes(self, protocol):
        return self._spent("writes")

    track_writes.unit = "writes/task"

    def track_wakeups(self, protocol):
        return self._spent("wakeups")

    track_wakeups.unit = "wake-ups/task"


class Dependencies(_OnStage):
    """Values that one worker holds and tasks on another one need: through both agents, from submit to result."""

    params = (["tcp", "tls"], [1_000, 1_000_000])
    param_names = ("protocol", "size")
    repeat = (2, 5, 2.0)
    workers = 2

    def setup(self, protocol, size):
        self.protocol = protocol
        super().setup()
        self.held = self.client.map(bytes, [size] * 20, pure=False, workers=["0"])
        wait(self.held, timeout=60)

    def time_fetch(self, protocol, size):
        lengths = [self.client.submit(len, value, pure=False, workers=["1"]) for value in self.held]
        if set(self.client.gather(lengths)) != {size}:
            raise AssertionError("a value came in another size")


class Conversion:
    """A dask graph to rows, without a cluster."""

    params = (["raw", "frame", "array"], [1_000, 10_000])
    param_names = ("kind", "tasks")

    def setup(self, kind, tasks):
        from gnomon.runtime.client.dask_adapter import node_kinds

        self.graph, self.wanted = _graph(kind, tasks)
        self.kinds = node_kinds()

    def time_convert(self, kind, tasks):
        convert(self.graph, self.wanted, _nothing, _nothing, self.kinds)


class Collections(_OnStage):
    """Dask collections computed, from the collection to the result."""

    params = (["array", "frame", "bag"],)
    param_names = ("kind",)

    def setup(self, kind):
        super().setup()
        self.collection = _collection(kind, 300)

    def time_compute(self, kind):
        self.client.compute(self.collection, sync=True)


class Processes:
    """Scheduler, workers and their executors in processes of their own."""

    params = (and_large([1_000], 10_000),)
    param_names = ("tasks",)
    repeat = 3
    number = 1
    warmup_time = 0
    timeout = 120

    def setup(self, tasks):
        self.cluster = LocalCluster(n_workers=2, threads_per_worker=1)
        self.client = Client(self.cluster, set_as_default=False)
        self.client.gather(self.client.map(operator.neg, range(100)))

    def teardown(self, tasks):
        self.client.close()
        self.cluster.close()

    def time_map_and_gather(self, tasks):
        self.client.gather(self.client.map(operator.neg, range(10**6, 10**6 + tasks)))


def _nothing(key):
    """Finds no future: there are none in these graphs."""


def _collection(kind, tasks):
    """A collection whose graph has about so many tasks."""
    if kind == "array":
        import dask.array as da

        side = max(1, int((tasks / 3) ** 0.5))
        x = da.ones((side * 10, side * 10), chunks=(10, 10))
        return (x + x.T).sum()
    if kind == "frame":
        import dask.dataframe as dd
        import pandas as pd

        parts = max(1, tasks // 4)
        source = pd.DataFrame({"x": range(parts * 2), "y": range(parts * 2)})
        return dd.from_pandas(source, npartitions=parts).x.sum()
    import dask.bag as db

    return db.from_sequence(range(tasks // 2), npartitions=tasks // 2).map(operator.neg).sum()


def _graph(kind, tasks):
    """A graph as dask hands it over, and its wanted keys."""
    if kind == "raw":
        graph = {("part", i): (operator.neg, i) for i in range(tasks // 2)}
        graph |= {("sum", i): (operator.add, ("part", i), ("part", i - 1)) for i in range(1, tasks // 2)}
        return graph, [("sum", i) for i in range(1, tasks // 2)]
    collection = _collection(kind, tasks)
    return dict(collection.__dask_graph__()), list(_flat(collection.__dask_keys__()))


def _flat(keys):
    for key in keys:
        if isinstance(key, list):
            yield from _flat(key)
        else:
            yield key
