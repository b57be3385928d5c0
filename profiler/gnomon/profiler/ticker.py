"""The heartbeat that monitors ride on: a thread that wakes many times a second and shows each of them all stacks.

A process that samples has one already (``Sampler`` is a ``TickSource``); ``Ticker`` is a small one for a monitor that
is used alone. It looks only while it has a hook, and it knows nothing of what the hooks do.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Protocol, TypeAlias

from gnomon.profiler.clock import now, thread_cpu
from gnomon.profiler.cost import Cost
from gnomon.profiler.plain import current_frames

__all__ = ["Hook", "TickSource", "Ticker"]

logger = logging.getLogger(__name__)

#: ``hook(due, woke, frames)``: when the tick was due and when the thread ran again, both of ``clock.now()``, and
#: the frame of every thread by its ident, not to be kept after the call.
Hook: TypeAlias = Callable[[float, float, Mapping[int, FrameType]], None]


class TickSource(Protocol):
    """What a monitor needs of a sampler."""

    def add_hook(self, hook: Hook, /) -> None:
        """Call ``hook`` on each tick from now on."""

    def remove_hook(self, hook: Hook, /) -> None:
        """Don't call it any more; no effect if it isn't there."""


class Ticker:
    """A daemon thread that calls its hooks every ``interval`` seconds, from the first one until the last is removed."""

    def __init__(self, interval: float = 0.0197) -> None:
        self.interval = interval
        self._hooks: tuple[Hook, ...] = ()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._cost = Cost(0.0, 0)

    def add_hook(self, hook: Hook, /) -> None:
        """Call ``hook`` on each tick from now on."""
        with self._lock:
            self._hooks = (*self._hooks, hook)
            if self._thread is None:
                self._stopping = threading.Event()
                self._thread = threading.Thread(
                    target=self._run, args=(self._stopping,), name="gnomon-ticker", daemon=True
                )
                self._thread.start()

    def remove_hook(self, hook: Hook, /) -> None:
        """Don't call it any more; with the last one the thread ends (and is waited for, unless this is it)."""
        with self._lock:
            # Bound methods are equal, not identical, from one access to the next.
            self._hooks = tuple(kept for kept in self._hooks if kept != hook)
            if self._hooks or self._thread is None:
                return
            thread, self._thread = self._thread, None
            self._stopping.set()
        if thread is not threading.current_thread():
            thread.join()

    def cost(self) -> Cost:
        """CPU seconds of the thread, hooks included, and ticks."""
        return self._cost

    def _run(self, stopping: threading.Event) -> None:
        calls = self._cost.calls
        before = self._cost.cpu
        due = now() + self.interval
        while not stopping.wait(max(due - now(), 0.0)):
            woke = now()
            frames = current_frames()
            for hook in self._hooks:
                try:
                    hook(due, woke, frames)
                except Exception:
                    logger.exception("a monitor failed and is switched off")
                    self.remove_hook(hook)
            del frames
            calls += 1
            self._cost = Cost(before + thread_cpu(), calls)
            # A late tick isn't made up for: the next is due a whole interval from now, or ticks would come in bursts.
            due = max(due, now() - self.interval) + self.interval
