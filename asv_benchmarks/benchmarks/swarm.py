"""A process of many simulated workers, each with a real connection to a scheduler, and one client.

Workers answer every task at once. The process is told what to do by lines of JSON on its standard input, first the
cluster's address and secrets; it answers each with one line, and leaves when the input ends.

Contents: Swarm, the side of who starts it.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from benchmarks.graphs import graph, message_of
from gnomon.runtime.comm import Comm, Security, connect, new_event_loop
from gnomon.runtime.messages import (
    ComputeTasks,
    FuturesDone,
    Message,
    RegisterWorker,
    ReleaseFutures,
    StealReplies,
    StealTasks,
    TasksFinished,
    WorkerRegistered,
)

__all__ = ["Swarm"]

_ROOT = Path(__file__).parents[1]
_SECONDS = 2e-5


class Swarm:
    """The process; a context manager.

    Arguments:
        address: the scheduler's.
        security: what lets one in there.
        workers: how many.
    """

    def __init__(self, address: str, security: Security, workers: int) -> None:
        command = [sys.executable, "-m", "benchmarks.swarm"]
        self._process = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._first = {"address": address, "security": security.to_dict(), "workers": workers}

    def __enter__(self) -> Self:
        try:
            self._ask(self._first)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def run(self, shape: str, tasks: int) -> float:
        """Send a graph, wait until it is done, release it; the seconds that took."""
        return float(self._ask({"shape": shape, "tasks": tasks})["seconds"])

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Raises RuntimeError if the process has left."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the swarm's process left with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


class _Worker:
    """A connection that answers as a worker that takes no time would."""

    def __init__(self, number: int) -> None:
        self.registered = asyncio.Event()
        self.comm: Comm | None = None
        self._number = number

    async def join(self, address: str, security: Security) -> None:
        self.comm = await connect(
            address, role="worker", on_messages=self._heard, on_close=_closed, security=security, timeout=60
        )
        name = f"simulated-{self._number}"
        self.comm.send([RegisterWorker(name, f"tcp://10.0.0.1:{self._number + 1}", 1, 0, (), "host", 1, {})])
        await asyncio.wait_for(self.registered.wait(), 60)

    def _heard(self, comm: Comm, messages: Sequence[Message]) -> None:
        answers: list[Message] = []
        for message in messages:
            if isinstance(message, ComputeTasks):
                n = len(message.task_ids)
                now = time.time()
                timings = array("d", [now - _SECONDS, now - _SECONDS, now, now] * n).tobytes()
                answers.append(
                    TasksFinished(message.task_ids, message.attempts, (10_000,) * n, (None,) * n, (0,) * n, timings)
                )
            elif isinstance(message, StealTasks):
                answers.append(StealReplies(message.task_ids, message.attempts, (False,) * len(message.task_ids)))
            elif isinstance(message, WorkerRegistered):
                if message.error:
                    raise RuntimeError(message.error)
                self.registered.set()
        if answers:
            comm.send(answers)


class _Client:
    """A connection that sends graphs and waits for their futures."""

    def __init__(self) -> None:
        self.comm: Comm | None = None
        self._missing = 0
        self._done = asyncio.Event()
        self._next = 1

    async def join(self, address: str, security: Security) -> None:
        self.comm = await connect(
            address, role="client", on_messages=self._heard, on_close=_closed, security=security, timeout=60
        )

    def _heard(self, comm: Comm, messages: Sequence[Message]) -> None:
        for message in messages:
            if isinstance(message, FuturesDone):
                self._missing -= len(message.future_ids)
        if self._missing <= 0:
            self._done.set()

    async def run(self, shape: str, tasks: int) -> float:
        assert self.comm is not None
        message = message_of(graph(shape, tasks), self._next)
        if self._next > 1:
            message = message._replace(codes=())
        wanted = tuple([future_id for future_id in message.future_ids if future_id])
        self._next += len(wanted)
        self._missing = len(wanted)
        self._done.clear()
        begin = time.perf_counter()
        self.comm.send([message])
        await asyncio.wait_for(self._done.wait(), 120)
        seconds = time.perf_counter() - begin
        self.comm.send([ReleaseFutures(wanted)])
        return seconds


def _closed(comm: Comm, cause: BaseException | None) -> None:
    """The scheduler is gone, or so are we."""


async def _live() -> None:
    """Body of the process."""
    loop = asyncio.get_running_loop()
    first = json.loads(await loop.run_in_executor(None, sys.stdin.readline))
    security = Security.from_dict(first["security"])
    workers = [_Worker(i) for i in range(first["workers"])]
    for start in range(0, len(workers), 32):  # no more at once than a listener takes
        await asyncio.gather(*[worker.join(first["address"], security) for worker in workers[start : start + 32]])
    client = _Client()
    await client.join(first["address"], security)
    _answer({"workers": len(workers)})
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        question = json.loads(line)
        _answer({"seconds": await client.run(question["shape"], question["tasks"])})
    comms = [comm for comm in (client.comm, *[worker.comm for worker in workers]) if comm is not None]
    for comm in comms:
        comm.close()
    await asyncio.gather(*[comm.wait_closed() for comm in comms])


def _answer(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_live())
