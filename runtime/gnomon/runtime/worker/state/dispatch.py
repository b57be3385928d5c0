"""What is started once per loop turn, after the turn's events: fetches, and runs handed to the executor.

The executor gets a little more than its threads can run at once, so that they never wait for the agent; the rest stays
here, where it can be taken back for nothing.
"""

from __future__ import annotations

from heapq import heappop
from typing import TYPE_CHECKING

from gnomon.runtime.worker.state import changes
from gnomon.runtime.worker.state.model import WorkerModel
from gnomon.runtime.worker.state.outbox import Fetch, Outbox
from gnomon.runtime.worker.state.records import Flight, Pool, Run, Value
from gnomon.runtime.worker.state.states import CONSTRAINED, EXECUTING, FETCH, FLIGHT, READY

if TYPE_CHECKING:
    from gnomon.runtime.messages import Payload

__all__ = ["run"]

#: Amounts of resources are floats; this much too little is still enough.
_TOLERANCE = 1e-9


def run(model: WorkerModel, outbox: Outbox, now: float) -> None:
    """Start fetches, ask runs back and hand ready ones over; nothing while no executor is there."""
    if not model.ready:
        return
    if model.to_cancel:
        outbox.cancel_runs(model.to_cancel)
        model.asked.extend(model.to_cancel)
        model.cancel_batches.append(len(model.to_cancel))
        model.to_cancel = []
    if model.queues:
        _start_fetches(model, outbox, now)
    chosen: list[Run] = []
    for pool in model.pools.values():
        if pool.ready or pool.constrained:
            _choose(model, pool, chosen)
    if chosen:
        _hand_over(model, outbox, chosen)
        model.remember(now, "handed", [item.task_id for item in chosen], [item.attempt for item in chosen])


# Runs


def _choose(model: WorkerModel, pool: Pool, chosen: list[Run]) -> None:
    """Take from a pool the runs that its executor is to get now."""
    few = 2 * pool.nthreads
    seconds = model.settings.prefetch_seconds * pool.nthreads
    shortest = model.settings.shortest_run
    while pool.handed < few or pool.work < seconds:
        item = _next_run(model, pool)
        if item is None:
            return
        item.expected = max(_expected_seconds(model, item, seconds), shortest)
        changes.move_run(model, item, EXECUTING)
        pool.handed += 1
        pool.work += item.expected
        chosen.append(item)


def _expected_seconds(model: WorkerModel, item: Run, unknown: float) -> float:
    """How long a run will take: the shorter of what the scheduler expects and what was measured here.

    Too short a guess only makes the prefetch larger, and that can be asked back; too long a one lets threads starve.
    """
    measured = model.durations.get(item.code_id)
    if measured is None:
        return item.duration if item.duration >= 0.0 else unknown
    if 0.0 <= item.duration < measured:
        return item.duration
    return measured


def _next_run(model: WorkerModel, pool: Pool) -> Run | None:
    """Take the first run of a pool that may start, and its resources."""
    heap = pool.ready
    while heap and heap[0][2].state is not READY:
        heappop(heap)
    if pool.constrained:
        limited = _next_constrained(model, pool)
        if limited is not None and not (heap and heap[0] < limited[0]):
            item: Run = heappop(limited)[2]
            for name, amount in item.resources:
                model.available[name] -= amount
            return item
    if heap:
        return heappop(heap)[2]
    return None


def _next_constrained(model: WorkerModel, pool: Pool) -> list[tuple[tuple[int, ...], int, Run]] | None:
    """The heap whose first run has its resources free, in order of priority.

    A run that can't start keeps later ones from the resources it lacks, so that one that needs much is not starved by
    many that need little.
    """
    heaps = []
    for resources, heap in list(pool.constrained.items()):
        while heap and heap[0][2].state is not CONSTRAINED:
            heappop(heap)
        if heap:
            heaps.append((heap[0], resources, heap))
        else:
            del pool.constrained[resources]
    heaps.sort()
    lacking: list[str] = []
    for _, resources, heap in heaps:
        short = [name for name, amount in resources if model.available.get(name, 0.0) + _TOLERANCE < amount]
        if not short and not any(name in lacking for name, amount in resources):
            return heap
        lacking.extend(short)
    return None


def _hand_over(model: WorkerModel, outbox: Outbox, chosen: list[Run]) -> None:
    """Send runs to the executor with the code and the small values that it lacks."""
    codes: dict[int, Payload] = {}
    values: dict[int, Payload] = {}
    for item in chosen:
        if item.code_id not in model.sent_codes and item.code_id in model.codes:
            codes[item.code_id] = model.codes[item.code_id]
            model.sent_codes[item.code_id] = True
        for task_id in item.dependencies:
            value = model.values[task_id]
            if not value.stored:
                values[task_id] = value.payload
                value.stored = True
    outbox.hand_over(chosen, codes, values)


# Fetches


def _start_fetches(model: WorkerModel, outbox: Outbox, now: float) -> None:
    """Fetch the most urgent values from holders that nothing is being fetched from, within the limits."""
    while model.queues and len(model.flights) < model.settings.fetch_concurrency:
        best = None
        best_holder = ""
        for holder in list(model.queues):
            if holder in model.flights:
                continue
            queue = model.queues[holder]
            while queue and not _is_sought(model, holder, queue[0][2]):
                heappop(queue)
            if not queue:
                del model.queues[holder]
            elif best is None or queue[0] < best:
                best = queue[0]
                best_holder = holder
        if best is None:
            return
        _fetch(model, outbox, best_holder, now)


def _is_sought(model: WorkerModel, holder: str, value: Value) -> bool:
    """Whether a queue entry still says something."""
    return value.state is FETCH and holder in (value.holders or ()) and value.task_id not in model.in_flight


def _fetch(model: WorkerModel, outbox: Outbox, holder: str, now: float) -> None:
    """Start one fetch of the most urgent values that a holder has."""
    flight = Flight(holder)
    model.flights[holder] = flight
    queue = model.queues[holder]
    task_ids: list[int] = []
    attempts: list[int] = []
    nbytes: list[int] = []
    total = 0
    asked = now
    while queue and len(task_ids) < model.settings.fetch_rows:
        value: Value = queue[0][2]
        if not _is_sought(model, holder, value):
            heappop(queue)
            continue
        if task_ids and total + value.nbytes > model.settings.fetch_bytes:
            break
        heappop(queue)
        changes.move_value(model, value, FLIGHT)
        flight.rows[value.task_id] = value.nbytes
        model.in_flight[value.task_id] = flight
        total += value.nbytes
        if value.sought < asked:
            asked = value.sought
        task_ids.append(value.task_id)
        attempts.append(value.attempt)
        nbytes.append(value.nbytes)
    if not queue:
        del model.queues[holder]
    outbox.fetches.append(Fetch(holder, tuple(task_ids), tuple(attempts), tuple(nbytes), asked))
    model.remember(now, "fetch", task_ids, attempts)
