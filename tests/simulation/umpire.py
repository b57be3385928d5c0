"""Sees each message reach the scheduler's brain, and knows what it may change there, and what must not be sent.

The invariants say whether the model is consistent; the umpire, whether the right thing was done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gnomon.runtime.core import Model
from gnomon.runtime.core.states import FORGOTTEN, MEMORY, PROCESSING, RELEASED
from gnomon.runtime.messages import (
    CancelFutures,
    ComputeTasks,
    ExecutorLost,
    ReplicasAdded,
    ReplicasMissing,
    StealReplies,
    TasksErred,
    TasksFinished,
    TasksSeceded,
)
from tests.simulation.definitions import Oracle
from tests.simulation.world import SimulationError, World

__all__ = ["Umpire"]

_OF_RUNS = (TasksFinished, TasksErred, TasksSeceded, StealReplies)
_OF_VALUES = (ReplicasAdded, ReplicasMissing)


def _nothing() -> None:
    """No verdict."""


class Umpire:
    """Watches one scheduler."""

    def __init__(self, world: World, oracle: Oracle, model: Model) -> None:
        self.world = world
        self.oracle = oracle
        self.model = model

    def watch(self, ident: int, message: Any) -> Callable[[], None]:
        """Look before a message of a client or worker is handled; what is returned is to be called afterwards."""
        kind = type(message)
        if kind is CancelFutures:
            return self._watch_cancel(ident, message)
        if kind in _OF_RUNS:
            return self._watch_runs(ident, message.task_ids, message.attempts, message)
        if kind is ExecutorLost:
            return self._watch_blame(ident, message)
        if kind in _OF_VALUES:
            return self._watch_values(ident, message)
        return _nothing

    # Late news

    def _stale(self, ident: int, task_ids: Iterable[int], attempts: Iterable[int]) -> list[Any]:
        """The tasks of rows that are not of a current run on this worker, and of no other row that is."""
        stale, current = {}, set()
        for task_id, attempt in zip(task_ids, attempts, strict=True):
            task = self.model.by_id.get(task_id)
            if task is None:
                continue
            if task.processing_on is not None and (task.processing_on.worker_id, task.attempt) == (ident, attempt):
                current.add(task_id)
            else:
                stale[task_id] = task
        return [task for task_id, task in stale.items() if task_id not in current]

    def _watch_runs(self, ident: int, task_ids: tuple[int, ...], attempts: tuple[int, ...], message: Any) -> Any:
        before = [
            (task, task.attempt, task.seceded, task.thief, task.retries)
            for task in self._stale(ident, task_ids, attempts)
            if task.state == PROCESSING
        ]
        if not before:
            return _nothing
        self.world.counts["late news of a task that runs"] += len(before)

        def judge() -> None:
            for task, *known in before:
                if task.state in (RELEASED, FORGOTTEN):
                    continue  # what another row of the message led to
                now = [task.attempt, task.seceded, task.thief, task.retries]
                if task.state != PROCESSING or now != known:
                    raise SimulationError(f"late news changed {task}, attempt {known[0]}: {message}")

        return judge

    def _watch_blame(self, ident: int, message: ExecutorLost) -> Any:
        before = [(task, task.failures) for task in self._stale(ident, message.running, message.attempts)]

        def judge() -> None:
            for task, failures in before:
                if task.failures > failures:
                    raise SimulationError(f"{task} is blamed for the death of an executor that didn't run it")

        return judge

    def _watch_values(self, ident: int, message: ReplicasAdded | ReplicasMissing) -> Any:
        before = []
        for task_id, attempt in zip(message.task_ids, message.attempts, strict=True):
            task = self.model.by_id.get(task_id)
            if task is not None and task.state == MEMORY and task.attempt != attempt:
                before.append((task, task.attempt, task.holders, task.missing))

        def judge() -> None:
            for task, *known in before:
                if task.state == MEMORY and [task.attempt, task.holders, task.missing] != known:
                    raise SimulationError(f"late news changed who holds {task}: {message}")

        return judge

    # Cancelling

    def _wants(self) -> dict[tuple[int, int], Any]:
        return {
            (client_id, future_id): task
            for client_id, client in self.model.clients.items()
            for future_id, task in client.futures.items()
        }

    def _watch_cancel(self, client_id: int, message: CancelFutures) -> Any:
        """Exactly the futures that must go do: of these tasks, and of what is made from one that nobody wants more."""
        before = self._wants()
        by_task: dict[Any, set[tuple[int, int]]] = {}
        for pair, task in before.items():
            by_task.setdefault(task, set()).add(pair)
        must_go: set[tuple[int, int]] = set()
        for future_id in message.future_ids:
            root = before.get((client_id, future_id))
            if root is None or (client_id, future_id) in must_go:
                continue
            seen, stack = set(), [root]
            while stack:
                task = stack.pop()
                if task in seen or task.state == FORGOTTEN:
                    continue
                seen.add(task)
                wants = by_task.get(task, set()) - must_go
                gone = {pair for pair in wants if message.force or pair[0] == client_id}
                must_go |= gone
                if gone == wants:
                    stack.extend(task.dependents or ())

        def judge() -> None:
            after = self._wants()
            gone = {pair for pair, task in before.items() if after.get(pair) is not task}
            # Data that only the canceller could bring takes with it whatever needs it.
            lost = {pair for pair in gone - must_go if self.oracle.learn(before[pair]).brought}
            if gone - lost != must_go:
                raise SimulationError(f"{message} took {gone - lost} away, not {must_go}")
            self.oracle.cancelled |= gone

        return judge

    # What is sent

    def check_mail(self, place: Any, messages: Iterable[Any]) -> None:
        """A worker gets only what it may run."""
        for message in messages:
            if type(message) is not ComputeTasks:
                continue
            for task_id in message.task_ids:
                task = self.model.by_id.get(task_id)
                if task is None:
                    continue
                wish = task.options.wish
                named = {place.name, place.address, place.host}
                if wish.workers and not wish.allow_other_workers and named.isdisjoint(wish.workers):
                    raise SimulationError(f"{task}, which is for {wish.workers}, was given to {place.name}")
                has = dict(place.settings.resources)
                if any(has.get(name, 0.0) < amount for name, amount in wish.resources):
                    raise SimulationError(f"{task}, which needs {wish.resources}, was given to {place.name}")

    def check_leaving(self, ident: int) -> None:
        """A worker that was sent home in good order had nothing left that others needed. Only without faults."""
        ws = self.model.workers[ident]
        running = [task for task in ws.processing if not task.seceded]
        alone = [task for task in ws.has_what if task.value is None and len(task.holders) == 1]
        if running or alone:
            raise SimulationError(f"{ws} was retired with {running} running, and alone with {alone}")
