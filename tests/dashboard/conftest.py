"""What the dashboard's tests share: waiting for states, HTTP without redirects, a scheduler that is driven by hand."""

from __future__ import annotations

import http.client
from array import array
from types import SimpleNamespace
from typing import NamedTuple
from urllib.parse import urlsplit

import msgpack
import pytest

from gnomon.runtime.comm.base import Counters
from gnomon.runtime.core import Model as Brain
from gnomon.runtime.core import Outbox, RunColumns, Settings, reactor
from gnomon.runtime.instruments.demand import ASSIGNED
from gnomon.runtime.messages import DemandChanged, RegisterWorker
from gnomon.runtime.scheduler import counters
from gnomon.runtime.scheduler.budget import PARTS
from gnomon.runtime.scheduler.telemetry import Telemetry
from tests.dashboard.pages_env import Served, fill
from tests.waiting import nothing_left, waiter

DEADLINE = 60


@pytest.fixture
def wait_until():
    """Wait for a condition; fails with its name when the deadline passes."""
    return waiter(DEADLINE, pause=0.02)


@pytest.fixture(autouse=True)
def no_leftovers(wait_until):
    """No process and no thread but daemons outlives a test."""
    with nothing_left(wait_until, 20):
        yield


class Answer(NamedTuple):
    """An HTTP answer; header names are in small letters."""

    status: int
    headers: dict[str, str]
    body: str


def ask(link, path="/", *, method="GET", token=True, headers=None, timeout=DEADLINE):
    """Ask a dashboard by its link; ``token``: send it as a bearer."""
    parts = urlsplit(link)
    given = dict(headers or {})
    secret = parts.query.partition("token=")[2]
    if token and secret:
        given.setdefault("Authorization", f"Bearer {secret}")
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
    try:
        connection.request(method, path, headers=given)
        answer = connection.getresponse()
        body = answer.read().decode("utf-8", "replace")
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, body)
    finally:
        connection.close()


@pytest.fixture(name="ask")
def ask_fixture():
    return ask


def comm(address):
    """A connection that sends nothing, with its counters."""
    return SimpleNamespace(counters=Counters(), local_address=address)


class HandDriven:
    """A scheduler's telemetry and counters without a scheduler.

    ``now`` is what its clock shows; ``loop``: seconds of its loop by part of the budget.
    """

    def __init__(self, monkeypatch, **lengths):
        self.telemetry = Telemetry(**lengths)
        self.model = Brain(Settings())
        self.id = "Scheduler-1"
        self.started = 1000.0
        self.now = 1000.0
        self.workers = {}
        self.clients = {}
        self.loop = {}
        self.watching = SimpleNamespace(budget=SimpleNamespace(rows=self._loop_rows))
        self._view = counters.LiveView(self)
        monkeypatch.setattr(counters.clock, "now", lambda: self.now)

    def join(self, worker_id, nthreads=2, when=None):
        """A worker joins."""
        name, address = f"w{worker_id}", f"tcp://127.0.0.1:{9000 + worker_id}"
        message = RegisterWorker(name, address, nthreads, 0, (), "here", worker_id, {})
        assert reactor.on_add_worker(self.model, Outbox(), message, when or self.now) == worker_id
        self.workers[worker_id] = SimpleNamespace(
            metrics={"memory": 5e7, "cpu_seconds": 1.0}, last_seen=self.now, comm=comm(address)
        )
        self.telemetry.worker_joined(
            worker_id, name=name, address=address, nthreads=nthreads, host="here", now=when or self.now
        )

    def run(self, *rows):
        """Runs that ended: (prefix, worker, begin, seconds[, thread]) each; a tenth is decoding, another encoding."""
        times = [t for _, _, b, s, *_ in rows for t in (b, b + s / 10, b + s * 9 / 10, b + s)]
        self.telemetry.append_runs(
            RunColumns(
                [f"{row[0]}-{i}" for i, row in enumerate(rows)],
                [row[0] for row in rows],
                array("q", [row[1] for row in rows]),
                array("i", [row[4] if len(row) > 4 else 0 for row in rows]),
                array("d", times),
                array("q", [100] * len(rows)),
                array("b", [1] * len(rows)),
                array("d", [row[3] / 2 for row in rows]),
            )
        )

    def hold(self, worker, tasks, *, tell=True):
        """From now on a worker holds so many tasks whose ends are not known yet; ``tell``: in records of demand too."""
        state = self.model.workers[worker]
        before = len(state.processing)
        state.processing.clear()
        state.processing.update({-1 - at: None for at in range(tasks)})
        if tell and (before > 0) != (tasks > 0):
            self.demand(worker, (self.now, ASSIGNED, tasks > 0))

    def _loop_rows(self):
        return [(name, "timed", self.loop.get(name, 0.0), 1) for name in PARTS]

    def demand(self, worker, *changes):
        """Changes of demand: (time, kind, value) each."""
        kinds, values, times = zip(*((kind, value, time) for time, kind, value in changes), strict=True)
        self.telemetry.append_demand(worker, DemandChanged(kinds, values, times))

    def live(self, **question):
        """An answer, as it comes off the wire."""
        answer = self._view.live(**question)
        return msgpack.unpackb(msgpack.packb(answer), use_list=False, strict_map_key=False)

    def feed(self, model, limit=10_000):
        """Bring a model up to date."""
        while not model.apply(self.live(**model.question(), limit=limit), self.now):
            pass


@pytest.fixture
def by_hand(monkeypatch):
    """Makes schedulers that are driven by hand."""
    return lambda **lengths: HandDriven(monkeypatch, **lengths)


@pytest.fixture
def serve(by_hand, monkeypatch):
    """Serves the dashboard of a scheduler in a state."""
    served = []

    def start(state="busy", **options):
        scheduler = by_hand()
        fill(scheduler, state)
        served.append(Served(scheduler, monkeypatch, **options))
        return served[-1]

    yield start
    for each in served:
        each.close()
