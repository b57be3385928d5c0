"""The zero-worker method: the scheduler's brain with workers that answer every task at once, and nothing else.

What is measured is the brain alone (reactor, placement, outbox), from the arrival of a graph to its being forgotten;
the time that the simulated workers take to write their answers is left out. ``python -m benchmarks.zero_worker
[TASKS]`` prints what a task costs, by shape and by number of workers, and how the cost grows.

Contents: ZeroCluster, Cost, Counts, brain_seconds, placement_seconds.
"""

from __future__ import annotations

import gc
import sys
import time
from array import array
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.graphs import SHAPES, graph, message_of
from benchmarks.growth import exponent
from gnomon.runtime.build import is_compiled
from gnomon.runtime.core import Model, Outbox, Settings, placement, reactor, transitions
from gnomon.runtime.messages import (
    ComputeTasks,
    FuturesDone,
    Message,
    RegisterWorker,
    ReleaseFutures,
    TasksFinished,
    UpdateGraph,
    encode,
)

__all__ = ["Cost", "Counts", "ZeroCluster", "brain_seconds", "placement_seconds"]

_VALUE = b"\x80\x05K\x01."

_spent = _placing = 0.0


def brain_seconds() -> float:
    """CPU seconds that brains of this process have used so far: a timer for asv that leaves the workers out."""
    return _spent


def placement_seconds() -> float:
    """CPU seconds that placement passes of this process have used so far, a part of ``brain_seconds``."""
    return _placing


class Cost(NamedTuple):
    """CPU seconds of the brain, by part, for so many tasks."""

    tasks: int
    arrival: float
    running: float
    release: float

    @property
    def microseconds(self) -> float:
        """Of CPU, per task."""
        return (self.arrival + self.running + self.release) / self.tasks * 1e6


class Counts:
    """What happened, whatever the machine; plain integers that only grow.

    Fields:
        turns: loop turns with something to do. assignments: runs given to workers.
        messages: to and from all peers. writes: batches to a peer, each one system call. wakeups: batches from one.
        bytes: of the batches to peers, as on the wire (counted only where asked for).
    """

    __slots__ = ("assignments", "bytes", "messages", "turns", "wakeups", "writes")

    def __init__(self) -> None:
        self.turns = self.assignments = self.messages = self.writes = self.wakeups = self.bytes = 0

    def mail(self, messages: Sequence[Message], *, weigh: bool) -> None:
        """A batch leaves."""
        self.writes += 1
        self.messages += len(messages)
        for message in messages:
            if type(message) is ComputeTasks:
                self.assignments += len(message.task_ids)
        if weigh:
            self.bytes += len(encode(messages))


