"""Virtual time and the fake wire. Everything random comes from named streams of one seed."""

from __future__ import annotations

import hashlib
import heapq
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

__all__ = ["Link", "SimulationError", "World"]

#: Ticks of the virtual clock per second.
TICKS = 1_000_000


class SimulationError(AssertionError):
    """Something happened that must not."""


class World:
    """The clock, what is due, and the trace of what was delivered."""

    def __init__(self, seed: int, limit: int) -> None:
        self.seed = seed
        self.limit = limit
        self.ticks = TICKS
        self.events = 0
        self.counts: Counter[str] = Counter()
        self.recent: list[str] = []
        self.keep = 0
        self._due: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0
        self._hash = hashlib.sha256()
        self._streams: dict[str, random.Random] = {}

    @property
    def now(self) -> float:
        """Seconds."""
        return self.ticks / TICKS

    def random(self, label: str) -> random.Random:
        """A stream of its own for each label, so that a new use of chance doesn't shift the others."""
        stream = self._streams.get(label)
        if stream is None:
            stream = self._streams[label] = random.Random(f"{self.seed}/{label}")
        return stream

    def after(self, ticks: int, function: Callable[..., None], *arguments: Any) -> None:
        """Call something later; calls for the same instant keep their order."""
        self._number += 1
        heapq.heappush(self._due, (self.ticks + ticks, self._number, function, arguments))

    def run(self, until: int | None = None) -> None:
        """Let things happen until nothing is due (before ``until``). Raises SimulationError over the limit."""
        while self._due and (until is None or self._due[0][0] <= until):
            self.ticks, _, function, arguments = heapq.heappop(self._due)
            self.events += 1
            if self.events > self.limit:
                raise SimulationError(f"more than {self.limit} events: something goes on for ever")
            function(*arguments)
        if until is not None:
            self.ticks = max(self.ticks, until)

    def trace(self, who: str, what: Any) -> None:
        """Note something that must happen in the same way in each replay."""
        line = f"{self.ticks} {who} {what!r}"
        self._hash.update(line.encode())
        if self.keep:
            self.recent.append(line)
            del self.recent[: -self.keep]

    def count(self, batch: Any) -> None:
        """Count the messages of a batch by kind."""
        for message in batch:
            self.counts[type(message).__name__] += 1

    def digest(self) -> str:
        """Fingerprint of all that was traced."""
        return self._hash.hexdigest()[:16]


class Link:
    """One direction of a stream: in order, with random delays, until it is cut."""

    def __init__(self, world: World, name: str, deliver: Callable[[Any], None], delay: tuple[int, int]) -> None:
        self._world = world
        self._random = world.random(f"delay/{name}")
        self._deliver = deliver
        self._delay = delay
        self._last = 0
        self._sent = 0
        self._delivered = 0
        self._limit: int | None = None

    def send(self, item: Any) -> None:
        """Send one item; nothing arrives after a cut."""
        self._sent += 1
        low, high = self._delay
        ticks = self._random.randint(low, high)
        if self._random.random() < 0.02:
            ticks *= 20  # now and then a stall
        self._last = max(self._last, self._world.ticks + ticks)
        self._world.after(self._last - self._world.ticks, self._arrive, self._sent, item)

    def cut(self, last_words: Any = None) -> None:
        """Of what is under way a random part is lost; then, if given, ``last_words`` arrive."""
        if self._limit is None:
            self._limit = self._random.randint(self._delivered, self._sent)
            if last_words is not None:
                self._last = max(self._last, self._world.ticks + self._delay[1])
                self._world.after(self._last - self._world.ticks, self._deliver, last_words)

    def _arrive(self, number: int, item: Any) -> None:
        if self._limit is None or number <= self._limit:
            self._delivered = number
            self._deliver(item)
