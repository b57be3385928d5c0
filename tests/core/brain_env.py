"""Builders for tests of the scheduler's brain: a model, an outbox, and steps that check every invariant afterwards.

Whatever the outbox holds must be taken by the test (``sent``, ``told``, or as a simulated worker's inbox by ``turn``).
"""

from __future__ import annotations

from array import array

from gnomon.runtime.core import Model, Outbox, Settings, invariants, placement, queries, reactor, stealing
from gnomon.runtime.messages import (
    CancelFutures,
    Codes,
    ComputeTasks,
    DropCodes,
    ErrorRecord,
    ExecutorLost,
    FreeTasks,
    FuturesCancelled,
    FuturesDone,
    FuturesErred,
    FuturesPending,
    RegisterWorker,
    ReleaseFutures,
    ReplicasAdded,
    ReplicasMissing,
    RetryFutures,
    ScatterData,
    StealReplies,
    StealTasks,
    TaskOptions,
    TasksErred,
    TasksFinished,
    TasksSeceded,
    UpdateGraph,
    WantKeys,
)

OOPS = ErrorRecord("builtins.ValueError", "ValueError: oops")


class SimWorker:
    """What a worker was told, and not yet done: runs by task id, values it holds, code it has."""

    def __init__(self, env, worker_id, name, address):
        self.env = env
        self.worker_id = worker_id
        self.name = name
        self.address = address
        self.runs = {}  # task id -> (attempt, key, dependencies)
        self.order = {}  # task id -> priority
        self.values = {}  # task id -> attempt
        self.codes = set()
        self.stolen = []  # asked back, not answered: (task id, attempt)

    def receive(self, message):
        if type(message) is Codes:
            assert self.codes.isdisjoint(message.code_ids), "code was sent twice"
            self.codes.update(message.code_ids)
        elif type(message) is DropCodes:
            self.codes.difference_update(message.code_ids)
        elif type(message) is ComputeTasks:
            assert self.codes.issuperset(message.code_ids), "a task came before its code"
            self.check_inputs(message)
            for i, task_id in enumerate(message.task_ids):
                needs = message.dependencies[i] if message.dependencies else ()
                self.runs[task_id] = (message.attempts[i], message.keys[i], needs)
                self.order[task_id] = message.priorities[i]
        elif type(message) is FreeTasks:
            for task_id, attempt in zip(message.task_ids, message.attempts, strict=True):
                if self.runs.get(task_id, (-1,))[0] == attempt:
                    del self.runs[task_id]
                if self.values.get(task_id) == attempt:
                    del self.values[task_id]
        elif type(message) is StealTasks:
            self.stolen.extend(zip(message.task_ids, message.attempts, strict=True))
        else:
            self.env.other.append((self.name, message))

    def check_inputs(self, message):
        """Every input is here, or comes with the message, or somebody is said to hold it."""
        given = {
            dep: (value, holders)
            for dep, value, holders in zip(message.dep_ids, message.dep_values, message.dep_holders, strict=True)
        }
        for needs in message.dependencies:
            for dep in needs:
                if dep not in given:
                    assert dep in self.values, f"input {dep} is neither here nor to be had"
                else:
                    assert given[dep][0] is not None or given[dep][1], f"nobody has input {dep}"

    def keys(self):
        return [key for _, key, _ in self.runs.values()]

    def runs_key(self, key):
        return key in self.keys()

    def id_of(self, key):
        return next(task_id for task_id, (_, k, _) in self.runs.items() if k == key)


