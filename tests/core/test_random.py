"""Random stimuli in random order: the invariants hold after each, and in the end everything can be finished and
forgotten."""

from __future__ import annotations

import pytest
from brain_env import BrainEnv
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from gnomon.runtime.core import queries, reactor
from gnomon.runtime.messages import TaskOptions

KEYS = st.integers(0, 11)
PICK = st.integers(0, 1 << 16)


class Brain(RuleBasedStateMachine):
    """Two clients and up to five workers. Simulated workers may be slow, dishonest about nothing, and mortal."""

    @initialize(saturation=st.sampled_from([1.1, 3.0, 1e9]), limit=st.sampled_from([1, 5]))
    def begin(self, saturation, limit):
        self.env = BrainEnv(saturation=saturation, missing_limit=limit, allowed_failures=2)
        self.clients = [self.env.client("one"), self.env.client("two")]
        self.born = 0
        self.data = []

    # Looks

    def worker(self, pick, busy=False):
        workers = [w for w in self.env.workers.values() if w.runs or not busy]
        return workers[pick % len(workers)] if workers else None

    def run_of(self, worker, pick):
        """A run whose inputs the worker has, or could fetch: these the simulation fetches by magic."""
        keys = list(worker.runs)
        return keys[pick % len(keys)]

    def live(self, client):
        return list(self.env.model.clients[client].futures)

    # Clients

    @rule(
        who=st.integers(0, 1),
        shape=st.lists(st.tuples(KEYS, st.lists(KEYS, max_size=3)), min_size=1, max_size=8),
        pick=PICK,
    )
    def submit(self, who, shape, pick):
        client = self.clients[who]
        tasks = {}
        for key, needs in shape:
            name = f"k-{key}"
            if name not in tasks:
                tasks[name] = [f"k-{n}" for n in needs if f"k-{n}" in tasks]
        live = self.live(client)
        if live and pick % 3 == 0:
            first = next(iter(tasks))
            tasks[first] = [live[pick % len(live)]]
            if self.env.model.clients[client].futures[tasks[first][0]].key == first:
                tasks[first] = []
        names = list(tasks)
        want = [n for i, n in enumerate(names) if pick >> i & 1] or names[-1:]
        options = [
            TaskOptions(),
            TaskOptions(retries=1, priority=pick % 2),
            TaskOptions(workers=(f"w{pick % 5}",), allow_other_workers=bool(pick & 8)),
            TaskOptions(resources=(("GPU", 1.0),)),
        ][pick % 7 if pick % 7 < 4 else 0]
        self.env.graph(client, tasks, want=want, options=options, code=b"code-%d" % (pick % 3))

    @rule(who=st.integers(0, 1), pick=PICK, count=st.integers(1, 4))
    def release(self, who, pick, count):
        live = self.live(self.clients[who])
        if live:
            self.env.release(self.clients[who], *{live[(pick + i) % len(live)] for i in range(count)})

    @rule(who=st.integers(0, 1), pick=PICK, force=st.booleans())
    def cancel(self, who, pick, force):
        live = self.live(self.clients[who])
        if live:
            self.env.cancel(self.clients[who], live[pick % len(live)], force=force)

    @rule(who=st.integers(0, 1), pick=PICK)
    def retry(self, who, pick):
        live = self.live(self.clients[who])
        if live:
            self.env.retry(self.clients[who], live[pick % len(live)])

    @rule(who=st.integers(0, 1), key=KEYS)
    def want(self, who, key):
        self.env.want(self.clients[who], f"k-{key}")

    @rule(who=st.integers(0, 1), key=KEYS, small=st.booleans(), copies=st.integers(0, 2))
    def scatter(self, who, key, small, copies):
        if self.env.workers or small:
            _, rows = self.env.scatter(self.clients[who], f"k-{key}", value=b"v" if small else None, copies=copies)
            self.data.extend(rows)

    @precondition(lambda self: self.data)
    @rule(pick=PICK)
    def data_arrives(self, pick):
        task_id, attempt, addresses = self.data.pop(pick % len(self.data))
        for worker in self.env.workers.values():
            if worker.address in addresses:
                self.env.added(worker, task_id, attempt)

    @rule(who=st.integers(0, 1))
    def leave(self, who):
        if self.born % 4 == 0:
            self.env.leave(self.clients[who])
            self.clients[who] = self.env.client("new")

    # Workers

    @rule(pick=PICK)
    def join(self, pick):
        if len(self.env.workers) < 5:
            names = [f"w{i}" for i in range(5) if f"w{i}" not in self.env.workers]
            self.born += 1
            resources = (("GPU", 1.0),) if pick % 3 == 0 else ()
            self.env.worker(names[pick % len(names)], nthreads=1 + pick % 2, resources=resources)

    @rule(pick=PICK, safe=st.booleans())
    def die(self, pick, safe):
        worker = self.worker(pick)
        if worker is not None:
            self.env.lose(worker, safe=safe)

    @rule(pick=PICK)
    def executor_dies(self, pick):
        worker = self.worker(pick)
        if worker is not None:
            running = list(worker.runs)[:1]
            self.env.lose_executor(worker, *running)

    @rule(pick=PICK, small=st.booleans(), count=st.integers(1, 5))
    def finish(self, pick, small, count):
        worker = self.worker(pick, busy=True)
        if worker is None:
            return
        ids = list(worker.runs)[pick % len(worker.runs) :][:count]
        attempts = [worker.runs[i][0] for i in ids]
        for i in ids:
            worker.values[i] = worker.runs.pop(i)[0]
        self.env.finished(worker, ids, attempts, nbytes=pick, value=b"v" if small else None, seconds=pick * 1e-6)

    @rule(pick=PICK)
    def fail(self, pick):
        worker = self.worker(pick, busy=True)
        if worker is not None:
            self.env.fail(worker, worker.runs[self.run_of(worker, pick)][1])

    @rule(pick=PICK)
    def secede(self, pick):
        worker = self.worker(pick, busy=True)
        if worker is not None:
            self.env.secede(worker, worker.runs[self.run_of(worker, pick)][1])

    @rule(pick=PICK)
    def late_news(self, pick):
        worker = self.worker(pick)
        if worker is not None and pick % 40 not in worker.runs:
            self.env.finished(worker, [pick % 40], [pick % 3])
            self.env.added(worker, pick % 40, pick % 3)
            if worker.values.get(pick % 40) == pick % 3:
                ts = self.env.model.by_id.get(pick % 40)
                if ts is None or all(ws.worker_id != worker.worker_id for ws in ts.holders):
                    del worker.values[pick % 40]

    @rule(pick=PICK)
    def fetch(self, pick):
        worker = self.worker(pick, busy=True)
        if worker is not None:
            for dep in worker.runs[self.run_of(worker, pick)][2]:
                ts = self.env.model.by_id.get(dep)
                if ts is not None and ts.holders and dep not in worker.values:
                    self.env.added(worker, dep, ts.attempt, ts.nbytes)

    @rule(pick=PICK, lost=st.booleans())
    def missing(self, pick, lost):
        worker = self.worker(pick, busy=True)
        if worker is None:
            return
        for dep in worker.runs[self.run_of(worker, pick)][2]:
            ts = self.env.model.by_id.get(dep)
            if ts is not None and dep not in worker.values:
                holder = ts.holders[0] if ts.holders else None
                if lost and holder is not None:
                    self.env.workers[holder.name].values.pop(dep, None)
                address = holder.address if holder is not None else "tcp://gone:1"
                self.env.missing(worker, dep, ts.attempt - pick % 2, address, lost)
                return

    @rule()
    def balance(self):
        self.env.now += 0.1
        self.env.balance()

    @rule(pick=PICK, given=st.booleans())
    def answer(self, pick, given):
        worker = self.worker(pick)
        if worker is not None and worker.stolen:
            self.env.answer_steals(worker, given=given)

    def teardown(self):
        """Once faults stop every future ends, and nothing is left of released ones."""
        if not hasattr(self, "env"):
            return
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
            for future_id in self.live(client):
                assert env.futures[future_id] in ("done", "erred"), (
                    future_id,
                    queries.story(env.model, env.model.clients[client].futures[future_id].key),
                )
        for client in self.clients:
            env.release(client, *self.live(client))
        env.assert_empty()
        for client in self.clients:
            env.step(reactor.on_remove_client, client)
        assert not any(worker.codes for worker in env.workers.values())


Brain.TestCase.settings = settings(
    max_examples=120, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestBrain = Brain.TestCase
TestBrain.pytestmark = [pytest.mark.timeout(300)]
