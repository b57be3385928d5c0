"""A worker: its brain alone, and the hand-off of runs to its executor and of their results back."""

from __future__ import annotations

import gc
import sys
import time
from array import array

from benchmarks.crew import ADD, Crew
from gnomon.runtime.messages import Codes, ComputeTasks, FreeTasks, RunTasks, TasksFinished
from gnomon.runtime.protocol import dumps_call
from gnomon.runtime.worker.state import Outbox, Settings, WorkerModel, dispatch, events

_HOLDER = "tcp://10.0.0.9:1"


class _Bench:
    """A worker's brain with an executor and peers that take no time."""

    def __init__(self, nthreads=4):
        self.model = WorkerModel(Settings(nthreads=nthreads))
        self.outbox = Outbox()
        self.ticks = array("d", [100.0, 100.0, 100.00002, 100.00002]).tobytes()
        self.messages = self.runs = self.turns = self.fetches = 0
        events.on_codes(self.model, self.outbox, Codes((1,), (b"code",)), 0.0)
        events.on_executor_ready(self.model, self.outbox, 0.0)

    def run(self, message):
        """Take these tasks, run them, free them."""
        model, outbox = self.model, self.outbox
        events.on_compute_tasks(model, outbox, message, 1.0)
        while self._turn():
            pass
        n = len(message.task_ids)
        needs = message.dep_ids
        events.on_free_tasks(model, outbox, FreeTasks(message.task_ids + needs, (1,) * (n + len(needs))), 1.0)
        self._turn()
        if model.runs or model.values:
            raise AssertionError("something is left")

    def _turn(self):
        """One turn of the agent's loop; whether anything happened."""
        model, outbox = self.model, self.outbox
        dispatch.run(model, outbox, 1.0)
        fetches, to_executor, to_scheduler = outbox.take_fetches(), outbox.take_executor(), outbox.take_scheduler()
        self.turns += 1
        self.messages += len(to_executor) + len(to_scheduler)
        self.fetches += len(fetches)
        for fetch in fetches:
            n = len(fetch.task_ids)
            ids, attempts, nbytes = fetch.task_ids, fetch.attempts, fetch.nbytes
            events.on_fetch_done(model, outbox, fetch.holder, ids, attempts, nbytes, (None,) * n, 1.0)
        for message in to_executor:
            if type(message) is RunTasks:
                n = len(message.task_ids)
                self.runs += n
                ids, attempts = message.task_ids, message.attempts
                finished = TasksFinished(ids, attempts, (100,) * n, (None,) * n, (0,) * n, self.ticks * n)
                events.on_tasks_finished(model, outbox, finished, 1.0)
        return bool(fetches or to_executor)


def _tasks(n, needs):
    """``n`` tasks; with ``needs``, two values from a peer each, of which neighbours share one."""
    ids = tuple(range(1, n + 1))
    columns = {}
    if needs:
        values = tuple(range(n + 1, 2 * n + 2))
        columns = {
            "dependencies": tuple([(n + i, n + i + 1) for i in ids]),
            "dep_ids": values,
            "dep_attempts": (1,) * len(values),
            "dep_nbytes": (100,) * len(values),
            "dep_values": (None,) * len(values),
            "dep_holders": ((_HOLDER,),) * len(values),
        }
    return ComputeTasks(
        task_ids=ids,
        attempts=(1,) * n,
        keys=tuple([f"inc-0a1b2c3d-{i}" for i in ids]),
        code_ids=(1,) * n,
        payloads=(b"payload",) * n,
        priorities=tuple([(0, 1, i) for i in ids]),
        durations=(2e-5,) * n,
        **columns,
    )


class Brain:
    """CPU of a worker's brain: tasks that need nothing, and tasks whose inputs have to be fetched."""

    params = (["free", "fetched"], [1_000, 10_000])
    param_names = ("inputs", "tasks")
    timer = staticmethod(time.thread_time)

    def setup(self, inputs, tasks):
        self.message = _tasks(tasks, inputs == "fetched")
        self.bench = _Bench()
        gc.collect()

    def time_tasks(self, inputs, tasks):
        self.bench.run(self.message)


class BrainCounters:
    """The same in figures that don't depend on the machine."""

    params = (["free", "fetched"],)
    param_names = ("inputs",)
    tasks = 2_000

    def setup(self, inputs):
        self.bench = _Bench()
        self.message = _tasks(self.tasks, inputs == "fetched")

    def track_messages(self, inputs):
        self.bench.run(self.message)
        return self.bench.messages / self.tasks

    track_messages.unit = "messages/task"

    def track_turns(self, inputs):
        self.bench.run(self.message)
        return self.bench.turns / self.tasks

    track_turns.unit = "turns/task"

    def track_fetches(self, inputs):
        self.bench.run(self.message)
        return self.bench.fetches / self.tasks

    track_fetches.unit = "fetches/task"

    def track_allocations(self, inputs):
        gc.collect()
        before = sys.getallocatedblocks()
        events.on_compute_tasks(self.bench.model, self.bench.outbox, self.message, 1.0)
        gc.collect()
        return (sys.getallocatedblocks() - before) / self.tasks

    track_allocations.unit = "blocks held/task"


class HandOff:
    """Empty tasks to an executor and back: one at a time, and a thousand at once."""

    params = (["thread", "process"], [1, 1_000])
    param_names = ("executor", "at_once")

    def setup(self, executor, at_once):
        self.crew = Crew(executor)
        self.payload = dumps_call((1, 2), {})
        self.crew.run(self.crew.perform(10, ADD, self.payload))

    def teardown(self, executor, at_once):
        self.crew.close()

    def time_tasks(self, executor, at_once):
        tasks = 200 if at_once == 1 else 2_000
        self.crew.run(self.crew.perform(tasks, ADD, self.payload, chunk=at_once))
