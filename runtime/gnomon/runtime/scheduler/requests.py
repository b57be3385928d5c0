"""What clients may ask a scheduler: one method here per question, by the name it has on the wire.

A question about the state is answered at once, behind everything the client sent before it; one that needs workers or
time runs as a coroutine beside the streams. Arguments come from an authenticated peer but are still checked.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import traceback
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gnomon.runtime import clock
from gnomon.runtime.core import queries, reactor
from gnomon.runtime.messages import ErrorRecord, Failure, Request, Response
from gnomon.runtime.scheduler.counters import LiveView
from gnomon.runtime.scheduler.retirement import retire
from gnomon.runtime.scheduler.streams import ClientStream, WorkerStream

if TYPE_CHECKING:
    from gnomon.runtime.scheduler.server import Scheduler

__all__ = ["Requests"]

logger = logging.getLogger("gnomon.scheduler")


class Requests:
    """Answers for one scheduler."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._model = scheduler.model
        self._waiting_for_workers: list[tuple[ClientStream, int, int]] = []
        view = LiveView(scheduler)
        self._now: dict[str, Callable[..., Any]] = {
            "scheduler_info": self.scheduler_info,
            "who_has": self.who_has,
            "has_what": self.has_what,
            "processing": self.processing,
            "nthreads": self.nthreads,
            "story": self.story,
            "versions": self.versions,
            "telemetry_mark": self.telemetry_mark,
            "telemetry": self.telemetry,
            "task_profile": self.task_profile,
            "task_profiles": self.task_profiles,
            "services": lambda: scheduler.services,
            "live": view.live,
            "tasks_page": view.tasks_page,
            "task_graph": view.task_graph,
            "group_graph": view.group_graph,
        }
        self._with_client: dict[str, Callable[..., Any]] = {"locate": self.locate, "missing": self.missing}
        self._later: dict[str, Callable[..., Awaitable[Any]]] = {
            "run": self.run,
            "retire_workers": self.retire_workers,
            "profile": self.profile,
            "call_stack": self.call_stack,
        }

    def answer(self, client: ClientStream, request: Request) -> None:
        """Answer now, or start what will."""
        method, arguments, number = request.method, request.arguments, request.request_id
        try:
            if method in self._now:
                client.send([Response(number, self._now[method](**arguments))])
            elif method in self._with_client:
                client.send([Response(number, self._with_client[method](client, **arguments))])
            elif method in self._later:
                coroutine = self._answer_later(client, number, self._later[method](**arguments))
                self._scheduler.spawn(coroutine, f"gnomon scheduler request {method}")
            elif method == "wait_for_workers":
                self._wait_for_workers(client, number, **arguments)
            elif method == "shutdown":
                client.send([Response(number, None)])
                self._scheduler.leave("a client shut the cluster down")
            else:
                client.send([Failure(number, ErrorRecord("ValueError", f"the scheduler knows no request {method!r}"))])
        except (TypeError, ValueError, LookupError) as exc:
            client.send([Failure(number, _record(exc))])

    async def _answer_later(self, client: ClientStream, number: int, result: Awaitable[Any]) -> None:
        try:
            client.send([Response(number, await result)])
        except Exception as exc:  # noqa: BLE001 - whatever it is, who asked must not wait for ever
            client.send([Failure(number, _record(exc))])

    # Answered at once

    def scheduler_info(self) -> dict[str, Any]:
        """What the cluster is made of; ``workers`` maps addresses to what is known of each."""
        info = queries.identity(self._model)
        for worker in self._scheduler.workers.values():
            row = info["workers"].get(worker.address)
            if row is not None:
                row["metrics"] = worker.metrics
                row["last_seen"] = worker.last_seen
        return {
            "type": "Scheduler",
            "id": self._scheduler.id,
            "address": self._scheduler.address,
            "started": self._scheduler.started,
            "services": self._scheduler.services,
            "pid": os.getpid(),
            **info,
        }

    def who_has(self, keys: Iterable[Any] | None = None) -> Any:
        """Rows of key and addresses (pairs, since a key may be a tuple that no map on the wire can hold)."""
        return tuple((key, tuple(addresses)) for key, addresses in queries.who_has(self._model, keys).items())

    def has_what(self, workers: Iterable[str] | None = None) -> Any:
        """Keys in memory by worker address."""
        return {address: tuple(keys) for address, keys in queries.has_what(self._model, workers).items()}

    def processing(self, workers: Iterable[str] | None = None) -> Any:
        """Keys being computed by worker address."""
        return {address: tuple(keys) for address, keys in queries.processing(self._model, workers).items()}

    def nthreads(self, workers: Iterable[str] | None = None) -> dict[str, int]:
        """Threads by worker address."""
        return queries.nthreads(self._model, workers)

    def story(self, key: Any) -> Any:
        """What happened to a key, oldest first."""
        return tuple(tuple(row) for row in queries.story(self._model, key))

    def versions(self) -> dict[str, str]:
        """Versions on the scheduler."""
        return {"python": platform.python_version(), "implementation": platform.python_implementation()}

    def telemetry_mark(self) -> dict[str, Any]:
        """Where the records stand: ``number`` is for ``telemetry``, ``task_profiles`` for the request of that name."""
        mark = self._scheduler.telemetry.mark(clock.now())
        mark["task_profiles"] = self._scheduler.watching.deep_profiles.made
        mark["loop"] = self._scheduler.watching.budget.rows()
        return mark

    def telemetry(self, since: Sequence[int], limit: int = 10_000) -> dict[str, Any]:
        """A page of records since a number."""
        return self._scheduler.telemetry.since(since, limit)

    def task_profile(self, key: Any) -> bytes | None:
        """The deep profile of a key's last run, opaque bytes; None if there is none."""
        return self._scheduler.watching.deep_profiles.of(key)

    def task_profiles(self, since: int, most: int = 1 << 20) -> dict[str, Any]:
        """Deep profiles from a number on, about ``most`` bytes of them; see ``DeepProfiles.since``."""
        return self._scheduler.watching.deep_profiles.since(since, most)

    def locate(self, client: ClientStream, future_ids: Iterable[int]) -> Any:
        """Rows (future id, task id, attempt, addresses, small value or None)."""
        return tuple(queries.locate(self._model, client.id, future_ids))

    def missing(self, client: ClientStream, task_ids: Any, attempts: Any, holder: str, lost: bool) -> None:
        """A client could not fetch these from ``holder``."""
        reactor.on_values_missing(
            self._model, self._scheduler.outbox, client.id, tuple(task_ids), tuple(attempts), holder, lost, clock.now()
        )
        self._scheduler.ask_turn_end()

    # Answered when workers have

    async def run(self, code: bytes, workers: Iterable[str] | None = None, wait: bool = True) -> dict[str, Any]:
        """Have executors call a function; per address ``("ok", value)`` or ``("error", record)``, values pickled."""
        streams = self._chosen(workers)
        calls = [worker.request("run", {"code": code, "wait": wait}) for worker in streams]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        result: dict[str, Any] = {}
        for worker, answer in zip(streams, answers, strict=True):
            if isinstance(answer, Response):
                result[worker.address] = ("ok", answer.result)
            elif isinstance(answer, Failure):
                result[worker.address] = ("error", answer.error)
            elif isinstance(answer, BaseException):
                result[worker.address] = ("error", _record(answer))
        return result

    async def profile(
        self,
        process: str = "executor",
        prefix: str = "",
        start: float | None = None,
        stop: float | None = None,
        workers: Iterable[str] | None = None,
    ) -> dict[str, bytes]:
        """Packed sessions by address (see ``instruments.carried``), of the samples between two times.

        ``process``: "executor" for the tasks, those whose prefix begins so; "agent" for the workers' own loops;
        "scheduler" for this process, under its own address. Workers that nobody samples are left out.
        """
        if process not in ("executor", "agent", "scheduler"):
            raise ValueError(f"process must be 'executor', 'agent' or 'scheduler', not {process!r}")
        if process == "scheduler":
            own = await self._scheduler.watching.instruments.profile(start, stop)
            return {self._scheduler.address: own} if own else {}
        streams = self._chosen(workers)
        calls = []
        for worker in streams:
            # The window is in scheduler time.
            window = {
                name: time if time is None else time - worker.clock_offset
                for name, time in (("start", start), ("stop", stop))
            }
            extra = {"prefix": prefix} if process == "executor" else {}
            calls.append(worker.request("profile", {"process": process, **window, **extra}))
        answers = await self._answers(streams, calls)
        return {address: packed for address, packed in answers if isinstance(packed, bytes) and packed}

    async def call_stack(self, keys: Iterable[Any] | None = None) -> dict[str, Any]:
        """By address, pairs of key and stack of the runs under way, or of those of them that have these keys."""
        task_ids = None
        streams = list(self._scheduler.workers.values())
        if keys is not None:
            tasks = [task for key in keys if (task := self._model.tasks.get(key)) is not None]
            task_ids = tuple([task.task_id for task in tasks])
            busy = {task.processing_on.worker_id for task in tasks if task.processing_on is not None}
            streams = [worker for worker in streams if worker.id in busy]
        calls = [worker.request("call_stack", {"task_ids": task_ids}) for worker in streams]
        return {address: stacks for address, stacks in await self._answers(streams, calls) if stacks}

    async def _answers(self, streams: Sequence[WorkerStream], calls: Sequence[Awaitable[Any]]) -> list[tuple[str, Any]]:
        """What the workers answered; those that left meanwhile are left out. Raises ValueError if one failed to."""
        answers = await asyncio.gather(*calls, return_exceptions=True)
        for worker, answer in zip(streams, answers, strict=True):
            if isinstance(answer, Failure):
                raise ValueError(f"worker {worker.name} can't answer: {answer.error.text}")
        return [
            (worker.address, answer.result)
            for worker, answer in zip(streams, answers, strict=True)
            if isinstance(answer, Response)
        ]

    async def retire_workers(self, workers: Iterable[str] | None = None) -> tuple[str, ...]:
        """Send workers home in good order: what they run may end, and what only they hold is moved to others first."""
        streams = self._chosen(workers)
        await retire(self._scheduler, streams)
        return tuple(worker.address for worker in streams)

    def _chosen(self, names: Iterable[str] | None) -> list[WorkerStream]:
        if names is None:
            return list(self._scheduler.workers.values())
        names = list(names)
        chosen = queries.resolve_workers(self._model, names)
        if len(names) and not chosen:
            raise ValueError(f"no worker is called {', '.join(map(str, names))}")
        return [self._scheduler.workers[worker_id] for worker_id in chosen if worker_id in self._scheduler.workers]

    # Workers coming and going

    def _wait_for_workers(self, client: ClientStream, number: int, n: int) -> None:
        self._waiting_for_workers.append((client, number, n))
        self.on_workers_changed()

    def on_workers_changed(self) -> None:
        """A worker came or went: answer those who wait for enough of them."""
        count = len(self._scheduler.workers)
        still = []
        for client, number, n in self._waiting_for_workers:
            if count >= n:
                client.send([Response(number, count)])
            else:
                still.append((client, number, n))
        self._waiting_for_workers = still

    def on_client_left(self, client: ClientStream) -> None:
        """Nobody waits for answers to this client any longer."""
        self._waiting_for_workers = [row for row in self._waiting_for_workers if row[0] is not client]


def _record(exc: BaseException) -> ErrorRecord:
    """An error of the scheduler's own, as text: nothing here is pickled or unpickled."""
    return ErrorRecord(type(exc).__name__, "".join(traceback.format_exception_only(exc)).strip())