class BrainEnv:
    """A brain with simulated clients and workers. Every step checks all invariants."""

    def __init__(self, **settings):
        self.model = Model(Settings(validate=True, **settings))
        self.outbox = Outbox()
        self.now = 1000.0
        self.workers = {}  # by name
        self.other = []  # messages to workers that only tests look at
        self.told = []  # (client id, message)
        self.future = 0
        self.futures = {}  # future id -> "pending" | "done" | "erred" | "cancelled", what clients were told last
        self.codes = {}

    # Steps

    def check(self):
        invariants.check_all(self.model)

    def turn(self):
        """The end of a loop turn: a pass if asked for, then all mail is delivered to the simulated sides."""
        if self.model.placement_wanted:
            placement.run(self.model, self.outbox, self.now)
        self.check()
        for worker_id, messages in self.outbox.drain_workers():
            worker = next(w for w in self.workers.values() if w.worker_id == worker_id)
            for message in messages:
                worker.receive(message)
        for client_id, messages in self.outbox.drain_clients():
            for message in messages:
                self.told.append((client_id, message))
                self.note(message)
        self.records = self.outbox.take_records()
        assert self.outbox.is_empty()

    def note(self, message):
        word = {FuturesDone: "done", FuturesErred: "erred", FuturesCancelled: "cancelled", FuturesPending: "pending"}
        for future_id in message.future_ids:
            assert self.futures.get(future_id, "pending") != "cancelled", "news of a future after its cancellation"
            self.futures[future_id] = word[type(message)]

    def step(self, function, *args):
        result = function(self.model, self.outbox, *args, self.now)
        self.check()
        self.turn()
        return result

    # Clients

    def client(self, name="client"):
        return self.step(reactor.on_add_client, name)

    def graph(self, client, tasks, want=None, options=None, code=b"code", payloads=None, fifo_timeout=0.0, parent=0):
        """Submit ``{key: [keys it needs]}``; a need that is an int is a future id. Returns {key: future id}."""
        keys = list(tasks)
        rows = {key: i for i, key in enumerate(keys)}
        externals = []
        dependencies = []
        for key in keys:
            needs = []
            for need in tasks[key]:
                if need in rows:
                    needs.append(rows[need])
                else:
                    externals.append(need)
                    needs.append(-len(externals))
            dependencies.append(tuple(needs))
        wanted = {}
        for key in keys if want is None else want:
            self.future += 1
            wanted[key] = self.future
            self.futures[self.future] = "pending"
        codes = ()
        if (client, code) not in self.codes:
            self.codes[client, code] = len(self.codes) + 1
            codes = ((self.codes[client, code], code),)
        n = len(keys)
        message = UpdateGraph(
            codes,
            tuple(keys),
            (self.codes[client, code],) * n,
            tuple((payloads or {}).get(key, b"args") for key in keys),
            tuple(dependencies) if any(dependencies) else (),
            tuple(externals),
            tuple(wanted.get(key, 0) for key in keys),
            (options or TaskOptions(),),
            (),
            fifo_timeout,
            parent,
        )
        self.step(reactor.on_update_graph, client, message)
        return wanted

    def submit(self, client, key, *needs, **kwargs):
        """One wanted task; needs are future ids. Returns its future id."""
        return self.graph(client, {key: list(needs)}, **kwargs)[key]

    def want(self, client, *keys):
        ids = tuple(range(self.future + 1, self.future + 1 + len(keys)))
        self.future += len(keys)
        self.step(reactor.on_want_keys, client, WantKeys(keys, ids))
        return ids

    def scatter(self, client, *keys, value=None, nbytes=1000, workers=(), copies=1):
        ids = tuple(range(self.future + 1, self.future + 1 + len(keys)))
        self.future += len(keys)
        n = len(keys)
        rows = self.step(
            reactor.on_scatter, client, ScatterData(1, keys, ids, (nbytes,) * n, (value,) * n, workers, copies)
        )
        return ids, rows

    def release(self, client, *futures):
        self.step(reactor.on_release_futures, client, ReleaseFutures(futures))

    def cancel(self, client, *futures, force=False, reason="", message=""):
        self.step(reactor.on_cancel_futures, client, CancelFutures(futures, force, reason, message))

    def retry(self, client, *futures):
        self.step(reactor.on_retry_futures, client, RetryFutures(futures))

    def leave(self, client):
        self.step(reactor.on_remove_client, client)

    def messages(self, kind=None):
        """What clients were told since the last look."""
        told = [(c, m) for c, m in self.told if kind is None or type(m) is kind]
        self.told = []
        return told

    # Workers

    def worker(self, name="a", nthreads=1, resources=(), host="", address=None):
        address = address or f"tcp://10.0.0.{len(self.workers) + 1}:{self.model.unseen_worker}"
        register = RegisterWorker(name, address, nthreads, 0, resources, host, 1, {})
        worker_id = reactor.on_add_worker(self.model, self.outbox, register, self.now)
        sim = self.workers[name] = SimWorker(self, worker_id, name, address)
        self.check()
        self.turn()
        return sim

    def lose(self, worker, safe=False, cause=OOPS):
        del self.workers[worker.name]
        self.step(reactor.on_remove_worker, worker.worker_id, cause, safe)

    def lose_executor(self, worker, *running):
        rows = [(task_id, worker.runs[task_id][0]) for task_id in running]
        worker.runs.clear()
        worker.values.clear()
        message = ExecutorLost(tuple(r[0] for r in rows), tuple(r[1] for r in rows), OOPS)
        self.step(reactor.on_executor_lost, worker.worker_id, message)

    def finish(self, worker, *keys, nbytes=10_000, value=None, seconds=0.01):
        """Let runs end well (all of the worker's if none are named)."""
        ids = [worker.id_of(key) for key in keys] if keys else list(worker.runs)
        attempts = [worker.runs[i][0] for i in ids]
        for i in ids:
            worker.values[i] = worker.runs.pop(i)[0]
        self.finished(worker, ids, attempts, nbytes, value, seconds)

    def finished(self, worker, ids, attempts, nbytes=10_000, value=None, seconds=0.01):
        n = len(ids)
        ticks = array("d", [self.now, self.now, self.now + seconds, self.now + seconds] * n).tobytes()
        message = TasksFinished(tuple(ids), tuple(attempts), (nbytes,) * n, (value,) * n, (1,) * n, ticks)
        self.step(reactor.on_tasks_finished, worker.worker_id, message)

    def fail(self, worker, *keys, error=OOPS):
        ids = [worker.id_of(key) for key in keys] if keys else list(worker.runs)
        attempts = [worker.runs.pop(i)[0] for i in ids]
        n = len(ids)
        message = TasksErred(tuple(ids), tuple(attempts), (error,) * n, (1,) * n, array("d", [0.0] * 4 * n).tobytes())
        self.step(reactor.on_tasks_erred, worker.worker_id, message)

    def secede(self, worker, *keys):
        ids = [worker.id_of(key) for key in keys]
        message = TasksSeceded(tuple(ids), tuple(worker.runs[i][0] for i in ids))
        self.step(reactor.on_tasks_seceded, worker.worker_id, message)

    def added(self, worker, task_id, attempt, nbytes=1000):
        worker.values[task_id] = attempt
        self.step(reactor.on_replicas_added, worker.worker_id, ReplicasAdded((task_id,), (attempt,), (nbytes,)))

    def missing(self, worker, task_id, attempt, holder, lost):
        message = ReplicasMissing((task_id,), (attempt,), (holder,), (lost,))
        self.step(reactor.on_replicas_missing, worker.worker_id, message)

    def balance(self):
        stealing.balance(self.model, self.outbox, self.now)
        self.check()
        self.turn()

    def answer_steals(self, worker, given=True):
        rows = worker.stolen
        worker.stolen = []
        gives = []
        for task_id, attempt in rows:
            give = given and worker.runs.get(task_id, (0,))[0] == attempt
            if give:
                del worker.runs[task_id]
            gives.append(give)
        message = StealReplies(tuple(r[0] for r in rows), tuple(r[1] for r in rows), tuple(gives))
        self.step(reactor.on_steal_replies, worker.worker_id, message)

    def run_all(self, **kwargs):
        """Let every worker finish what it has, until nothing is left to do."""
        while any(w.runs for w in self.workers.values()):
            for worker in list(self.workers.values()):
                if worker.runs:
                    self.finish(worker, **kwargs)

    # Looks

    def state(self, key):
        ts = self.model.tasks.get(key)
        return "forgotten" if ts is None else queries.STATE_NAMES[ts.state]

    def task(self, key):
        return self.model.tasks[key]

    def assert_empty(self):
        """Nothing is left of any task."""
        model = self.model
        for name in ("tasks", "by_id", "groups", "no_worker", "scattering", "moving"):
            assert not getattr(model, name), name
        assert model.queue.peek() is None
        assert not model.queue.line
        assert not model.queue.heap
        assert all(ts.state != 1 for ts in model.ready)
        for ws in model.workers.values():
            assert not ws.processing, ws
            assert not ws.has_what, ws
            assert ws.occupancy == 0.0, ws
            assert ws.nbytes == 0, ws
        for client in model.clients.values():
            assert not client.futures
        for worker in self.workers.values():
            assert not worker.values, (worker.name, worker.values)
            assert not worker.runs, (worker.name, worker.runs)
