"""A worker: its brain, an executor that may die, the data server and the fetches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from gnomon.runtime.messages import (
    CloseWorker,
    Codes,
    ComputeTasks,
    DropCodes,
    ErrorRecord,
    FetchReplicas,
    FreeTasks,
    Holders,
    Message,
    PutSegments,
    RegisterWorker,
    StealTasks,
    TasksErred,
    TasksFinished,
    TasksReturned,
    TasksSeceded,
    WorkerRegistered,
)
from gnomon.runtime.worker.state import (
    STORED,
    Fetch,
    Outbox,
    Settings,
    WorkerModel,
    dispatch,
    events,
    invariants,
)
from tests.simulation.definitions import Oracle
from tests.simulation.executor import Executor
from tests.simulation.scheduler import CLOSED, OPENED, Connection, Retired, Scheduler
from tests.simulation.world import Link, World

__all__ = ["Network", "Place", "Worker"]

#: A value, or why it can't leave its holder, or None if the holder hasn't got it.
Served: TypeAlias = "bytes | ErrorRecord | None"
Answer: TypeAlias = Callable[[list[Served] | None], None]

_EVENTS: dict[type[Any], Callable[..., None]] = {
    ComputeTasks: events.on_compute_tasks,
    FreeTasks: events.on_free_tasks,
    StealTasks: events.on_steal_tasks,
    Codes: events.on_codes,
    DropCodes: events.on_drop_codes,
    FetchReplicas: events.on_fetch_replicas,
    Holders: events.on_holders,
    TasksFinished: events.on_tasks_finished,
    TasksErred: events.on_tasks_erred,
    TasksSeceded: events.on_tasks_seceded,
    TasksReturned: events.on_tasks_returned,
}

_DEATH = ErrorRecord("ExecutorDied", "the executor died")


class Place:
    """Where a worker runs: what stays the same when it is started again."""

    def __init__(self, name: str, host: str, settings: Settings) -> None:
        self.name = name
        self.host = host
        self.address = f"tcp://{host}:{name[1:]}"
        self.settings = settings


class Network:
    """Who listens at which address now."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.listening: dict[str, Worker] = {}
        self.chance = world.random("network")
        self.blocked: set[tuple[str, str]] = set()
        self.was_blocked = False
        self.faulty = True

    def block(self, asker: str, address: str) -> None:
        """One can't reach the other until the cluster is healed."""
        self.was_blocked = True
        self.blocked.add((asker, address))

    def get(self, asker: str, address: str, rows: Sequence[tuple[int, int]], answer: Answer) -> None:
        """Ask an address for values. The answer is None if nobody could be reached, else per row a value or None."""
        self.world.after(self.chance.randint(50, 3000), self._ask, asker, address, rows, answer)

    def _ask(self, asker: str, address: str, rows: Sequence[tuple[int, int]], answer: Answer) -> None:
        worker = self.listening.get(address)
        blocked = (asker, address) in self.blocked or (self.faulty and self.chance.random() < 0.05)
        if worker is None or blocked:
            self.world.after(self.chance.randint(50, 3000), answer, None)
            return
        worker.read(rows, lambda values: self.world.after(self.chance.randint(50, 3000), answer, values))

    def put(self, address: str, task_id: int, attempt: int, value: bytes, answer: Callable[[bool], None]) -> None:
        """A client sends a value to a worker; the answer is whether it took it."""
        self.world.after(self.chance.randint(50, 3000), self._put, address, task_id, attempt, value, answer)

    def _put(self, address: str, task_id: int, attempt: int, value: bytes, answer: Callable[[bool], None]) -> None:
        worker = self.listening.get(address)
        if worker is None or not worker.registered:
            self.world.after(self.chance.randint(50, 3000), answer, False)
        else:
            worker.receive(("put", task_id, attempt, value, answer))