class ZeroCluster:
    """A brain, a client, and workers that take no time.

    Arguments:
        inline: whether results are small, and travel inside messages.
        seconds: what workers say that a task took.
        weigh: whether to count bytes, which takes time of its own.
    """

    def __init__(
        self, workers: int = 24, nthreads: int = 1, inline: bool = False, seconds: float = 2e-5, weigh: bool = False
    ) -> None:
        self.model = Model(Settings())
        self.outbox = Outbox()
        self.inline = inline
        self.counts = Counts()
        self._weigh = weigh
        self._ticks = array("d", [100.0, 100.0, 100.0 + seconds, 100.0 + seconds]).tobytes()
        self.client = reactor.on_add_client(self.model, self.outbox, "zero", 0.0)
        for i in range(workers):
            register = RegisterWorker(f"w{i}", f"tcp://10.0.0.{i}:1", nthreads, 0, (), "host", i, {})
            reactor.on_add_worker(self.model, self.outbox, register, 0.0)

    @property
    def transitions(self) -> int:
        """Changes of state so far, as far as the brain's story goes back."""
        return len(self.model.story.entries)

    def answers(self, messages: Sequence[Message]) -> list[TasksFinished]:
        """What a worker that takes no time answers."""
        answers = []
        for message in messages:
            if type(message) is ComputeTasks:
                n = len(message.task_ids)
                values = (_VALUE,) * n if self.inline else (None,) * n
                nbytes = (28 if self.inline else 10_000,) * n
                ids, attempts = message.task_ids, message.attempts
                answers.append(TasksFinished(ids, attempts, nbytes, values, (1,) * n, self._ticks * n))
        return answers

    def load(self, message: UpdateGraph) -> float:
        """Take in a graph and go no further; the CPU seconds."""
        begin = time.thread_time()
        reactor.on_update_graph(self.model, self.outbox, self.client, message, 1.0)
        return time.thread_time() - begin

    def run(self, message: UpdateGraph) -> Cost:
        """Take in a graph, run it, release it."""
        global _spent
        arrival = self.load(message)
        self.counts.messages += 1
        self.counts.wakeups += 1
        running, done = self._run()
        wanted = tuple([future_id for future_id in message.future_ids if future_id])
        if done != len(wanted):
            raise AssertionError(f"{done} of {len(wanted)} futures are done")
        begin = time.thread_time()
        reactor.on_release_futures(self.model, self.outbox, self.client, ReleaseFutures(wanted), 1.0)
        mails = self.outbox.drain_workers()
        release = time.thread_time() - begin
        for _, messages in mails:
            self.counts.mail(messages, weigh=self._weigh)
        if self.model.by_id:
            raise AssertionError(f"{len(self.model.by_id)} tasks are left")
        _spent += arrival + running + release
        return Cost(len(message.keys), arrival, running, release)

    def place(self) -> float:
        """The placement pass that is due, if one is; the CPU seconds."""
        global _placing
        begin = time.thread_time()
        if self.model.placement_wanted:
            placement.run(self.model, self.outbox, 1.0)
        seconds = time.thread_time() - begin
        _placing += seconds
        return seconds

    def deliver(self) -> tuple[float, int, list[tuple[int, list[TasksFinished]]]]:
        """Send what there is to send; CPU seconds, futures that are done, and what each worker answers."""
        begin = time.thread_time()
        mails = self.outbox.drain_workers()
        news = self.outbox.drain_clients()
        self.outbox.take_records()
        seconds = time.thread_time() - begin
        for _, messages in (*news, *mails):
            self.counts.mail(messages, weigh=self._weigh)
        done = sum(len(m.future_ids) for _, messages in news for m in messages if type(m) is FuturesDone)
        answers = [(worker_id, finished) for worker_id, messages in mails if (finished := self.answers(messages))]
        return seconds, done, answers

    def take(self, answers: Sequence[tuple[int, Sequence[TasksFinished]]]) -> float:
        """Take in what workers answered; the CPU seconds."""
        for _, finished in answers:
            self.counts.messages += len(finished)
            self.counts.wakeups += 1
        begin = time.thread_time()
        for worker_id, finished in answers:
            for answer in finished:
                reactor.on_tasks_finished(self.model, self.outbox, worker_id, answer, 1.0)
        return time.thread_time() - begin

    def _run(self) -> tuple[float, int]:
        """Turn by turn until nothing is left to do; CPU seconds, and futures that are done."""
        running, done = 0.0, 0
        while True:
            running += self.place()
            seconds, more, answers = self.deliver()
            running += seconds
            done += more
            if not answers:
                return running, done
            self.counts.turns += 1
            running += self.take(answers)


def best(shape: str, n: int, workers: int, inline: bool) -> Cost:
    """The cheapest of three runs."""
    message = message_of(graph(shape, n))
    costs = []
    for _ in range(3):
        cluster = ZeroCluster(workers, inline=inline)
        gc.collect()
        costs.append(cluster.run(message))
    return min(costs, key=lambda cost: cost.microseconds)


def main(n: int = 10_000) -> None:
    """Print what a task costs."""
    say = sys.stdout.write
    say(f"{'compiled' if is_compiled(transitions) else 'interpreted'}; microseconds of CPU per task\n")
    for inline in (False, True):
        for shape in SHAPES:
            cost = best(shape, n, 24, inline)
            parts = "  ".join(f"{part / cost.tasks * 1e6:5.2f}" for part in cost[1:])
            kind = f"{shape}, {'small' if inline else 'large'} values"
            say(f"{kind:24} {cost.tasks:7} tasks {cost.microseconds:6.2f} = {parts}\n")
    sizes, crews = [n // 10, n // 3, n], [10, 100, 1000]
    for shape in SHAPES:
        by_size = [best(shape, size, 100, False) for size in sizes]
        by_crew = [best(shape, n, crew, False).microseconds for crew in crews]
        with_tasks = exponent([cost.tasks for cost in by_size], [cost.microseconds * cost.tasks for cost in by_size])
        say(f"{shape:8} CPU grows as tasks^{with_tasks:.2f}, workers^{exponent(crews, by_crew):.2f}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
