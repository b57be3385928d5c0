"""The zero-worker method: the scheduler's brain with workers that answer every task at once, and nothing else.

What is measured is the brain alone (reactor, placement, outbox), from the arrival of a graph to its being forgotten;
the time that the simulated workers take to write their answers is left out. Run it: ``python
tests/core/zero_worker.py``.

Contents: graphs (map, merge, tree, shuffle), ZeroCluster.
"""

from __future__ import annotations

import gc
import sys
import time
from array import array
from typing import NamedTuple

from gnomon.runtime.core import Model, Outbox, Settings, placement, reactor
from gnomon.runtime.messages import (
    ComputeTasks,
    FuturesDone,
    RegisterWorker,
    ReleaseFutures,
    TasksFinished,
    UpdateGraph,
)

CODE = b"a pickled function"


class Graph(NamedTuple):
    """Rows of a graph: keys, dependencies by row, and the rows that the client wants."""

    keys: list
    dependencies: list
    wanted: list


def map_graph(n):
    """``n`` tasks that need nothing, all wanted."""
    return Graph([f"inc-0a1b2c3d-{i}" for i in range(n)], [], list(range(n)))


def merge_graph(n):
    """``n`` tasks that need nothing, and one that needs them all."""
    keys = [f"inc-0a1b2c3d-{i}" for i in range(n)]
    return Graph([*keys, "merge-5f6a7b8c"], [*[()] * n, tuple(range(n))], [n])


def tree_graph(leaves):
    """``leaves`` tasks, merged two by two down to one."""
    keys = [("leaf-0a1b2c3d", i) for i in range(leaves)]
    dependencies = [()] * leaves
    level = list(range(leaves))
    depth = 0
    while len(level) > 1:
        depth += 1
        merged = []
        for i in range(0, len(level), 2):
            merged.append(len(keys))
            keys.append((f"merge-{depth}", i))
            dependencies.append(tuple(level[i : i + 2]))
        level = merged
    return Graph(keys, dependencies, level)


def shuffle_graph(m):
    """``m`` inputs, ``m`` x ``m`` splits, ``m`` outputs that need a split of every input."""
    keys = [("in-0a1b2c3d", i) for i in range(m)]
    dependencies = [()] * m
    for i in range(m):
        for j in range(m):
            keys.append(("split-0a1b2c3d", i, j))
            dependencies.append((i,))
    for j in range(m):
        keys.append(("out-0a1b2c3d", j))
        dependencies.append(tuple([m + i * m + j for i in range(m)]))
    return Graph(keys, dependencies, list(range(len(keys) - m, len(keys))))


def message_of(graph, first_future=1):
    """The graph as a client sends it."""
    n = len(graph.keys)
    future_ids = [0] * n
    for k, row in enumerate(graph.wanted):
        future_ids[row] = first_future + k
    return UpdateGraph(
        ((1, CODE),),
        tuple(graph.keys),
        (1,) * n,
        tuple([b"payload %d" % i for i in range(n)]),
        tuple(graph.dependencies),
        (),
        tuple(future_ids),
    )


class Cost(NamedTuple):
    """CPU seconds of the brain, by part, for so many tasks."""

    tasks: int
    arrival: float
    running: float
    release: float

    @property
    def microseconds(self):
        return (self.arrival + self.running + self.release) / self.tasks * 1e6


class ZeroCluster:
    """A brain, a client, and workers that take no time."""

    def __init__(self, workers=24, nthreads=1, inline=False, seconds=2e-5):
        self.model = Model(Settings())
        self.outbox = Outbox()
        self.inline = inline
        self.ticks = array("d", [100.0, 100.0, 100.0 + seconds, 100.0 + seconds]).tobytes()
        self.client = reactor.on_add_client(self.model, self.outbox, "zero", 0.0)
        for i in range(workers):
            register = RegisterWorker(f"w{i}", f"tcp://10.0.0.{i}:1", nthreads, 0, (), "host", i, {})
            reactor.on_add_worker(self.model, self.outbox, register, 0.0)

    def answer(self, messages):
        """What a worker that takes no time answers."""
        answers = []
        for message in messages:
            if type(message) is ComputeTasks:
                n = len(message.task_ids)
                values = (b"\x80\x05K\x01.",) * n if self.inline else (None,) * n
                nbytes = (28 if self.inline else 10_000,) * n
                ids, attempts = message.task_ids, message.attempts
                answers.append(TasksFinished(ids, attempts, nbytes, values, (1,) * n, self.ticks * n))
        return answers

    def run(self, message):
        """Take in a graph, run it, release it."""
        model, outbox, clock = self.model, self.outbox, time.thread_time
        begin = clock()
        reactor.on_update_graph(model, outbox, self.client, message, 1.0)
        arrival = clock() - begin
        running = 0.0
        done = 0
        while True:
            begin = clock()
            if model.placement_wanted:
                placement.run(model, outbox, 1.0)
            mails = outbox.drain_workers()
            for _, messages in outbox.drain_clients():
                done += sum([len(m.future_ids) for m in messages if type(m) is FuturesDone])
            outbox.take_records()
            running += clock() - begin
            answers = [(worker_id, self.answer(messages)) for worker_id, messages in mails]
            if not mails:
                break
            begin = clock()
            for worker_id, messages in answers:
                for answer in messages:
                    reactor.on_tasks_finished(model, outbox, worker_id, answer, 1.0)
            running += clock() - begin
        wanted = tuple([future_id for future_id in message.future_ids if future_id])
        if done != len(wanted):
            raise AssertionError(f"{done} of {len(wanted)} futures are done")
        begin = clock()
        reactor.on_release_futures(model, outbox, self.client, ReleaseFutures(wanted), 1.0)
        outbox.drain_workers()
        release = clock() - begin
        if model.by_id:
            raise AssertionError(f"{len(model.by_id)} tasks are left")
        return Cost(len(message.keys), arrival, running, release)


GRAPHS = {
    "map": map_graph,
    "merge": merge_graph,
    "tree": lambda n: tree_graph(n // 2),
    "shuffle": lambda n: shuffle_graph(int(n**0.5)),
}


def main(n=10_000):
    from gnomon.runtime.core import transitions

    sys.stdout.write(f"{transitions.__file__}\n")
    for inline in (False, True):
        for name, make in GRAPHS.items():
            message = message_of(make(n))
            costs = []
            for _ in range(3):
                cluster = ZeroCluster(inline=inline)
                gc.collect()
                costs.append(cluster.run(message))
            cost = min(costs, key=lambda c: c.microseconds)
            parts = [round(part / cost.tasks * 1e6, 2) for part in cost[1:]]
            kind = f"{name}, {'small' if inline else 'large'} values"
            sys.stdout.write(f"{kind:24} {cost.tasks:7} tasks {cost.microseconds:6.2f} us per task {parts}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
