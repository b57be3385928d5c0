"""Sending workers home in good order: the brain says what still keeps each, the shell asks it until nothing does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gnomon.runtime import clock
from gnomon.runtime.core import reactor
from gnomon.runtime.messages import CloseWorker
from gnomon.runtime.scheduler.streams import WorkerStream

if TYPE_CHECKING:
    from gnomon.runtime.scheduler.server import Scheduler

__all__ = ["retire"]

logger = logging.getLogger("gnomon.scheduler")

#: Seconds between two looks at what keeps a worker.
_INTERVAL = 0.05
#: Seconds without progress (no task ended, no value moved) after which a worker is sent home as it is: what it runs
#: then begins again elsewhere, what it alone held is computed again.
_PATIENCE = 30.0


async def retire(scheduler: Scheduler, workers: Iterable[WorkerStream]) -> None:
    """Give workers nothing new, let them end what they run, have what only they hold copied, and send them home."""
    streams = tuple(workers)
    left = {worker.id: worker for worker in streams}
    keeps: dict[int, int] = {}
    deadlines: dict[int, float] = {}
    while left:
        now = clock.now()
        counts = reactor.on_retire_workers(scheduler.model, scheduler.outbox, left, now)
        scheduler.ask_turn_end()
        for worker_id, worker in list(left.items()):
            count = counts.get(worker_id, 0)
            if count != keeps.get(worker_id):
                keeps[worker_id] = count
                deadlines[worker_id] = now + _PATIENCE
            if count == 0 or now >= deadlines[worker_id]:
                if count:
                    logger.warning("Worker %s retires, though %d tasks and values are still there", worker.name, count)
                del left[worker_id]
                worker.leaving = True
                worker.send([CloseWorker("retired")])
        if left:
            await asyncio.sleep(_INTERVAL)
    await asyncio.gather(*(worker.comm.wait_closed() for worker in streams))
