"""Values of other workers for this one: each fetch that the brain asks for runs on a thread, the loop gets its
outcome."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from gnomon.runtime import clock
from gnomon.runtime.messages import ErrorRecord, Payload, TransfersDone
from gnomon.runtime.protocol import Segment
from gnomon.runtime.transfer import Fetched, Fetcher, TransferError, size_of
from gnomon.runtime.worker.state import Fetch, events

if TYPE_CHECKING:
    from gnomon.runtime.worker.agent import Worker

__all__ = ["Fetching", "run_blocking"]


class Fetching:
    """The fetches of one worker; at most ``connections`` at a time."""

    def __init__(self, worker: Worker, fetcher: Fetcher, connections: int) -> None:
        self._worker = worker
        self._loop = asyncio.get_running_loop()
        self._fetcher = fetcher
        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="gnomon-fetch")

    def start(self, fetch: Fetch) -> None:
        """Begin one fetch."""
        self._threads.submit(self._run, fetch)

    async def close(self) -> None:
        """Break off what is under way and end the threads."""
        self._fetcher.close()
        await run_blocking(lambda: self._threads.shutdown(wait=True, cancel_futures=True))

    def _run(self, fetch: Fetch) -> None:
        """On a thread: fetch, and hand the outcome to the loop."""
        started = clock.now()
        try:
            fetched = self._fetcher.fetch(fetch.holder, list(zip(fetch.task_ids, fetch.attempts, strict=True)))
        except TransferError:
            self._hand_over(self._unreachable, fetch)
        else:
            self._hand_over(self._arrived, fetch, fetched, started, clock.now())

    def _hand_over(self, function: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            pass  # the loop has ended, and with it whoever wanted the values

    def _unreachable(self, fetch: Fetch) -> None:
        worker = self._worker
        events.on_fetch_failed(
            worker.model, worker.outbox, fetch.holder, fetch.task_ids, fetch.attempts, False, clock.now()
        )
        worker.ask_turn_end()

    def _arrived(self, fetch: Fetch, fetched: Fetched, started: float, stopped: float) -> None:
        """Tell the brain of each value, and hand large ones to the executor."""
        worker, now = self._worker, clock.now()
        rows: list[tuple[int, int, int, Payload | None]] = []
        segments: dict[int, Segment] = {}
        lost: list[tuple[int, int]] = []
        for task_id, attempt, nbytes, value in zip(
            fetch.task_ids, fetch.attempts, fetch.nbytes, fetched.values, strict=True
        ):
            if value is None:
                lost.append((task_id, attempt))
            elif isinstance(value, ErrorRecord):
                events.on_fetch_unusable(worker.model, worker.outbox, fetch.holder, task_id, attempt, value, now)
            elif isinstance(value, Segment):
                segments[task_id] = value
                rows.append((task_id, attempt, nbytes, None))
            else:
                rows.append((task_id, attempt, nbytes, value))
        if rows:
            task_ids, attempts, sizes, values = zip(*rows, strict=True)
            wanted = events.on_fetch_done(
                worker.model, worker.outbox, fetch.holder, task_ids, attempts, sizes, values, now
            )
            keep = [i for i, take in zip(task_ids, wanted, strict=True) if take and i in segments]
            if keep:
                layouts = [segments[i].layout for i in keep]
                names = dict(zip(fetch.task_ids, fetched.told.type_names, strict=True))
                fds = [os.dup(segments[i].fd) for i in keep]
                worker.put_segments(keep, layouts, fds, [names[i] for i in keep])
        if lost:
            ids, tries = zip(*lost, strict=True)
            events.on_fetch_failed(worker.model, worker.outbox, fetch.holder, ids, tries, True, now)
        worker.send_to_scheduler([_told(fetch, fetched, started, stopped)])
        worker.ask_turn_end()


def _told(fetch: Fetch, fetched: Fetched, started: float, stopped: float) -> TransfersDone:
    """A fetch for the records."""
    types: dict[str, tuple[int, int]] = {}
    for name, value in zip(fetched.told.type_names, fetched.values, strict=True):
        if value is not None and not isinstance(value, ErrorRecord):
            count, nbytes = types.get(name, (0, 0))
            types[name] = count + 1, nbytes + size_of(value)
    hold = min(fetched.told.hold, stopped - started)
    parts = max(0.0, started - fetch.asked), hold, min(fetched.told.serialise, stopped - started - hold)
    return TransfersDone(
        (fetch.holder,),
        (fetched.nbytes,),
        (started,),
        (stopped,),
        (fetched.transport,),
        (parts,),
        (tuple([(name, *amounts) for name, amounts in types.items()]),),
    )


async def run_blocking(function: Callable[[], None]) -> None:
    """Call something that blocks, on a thread of its own: the loop's pool is gone before a cluster left open is."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def call() -> None:
        try:
            function()
        finally:
            loop.call_soon_threadsafe(done.set_result, None)

    threading.Thread(target=call, name="gnomon-close", daemon=True).start()
    await done
