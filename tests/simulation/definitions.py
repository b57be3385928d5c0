"""What tasks do in the simulation, and what must come of them."""

from __future__ import annotations

import hashlib
import random
from typing import Any, NamedTuple

__all__ = ["ALWAYS", "Definition", "Oracle", "Outcome", "value_of"]

ALWAYS = 1 << 30


class Definition(NamedTuple):
    """One task as its author wrote it; its payload names it.

    Fields:
        small: whether its value travels inside messages.
        ticks: how long it runs.
        failures: how many of its first runs raise.
        kills: how many of its first runs take the executor down.
        secedes: whether it leaves its thread slot half-way.
        trapped: whether its value can't leave the executor that made it.
    """

    payload: bytes
    small: bool
    nbytes: int
    ticks: int
    failures: int = 0
    kills: int = 0
    secedes: bool = False
    trapped: bool = False


class Outcome(NamedTuple):
    """What a task must come to.

    Fields:
        payload: its own definition's; empty for data that a client brought.
        value: its value, whenever it is done.
        blamed: payloads of the definitions, its own and those it needs, whose failure may be its failure.
        hopeless: whether one of them always fails.
        brought: whether it, or something that it needs, is data that a client brought, and can't be made again.
        task_ids: its id and those of all it needs.
    """

    payload: bytes
    value: bytes
    blamed: frozenset[bytes]
    hopeless: bool
    brought: bool
    task_ids: frozenset[int]


def value_of(payload: bytes, inputs: list[bytes]) -> bytes:
    """The value of a definition: depends on every input and its place."""
    return hashlib.blake2b(b"|".join([payload, *inputs]), digest_size=8).digest()


class Oracle:
    """Knows every definition, and what each task of the scheduler must come to."""

    def __init__(self, chance: random.Random, faults: bool, narrow: bool) -> None:
        self._random = chance
        self._faults = faults
        self._narrow = narrow
        self.definitions: dict[bytes, Definition] = {}
        self.outcomes: dict[int, Outcome] = {}
        self.scattered: dict[int, bytes] = {}
        self.runs: dict[bytes, int] = {}
        self.deaths: dict[int, int] = {}
        self.cancelled: set[tuple[int, int]] = set()
        self.wishes: dict[bytes, Any] = {}
        self.raised: dict[bytes, int] = {}
        self.pure: dict[str, bytes] = {}
        self.promises: dict[tuple[int, int], Outcome] = {}

    def define(self, *, large: bool = False) -> Definition:
        """A new definition, unlike all others."""
        chance = self._random
        payload = f"d{len(self.definitions)}".encode()
        small = not large and chance.random() < 0.6
        # In a narrow cluster runs last about as long as messages take, so that ends cross with other news.
        ticks = int(10 ** (chance.uniform(2.5, 3.7) if self._narrow else chance.uniform(1.0, 4.7)))
        failures = kills = 0
        draw = chance.random()
        if self._narrow:
            failures = chance.choice((0, 0, 1, 2))
        elif draw < 0.04:
            failures = ALWAYS
        elif draw < 0.10:
            failures = chance.randint(1, 3)
        elif self._faults and draw < 0.115:
            kills = ALWAYS
        elif self._faults and draw < 0.14:
            kills = 1
        nbytes = chance.randint(20, 400) if small else int(10 ** chance.uniform(3.0, 8.0))
        trapped = not small and chance.random() < 0.03
        definition = Definition(payload, small, nbytes, ticks, failures, kills, chance.random() < 0.05, trapped)
        self.definitions[payload] = definition
        return definition

    def define_pure(self, key: str) -> bytes:
        """The payload of a key that has the same definition whoever brings it."""
        payload = self.pure.get(key)
        if payload is None:
            payload = self.pure[key] = self.define().payload
        return payload

    def promise(self, client_id: int, future_id: int, outcome: Outcome) -> None:
        """A future stands for a task with this outcome."""
        self.promises[(client_id, future_id)] = outcome

    def learn(self, task: Any) -> Outcome:
        """What a task of the scheduler's model (and so each task it needs) must come to."""
        known = self.outcomes.get(task.task_id)
        if known is not None:
            return known
        inputs = [self.learn(dep) for dep in task.dependencies]
        ids = {task.task_id}.union(*[i.task_ids for i in inputs])
        blamed: set[bytes] = set().union(*[i.blamed for i in inputs])
        hopeless = any(i.hopeless for i in inputs)
        brought = task.code is None or any(i.brought for i in inputs)
        if task.code is None:
            value = self.scattered[task.task_id]
        else:
            definition = self.definitions[task.payload]
            self.wishes[task.payload] = task.options.wish
            value = value_of(task.payload, [i.value for i in inputs])
            if definition.failures or definition.kills or definition.trapped:
                blamed.add(task.payload)
            hopeless = hopeless or ALWAYS in (definition.failures, definition.kills)
        own = b"" if task.code is None else task.payload
        outcome = Outcome(own, value, frozenset(blamed), hopeless, brought, frozenset(ids))
        self.outcomes[task.task_id] = outcome
        return outcome
