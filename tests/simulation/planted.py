"""Bugs planted on purpose: a simulation that doesn't find them finds nothing.

Each replaces one function of a brain by one that forgets something, in this process and for a while. That takes the
interpreted build (``GNOMON_PURE=1``): compiled functions call each other directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gnomon.runtime.core import Model, Outbox, arrival, reactor, recovery, replicas, transitions
from gnomon.runtime.worker.state import changes, events
from tests.simulation import scheduler, worker
from tests.simulation.scenario import simulate

__all__ = ["BUGS", "find"]


@contextmanager
def _replaced(module: Any, name: str, wrong: Any) -> Iterator[None]:
    right = getattr(module, name)
    setattr(module, name, wrong)
    tables = [t for t in (worker._EVENTS, scheduler._WORKER_EVENTS, scheduler._CLIENT_EVENTS) if right in t.values()]
    for table in tables:
        for kind, function in table.items():
            if function is right:
                table[kind] = wrong
    try:
        yield
    finally:
        setattr(module, name, right)
        for table in tables:
            for kind, function in table.items():
                if function is wrong:
                    table[kind] = right


def _keeps_freed_runs(model: Any, outbox: Any, message: Any, now: float) -> None:
    """FreeTasks frees values only."""
    for task_id, attempt in zip(message.task_ids, message.attempts, strict=True):
        value = model.values.get(task_id)
        if value is not None and value.attempt <= attempt:
            value.held = False
            changes.drop_unneeded(model, outbox, value)


def _no_fence(model: Any, outbox: Any, task_id: int, attempt: int, stored: bool) -> Any:
    """What ends is taken for the current run, whatever its attempt."""
    run = model.runs.get(task_id)
    return _handed_end(model, outbox, task_id, attempt if run is None else run.attempt, stored)


def _keeps_slot(model: Any, run: Any) -> None:
    """Resources of a run are not given back."""
    run.resources = ()
    _end_handed(model, run)


def _gives_up(model: Any, outbox: Any, value: Any) -> None:
    """After a failed fetch no other holder is tried, and nobody told."""


def _takes_any_value(model: Any, outbox: Any, holder: str, ids: Any, *others: Any) -> Any:
    """The shell is told to keep each value, and the brain doesn't note it."""
    return [True] * len(ids)


def _forgets_answer(model: Any, outbox: Any, message: Any, now: float) -> None:
    """Given-back tasks are dropped without a word to the scheduler."""
    _on_tasks_returned(model, outbox, message, now)
    outbox.steal_rows = []


def _stale_copies_stay(model: Any, outbox: Any, ws: Any, task_id: int, attempt: int, nbytes: int) -> None:
    task = model.by_id.get(task_id)
    if task is not None and task.attempt == attempt:
        _add(model, outbox, ws, task_id, attempt, nbytes)


def _lost_without_free(model: Any, outbox: Any, ws: Any, blamed: Any, cause: Any, alive: bool) -> None:
    _lose_all(model, outbox, ws, blamed, cause, False)


def _old_definition(task: Any, code: Any, payload: Any) -> bool:
    """A cancelled key that is needed still keeps its old definition."""
    return False


def _nobody_wakes(model: Any, outbox: Any, dep: Any, ws: Any) -> None:
    """Tasks whose input can't be had stay with their worker."""


def _never_lets_go(model: Any, outbox: Any, task: Any) -> None:
    """Released tasks are kept."""


def _of_current_runs(right: Callable[..., Any]) -> Callable[..., Any]:
    """News of any attempt is taken for news of the current one."""

    def wrong(model: Any, outbox: Any, worker_id: int, message: Any, now: float) -> None:
        known = [model.by_id.get(task_id) for task_id in message.task_ids]
        attempts = [a if t is None else t.attempt for a, t in zip(message.attempts, known, strict=True)]
        right(model, outbox, worker_id, message._replace(attempts=tuple(attempts)), now)

    return wrong


def _no_retries(model: Any, outbox: Any, worker_id: int, message: Any, now: float) -> None:
    for task_id in message.task_ids:
        if task_id in model.by_id:
            model.by_id[task_id].retries = 0
    _on_tasks_erred(model, outbox, worker_id, message, now)


def _blames_bystanders(model: Any, outbox: Any, worker_id: int, message: Any, now: float) -> None:
    """Whatever a worker had is to blame for the death of its executor."""
    all_of_it = list(model.workers[worker_id].processing) if worker_id in model.workers else []
    ids, attempts = tuple(t.task_id for t in all_of_it), tuple(t.attempt for t in all_of_it)
    _on_executor_lost(model, outbox, worker_id, message._replace(running=ids, attempts=attempts), now)


def _any_worker(model: Any, options: Any) -> Any:
    """Tasks go to workers whatever they ask for."""
    return list(model.workers.values())


def _nobody_is_told(outbox: Any, task: Any) -> None:
    """That a value is computed again stays a secret."""


_on_tasks_erred = reactor.on_tasks_erred
_on_executor_lost = reactor.on_executor_lost
_handed_end = changes.handed_end
_end_handed = changes.end_handed
_on_tasks_returned = events.on_tasks_returned
_add = replicas.add
_lose_all = recovery._lose_all

#: Events after which a seed counts as going on for ever; some of these bugs make it so.
_LIMIT = 20_000

#: Name, module, function, and what stands for it.
BUGS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "worker keeps freed runs": (events, "on_free_tasks", _keeps_freed_runs),
    "worker doesn't fence attempts": (changes, "handed_end", _no_fence),
    "worker loses resources": (changes, "end_handed", _keeps_slot),
    "worker gives up a failed fetch": (events, "_seek_again", _gives_up),
    "worker takes any fetched value": (events, "on_fetch_done", _takes_any_value),
    "worker keeps stolen tasks secret": (events, "on_tasks_returned", _forgets_answer),
    "scheduler leaves stale copies": (replicas, "add", _stale_copies_stay),
    "scheduler doesn't free what a dead executor had": (recovery, "_lose_all", _lost_without_free),
    "scheduler keeps old definitions": (arrival, "gives_way", _old_definition),
    "scheduler lets tasks wait for a missing input": (replicas, "_take_back", _nobody_wakes),
    "scheduler never releases inputs": (transitions, "let_go", _never_lets_go),
    "scheduler takes late ends": (reactor, "on_tasks_finished", _of_current_runs(reactor.on_tasks_finished)),
    "scheduler never runs a task again": (reactor, "on_tasks_erred", _no_retries),
    "scheduler blames bystanders": (reactor, "on_executor_lost", _blames_bystanders),
    "scheduler ignores restrictions": (Model, "_find_eligible", _any_worker),
    "scheduler tells nobody of a loss": (Outbox, "tell_pending", _nobody_is_told),
}


def find(name: str, seeds: range) -> int | None:
    """The first seed that finds a planted bug, or None."""
    with _replaced(*BUGS[name]):
        for seed in seeds:
            try:
                simulate(seed, _LIMIT)
            except Exception:
                return seed
    return None
