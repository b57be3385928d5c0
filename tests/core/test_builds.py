"""Compiled and interpreted, the brain is the same: which of them runs, and that both leave the same trace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gnomon.runtime.build import is_compiled
from gnomon.runtime.core import arrival, columns, order, outbox, placement, reactor, task, transitions

MODULES = (arrival, columns, order, outbox, placement, reactor, task, transitions)

#: Runs a random but seeded life of a small cluster, and prints a digest of every message.
TRACE = """
import hashlib, random, sys
sys.path.insert(0, sys.argv[1])
from brain_env import BrainEnv
from gnomon.runtime.core import transitions
env = BrainEnv()
rng = random.Random(7)
digest = hashlib.sha256()
env.check = lambda: None
outbox = env.outbox
def spy(drain):
    def drained():
        mails = drain()
        digest.update(repr(mails).encode())
        return mails
    return drained
class Spy:
    def __init__(self, outbox):
        self.drain_workers = spy(outbox.drain_workers)
        self.drain_clients = spy(outbox.drain_clients)
        self.take_records = outbox.take_records
        self.is_empty = outbox.is_empty
real_turn = env.turn
def turn():
    from gnomon.runtime.core import placement
    if env.model.placement_wanted:
        placement.run(env.model, outbox, env.now)
    env.outbox = Spy(outbox)
    real_turn()
    env.outbox = outbox
env.turn = turn
client = env.client()
futures = []
for step in range(300):
    env.now += 0.05
    kind = rng.randrange(8)
    busy = [w for w in env.workers.values() if w.runs]
    if kind < 3 and len(env.model.by_id) < 300:
        keys = [f"k-{step}-{i}" for i in range(rng.randrange(1, 12))]
        graph = {k: rng.sample(keys[:i], min(i, rng.randrange(3))) for i, k in enumerate(keys)}
        futures += env.graph(client, graph, want=rng.sample(keys, 1)).values()
    elif kind == 3 and len(env.workers) < 6:
        env.worker(f"w{step}", nthreads=rng.randrange(1, 4))
    elif kind < 6 and busy:
        worker = rng.choice(busy)
        count = rng.randrange(1, len(worker.runs) + 1)
        keys = rng.sample(worker.keys(), count)
        env.finish(worker, *keys, nbytes=rng.randrange(10**6), value=rng.choice([None, b"v"]), seconds=rng.random() /
        100)
    elif kind == 6 and futures:
        env.release(client, futures.pop(rng.randrange(len(futures))))
    elif kind == 7:
        env.balance()
        for worker in env.workers.values():
            if worker.stolen:
                env.answer_steals(worker)
        if rng.random() < 0.2 and len(env.workers) > 2:
            env.lose(rng.choice(list(env.workers.values())))
print(transitions.__file__.endswith(".py"), digest.hexdigest(), len(env.told))
"""


def test_the_environment_chooses_the_build():
    compiled = {is_compiled(module) for module in MODULES}
    if os.environ.get("GNOMON_PURE") == "1":
        assert compiled == {False}
    elif os.environ.get("GNOMON_REQUIRE_COMPILED") == "1":
        assert compiled == {True}
    else:
        assert len(compiled) == 1, "some modules are compiled and some are not"


def test_compiled_and_interpreted_leave_the_same_trace():
    if not is_compiled(transitions):
        pytest.skip("only the interpreted build is here")
    traces = []
    for pure in ("0", "1"):
        environment = os.environ | {"GNOMON_PURE": pure, "PYTHONHASHSEED": "1" + pure}
        command = [sys.executable, "-c", TRACE, str(Path(__file__).parent)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
        traces.append(done.stdout.split())
    assert [trace[0] for trace in traces] == ["False", "True"]
    assert traces[0][1:] == traces[1][1:]
    assert int(traces[0][2]) > 20
