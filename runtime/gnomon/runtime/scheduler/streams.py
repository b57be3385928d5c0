"""The scheduler's end of its conversations: one object per client and per worker, with what only the shell knows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from math import nan
from typing import Any

from gnomon.runtime.comm import Comm, CommClosedError
from gnomon.runtime.errors import WorkerLostError
from gnomon.runtime.messages import Failure, Heartbeat, Message, Request, Response

__all__ = ["ClientStream", "WorkerStream"]


class _Stream:
    """Sends without failing: a peer that has just gone is noticed by its close callback, not by each sender."""

    def __init__(self, comm: Comm) -> None:
        self.comm = comm

    def send(self, messages: Sequence[Message]) -> None:
        """Queue messages for the end of the loop turn."""
        try:
            self.comm.send(messages)
        except CommClosedError:
            pass  # its on_close says so to the brain


class ClientStream(_Stream):
    """A client as the shell sees it."""

    def __init__(self, comm: Comm, client_id: int) -> None:
        super().__init__(comm)
        self.id = client_id


class WorkerStream(_Stream):
    """A worker as the shell sees it.

    Attributes:
        id: the brain's number, 0 before it has registered.
        last_seen: scheduler time of its last message.
        clock_offset: seconds to add to the worker's times to have scheduler times.
        clock_uncertainty: how far the true offset may be from that; NaN before anything is known.
        clock_time: when the offset in use was estimated; ``clock_samples`` counts the heartbeats that it is from.
        same_clock: whether it runs on the scheduler's machine, where there is no offset to estimate.
        leaving: whether it was told to leave, so that its end is no failure.
        assigned: whether it had tasks when the records were last told.
    """

    def __init__(self, comm: Comm) -> None:
        super().__init__(comm)
        self.id = 0
        self.name = comm.peer.name
        self.address = ""
        self.nthreads = 0
        self.last_seen = 0.0
        self.clock_offset = 0.0
        self.clock_uncertainty = nan
        self.clock_time = 0.0
        self.clock_samples = 0
        self.leaving = False
        self.assigned = False
        self.metrics: dict[str, Any] = {}
        self.same_clock = False
        self._best_round_trip = float("inf")
        self._last_request = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    def on_heartbeat(self, message: Heartbeat, now: float) -> None:
        """Keep the metrics, and refine the clock offset.

        The worker reports the round trip of its previous heartbeat; the offset is taken from the quickest one seen
        lately, where the one-way time is best known (the clock filter of NTP, RFC 5905 section 10).
        """
        self.metrics = message.metrics
        round_trip = message.metrics.get("round_trip")
        if isinstance(round_trip, float) and not self.same_clock:
            self.clock_samples += 1
            self._best_round_trip *= 1.01
            if round_trip <= self._best_round_trip:
                self._best_round_trip = round_trip
                self.clock_offset = now - message.sent - round_trip / 2
                self.clock_uncertainty = round_trip / 2
                self.clock_time = now

    def share_clock(self, now: float) -> None:
        """The worker reads the same clock as the scheduler."""
        self.same_clock = True
        self.clock_uncertainty = 0.0
        self.clock_time = now

    async def request(self, method: str, arguments: dict[str, Any]) -> Any:
        """Ask the worker something. Raises WorkerLostError if it goes before it answers."""
        self._last_request += 1
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[self._last_request] = answer
        self.send([Request(self._last_request, method, arguments)])
        return await answer

    def on_answer(self, message: Response | Failure) -> None:
        """The worker answered one of our requests."""
        answer = self._waiting.pop(message.request_id, None)
        if answer is not None and not answer.done():
            answer.set_result(message)

    def fail_requests(self, text: str) -> None:
        """The worker is gone: nobody waits for it any longer."""
        waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            if not answer.done():
                answer.set_exception(WorkerLostError(text))
