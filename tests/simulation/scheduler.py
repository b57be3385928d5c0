"""The scheduler's brain with its streams: what a shell does, and nothing more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnomon.runtime.core import Model, Outbox, Settings, invariants, placement, queries, reactor, stealing
from gnomon.runtime.core.states import ERRED, RELEASED
from gnomon.runtime.messages import (
    CancelFutures,
    CloseWorker,
    ErrorRecord,
    ExecutorLost,
    Failure,
    ForgetCodes,
    RegisterWorker,
    ReleaseFutures,
    ReplicasAdded,
    ReplicasMissing,
    Request,
    Response,
    RetryFutures,
    ScatterData,
    StealReplies,
    TasksErred,
    TasksFinished,
    TasksSeceded,
    UpdateGraph,
    WantKeys,
    WorkerRegistered,
)
from tests.simulation.definitions import Oracle
from tests.simulation.umpire import Umpire
from tests.simulation.world import Link, SimulationError, World

__all__ = ["CLOSED", "OPENED", "Connection", "Retired", "Scheduler"]

#: Ticks without progress after which a retiring worker is sent home as it is.
_PATIENCE = 2_000_000

OPENED = ("opened",)
CLOSED = ("closed",)

_WORKER_EVENTS: dict[type[Any], Callable[..., None]] = {
    TasksFinished: reactor.on_tasks_finished,
    TasksErred: reactor.on_tasks_erred,
    TasksSeceded: reactor.on_tasks_seceded,
    ReplicasAdded: reactor.on_replicas_added,
    ReplicasMissing: reactor.on_replicas_missing,
    StealReplies: reactor.on_steal_replies,
    ExecutorLost: reactor.on_executor_lost,
}

_CLIENT_EVENTS: dict[type[Any], Callable[..., None]] = {
    ReleaseFutures: reactor.on_release_futures,
    CancelFutures: reactor.on_cancel_futures,
    RetryFutures: reactor.on_retry_futures,
    WantKeys: reactor.on_want_keys,
    ForgetCodes: reactor.on_forget_codes,
}


class Retired(tuple[()]):
    """The worker was asked to leave and left: no failure of its tasks."""


class Connection:
    """The scheduler's end of a stream, to a worker at ``place`` or, without one, to a client.

    ``ident`` is the id in the model, None before and after. ``retiring``: it is to leave in good order; ``free_to_go``:
    and nothing kept it when it was told to.
    """

    def __init__(self, world: World, name: str, place: Any, deliver: Callable[[Any], None]) -> None:
        self.name = name
        self.place = place
        self.is_worker = place is not None
        self.retiring = False
        self.free_to_go = False
        self.down = Link(world, f"{name}/down", deliver, (50, 2000))
        self.ident: int | None = None
        self.closed = False


class Scheduler:
    """One scheduler. ``receive`` is where links deliver; what comes in one instant is one loop turn."""

    def __init__(self, world: World, oracle: Oracle, settings: Settings, hostile: bool) -> None:
        self.world = world
        self.oracle = oracle
        self.hostile = hostile
        self.model = Model(settings)
        self.umpire = Umpire(world, oracle, self.model)
        self.outbox = Outbox()
        self._inbox: list[tuple[Connection, Any]] = []
        self._workers: dict[int, Connection] = {}
        self._clients: dict[int, Connection] = {}
        self._stealing = False
        self._steal_ticks = world.random("steal").randint(2, 60) * 1000
        self._retire_ticks = world.random("retire").randint(1, 60) * 1000

    def receive(self, connection: Connection, batch: Any) -> None:
        """Something arrives on a stream."""
        if not self._inbox:
            self.world.after(0, self._turn)
        self._inbox.append((connection, batch))

    def _turn(self) -> None:
        inbox, self._inbox = self._inbox, []
        for connection, batch in inbox:
            self.world.trace(f"scheduler<{connection.name}", batch)
            if batch is OPENED:
                self._open(connection)
            elif batch is CLOSED or isinstance(batch, Retired):
                self._close(connection, isinstance(batch, Retired))
            elif not connection.closed:
                self.world.count(batch)
                for message in batch:
                    self._handle(connection, message)
                    invariants.check_all(self.model)
        self._finish_turn()

    def _finish_turn(self) -> None:
        now = self.world.now
        if self.model.placement_wanted:
            placement.run(self.model, self.outbox, now)
        invariants.check_all(self.model)
        for ident, messages in self.outbox.drain_workers():
            if ident in self._workers:
                self.umpire.check_mail(self._workers[ident].place, messages)
                self._workers[ident].down.send(messages)
        for ident, messages in self.outbox.drain_clients():
            if ident in self._clients:
                self._clients[ident].down.send(messages)
        self.outbox.take_records()
        if self.model.stealing_useful and not self._stealing:
            self._stealing = True
            self.world.after(self._steal_ticks, self._balance)

    def _balance(self) -> None:
        self._stealing = False
        if self.model.stealing_useful:
            stealing.balance(self.model, self.outbox, self.world.now)
            self._finish_turn()

    def retire(self, connection: Connection) -> None:
        """Send a worker home in good order."""
        if connection.ident is not None and not connection.retiring:
            connection.retiring = True
            self._advance(connection, connection.ident, 0, self.world.ticks + _PATIENCE)

    def _advance(self, connection: Connection, ident: int, kept: int, deadline: int) -> None:
        """Let the brain do what is left to do for it, until nothing is or nothing moves."""
        if connection.ident != ident:
            return
        count = reactor.on_retire_workers(self.model, self.outbox, (ident,), self.world.now)[ident]
        self._finish_turn()
        if count and count != kept:
            deadline = self.world.ticks + _PATIENCE
        if count and self.world.ticks < deadline:
            self.world.after(self._retire_ticks, self._advance, connection, ident, count, deadline)
            return
        self.world.counts["retired with nothing left" if count == 0 else "retired with something left"] += 1
        connection.free_to_go = count == 0
        connection.down.send([CloseWorker("retired")])

    def _open(self, connection: Connection) -> None:
        if not connection.is_worker:
            ident = reactor.on_add_client(self.model, self.outbox, connection.name, self.world.now)
            connection.ident = ident
            self._clients[ident] = connection

    def _close(self, connection: Connection, safe: bool) -> None:
        connection.closed = True
        ident, connection.ident = connection.ident, None
        if ident is None:
            return
        if connection.is_worker:
            del self._workers[ident]
            if connection.free_to_go and not self.hostile and any(not c.retiring for c in self._workers.values()):
                self.umpire.check_leaving(ident)
            for task in self.model.workers[ident].processing:
                self.oracle.deaths[task.task_id] = self.oracle.deaths.get(task.task_id, 0) + (not safe)
            reactor.on_remove_worker(self.model, self.outbox, ident, None, safe, self.world.now)
        else:
            del self._clients[ident]
            reactor.on_remove_client(self.model, self.outbox, ident, self.world.now)

    def _handle(self, connection: Connection, message: Any) -> None:
        if type(message) is RegisterWorker:
            self._register(connection, message)
            return
        ident = connection.ident
        if ident is None:
            return  # a worker that was refused
        judge = self.umpire.watch(ident, message)
        self._pass_on(connection, ident, message)
        judge()

    def _pass_on(self, connection: Connection, ident: int, message: Any) -> None:
        kind = type(message)
        now = self.world.now
        if connection.is_worker:
            if kind is ExecutorLost:
                for task_id in message.running:
                    self.oracle.deaths[task_id] = self.oracle.deaths.get(task_id, 0) + 1
            _WORKER_EVENTS[kind](self.model, self.outbox, ident, message, now)
        elif kind is Request:
            self._answer(connection, ident, message)
        elif kind is ScatterData:
            try:
                rows = reactor.on_scatter(self.model, self.outbox, ident, message, now)
            except LookupError as exc:
                connection.down.send([Failure(message.request_id, ErrorRecord("LookupError", str(exc)))])
                return
            for row, value in zip(rows, message.values, strict=True):
                self.oracle.scattered.setdefault(row[0], value if value is not None else b"scattered")
            self._learn(ident, message.future_ids)
            connection.down.send([Response(message.request_id, rows)])
        elif kind is UpdateGraph:
            firm = self._firm_definitions(message)
            reactor.on_update_graph(self.model, self.outbox, ident, message, now)
            self._learn(ident, message.future_ids)
            self._check_definitions(ident, message, firm)
        else:
            _CLIENT_EVENTS[kind](self.model, self.outbox, ident, message, now)
            if kind is WantKeys:
                self._learn(ident, message.future_ids)

    def _firm_definitions(self, message: UpdateGraph) -> dict[Any, Any]:
        """The keys of a graph that keep the definition they have: neither erred, nor released, nor cancelled."""
        firm = {}
        for key in message.keys:
            task = self.model.tasks.get(key)
            if task is not None and task.state not in (RELEASED, ERRED) and not task.cancelled:
                firm[key] = task.payload
        return firm

    def _check_definitions(self, client_id: int, message: UpdateGraph, firm: dict[Any, Any]) -> None:
        """Every other key stands for what this graph says."""
        futures = self.model.clients[client_id].futures
        for key, payload, future_id in zip(message.keys, message.payloads, message.future_ids, strict=True):
            task = futures.get(future_id)
            if task is not None and task.payload != firm.get(key, payload):
                raise SimulationError(f"{key!r} stands for {task.payload!r}, not {firm.get(key, payload)!r}")

    def _learn(self, client_id: int, future_ids: tuple[int, ...]) -> None:
        """Let the oracle know which definition each new future stands for."""
        futures = self.model.clients[client_id].futures
        for future_id in future_ids:
            task = futures.get(future_id)
            if task is not None:
                self.oracle.promise(client_id, future_id, self.oracle.learn(task))

    def _register(self, connection: Connection, message: RegisterWorker) -> None:
        try:
            ident = reactor.on_add_worker(self.model, self.outbox, message, self.world.now)
        except ValueError as exc:
            connection.down.send([WorkerRegistered(0, 0.5, str(exc))])
            return
        connection.ident = ident
        self._workers[ident] = connection
        connection.down.send([WorkerRegistered(ident, 0.5)])

    def _answer(self, connection: Connection, client_id: int, message: Request) -> None:
        if message.method == "locate":
            rows = queries.locate(self.model, client_id, message.arguments["future_ids"])
            connection.down.send([Response(message.request_id, tuple(rows))])
        else:
            arguments = message.arguments
            reactor.on_values_missing(
                self.model,
                self.outbox,
                client_id,
                arguments["task_ids"],
                arguments["attempts"],
                arguments["holder"],
                arguments["lost"],
                self.world.now,
            )
