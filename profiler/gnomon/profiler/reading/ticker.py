"""The heartbeat that monitors ride on: a thread that wakes many times a second and shows each of them all stacks.

A process that samples has one already: ``Sampler`` is a ``TickSource``, and one thread for all is what a busy program
feels least, for each wake-up takes the GIL from it. ``Ticker`` is a small one for a monitor that is used alone. It
looks only while it has a hook, and it knows nothing of what the hooks do.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

from gnomon.profiler.clock import now, thread_cpu
from gnomon.profiler.cost import Cost
from gnomon.profiler.reading.looks import Look

__all__ = ["Hook", "Hooks", "TickSource", "Ticker", "tick_source"]

logger = logging.getLogger("gnomon.profiler.ticker")

#: ``hook(due, woke, look)``: when the tick was due and when the thread ran again (wall clock), and where all threads
#: are. A true result asks for the next tick soon.
Hook: TypeAlias = Callable[[float, float, Look], object]

#: A process that used less of the processor than this share since the last tick is idle.
_IDLE = 0.03

#: Seconds between ticks that monitors can live with while nothing goes on.
_WIDEST = 0.0797


@runtime_checkable
class TickSource(Protocol):
    """What a monitor needs of a sampler."""

    def add_hook(self, hook: Hook, /) -> None:
        """Call ``hook`` on each tick from now on."""

    def remove_hook(self, hook: Hook, /) -> None:
        """Don't call it any more; no effect if it isn't there."""

    def tick_within(self, seconds: float, /) -> None:
        """Never let more time pass between two ticks while there are hooks. The shortest time asked for holds."""


class Hooks:
    """Some hooks, called one after the other; one that fails is logged and taken out."""

    __slots__ = ("_hooks",)

    def __init__(self) -> None:
        self._hooks: tuple[Hook, ...] = ()

    def __len__(self) -> int:
        """How many there are."""
        return len(self._hooks)

    def add(self, hook: Hook) -> None:
        """Call it from now on."""
        self._hooks = (*self._hooks, hook)

    def remove(self, hook: Hook) -> None:
        """Don't call it any more; no effect if it isn't there."""
        # Bound methods are equal, not identical, from one access to the next.
        self._hooks = tuple(kept for kept in self._hooks if kept != hook)

    def call(self, due: float, woke: float, remove: Callable[[Hook], None]) -> bool:
        """A tick for each; whether one of them asks for the next one soon. ``remove`` is given those that fail."""
        look = Look()
        attention = False
        for hook in self._hooks:
            try:
                attention |= bool(hook(due, woke, look))
            except Exception:
                logger.exception("a monitor failed and is switched off")
                remove(hook)
        return attention


def tick_source(sampler: object, threshold: float = 0.1) -> TickSource:
    """The sampler itself if it gives ticks, else a new ticker, fast enough to look into stalls of ``threshold``."""
    widest = min(_WIDEST, threshold * 0.8)
    if isinstance(sampler, TickSource):
        sampler.tick_within(widest)
        return sampler
    return Ticker(min(0.0197, threshold / 5), widest)


class Ticker:
    """A daemon thread that calls its hooks every ``interval`` seconds, from the first one until the last is removed.

    While the process is idle and no hook asks for attention, the ticks get rarer, up to ``widest`` seconds apart: a
    wake-up costs some tens of microseconds of processor time, far more than what is done in it.
    """

    def __init__(self, interval: float = 0.0197, widest: float = _WIDEST) -> None:
        self.interval = interval
        self.widest = max(widest, interval)
        self._hooks = Hooks()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._cost = Cost(0.0, 0)

    def add_hook(self, hook: Hook, /) -> None:
        """Call ``hook`` on each tick from now on."""
        with self._lock:
            self._hooks.add(hook)
            if self._thread is None or not self._thread.is_alive():  # dead: in a forked child
                self._thread = threading.Thread(target=self._run, name="gnomon-ticker", daemon=True)
                self._thread.start()

    def remove_hook(self, hook: Hook, /) -> None:
        """Don't call it any more; with the last one the thread ends (and is waited for, unless this is it)."""
        with self._lock:
            self._hooks.remove(hook)
            if self._hooks or self._thread is None:
                return
            thread, self._thread = self._thread, None
        if thread is not threading.current_thread():
            thread.join()

    def tick_within(self, seconds: float, /) -> None:
        """Never let more time pass between two ticks."""
        self.widest = min(self.widest, seconds)
        self.interval = min(self.interval, seconds)

    def cost(self) -> Cost:
        """CPU seconds of the thread, hooks included, and ticks."""
        return self._cost

    def _run(self) -> None:
        calls, before = self._cost.calls, self._cost.cpu
        this = threading.current_thread()
        interval, used = self.interval, time.process_time()
        due = now() + interval
        while True:
            # Waiting for an event would cost twice the processor time of a plain sleep.
            time.sleep(max(due - now(), 0.0))
            woke = now()
            if self._thread is not this:
                return
            attention = self._hooks.call(due, woke, self.remove_hook)
            calls += 1
            own, self._cost = self._cost, Cost(before + thread_cpu(), calls)
            used_before, used = used, time.process_time()
            idle = used - used_before - (self._cost.cpu - own.cpu) < _IDLE * interval
            interval = min(interval * 1.5, self.widest) if idle and not attention else self.interval
            # What was late isn't made up for, or ticks would come in bursts.
            due = max(due, now() - interval) + interval
