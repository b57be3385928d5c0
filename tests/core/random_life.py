"""A small cluster's life, one random event after another, for hypothesis and for seeded walks.

Simulated workers may be slow and mortal; what they say is true, but may be late. Every action takes three integers that
choose among what is possible, so that any sequence of them is a life.
"""

from __future__ import annotations

from brain_env import BrainEnv

from gnomon.runtime.core import queries, reactor
from gnomon.runtime.messages import TaskOptions

#: Actions and how often each happens.
ACTIONS = {
    "submit": 10,
    "release": 4,
    "cancel": 1,
    "retry": 1,
    "want": 1,
    "scatter": 2,
    "data_arrives": 3,
    "leave": 1,
    "join": 3,
    "die": 1,
    "executor_dies": 1,
    "retire": 1,
    "finish": 14,
    "fail": 2,
    "secede": 1,
    "late_news": 3,
    "fetch": 4,
    "missing": 2,
    "balance": 2,
    "answer": 2,
}
NAMES = [name for name, weight in ACTIONS.items() for _ in range(weight)]


class Life:
    """Two clients and up to five workers."""

    def __init__(self, saturation=1.1, limit=5):
        self.env = BrainEnv(saturation=saturation, missing_limit=limit, allowed_failures=2)
        self.clients = [self.env.client("one"), self.env.client("two")]
        self.data = []
        self.past = []  # (task id, attempt) of runs that some worker was given
        for i in range(2):
            self.env.worker(f"w{i}")

    def act(self, name, a, b, c):
        getattr(self, name)(a, b, c)
        for worker in self.env.workers.values():
            for task_id, (attempt, _, _) in worker.runs.items():
                if (task_id, attempt) not in self.past[-50:]:
                    self.past.append((task_id, attempt))

    def worker(self, pick, busy=False):
        workers = [w for w in self.env.workers.values() if w.runs or not busy]
        return workers[pick % len(workers)] if workers else None

    def live(self, client):
        return list(self.env.model.clients[client].futures)

    # Clients

    def submit(self, a, b, c):
        client = self.clients[a % 2]
        futures = self.env.model.clients[client].futures
        names = [f"k-{(b + i * (1 + c % 5)) % 13}" for i in range(1 + a % 7)]
        tasks = {}
        for i, name in enumerate(names):
            if name not in tasks:
                tasks[name] = [n for k, n in enumerate(list(tasks)) if b >> (i + k) & 3 == 3]
        if futures and c % 3 == 0:
            need = list(futures)[c % len(futures)]
            first = next(iter(tasks))
            if futures[need].key != first:
                tasks[first] = [need]
        rows = list(tasks)
        want = [name for i, name in enumerate(rows) if c >> i & 1] or rows[-1:]
        options = [
            TaskOptions(),
            TaskOptions(retries=1, priority=c % 2),
            TaskOptions(workers=(f"w{c % 5}",), allow_other_workers=bool(c & 8)),
            TaskOptions(resources=(("GPU", 1.0),)),
        ][b % 4 if c % 2 else 0]
        self.env.graph(client, tasks, want=want, options=options, code=b"code-%d" % (c % 2))

    def release(self, a, b, c):
        client = self.clients[a % 2]
        live = self.live(client)
        if live:
            self.env.release(client, *{live[(b + i) % len(live)] for i in range(1 + c % 3)})

    def cancel(self, a, b, c):
        client = self.clients[a % 2]
        live = self.live(client)
        if live:
            self.env.cancel(client, live[b % len(live)], force=bool(c % 2))

    def retry(self, a, b, c):
        client = self.clients[a % 2]
        erred = [f for f in self.live(client) if self.env.futures.get(f) == "erred"]
        if erred:
            self.env.retry(client, erred[b % len(erred)])

    def want(self, a, b, c):
        self.env.want(self.clients[a % 2], f"k-{b % 13}")

    def scatter(self, a, b, c):
        if c % 2 or any(not ws.retiring for ws in self.env.model.workers.values()):
            value = b"v" if c % 2 else None
            _, rows = self.env.scatter(self.clients[a % 2], f"k-{b % 13}", value=value, copies=c % 3)
            self.data.extend(rows)

    def data_arrives(self, a, b, c):
        if self.data:
            task_id, attempt, addresses = self.data.pop(a % len(self.data))
            for worker in self.env.workers.values():
                if worker.address in addresses:
                    self.env.added(worker, task_id, attempt)

    def leave(self, a, b, c):
        if c % 4 == 0:
            self.env.leave(self.clients[a % 2])
            self.clients[a % 2] = self.env.client("new")

    # Workers

    def join(self, a, b, c):
        names = [f"w{i}" for i in range(5) if f"w{i}" not in self.env.workers]
        if names:
            resources = (("GPU", 1.0),) if b % 3 == 0 else ()
            self.env.worker(names[a % len(names)], nthreads=1 + c % 2, resources=resources)

    def die(self, a, b, c):
        worker = self.worker(a)
        if worker is not None:
            self.env.lose(worker, safe=bool(b % 2))

    def retire(self, a, b, c):
        worker = self.worker(a)
        if worker is not None:
            self.env.step(reactor.on_retire_workers, (worker.worker_id,))

    def executor_dies(self, a, b, c):
        worker = self.worker(a)
        if worker is not None:
            self.env.lose_executor(worker, *list(worker.runs)[:1])

    def finish(self, a, b, c):
        worker = self.worker(a, busy=True)
        if worker is None:
            return
        ids = [task_id for task_id in worker.runs if c % 3 or task_id % 2][b % len(worker.runs) :][: 1 + c % 4]
        attempts = [worker.runs[task_id][0] for task_id in ids]
        for task_id in ids:
            worker.values[task_id] = worker.runs.pop(task_id)[0]
        value = b"v" if c % 4 == 0 else None
        self.env.finished(worker, ids, attempts, nbytes=b, value=value, seconds=c * 1e-6)

    def fail(self, a, b, c):
        worker = self.worker(a, busy=True)
        if worker is not None:
            keys = worker.keys()
            self.env.fail(worker, keys[b % len(keys)])

    def secede(self, a, b, c):
        worker = self.worker(a, busy=True)
        if worker is not None:
            keys = worker.keys()
            self.env.secede(worker, keys[b % len(keys)])

    def late_news(self, a, b, c):
        """Something that was true once, or never, of a run that this worker doesn't have."""
        worker = self.worker(a)
        if worker is None or not self.past:
            return
        task_id, attempt = self.past[b % len(self.past)]
        if worker.runs.get(task_id, (0,))[0] == attempt or task_id in worker.values:
            return
        if c % 2:
            self.env.finished(worker, [task_id], [attempt])
            return
        ts = self.env.model.by_id.get(task_id)
        model = self.env.model
        current = ts is not None and ts.attempt == attempt and (ts.state == 5 or ts in model.scattering)
        if not current:
            self.env.added(worker, task_id, attempt)
            assert task_id not in worker.values, "a stale copy was not freed"

    def fetch(self, a, b, c):
        worker = self.worker(a, busy=True)
        if worker is not None:
            for dep in list(worker.runs.values())[b % len(worker.runs)][2]:
                ts = self.env.model.by_id.get(dep)
                if ts is not None and ts.holders and dep not in worker.values:
                    self.env.added(worker, dep, ts.attempt, ts.nbytes)

    def missing(self, a, b, c):
        worker = self.worker(a, busy=True)
        if worker is None:
            return
        for dep in list(worker.runs.values())[b % len(worker.runs)][2]:
            ts = self.env.model.by_id.get(dep)
            if ts is not None and dep not in worker.values:
                holder = ts.holders[0] if ts.holders else None
                lost = bool(c % 2)
                attempt = ts.attempt - (c % 5 == 4)
                if lost and holder is not None and attempt == ts.attempt:
                    self.env.workers[holder.name].values.pop(dep, None)
                address = holder.address if holder is not None else "tcp://gone:1"
                self.env.missing(worker, dep, attempt, address, lost)
                return

    def balance(self, a, b, c):
        self.env.now += 0.1
        self.env.balance()

    def answer(self, a, b, c):
        worker = self.worker(a)
        if worker is not None and worker.stolen:
            self.env.answer_steals(worker, given=bool(c % 3))

    def end(self):
        """Once faults stop every future ends, and nothing is left of released ones."""
        env = self.env
        for worker in list(env.workers.values()):
            if worker.stolen:
                env.answer_steals(worker)
        for i in range(5):
            if f"w{i}" in env.workers:
                env.lose(env.workers[f"w{i}"], safe=True)
            env.worker(f"w{i}", resources=(("GPU", 1.0),))
        env.run_all()
        for client in self.clients:
            for future_id, ts in env.model.clients[client].futures.items():
                assert env.futures[future_id] in ("done", "erred"), (ts, queries.story(env.model, ts.key))
            env.release(client, *self.live(client))
        env.assert_empty()
        for client in self.clients:
            env.step(reactor.on_remove_client, client)
        assert not any(worker.codes for worker in env.workers.values())
