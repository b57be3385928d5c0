"""The scheduler process's loop: read everything a turn brought, tell the brain, place once, write once per peer.

There is no timer to batch by: what peers sent is handed to the brain as it arrives, and the end of the loop turn runs
one placement pass and drains the outbox. A lone task never waits, a busy scheduler batches by itself.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from gnomon.profiler.marks.regions import enter, leave, slot
from gnomon.runtime import clock, config
from gnomon.runtime.comm import Comm, Handlers, Listener, Security, listen
from gnomon.runtime.comm.address import bracketed
from gnomon.runtime.core import Model, Outbox, Settings, placement, queries, reactor, stealing
from gnomon.runtime.messages import (
    CancelFutures,
    CloseWorker,
    DemandChanged,
    ErrorRecord,
    ExecutorLost,
    Failure,
    ForgetCodes,
    Heartbeat,
    HeartbeatReply,
    Message,
    RegionsTimed,
    RegisterWorker,
    ReleaseFutures,
    ReplicasAdded,
    ReplicasMissing,
    Request,
    Response,
    RetryFutures,
    ScatterData,
    StealReplies,
    TaskProfiled,
    TasksErred,
    TasksFinished,
    TasksSeceded,
    TransfersDone,
    UpdateGraph,
    WantKeys,
    WorkerRegistered,
)
from gnomon.runtime.scheduler.requests import Requests
from gnomon.runtime.scheduler.streams import ClientStream, WorkerStream
from gnomon.runtime.scheduler.telemetry import Telemetry
from gnomon.runtime.scheduler.watching import Watching, slot_of

__all__ = ["Scheduler"]

logger = logging.getLogger("gnomon.scheduler")

#: What clients tell the brain.
CLIENT_EVENTS: dict[type[Any], Callable[..., None]] = {
    UpdateGraph: reactor.on_update_graph,
    ReleaseFutures: reactor.on_release_futures,
    CancelFutures: reactor.on_cancel_futures,
    RetryFutures: reactor.on_retry_futures,
    WantKeys: reactor.on_want_keys,
    ForgetCodes: reactor.on_forget_codes,
}

#: What workers tell the brain.
WORKER_EVENTS: dict[type[Any], Callable[..., None]] = {
    TasksFinished: reactor.on_tasks_finished,
    TasksErred: reactor.on_tasks_erred,
    TasksSeceded: reactor.on_tasks_seceded,
    ReplicasAdded: reactor.on_replicas_added,
    ReplicasMissing: reactor.on_replicas_missing,
    StealReplies: reactor.on_steal_replies,
    ExecutorLost: reactor.on_executor_lost,
}

#: Regions of the profile: of each event, and of what the end of a loop turn does.
_SLOTS = {kind: slot_of(event) for kind, event in (CLIENT_EVENTS | WORKER_EVENTS).items()}
_PLACEMENT = slot_of(placement.run)
_STEALING = slot_of(stealing.balance)
_DRAIN = slot("drain")
_RECORD = slot("record")
_TURN = slot("turn")
_REQUESTS = slot("requests")
_MONITORS = slot("monitors")

#: What workers tell for the records alone, or for these as well.
_RECORDS = frozenset({Heartbeat, TransfersDone, DemandChanged, RegionsTimed, TaskProfiled})


class Scheduler:
    """A scheduler that clients and workers connect to.

    Args:
        host: interface to listen on; beyond loopback it needs TLS or an explicit secret.
        port: port to listen on, 0 for any free one.
        protocol: ``tcp``, ``tls`` or ``inproc``; default ``tls`` where the security has certificates, else ``tcp``.
        security: certificates and secret; default those of the settings.
        idle_timeout: seconds without tasks after which it closes by itself; None for never.
        services: what else there is to this cluster, by name: ``dashboard`` is its link. Told to clients alone.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        protocol: str | None = None,
        security: Security | None = None,
        idle_timeout: float | None = None,
        services: Mapping[str, str] | None = None,
    ) -> None:
        self.services = dict(services or {})
        self.security = security if security is not None else Security()
        self.protocol = protocol or ("tls" if self.security.has_tls else "tcp")
        self.id = f"Scheduler-{uuid.uuid4()}"
        self.settings = config.get()
        self.model = Model(brain_settings(self.settings))
        self.outbox = Outbox()
        self.telemetry = Telemetry(
            length=self.settings.scheduler.telemetry_length, observed=self.settings.instruments.series_length
        )
        self.watching = Watching(self.settings.instruments, self.model, self.telemetry)
        self.workers: dict[int, WorkerStream] = {}
        self.clients: dict[int, ClientStream] = {}
        self._ids: dict[str, int] = {}
        self.started = 0.0
        self._listen_on = (host, port)
        self._idle_timeout = idle_timeout if idle_timeout is not None else self.settings.scheduler.idle_timeout
        self._listener: Listener | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn_asked = False
        self._heard: dict[int, WorkerStream] = {}
        self._stealing_timer: asyncio.TimerHandle | None = None
        self._watch: asyncio.Task[None] | None = None
        self._background: set[asyncio.Task[Any]] = set()
        self._busy_at = 0.0
        self._closing: asyncio.Task[None] | None = None
        self._finished = asyncio.Event()
        self._requests = Requests(self)

    # Life

    async def start(self) -> None:
        """Listen.

        Raises ListenRefusedError for an address that would be open to others, OSError for one that can't be had.
        """
        self._loop = asyncio.get_running_loop()
        host, port = self._listen_on
        address = "inproc://" if self.protocol == "inproc" else f"{self.protocol}://{bracketed(host)}:{port}"
        self._listener = await listen(
            address,
            self._on_comm,
            role="scheduler",
            security=self.security,
            info={"id": self.id},
        )
        self.started = self._busy_at = clock.now()
        self.watching.start()
        self._watch = self._loop.create_task(self._watch_peers(), name="gnomon scheduler watch")
        logger.info("Scheduler at %s", self.address)

    @property
    def address(self) -> str:
        """Where clients and workers connect."""
        if self._listener is None:
            raise RuntimeError("the scheduler has not been started")
        return self._listener.contact_address

    async def finished(self) -> None:
        """Wait until the scheduler has closed."""
        await self._finished.wait()

    async def close(self, reason: str = "scheduler closed") -> None:
        """Send the workers home, drop the clients, stop listening. Safe to call twice."""
        self.leave(reason)
        await self.finished()

    def leave(self, reason: str) -> None:
        """Begin to close."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close(reason), name="gnomon scheduler close")

    async def _close(self, reason: str) -> None:
        logger.info("Scheduler closes: %s", reason)
        if self._listener is not None:
            self._listener.close()
        if self._watch is not None:
            self._watch.cancel()
        self.watching.stop()
        if self._stealing_timer is not None:
            self._stealing_timer.cancel()
        comms = [stream.comm for stream in (*self.workers.values(), *self.clients.values())]
        for worker in self.workers.values():
            worker.send([CloseWorker(reason)])
        for comm in comms:
            comm.close()
        for task in tuple(self._background):
            task.cancel()
        waits = [comm.wait_closed() for comm in comms]
        if self._listener is not None:
            waits.append(self._listener.wait_closed())
        await asyncio.gather(*waits, *self._background, return_exceptions=True)
        self._finished.set()

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> None:
        """Run a coroutine beside the streams; cancelled when the scheduler closes."""
        assert self._loop is not None
        task = self._loop.create_task(coroutine, name=name)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # Peers

    def _on_comm(self, comm: Comm) -> Handlers:
        """A client or worker has proved who it is."""
        if comm.peer.role == "client":
            client = ClientStream(comm, reactor.on_add_client(self.model, self.outbox, comm.peer.name, clock.now()))
            self.clients[client.id] = client
            logger.info("Client %s joined", comm.peer.name)
            return Handlers(
                lambda _, messages: self._on_client_messages(client, messages),
                lambda _, exc: self._on_client_closed(client),
            )
        worker = WorkerStream(comm)
        return Handlers(
            lambda _, messages: self._on_worker_messages(worker, messages),
            lambda _, exc: self._on_worker_closed(worker, exc),
        )

    def _on_client_messages(self, client: ClientStream, messages: Sequence[Message]) -> None:
        enter(_TURN)
        try:
            self._take_from_client(client, messages, clock.now())
        finally:
            leave(_TURN)

    def _take_from_client(self, client: ClientStream, messages: Sequence[Message], now: float) -> None:
        self.watching.active = True
        for message in messages:
            kind = type(message)
            event = CLIENT_EVENTS.get(kind)
            try:
                if event is not None:
                    enter(_SLOTS[kind])
                    try:
                        event(self.model, self.outbox, client.id, message, now)
                    finally:
                        leave(_SLOTS[kind])
                elif isinstance(message, Request):
                    enter(_REQUESTS)
                    try:
                        self._requests.answer(client, message)
                    finally:
                        leave(_REQUESTS)
                elif isinstance(message, ScatterData):
                    rows = reactor.on_scatter(self.model, self.outbox, client.id, message, now)
                    client.send([Response(message.request_id, rows)])
                else:
                    raise ValueError(f"a client does not send {kind.__name__}")
            except (ValueError, TypeError, LookupError) as exc:
                self._drop_bad_peer(client.comm, exc)
                break
        self._ask_turn_end()

    def _on_worker_messages(self, worker: WorkerStream, messages: Sequence[Message]) -> None:
        now = worker.last_seen = clock.now()
        enter(_TURN)
        try:
            self._take_from_worker(worker, messages, now)
        finally:
            leave(_TURN)

    def _take_from_worker(self, worker: WorkerStream, messages: Sequence[Message], now: float) -> None:
        self._heard[worker.id] = worker
        for message in messages:
            kind = type(message)
            event = WORKER_EVENTS.get(kind)
            try:
                if event is not None and worker.id:
                    self.watching.active = True
                    if isinstance(message, TasksErred):
                        self._record_errors(worker, message, now)
                    enter(_SLOTS[kind])
                    try:
                        event(self.model, self.outbox, worker.id, message, now)
                    finally:
                        leave(_SLOTS[kind])
                elif isinstance(message, RegisterWorker) and not worker.id:
                    self._on_register(worker, message, now)
                elif kind in _RECORDS and worker.id:
                    enter(_RECORD)
                    try:
                        self._record(worker, message, now)
                    finally:
                        leave(_RECORD)
                elif isinstance(message, (Response, Failure)):
                    worker.on_answer(message)
                else:
                    raise ValueError(f"a worker does not send {kind.__name__} here")
            except (ValueError, TypeError, LookupError) as exc:
                self._drop_bad_peer(worker.comm, exc)
                break
        self._ask_turn_end()

    def _record(self, worker: WorkerStream, message: Message, now: float) -> None:
        """Take in what a worker tells for the records."""
        if isinstance(message, Heartbeat):
            worker.on_heartbeat(message, now)
            self._record_clock(worker)
            self.telemetry.append_report(worker.id, message.metrics.pop("report", {}), worker.clock_offset)
            reactor.on_heartbeat(self.model, worker.id, message, now)
            worker.send([HeartbeatReply(message.sent, now, self._heartbeat_interval())])
        elif isinstance(message, TransfersDone):
            self.telemetry.append_transfers(worker.id, message, self._ids, worker.clock_offset)
            reactor.on_transfers_done(self.model, worker.id, message, now)
        elif isinstance(message, DemandChanged):
            self.telemetry.append_demand(worker.id, message, worker.clock_offset)
        elif isinstance(message, RegionsTimed):
            self.telemetry.append_regions(worker.id, message, worker.clock_offset)
        elif isinstance(message, TaskProfiled):
            self.watching.keep_profile(message.task_id, message.profile)

    def _record_clock(self, worker: WorkerStream) -> None:
        self.telemetry.clock_estimated(
            worker.id,
            time=worker.clock_time,
            offset=worker.clock_offset,
            uncertainty=worker.clock_uncertainty,
            samples=worker.clock_samples,
        )

    def _record_errors(self, worker: WorkerStream, message: TasksErred, now: float) -> None:
        """Keep why runs failed, for reports; stale ones are nobody's business."""
        tasks = [self.model.by_id.get(task_id) for task_id in message.task_ids]
        rows = [
            (task, error)
            for task, attempt, error in zip(tasks, message.attempts, message.errors, strict=True)
            if task is not None and task.attempt == attempt
        ]
        keys, prefixes = [task.key for task, _ in rows], [task.group.prefix.name for task, _ in rows]
        self.telemetry.append_errors(keys, prefixes, worker.id, [error for _, error in rows], now)

    def _on_register(self, worker: WorkerStream, message: RegisterWorker, now: float) -> None:
        try:
            worker.id = reactor.on_add_worker(self.model, self.outbox, message, now)
        except ValueError as exc:
            logger.warning("Worker %s at %s refused: %s", message.name, message.address, exc)
            worker.send([WorkerRegistered(0, 0.0, str(exc))])
            worker.comm.close()
            return
        worker.name, worker.address, worker.nthreads = message.name, message.address, message.nthreads
        if message.host == socket.gethostname():
            worker.share_clock(now)
        self.workers[worker.id] = worker
        worker.send([WorkerRegistered(worker.id, self._heartbeat_interval())])
        self._ids[message.address] = worker.id
        self.telemetry.worker_joined(
            worker.id, name=message.name, address=message.address, nthreads=message.nthreads, host=message.host, now=now
        )
        self._record_clock(worker)
        self._requests.on_workers_changed()
        logger.info("Worker %s at %s joined with %d threads", message.name, message.address, message.nthreads)

    def _drop_bad_peer(self, comm: Comm, exc: BaseException) -> None:
        logger.error(
            "Peer %s at %s sent something wrong and is closed", comm.peer.name, comm.peer.address, exc_info=exc
        )
        comm.abort(f"it sent something wrong: {exc}")

    def _on_client_closed(self, client: ClientStream) -> None:
        if self.clients.pop(client.id, None) is not None:
            reactor.on_remove_client(self.model, self.outbox, client.id, clock.now())
            self._requests.on_client_left(client)
            self._ask_turn_end()
            logger.info("Client %s left", client.comm.peer.name)

    def _on_worker_closed(self, worker: WorkerStream, exc: BaseException | None) -> None:
        if self.workers.pop(worker.id, None) is None:
            return
        if self._ids.get(worker.address) == worker.id:
            del self._ids[worker.address]
        text = f"worker {worker.name} at {worker.address} left" + ("" if exc is None else f": {exc}")
        if self._closing is None:
            cause = ErrorRecord("gnomon.runtime.errors.WorkerLostError", text)
            in_good_order = worker.leaving or exc is None
            reactor.on_remove_worker(self.model, self.outbox, worker.id, cause, in_good_order, clock.now())
            self.telemetry.worker_left(worker.id, reason=text, now=clock.now())
            self._requests.on_workers_changed()
            self._ask_turn_end()
        worker.fail_requests(text)
        logger.info("%s%s", text[0].upper(), text[1:])

    # The loop turn

    def ask_turn_end(self) -> None:
        """Have the brain's effects carried out when this loop turn ends."""
        self._ask_turn_end()

    def _ask_turn_end(self) -> None:
        if not self._turn_asked and self._loop is not None:
            self._turn_asked = True
            self._loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        """Place once, write once per peer."""
        enter(_TURN)
        try:
            self._place_and_send(clock.now())
        finally:
            leave(_TURN)

    def _place_and_send(self, now: float) -> None:
        self._turn_asked = False
        model, outbox = self.model, self.outbox
        if model.placement_wanted:
            enter(_PLACEMENT)
            placement.run(model, outbox, now)
            leave(_PLACEMENT)
        enter(_DRAIN)
        heard, self._heard = self._heard, {}
        for worker_id, messages in outbox.drain_workers():
            worker = self.workers.get(worker_id)
            if worker is not None:
                worker.send(messages)
                heard[worker_id] = worker
        for client_id, messages in outbox.drain_clients():
            client = self.clients.get(client_id)
            if client is not None:
                client.send(messages)
        leave(_DRAIN)
        runs = outbox.take_records()
        if runs is not None:
            self._busy_at = now
            enter(_RECORD)
            self.telemetry.append_runs(runs, self._clock_offsets())
            leave(_RECORD)
        enter(_MONITORS)
        self.watching.on_turn_end([stream for stream in heard.values() if stream.id], now)
        leave(_MONITORS)
        if model.stealing_useful and self._stealing_timer is None:
            self._steal_later()

    def _steal_later(self) -> None:
        chosen = self.settings.scheduler
        if chosen.work_stealing and self._loop is not None and self._closing is None:
            self._stealing_timer = self._loop.call_later(chosen.work_stealing_interval, self._steal)

    def _clock_offsets(self) -> dict[int, float]:
        """Seconds to add to each worker's times to have scheduler times; workers with none are left out."""
        return {worker.id: worker.clock_offset for worker in self.workers.values() if worker.clock_offset}

    def _steal(self) -> None:
        self._stealing_timer = None
        enter(_STEALING)
        stealing.balance(self.model, self.outbox, clock.now())
        leave(_STEALING)
        self._ask_turn_end()

    # Timers

    def _heartbeat_interval(self) -> float:
        """Seconds between a worker's heartbeats: rarer the more workers there are, so that all together cost the
        same."""
        return max(self.settings.worker.heartbeat, len(self.workers) / 200)

    async def _watch_peers(self) -> None:
        """Look now and then for workers that went silent, and for an idle scheduler; keep the collector off old
        state."""
        gc.collect()
        gc.freeze()
        while True:
            await asyncio.sleep(1.0)
            now = clock.now()
            self._drop_silent_workers(now)
            if self._idle_timeout is not None and self._is_idle(now):
                self.leave(f"idle for {self._idle_timeout:g} s")
                return

    def _drop_silent_workers(self, now: float) -> None:
        ttl = self.settings.scheduler.worker_ttl
        if ttl is None:
            return
        patience = max(ttl, 10 * self._heartbeat_interval())
        for worker in tuple(self.workers.values()):
            if now - worker.last_seen > patience:
                silence = f"silent for {now - worker.last_seen:.0f} s"
                logger.warning("Worker %s is given up: %s", worker.name, silence)
                worker.comm.abort(silence)

    def _is_idle(self, now: float) -> bool:
        counts = queries.counts(self.model)
        if any(counts.get(state) for state in ("waiting", "queued", "processing", "no-worker")):
            self._busy_at = now
        assert self._idle_timeout is not None
        return now - self._busy_at > self._idle_timeout


def brain_settings(settings: config.Config) -> Settings:
    """The part of the settings that the brain knows."""
    chosen = settings.scheduler
    return Settings(
        saturation=chosen.worker_saturation,
        backlog_seconds=chosen.backlog_seconds,
        allowed_failures=chosen.allowed_failures,
        bandwidth=chosen.bandwidth,
        unknown_duration=chosen.unknown_task_duration,
        validate=chosen.validate,
    )
