"""How long garbage collections stopped the process, and when.

A collection holds the GIL, so that every thread waits, whichever started it. ``gc.callbacks`` tells start and end; the
pauses of the last minutes are kept one by one, all of them in a histogram per generation.
"""

from __future__ import annotations

import gc
import threading
from collections import deque
from collections.abc import Mapping
from threading import get_ident
from typing import Any, NamedTuple

from gnomon.profiler.clock import now
from gnomon.profiler.cost import Cost
from gnomon.profiler.histogram import Histogram

__all__ = ["GcMonitor", "Pause"]

#: CPU seconds of both callbacks of one collection, measured; too cheap to measure each time.
_CALL_COST = 1.5e-6


class Pause(NamedTuple):
    """One collection. ``start`` is of the wall clock, ``duration`` in seconds."""

    start: float
    duration: float
    generation: int
    collected: int
    uncollectable: int
    thread: int  # ident of the thread that collected


class GcMonitor:
    """Records the collections of this process between ``start`` and ``stop``; ``keep``: pauses kept one by one."""

    def __init__(self, *, keep: int = 10_000, shortest: float = 1e-4) -> None:
        self._pauses: deque[Pause] = deque(maxlen=keep)
        self._shortest = shortest
        self.histograms = (Histogram(), Histogram(), Histogram())
        self._began = 0.0
        self._thread = 0
        self._running = False
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin to listen; no effect if it does."""
        with self._lock:
            if not self._running:
                self._running = True
                gc.callbacks.append(self._on_collection)

    def stop(self) -> None:
        """Stop listening; what was recorded stays."""
        with self._lock:
            if self._running:
                self._running = False
                gc.callbacks.remove(self._on_collection)
                self._began = 0.0

    def pauses(self, start: float | None = None, stop: float | None = None) -> list[Pause]:
        """Pauses that reach into a window of the wall clock; shorter ones than 0.1 ms are not kept singly."""
        low = float("-inf") if start is None else start
        high = float("inf") if stop is None else stop
        found: list[Pause] = []
        for pause in reversed(tuple(self._pauses)):
            if pause.start + pause.duration <= low:
                break
            if pause.start < high:
                found.append(pause)
        found.reverse()
        return found

    def paused(self, start: float, stop: float, thread: int | None = None) -> float:
        """Seconds of a window that were spent collecting (by one thread), one that still runs included."""
        total = 0.0
        for pause in self.pauses(start, stop):
            if thread is None or pause.thread == thread:
                total += min(pause.start + pause.duration, stop) - max(pause.start, start)
        began = self._began
        if began and began < stop and (thread is None or self._thread == thread):
            total += stop - max(began, start)
        return total

    def cost(self) -> Cost:
        """Estimated: collections times what two callbacks were measured to take."""
        calls = sum(histogram.number for histogram in self.histograms)
        return Cost(calls * _CALL_COST, calls)

    def statistics(self) -> dict[str, Any]:
        """Plain values: collections, seconds and longest pause, in all and by generation."""
        rows = [
            {"collections": each.number, "seconds": each.total, "longest": each.largest, "p99": each.quantile(0.99)}
            for each in self.histograms
        ]
        return {
            "running": self._running,
            "collections": sum(each.number for each in self.histograms),
            "seconds": sum(each.total for each in self.histograms),
            "longest": max(each.largest for each in self.histograms),
            "generations": rows,
        }

    def _on_collection(self, phase: str, info: Mapping[str, int]) -> None:
        if phase == "start":
            self._thread = get_ident()
            self._began = now()
            return
        began, self._began = self._began, 0.0
        if not began:
            return  # started before we listened
        duration = now() - began
        generation = info["generation"]
        self.histograms[min(generation, 2)].add(duration)
        if duration >= self._shortest:
            self._pauses.append(
                Pause(began, duration, generation, info["collected"], info["uncollectable"], self._thread)
            )
