"""One cluster from a seed: who takes part, what goes wrong, and what must be true at the end."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from gnomon.runtime import core
from gnomon.runtime.core import invariants as core_invariants
from gnomon.runtime.messages import NO_OPTIONS, TaskOptions
from gnomon.runtime.worker.state import Settings
from tests.simulation.client import CANCELLED, DONE, ERRED, Client
from tests.simulation.definitions import Oracle
from tests.simulation.scheduler import Scheduler
from tests.simulation.worker import Network, Place, Worker
from tests.simulation.world import SimulationError, World

__all__ = ["Cluster", "Result", "simulate"]

#: Virtual seconds within which a healed cluster must come to rest.
_REST = 120


class Result(NamedTuple):
    """What one seed came to."""

    seed: int
    digest: str
    events: int
    faults: int
    counts: dict[str, int]


def simulate(seed: int, limit: int = 60_000) -> Result:
    """Run one seed to its end, within ``limit`` events. Raises AssertionError, or what a brain raises."""
    cluster = Cluster(seed, limit)
    cluster.play()
    cluster.heal()
    cluster.check_ended()
    cluster.release()
    cluster.check_empty()
    world = cluster.world
    return Result(seed, world.digest(), world.events, cluster.faults, dict(world.counts))


class Cluster:
    """The actors of one seed."""

    def __init__(self, seed: int, limit: int) -> None:
        self.world = World(seed, limit)
        self.chance = self.world.random("scenario")
        chance = self.chance
        self.faults = 0
        self.hostile = chance.random() < 0.85
        self.narrow = chance.random() < 0.15  # one worker and few keys: what is late meets what is current
        self.oracle = Oracle(self.world.random("definitions"), self.hostile, self.narrow)
        settings = core.Settings(
            allowed_failures=3,
            unknown_duration=chance.choice((0.001, 0.5)),
            backlog_seconds=chance.choice((0.0, 0.05)),
            steal_latency=chance.choice((0.0001, 0.005)),
            validate=True,
        )
        self.scheduler = Scheduler(self.world, self.oracle, settings, self.hostile)
        self.network = Network(self.world)
        self.network.faulty = self.hostile
        self.places = [_make_place(chance, i) for i in range(1 if self.narrow else chance.randint(1, 5))]
        self.workers: dict[str, Worker] = {}
        self._starts = 0
        self._names = 0
        self.wishes = _make_wishes(chance, self.places)
        self.clients: list[Client] = []

    # The play

    def play(self) -> None:
        """What happens until the last fault."""
        chance = self.chance
        for place in self.places:
            late = chance.random() < 0.3
            self.world.after(chance.randint(0, 150_000) if late else 0, self.start, place)
        for _ in range(chance.randint(1, 3)):
            self.add_client()
        for _ in range(chance.choice((15, 40, 120))):
            self.world.run(until=self.world.ticks + int(chance.expovariate(1.0) * 12_000))
            self.act()

    def act(self) -> None:
        """One deed of a client, or one thing that goes wrong."""
        chance = self.chance
        draw = chance.random()
        if draw > 0.97 or (draw > 0.9 and not self.hostile):
            self.retire()
            return
        if draw < 0.75 or not self.hostile:
            clients = [c for c in self.clients if c.alive]
            chance.choice(clients).act() if clients else self.add_client()
            return
        self.faults += 1
        workers = [w for w in self.workers.values() if w.alive]
        if draw < 0.78:
            self.add_client()
        elif draw < 0.80:
            chance.choice(self.clients).leave()
            self.clients = [c for c in self.clients if c.alive]
            if not self.clients:
                self.add_client()
        elif workers and draw < 0.86:
            self.stop(chance.choice(workers), killed=True)
        elif workers and draw < 0.88:
            self.stop(chance.choice(workers), killed=False)
        elif workers and draw < 0.96:
            chance.choice(workers).lose_executor()
        else:
            asker = chance.choice([*[p.address for p in self.places], *[c.name for c in self.clients]])
            self.network.block(asker, chance.choice(self.places).address)

    def start(self, place: Place) -> None:
        """Start a worker where none runs."""
        known = self.workers.get(place.name)
        if known is None or not known.alive:
            self._starts += 1
            worker = Worker(self.world, self.oracle, place, self.network, self.scheduler, self._starts)
            self.workers[place.name] = worker

    def stop(self, worker: Worker, *, killed: bool) -> None:
        """End a worker; another comes up at the same address, soon or when the cluster is healed."""
        if killed:
            worker.kill()
        else:
            worker.retire()
        if self.chance.random() < 0.7:
            self.world.after(self.chance.randint(0, 80_000), self.start, worker.place)

    def retire(self) -> None:
        """Send a worker home in good order; without faults only while another stays, so that nothing need be lost."""
        steady = [w for w in self.workers.values() if w.alive and w.registered and not w.connection.retiring]
        if len(steady) > (0 if self.hostile else 1):
            worker = self.chance.choice(steady)
            self.scheduler.retire(worker.connection)
            self._replace(worker)

    def _replace(self, worker: Worker) -> None:
        """Once it has left, another comes up in its place."""
        if worker.alive:
            self.world.after(20_000, self._replace, worker)
        else:
            self.start(worker.place)

    def add_client(self) -> None:
        """Another client."""
        self._names += 1
        name = f"c{self._names}"
        wishes, hostile, narrow = self.wishes, self.hostile, self.narrow
        client = Client(self.world, self.oracle, self.network, self.scheduler, name, wishes, hostile, narrow)
        self.clients.append(client)

    # The end

    def heal(self) -> None:
        """No more faults: every place has a worker, and all come to rest."""
        self.network.faulty = False
        self.network.blocked.clear()
        for place in self.places:
            self.start(place)
        self.rest("after healing")

    def rest(self, when: str) -> None:
        """Let everything run out."""
        start = self.world.ticks
        self.world.run()
        if self.world.ticks - start > _REST * 1_000_000:
            raise SimulationError(f"{when}: it took {(self.world.ticks - start) / 1e6:.0f} virtual seconds to rest")
        core_invariants.check_all(self.scheduler.model)

    def check_ended(self) -> None:
        """Every future has ended, and no worker has anything left to do."""
        for client in self.clients:
            for future in client.futures.values():
                if future.state in (ERRED, CANCELLED) or (future.state == DONE and future.value is not None):
                    continue
                model = self.scheduler.model
                task = model.clients[client.connection.ident or 0].futures.get(future.future_id)
                story = core.queries.story(model, future.key)[-20:] if task is not None else "unknown to the scheduler"
                raise SimulationError(f"{client.name}: {future.key} is {future.state} for ever; {task}; {story}")
        for worker in self.workers.values():
            brain = worker.model
            left: dict[str, dict[Any, Any]] = {"runs": brain.runs, "freed": brain.freed, "fetches": brain.in_flight}
            for what, items in left.items():
                if items:
                    raise SimulationError(f"{worker.name} has {what} left: {list(items)}")
            if worker.executor is None or not worker.executor.idle:
                raise SimulationError(f"{worker.name} has a busy executor, or none")

    def release(self) -> None:
        """Every client lets go of everything, and then of its code."""
        for client in self.clients:
            client.release_all(list(client.futures.values()))
            client.forget_codes()
        self.rest("after release")

    def check_empty(self) -> None:
        """Nothing is left of what nobody wants."""
        model = self.scheduler.model
        if model.tasks or model.by_id:
            raise SimulationError(f"the scheduler still has {list(model.by_id.values())}")
        for ws in model.workers.values():
            if ws.processing or ws.has_what or ws.codes:
                raise SimulationError(f"{ws} has {list(ws.processing)} {list(ws.has_what)} {list(ws.codes)}")
        for worker in self.workers.values():
            if worker.model.values or worker.model.codes:
                raise SimulationError(f"{worker.name} keeps {list(worker.model.values)}, {list(worker.model.codes)}")
            if worker.executor is not None and worker.executor.store:
                raise SimulationError(f"the executor of {worker.name} keeps {list(worker.executor.store)}")


def _make_place(chance: random.Random, number: int) -> Place:
    """A place for a worker; the first has every resource, so that no task is without hope."""
    resources: tuple[tuple[str, float], ...] = ()
    if number == 0 or chance.random() < 0.4:
        resources = (("gpu", 2.0), ("ssd", 1.0))
    settings = Settings(
        nthreads=chance.randint(1, 3),
        resources=resources,
        executors=(("aux", 1),) if chance.random() < 0.5 else (),
        prefetch_seconds=chance.choice((0.0, 0.005)),
        fetch_concurrency=chance.choice((1, 2, 10)),
        fetch_bytes=chance.choice((100_000, 50_000_000)),
        fetch_rows=chance.choice((1, 1000)),
        validate=True,
    )
    return Place(f"w{number}", f"host{number % 2}", settings)


def _make_wishes(chance: random.Random, places: list[Place]) -> list[TaskOptions]:
    """The options that tasks of this seed may have; most have none."""
    name = chance.choice(places).name
    return [
        *[NO_OPTIONS] * 6,
        TaskOptions(priority=1),
        TaskOptions(priority=-1, retries=2),
        TaskOptions(retries=1),
        TaskOptions(workers=(name,)),
        TaskOptions(workers=(name,), allow_other_workers=True),
        TaskOptions(workers=("host0",)),
        TaskOptions(resources=(("gpu", 1.0),)),
        TaskOptions(resources=(("gpu", 2.0), ("ssd", 1.0))),
        TaskOptions(executor="aux"),
    ]