class Worker:
    """One start of a worker. It lives until ``kill`` or ``retire``."""

    def __init__(
        self, world: World, oracle: Oracle, place: Place, network: Network, scheduler: Scheduler, number: int
    ) -> None:
        self.world = world
        self.oracle = oracle
        self.place = place
        self.network = network
        self.scheduler = scheduler
        self.name = f"{place.name}.{number}"
        self.alive = True
        self.registered = False
        self._reads: dict[int, tuple[list[Served], Answer]] = {}
        self.model = WorkerModel(place.settings)
        self.outbox = Outbox()
        self.executor: Executor | None = None
        self._inbox: list[tuple[Any, ...]] = []
        self._incarnations = 0
        self._streams = 0
        network.listening[place.address] = self
        self._chance = world.random(f"worker/{place.name}")
        self._connect()
        self._start_executor()

    # The scheduler's stream

    def _connect(self) -> None:
        if not self.alive:
            return
        self._streams += 1
        name = f"{self.name}.{self._streams}"
        connection = Connection(self.world, name, self.place, lambda batch: self._from_scheduler(connection, batch))
        self.connection = connection
        self.up = Link(self.world, f"{name}/up", lambda batch: self.scheduler.receive(connection, batch), (50, 2000))
        settings = self.place.settings
        self.up.send(OPENED)
        self.up.send(
            [
                RegisterWorker(
                    self.place.name,
                    self.place.address,
                    settings.nthreads,
                    0,
                    settings.resources,
                    self.place.host,
                    1,
                    {},
                )
            ]
        )

    def _from_scheduler(self, connection: Connection, batch: list[Message]) -> None:
        if self.alive and connection is self.connection:
            self.receive(("scheduler", batch))

    def kill(self) -> None:
        """The process ends; what it had sent may or may not arrive."""
        self._end()
        self.up.cut(CLOSED)

    def retire(self) -> None:
        """It leaves in good order."""
        self._end()
        self.up.cut(Retired())

    def leave(self) -> None:
        """It was sent home: all that it said arrives, and then that it leaves."""
        self._end()
        self.up.send(Retired())

    def _end(self) -> None:
        self.world.trace(self.name, "ends")
        self.alive = False
        if self.network.listening.get(self.place.address) is self:
            del self.network.listening[self.place.address]
        self.connection.down.cut()
        if self.executor is not None:
            self.executor.alive = False
        self._break_reads(False)

    # The executor

    def _start_executor(self) -> None:
        if not self.alive:
            return
        self._incarnations += 1
        name = f"{self.name}/executor{self._incarnations}"
        pools = {"": self.place.settings.nthreads, **dict(self.place.settings.executors)}
        up = Link(self.world, f"{name}/up", lambda message: self._from_executor(executor, message), (5, 200))
        resources = dict(self.place.settings.resources)
        executor = Executor(self.world, self.oracle, pools, resources, up.send, self.lose_executor)
        self.executor = executor
        self._executor_up = up
        self._executor_down = Link(self.world, f"{name}/down", lambda item: self._to_executor(executor, item), (5, 200))
        self.world.after(self._chance.randint(1000, 30_000), self.receive, ("ready", executor))

    def _from_executor(self, executor: Executor, message: Any) -> None:
        if self.alive and executor is self.executor:
            self.receive(("executor", message))

    def _to_executor(self, executor: Executor, item: Any) -> None:
        if executor.alive:
            if type(item) is tuple and item[0] == "read":
                self._read_done(executor, item[1], item[2])
            elif type(item) is tuple:
                executor.put_segments(*item)
            else:
                executor.handle(item)

    def lose_executor(self) -> None:
        """The executor dies now; the agent hears of it after the words that still come through."""
        executor = self.executor
        if executor is None or not executor.alive or not self.alive:
            return
        executor.alive = False
        running = tuple(executor.running)
        self._executor_down.cut()
        self._executor_up.cut(("lost", running))

    # The loop

    def receive(self, item: tuple[Any, ...]) -> None:
        """Something happened; what happens in one instant is one loop turn."""
        if self.alive:
            if not self._inbox:
                self.world.after(0, self._turn)
            self._inbox.append(item)

    def _turn(self) -> None:
        inbox, self._inbox = self._inbox, []
        for item in inbox:
            if not self.alive:
                return
            self.world.trace(self.name, item[:1] if item[0] in ("ready", "put") else item)
            self._handle(item)
        if self.alive:
            dispatch.run(self.model, self.outbox, self.world.now)
            self._drain()
            invariants.check_all(self.model)

    def _drain(self) -> None:
        self._flush_executor()
        messages = self.outbox.take_scheduler()
        if messages and self.registered:
            self.up.send(messages)
        for fetch in self.outbox.take_fetches():
            self._fetch(fetch)

    def _flush_executor(self) -> None:
        for message in self.outbox.take_executor():
            self._executor_down.send(message)

    def _handle(self, item: tuple[Any, ...]) -> None:
        kind, now = item[0], self.world.now
        if kind == "scheduler":
            self.world.count(item[1])
            for message in item[1]:
                self._handle_scheduler(message)
        elif kind == "executor":
            if type(item[1]) is tuple and item[1][0] == "lost":
                events.on_executor_lost(self.model, self.outbox, item[1][1], _DEATH, now)
                self.executor = None
                self._break_reads(True)
                self.world.after(self._chance.randint(1000, 50_000), self._start_executor)
            else:
                self.world.count(item[1:])
                _EVENTS[type(item[1])](self.model, self.outbox, item[1], now)
        elif kind == "ready":
            if item[1] is self.executor and self.executor is not None and self.executor.alive:
                events.on_executor_ready(self.model, self.outbox, now)
        elif kind == "fetched":
            self._fetched(item[1], item[2])
        else:
            taken = events.on_value_received(self.model, self.outbox, item[1], item[2], 100_000, now)
            if taken:
                self._put_segments((item[1],), (item[3],))
            self.world.after(100, item[4], taken)

    def _handle_scheduler(self, message: Any) -> None:
        if type(message) is WorkerRegistered:
            if message.error:
                self.world.after(self._chance.randint(5000, 100_000), self._connect)
            else:
                self.registered = True
        elif type(message) is CloseWorker:
            self.leave()
        else:
            _EVENTS[type(message)](self.model, self.outbox, message, self.world.now)

    # Values

    def read(self, rows: Sequence[tuple[int, int]], answer: Answer) -> None:
        """Serve values to somebody; those that the executor has are asked from it."""
        values: list[Served] = []
        asked: list[int] = []
        for task_id, attempt in rows:
            where, payload = self.model.lookup(task_id, attempt)
            values.append(payload if type(payload) is bytes else None)
            asked.append(task_id if where == STORED else 0)
        if not any(asked):
            answer(values)
            return
        self._flush_executor()
        self._reads[id(values)] = (values, answer)
        self._executor_down.send(("read", asked, values))

    def _read_done(self, executor: Executor, asked: list[int], values: list[Served]) -> None:
        for i, task_id in enumerate(asked):
            if task_id:
                values[i] = executor.read(task_id)
        pair = self._reads.pop(id(values), None)
        if pair is not None:
            pair[1](values)

    def _break_reads(self, reached: bool) -> None:
        """The executor is gone: what was asked from it is lost; or the worker is, and can't be reached."""
        reads, self._reads = self._reads, {}
        for values, answer in reads.values():
            answer(values if reached else None)

    def _put_segments(self, task_ids: tuple[int, ...], values: tuple[bytes, ...]) -> None:
        self._flush_executor()
        self._executor_down.send((PutSegments(task_ids, ((8,),) * len(task_ids)), values))

    def _fetch(self, fetch: Fetch) -> None:
        rows = tuple(zip(fetch.task_ids, fetch.attempts, strict=True))
        self.network.get(
            self.place.address, fetch.holder, rows, lambda values: self.receive(("fetched", fetch, values))
        )

    def _fetched(self, fetch: Fetch, values: list[Served] | None) -> None:
        now = self.world.now
        rows = list(
            zip(fetch.task_ids, fetch.attempts, fetch.nbytes, values or [None] * len(fetch.task_ids), strict=True)
        )
        if values is None:
            events.on_fetch_failed(self.model, self.outbox, fetch.holder, fetch.task_ids, fetch.attempts, False, now)
            return
        for row in rows:
            if isinstance(row[3], ErrorRecord):
                events.on_fetch_unusable(self.model, self.outbox, fetch.holder, row[0], row[1], row[3], now)
        got = [(*row[:3], row[3]) for row in rows if isinstance(row[3], bytes)]
        lost = [row for row in rows if row[3] is None]
        if got:
            ids, attempts, nbytes, payloads = zip(*got, strict=True)
            inline = [p if n <= 512 else None for p, n in zip(payloads, nbytes, strict=True)]
            taken = events.on_fetch_done(self.model, self.outbox, fetch.holder, ids, attempts, nbytes, inline, now)
            keep = [row for row, small, take in zip(got, inline, taken, strict=True) if take and small is None]
            if keep:
                self._put_segments(tuple(row[0] for row in keep), tuple(row[3] for row in keep))
        if lost:
            ids, attempts = zip(*[row[:2] for row in lost], strict=True)
            events.on_fetch_failed(self.model, self.outbox, fetch.holder, ids, attempts, True, now)
