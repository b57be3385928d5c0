"""A sampler whose ticks and clock are the test's, and threads that stand where the test put them.

Nothing here depends on when a thread gets a processor: what a tick finds is known before it is taken.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gnomon.profiler.sampling import sampler as module
from gnomon.profiler.sampling.cadence import Cadence
from gnomon.profiler.sampling.sampler import Sampler


class HandDriven(Sampler):
    """Ticks when told to. ``monkeypatch`` gives it a clock of its own: ``time``, wall clock in seconds."""

    def __init__(self, monkeypatch: Any, **settings: Any) -> None:
        self.time = 1000.0
        monkeypatch.setattr(module, "now", lambda: self.time)
        self._done = threading.Event()
        super().__init__(**{"interval": 0.01, "budget": 1.0, **settings})
        self._cadence = Cadence(self._cadence.base, self._cadence.budget, self.time, spread=0.0)
        self._pulse.cadence = self._cadence

    def _run(self) -> None:
        self._done.wait()

    def stop(self) -> None:
        """Let the thread go that did nothing."""
        self._done.set()
        super().stop()
        self._done.clear()

    def tick(self, number: int = 1, late: float = 0.0) -> None:
        """So many ticks, each of them late by so many seconds (and a little, so that no rounding decides)."""
        for _ in range(number):
            self.time = max(self.time, self._cadence.deadline + late + 1e-6)
            with self._pulse:
                if self._pulse.tick(self.time, threading.get_ident()):
                    self._attend(self.time)


class Actor:
    """A thread that does what it is told and stands still where that calls ``pause``."""

    def __init__(self, name: str = "actor") -> None:
        self._step = threading.Semaphore(0)
        self._standing = threading.Semaphore(0)
        self._next: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._thread.start()
        self.ident = self._thread.ident

    def pause(self) -> None:
        """Called by the thread itself: stand here until the test lets it go on."""
        self._standing.release()
        assert self._step.acquire(timeout=60)

    @contextmanager
    def inside(self, function: Callable[[], None]) -> Iterator[None]:
        """The block runs while the thread stands in ``function``, which ends after it."""
        self._next = function
        self._step.release()
        assert self._standing.acquire(timeout=60), "it did not get there"
        yield
        self._step.release()
        assert self._standing.acquire(timeout=60), "it did not come back"

    def close(self) -> None:
        """End the thread."""
        self._next = None
        self._step.release()
        self._thread.join(60)

    def _live(self) -> None:
        while True:
            assert self._step.acquire(timeout=60)
            if self._next is None:
                return
            self._next()
            self._standing.release()
