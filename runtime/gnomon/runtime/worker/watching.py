"""What an agent observes: its own process and loop, what its executor says of itself, and what idle threads wait for.

Contents: Watching, REPORT, EXECUTOR_METHODS.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from gnomon.runtime import clock
from gnomon.runtime.instruments.attached import Attached
from gnomon.runtime.instruments.demand import FETCHING, READY, Demand
from gnomon.runtime.instruments.lines import LogLines, Tail
from gnomon.runtime.messages import DemandChanged, ErrorRecord, Failure, Message, Request, Response

if TYPE_CHECKING:
    from gnomon.runtime.worker.agent import Worker

__all__ = ["EXECUTOR_METHODS", "REPORT", "Watching"]

#: Number of the requests by which the executor is asked for its report; those on behalf of others count from 1.
REPORT = 0

#: Requests of the scheduler's that the executor answers.
EXECUTOR_METHODS = frozenset({"run", "profile", "call_stack"})


class Watching:
    """Of one agent."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        settings = worker.settings.instruments
        self._enabled = settings.enabled
        self._instruments = Attached("agent", settings, children=not worker.nanny)
        self._demand = Demand(clock.now)
        self._of_executor: dict[str, Any] = {}
        self._tail = Tail()
        self._lines = LogLines(self._tail)
        #: Whether something but heartbeats went on since the last of these.
        self.active = True
        self._background: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin; on the agent's loop."""
        if self._enabled:  # else nobody takes them
            self._lines.start()
        self._instruments.start()

    def stop(self) -> None:
        """End. Idempotent."""
        self._lines.stop()
        self._instruments.stop()
        for task in tuple(self._background):
            task.cancel()

    def on_turn_end(self) -> None:
        """A loop turn has dispatched what it could: tell the scheduler if what idle threads wait for has changed."""
        if not self._enabled:
            return
        if self.active:
            self._instruments.wake()
        model = self._worker.model
        self._demand.set(FETCHING, bool(model.flights or model.queues))
        for pool in model.pools.values():
            if pool.ready or pool.constrained or pool.handed > pool.nthreads:
                self._demand.set(READY, True)
                break
        else:
            self._demand.set(READY, False)
        changes = self._demand.take()
        if changes is not None:
            self._worker.send_to_scheduler([DemandChanged(*changes)])

    def report(self) -> dict[str, Any]:
        """What was measured since the last heartbeat; and ask the executor, whose answer goes with the next one."""
        if not self._enabled:
            return {}
        report, self._of_executor = _merged(self._instruments.report(self._waiting()), self._of_executor), {}
        lines = self._tail.take()
        if lines:
            report["logs"] = {"agent": lines}
        self._worker.send_to_executor([Request(REPORT, "report", {})])
        if not self.active and not self._worker.model.runs:
            self._instruments.rest()
        self.active = False
        return report

    def on_report(self, answer: Response | Failure) -> None:
        """The executor answered."""
        if isinstance(answer, Response) and isinstance(answer.result, dict):
            self._of_executor = answer.result

    def on_request(self, request: Request) -> None:
        """The scheduler asks for the profile of this process."""
        task = asyncio.get_running_loop().create_task(self._answer(request), name="gnomon worker profile")
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _answer(self, request: Request) -> None:
        window: dict[str, Any] = {name: request.arguments.get(name) for name in ("start", "stop")}
        reply: Message
        try:
            packed = await self._instruments.profile(**window)
            reply = Response(request.request_id, packed)
        except Exception as exc:  # noqa: BLE001 - whatever it is, who asked must not wait for ever
            reply = Failure(request.request_id, ErrorRecord(type(exc).__name__, str(exc)))
        self._worker.send_to_scheduler([reply])

    def _waiting(self) -> int:
        """Runs that were not handed to the executor."""
        model = self._worker.model
        return len(model.runs) - sum(pool.handed for pool in model.pools.values())


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Two processes' reports as one (see ``instruments.carried.Report``)."""
    return {part: {**one.get(part, {}), **other.get(part, {})} for part in {**one, **other}}
