"""The worker's agent: one event loop that carries out what the worker's brain decides. No user code ever runs in it.

What arrives (from the scheduler, the executor, finished fetches, clients that scatter) is told to the brain at once;
the end of the loop turn lets the brain dispatch and carries its effects to the scheduler, the executor and the fetches.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import platform
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gnomon.profiler.marks.regions import enter, leave, slot
from gnomon.runtime import clock, config
from gnomon.runtime.comm import Comm, CommClosedError, Security, connect
from gnomon.runtime.comm.address import bracketed
from gnomon.runtime.errors import ClusterError
from gnomon.runtime.messages import (
    CloseWorker,
    Codes,
    ComputeTasks,
    DropCodes,
    ErrorRecord,
    ExecutorReady,
    Failure,
    FetchReplicas,
    FreeTasks,
    Heartbeat,
    HeartbeatReply,
    Holders,
    Message,
    Payload,
    PutSegments,
    PutValues,
    RegionsTimed,
    RegisterWorker,
    Request,
    Response,
    StealTasks,
    TaskProfiled,
    TasksErred,
    TasksFinished,
    TasksReturned,
    TasksSeceded,
    ValueEncoded,
    ValueLost,
    WorkerRegistered,
)
from gnomon.runtime.transfer import DataServer, Fetcher, host_identity
from gnomon.runtime.worker.executor.interface import Executor, ExecutorSettings
from gnomon.runtime.worker.executor.process import ProcessExecutor
from gnomon.runtime.worker.executor.thread import ThreadExecutor
from gnomon.runtime.worker.fetching import Fetching, run_blocking
from gnomon.runtime.worker.serving import ValueSource
from gnomon.runtime.worker.state import Outbox, Settings, WorkerModel, dispatch, events
from gnomon.runtime.worker.watching import EXECUTOR_METHODS, REPORT, Watching

__all__ = ["Worker"]

logger = logging.getLogger("gnomon.worker")

#: What the scheduler tells the brain.
SCHEDULER_EVENTS: dict[type[Any], Callable[..., None]] = {
    ComputeTasks: events.on_compute_tasks,
    FreeTasks: events.on_free_tasks,
    StealTasks: events.on_steal_tasks,
    Codes: events.on_codes,
    DropCodes: events.on_drop_codes,
    FetchReplicas: events.on_fetch_replicas,
    Holders: events.on_holders,
}

#: What the executor tells the brain.
EXECUTOR_EVENTS: dict[type[Any], Callable[..., None]] = {
    TasksFinished: events.on_tasks_finished,
    TasksErred: events.on_tasks_erred,
    TasksSeceded: events.on_tasks_seceded,
    TasksReturned: events.on_tasks_returned,
}

#: Regions of the profile: compiled code makes no frames.
_SLOTS = {kind: slot(f"events.{event.__name__}") for kind, event in (SCHEDULER_EVENTS | EXECUTOR_EVENTS).items()}
_DISPATCH = slot("dispatch.run")


class Worker:
    """A worker: connects to a scheduler, runs its tasks, serves their results to peers and clients.

    Args:
        scheduler_address: where the scheduler listens.
        host: interface of the data server; default that by which the scheduler is reached.
        port: port of the data server, 0 for any free one.
        nthreads: tasks that run at once.
        name: unique in the cluster; default made up of host and process.
        resources: amounts of abstract resources by name.
        memory_limit: bytes to announce; 0 for none.
        nanny: run user code in a child process that is watched and replaced; else in threads of this process.
        local_directory: where the private directory of sockets and files is made; default the system's.
        security: certificates and secret; default those of the settings.
        death_timeout: seconds to keep trying to reach the scheduler; default that of the settings.
        executors: threads of named executors beside the default one.
        sys_path: folders that user code is imported from, before the interpreter's own.
    """

    def __init__(
        self,
        scheduler_address: str,
        *,
        host: str | None = None,
        port: int = 0,
        protocol: str | None = None,
        nthreads: int = 1,
        name: str | None = None,
        resources: Mapping[str, float] | None = None,
        memory_limit: int = 0,
        nanny: bool = True,
        local_directory: str | None = None,
        security: Security | None = None,
        death_timeout: float | None = None,
        executors: Mapping[str, int] | None = None,
        sys_path: Sequence[str] = (),
    ) -> None:
        if nthreads < 1:
            raise ValueError(f"a worker needs at least one thread, not {nthreads}")
        self.scheduler_address = scheduler_address
        self.protocol = protocol or scheduler_address.partition("://")[0]
        self.security = security if security is not None else Security()
        self.name = name or f"{socket.gethostname()}-{os.getpid()}-{id(self):x}"
        self.nthreads = nthreads
        self.nanny = nanny
        self.settings = config.get()
        self.resources = tuple((resources or {}).items())
        self.memory_limit = memory_limit
        self.executors = dict(executors or {})
        self.sys_path = tuple(sys_path)
        self.model = WorkerModel(self._brain_settings())
        self.outbox = Outbox()
        self.worker_id = 0
        self._data_address = (host, port)
        self._death_timeout = death_timeout
        self._local_directory = local_directory
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._comm: Comm | None = None
        self._server: DataServer | None = None
        self._executor: Executor | None = None
        self._fetching: Fetching | None = None
        self._source: ValueSource | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn_asked = False
        self._registered: asyncio.Future[WorkerRegistered] | None = None
        self._heartbeat: asyncio.TimerHandle | None = None
        self._heartbeat_interval = self.settings.worker.heartbeat
        self._round_trip: float | None = None
        self._requests: dict[int, int] = {}
        self._last_request = 0
        self._closing: asyncio.Task[None] | None = None
        self._finished = asyncio.Event()
        self._watching = Watching(self)

    def _brain_settings(self) -> Settings:
        chosen = self.settings.worker
        return Settings(
            nthreads=self.nthreads,
            resources=self.resources,
            executors=tuple(self.executors.items()),
            prefetch_seconds=chosen.prefetch_seconds,
            fetch_concurrency=chosen.connections,
            fetch_bytes=chosen.transfer_bytes,
            validate=self.settings.scheduler.validate,
        )

    # Life

    async def start(self) -> None:
        """Start the executor and the data server, and join the scheduler.

        Raises CommError if the scheduler can't be reached within ``death_timeout`` or refuses us, ClusterError if the
        name is taken.
        """
        self._loop = asyncio.get_running_loop()
        self._directory = tempfile.TemporaryDirectory(prefix="gnomon-worker-", dir=self._local_directory)
        try:
            self._source = ValueSource(self, self._loop)
            self._executor = self._make_executor()
            await self._executor.start()
            self._comm = await connect(
                self.scheduler_address,
                role="worker",
                on_messages=self._on_scheduler_messages,
                on_close=self._on_scheduler_closed,
                security=self.security,
                info={"name": self.name},
                timeout=self._death_timeout,
            )
            self._server = self._make_server(self._comm)
            fetcher = Fetcher(security=self.security, host_id=host_identity(), role="worker")
            self._fetching = Fetching(self, fetcher, self.settings.worker.connections)
            await self._register()
        except BaseException:
            await self.close("could not start")
            raise
        self._watching.start()
        self._send_heartbeat()
        logger.info("Worker %s at %s joined %s", self.name, self.address, self.scheduler_address)

    async def _register(self) -> None:
        assert self._loop is not None
        assert self._comm is not None
        self._registered = self._loop.create_future()
        info = {
            "nanny": self.nanny,
            "python": platform.python_version(),
            "executors": dict(self.executors),
            "local_directory": self.directory,
        }
        self._comm.send(
            [
                RegisterWorker(
                    self.name,
                    self.address,
                    self.nthreads,
                    self.memory_limit,
                    self.resources,
                    socket.gethostname(),
                    os.getpid(),
                    info,
                )
            ]
        )
        welcome = await self._registered
        if welcome.error:
            raise ClusterError(f"the scheduler at {self.scheduler_address} refused worker {self.name}: {welcome.error}")
        self.worker_id = welcome.worker_id
        self._heartbeat_interval = welcome.heartbeat_interval

    def _make_executor(self) -> Executor:
        settings = ExecutorSettings(
            nthreads=self.nthreads,
            executors=self.executors,
            inline_bytes=self.settings.executor.inline_bytes,
            scheduler=self.scheduler_address,
            security=self.security.to_dict(),
            sys_path=self.sys_path,
            instruments=dataclasses.asdict(self.settings.instruments),
        )
        if self.nanny:
            return ProcessExecutor(
                settings,
                on_messages=self._on_executor_messages,
                on_lost=self._on_executor_lost,
                on_failed=self._on_executor_failed,
            )
        by_reference = self.protocol == "inproc"
        return ThreadExecutor(settings, on_messages=self._on_executor_messages, by_reference=by_reference)

    def _make_server(self, comm: Comm) -> DataServer:
        host, port = self._data_address
        if host is None:
            host = comm.local_address.partition("://")[2].rpartition(":")[0].strip("[]") or "127.0.0.1"
        address = "inproc://" if self.protocol == "inproc" else f"{self.protocol}://{bracketed(host)}:{port}"
        assert self._source is not None
        return DataServer(
            self._source, address=address, security=self.security, host_id=host_identity(), directory=self.directory
        )

    @property
    def directory(self) -> str:
        """The worker's private folder."""
        if self._directory is None:
            raise RuntimeError("the worker has not been started")
        return self._directory.name

    @property
    def address(self) -> str:
        """Where peers and clients fetch values; the worker's identity in the cluster."""
        if self._server is None:
            raise RuntimeError("the worker has not been started")
        return self._server.contact_address

    async def finished(self) -> None:
        """Wait until the worker has closed."""
        await self._finished.wait()

    async def close(self, reason: str = "worker closed") -> None:
        """Leave the scheduler, end the executor, stop serving, remove files. Safe to call twice."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close(reason), name="gnomon worker close")
        await asyncio.shield(self._closing)

    async def _close(self, reason: str) -> None:
        logger.info("Worker %s closes: %s", self.name, reason)
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        self._watching.stop()
        if self._comm is not None:
            self._comm.close()
            await self._comm.wait_closed()
        if self._source is not None:
            self._source.close()
        if self._fetching is not None:
            await self._fetching.close()
        if self._executor is not None:
            await self._executor.close(self.settings.worker.close_grace)
        if self._server is not None:
            await run_blocking(self._server.close)
        if self._directory is not None:
            self._directory.cleanup()
        self._finished.set()

    # The scheduler's side

    def _on_scheduler_messages(self, comm: Comm, messages: Sequence[Message]) -> None:
        now = clock.now()
        for message in messages:
            kind = type(message)
            event = SCHEDULER_EVENTS.get(kind)
            if event is not None:
                self._watching.active = True
                enter(_SLOTS[kind])
                event(self.model, self.outbox, message, now)
                leave(_SLOTS[kind])
            elif isinstance(message, HeartbeatReply):
                self._round_trip = now - message.sent
                self._heartbeat_interval = message.interval
            elif isinstance(message, Request):
                self._on_request(message)
            elif isinstance(message, WorkerRegistered):
                if self._registered is not None and not self._registered.done():
                    self._registered.set_result(message)
            elif isinstance(message, CloseWorker):
                self._leave(message.reason)
        self.ask_turn_end()

    def _on_scheduler_closed(self, comm: Comm, exc: BaseException | None) -> None:
        reason = f"the scheduler at {self.scheduler_address} is gone" + (f": {exc}" if exc is not None else "")
        if self._registered is not None and not self._registered.done():
            self._registered.set_exception(CommClosedError(reason))
        elif self._closing is None:
            self._leave(reason)

    def _leave(self, reason: str) -> None:
        if self._closing is None and self._loop is not None:
            self._closing = self._loop.create_task(self._close(reason), name="gnomon worker close")

    def _on_request(self, message: Request) -> None:
        """A question of the scheduler's: user functions go to the executor, the rest is answered here."""
        arguments = message.arguments
        if message.method == "profile" and arguments.pop("process", "executor") == "agent":
            self._watching.on_request(message)
        elif message.method in EXECUTOR_METHODS and self._executor is not None:
            self._last_request += 1
            self._requests[self._last_request] = message.request_id
            self._executor.send([message._replace(request_id=self._last_request)])
        else:
            error = ErrorRecord("ValueError", f"a worker knows no request {message.method!r}")
            self.send_to_scheduler([Failure(message.request_id, error)])

    def send_to_scheduler(self, messages: Sequence[Message]) -> None:
        """Queue messages for the scheduler; nothing happens if it is gone, for then the worker closes anyway."""
        if self._comm is not None:
            try:
                self._comm.send(messages)
            except CommClosedError:
                pass  # its on_close ends this worker

    def _send_heartbeat(self) -> None:
        assert self._loop is not None
        metrics: dict[str, Any] = {"tasks": self.model.counts(), **self._usage(), "report": self._watching.report()}
        if self._round_trip is not None:
            metrics["round_trip"] = self._round_trip
        self.send_to_scheduler([Heartbeat(clock.now(), metrics)])
        self._heartbeat = self._loop.call_later(self._heartbeat_interval, self._send_heartbeat)

    def _usage(self) -> dict[str, float]:
        """CPU seconds and resident bytes of agent and executor together."""
        usage = os.times()
        resident = _resident(os.getpid())
        pid = self._executor.pid if self._executor is not None else 0
        if pid not in (0, os.getpid()):
            resident += _resident(pid)
        return {"cpu_seconds": usage.user + usage.system, "memory": resident}

    # The executor's side

    def _on_executor_messages(self, messages: Sequence[Message], fds: list[int]) -> None:
        source, now = self._source, clock.now()
        assert source is not None
        for message in messages:
            kind = type(message)
            event = EXECUTOR_EVENTS.get(kind)
            if event is not None:
                enter(_SLOTS[kind])
                event(self.model, self.outbox, message, now)
                leave(_SLOTS[kind])
            elif isinstance(message, ValueEncoded):
                self._watching.active = True
                source.on_encoded(message, fds.pop(0) if message.layout else None)
            elif isinstance(message, ValueLost):
                source.on_lost(message)
            elif isinstance(message, (RegionsTimed, TaskProfiled)):
                self.send_to_scheduler([message])
            elif isinstance(message, (Response, Failure)):
                number = self._requests.pop(message.request_id, None)
                if message.request_id == REPORT:
                    self._watching.on_report(message)
                elif number is not None:
                    self.send_to_scheduler([message._replace(request_id=number)])
            elif isinstance(message, ExecutorReady):
                events.on_executor_ready(self.model, self.outbox, now)
                source.on_executor_ready()
        self.ask_turn_end()

    def _on_executor_lost(self, running: Sequence[tuple[int, int]], cause: ErrorRecord) -> None:
        """The child died; a new one is being started."""
        if self._source is not None:
            self._source.on_executor_lost()
        numbers, self._requests = tuple(self._requests.values()), {}
        self.send_to_scheduler([Failure(number, cause) for number in numbers])
        events.on_executor_lost(self.model, self.outbox, running, cause, clock.now())
        self.ask_turn_end()

    def _on_executor_failed(self, cause: ErrorRecord) -> None:
        """No child can be started any more."""
        logger.error("Worker %s can't start an executor: %s", self.name, cause.text)
        self._leave(f"no executor can be started: {cause.text}")

    def send_to_executor(self, messages: Sequence[Message], fds: Sequence[int] = ()) -> None:
        """Hand messages, and the descriptors that belong to them, to the executor."""
        if self._executor is not None:
            self._executor.send(messages, fds)

    def put_values(self, task_ids: Sequence[int], values: Sequence[Payload]) -> None:
        """Hand small values to the executor, behind whatever the brain has for it."""
        self.send_to_executor([*self.outbox.take_executor(), PutValues(tuple(task_ids), tuple(values))])

    def put_segments(
        self,
        task_ids: Sequence[int],
        layouts: Sequence[tuple[int, ...]],
        fds: Sequence[int],
        type_names: Sequence[str] = (),
    ) -> None:
        """Hand large values, whose descriptors it takes over, to the executor, behind whatever the brain has for it."""
        message = PutSegments(tuple(task_ids), tuple(layouts), tuple(type_names))
        self.send_to_executor([*self.outbox.take_executor(), message], fds)

    # The loop turn

    def ask_turn_end(self) -> None:
        """Have the brain dispatch, and its effects carried out, when this loop turn ends."""
        if not self._turn_asked and self._loop is not None:
            self._turn_asked = True
            self._loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._turn_asked = False
        if self._closing is not None:
            return
        enter(_DISPATCH)
        dispatch.run(self.model, self.outbox, clock.now())
        leave(_DISPATCH)
        messages = self.outbox.take_executor()
        if messages:
            self.send_to_executor(messages)
        messages = self.outbox.take_scheduler()
        if messages:
            self.send_to_scheduler(messages)
        if self._fetching is not None:
            for fetch in self.outbox.take_fetches():
                self._fetching.start(fetch)
        self._watching.on_turn_end()


def _resident(pid: int) -> int:
    """Resident bytes of a process; 0 where the kernel doesn't tell."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
