"""A scheduler in a process of its own that remembers a million tasks, and times every turn of its loop.

Contents: RUNS, FullScheduler, Turn.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import time
from array import array
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from gnomon.runtime import config
from gnomon.runtime.core import RunColumns
from gnomon.runtime.messages import DemandChanged, TransfersDone
from gnomon.runtime.scheduler import Scheduler

__all__ = ["RUNS", "FullScheduler", "Turn"]

RUNS, TRANSFERS, DEMAND = 1_000_000, 200_000, 50_000
_WORKERS, _THREADS, _BATCH = 16, 4, 1_000
_PREFIXES = [f"prefix-{number}" for number in range(2_000)]  # as many as have totals of their own


class Turn(NamedTuple):
    """Seconds between two polls of the loop: by the clock, on the processor, and in the garbage collector."""

    wall: float
    cpu: float
    collecting: float


class FullScheduler:
    """Use as a context. ``fill`` gives it the tasks and begins to time, ``turns`` ends that and tells."""

    def __enter__(self) -> FullScheduler:
        context = multiprocessing.get_context("spawn")
        self._orders, theirs = context.Pipe()
        self._process = context.Process(target=_main, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self.address: str = self._orders.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._orders.close()
        self._process.join(30)

    def fill(self) -> None:
        """Remember a million tasks that ran just now."""
        self._ask("fill")

    def turns(self) -> list[Turn]:
        """The turns since then."""
        return [Turn(*row) for row in self._ask("turns")]

    def _ask(self, order: str) -> Any:
        self._orders.send(order)
        return self._orders.recv()


def _main(orders: Connection) -> None:
    with config.set({"scheduler.telemetry_length": RUNS}):
        asyncio.run(_serve(orders))


async def _serve(orders: Connection) -> None:
    scheduler = Scheduler()
    await scheduler.start()
    orders.send(scheduler.address)
    loop, turns = asyncio.get_running_loop(), _Turns()
    with suppress(EOFError):
        while True:
            if await loop.run_in_executor(None, orders.recv) == "fill":
                # On another thread: the loop would stall, and its monitor would look into that in the turns timed.
                await loop.run_in_executor(None, _fill, scheduler)
                gc.collect()  # a scheduler that got these tasks one by one has collected often
                turns.begin(loop)
                orders.send(None)
            else:
                orders.send(turns.seen)
    await scheduler.close()


class _Turns:
    """The loop's turns, by a clock around its poll."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, float, float]] = []
        self._collecting = self._collection_began = 0.0

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        selector = loop._selector  # type: ignore[attr-defined]
        poll, began = selector.select, (time.perf_counter(), time.thread_time())

        def select(timeout: float | None = None) -> Any:
            nonlocal began
            turn = (time.perf_counter() - began[0], time.thread_time() - began[1], self._collecting)
            self.seen.append(turn)
            try:
                return poll(timeout)
            finally:
                self._collecting = 0.0
                began = time.perf_counter(), time.thread_time()

        selector.select = select
        gc.callbacks.append(self._on_collection)

    def _on_collection(self, phase: str, _: object) -> None:
        if phase == "start":
            self._collection_began = time.perf_counter()
        else:
            self._collecting += time.perf_counter() - self._collection_began


def _fill(scheduler: Scheduler) -> None:
    """What the scheduler would know if these tasks had run in the last seconds."""
    telemetry, now = scheduler.telemetry, time.time()
    addresses = {f"tcp://10.0.0.{number}:4000": number for number in range(1, _WORKERS + 1)}
    for address, worker_id in addresses.items():
        telemetry.worker_joined(
            worker_id, name=f"worker-{worker_id}", address=address, nthreads=_THREADS, host="host", now=now
        )
    for first in range(0, RUNS, _BATCH):
        numbers = range(first, first + _BATCH)
        begins = [now + 1e-5 * number for number in numbers]
        telemetry.append_runs(
            RunColumns(
                [f"{_PREFIXES[number % 2_000]}-{number:032x}" for number in numbers],
                [_PREFIXES[number % 2_000] for number in numbers],
                array("q", [1 + number % _WORKERS for number in numbers]),
                array("i", [number % _THREADS for number in numbers]),
                array("d", [begin + step for begin in begins for step in (0.0, 1e-5, 3e-4, 3.1e-4)]),
                array("q", [1_000] * _BATCH),
                array("b", [1] * _BATCH),
                array("d", [2.5e-4] * _BATCH),
            )
        )
    rows = range(_BATCH)
    for number in range(TRANSFERS // _BATCH):
        message = TransfersDone(
            tuple(f"tcp://10.0.0.{1 + (number + row) % _WORKERS}:4000" for row in rows),
            (10_000,) * _BATCH, (now,) * _BATCH, (now + 1e-3,) * _BATCH, ("tcp",) * _BATCH,
        )  # fmt: skip
        telemetry.append_transfers(1 + number % _WORKERS, message, addresses)
    for number in range(DEMAND // _BATCH):
        telemetry.append_demand(
            1 + number % _WORKERS,
            DemandChanged((2,) * _BATCH, (True, False) * (_BATCH // 2), (now,) * _BATCH),
        )
