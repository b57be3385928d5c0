"""One line for a service: ``gnomon.profiler.watch()`` samples its threads and watches its event loop.

::

    async def main():
        watched = gnomon.profiler.watch()
        ...
        print(watched.report())

Stalls of the loop are logged as they happen. Everything may stay on for ever: histories are bounded, and what the
instruments cost is measured and part of the report.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from gnomon.profiler.cost import Cost
from gnomon.profiler.interpreter.gc_monitor import GcMonitor
from gnomon.profiler.interpreter.gil import GilMonitor
from gnomon.profiler.loops.monitor import LoopMonitor
from gnomon.profiler.loops.stalls import Stall
from gnomon.profiler.machine.system import SystemMonitor
from gnomon.profiler.reading.ticker import tick_source
from gnomon.profiler.sampling.sampler import Sampler
from gnomon.profiler.sessions.session import Session

__all__ = ["Watch", "watch"]


def watch(
    loop: Any = None,
    *,
    sampler: Sampler | None = None,
    threshold: float = 0.1,
    log_every: float | None = 10.0,
    gc: bool = True,
    gil: bool = True,
    system: bool = True,
) -> Watch:
    """Start to watch this process; ``stop()`` of the result, or a ``with`` block, ends it.

    ``loop``: the event loop (asyncio's, uvloop's, tornado's); the running one if None, and if none runs, threads alone
    are watched until ``watch_loop``. ``sampler``: one of your own; default: one that samples all threads.
    ``threshold``: seconds after which the loop counts as stalled; ``log_every``: at most one line of warning in so many
    seconds, None for no log. The others are switches.
    """
    if loop is None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
    started = Watch(sampler, threshold=threshold, log_every=log_every, gc=gc, gil=gil, system=system)
    if loop is not None:
        started.watch_loop(loop)
    return started


class Watch:
    """The instruments that ``watch`` started. Those switched off are None; ``loops``: one monitor for each loop."""

    def __init__(
        self,
        sampler: Sampler | None = None,
        *,
        threshold: float = 0.1,
        log_every: float | None = 10.0,
        gc: bool = True,
        gil: bool = True,
        system: bool = True,
    ) -> None:
        self._own_sampler = sampler is None
        self.sampler = sampler if sampler is not None else Sampler(every_thread=True)
        self.gc = GcMonitor() if gc else None
        self._ticks = GilMonitor(tick_source(self.sampler, threshold))  # loops need its looks, wanted or not
        self.gil = self._ticks if gil else None
        self.system = SystemMonitor() if system else None
        self.loops: list[LoopMonitor] = []
        self._threshold = threshold
        self._log_every = log_every
        if self._own_sampler:
            self.sampler.start()
        if self.gc is not None:
            self.gc.start()
        if self.gil is not None:
            self.gil.start()
        if self.system is not None:
            self.system.start(1.0)

    def __enter__(self) -> Watch:
        """Nothing more: it has begun already."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop."""
        self.stop()

    def watch_loop(self, loop: Any) -> LoopMonitor:
        """Watch one more event loop, from any thread."""
        monitor = LoopMonitor(
            loop,
            sampler=self.sampler,
            gc=self.gc,
            gil=self._ticks,
            threshold=self._threshold,
            log_every=self._log_every,
        )
        monitor.start()
        self.loops.append(monitor)
        return monitor

    def stop(self) -> None:
        """Stop everything that was started here; what was recorded stays. A second call has no effect."""
        for monitor in self.loops:
            monitor.stop()
        for instrument in (self.gil, self.gc, self.system, self.sampler if self._own_sampler else None):
            if instrument is not None:
                instrument.stop()

    def stalls(self, start: float | None = None, stop: float | None = None) -> list[Stall]:
        """Stalls of all loops that reach into a window of the wall clock, oldest first."""
        found = [stall for monitor in self.loops for stall in monitor.stalls(start, stop)]
        return sorted(found, key=lambda stall: stall.start)

    def session(self, start: float | None = None, stop: float | None = None) -> Session:
        """The samples of a window of the wall clock."""
        return self.sampler.session(start, stop)

    def save(self, path: str | Path) -> None:
        """Write the samples so far to a file that ``Session.load`` reads."""
        self.session().save(path)

    def cost(self) -> dict[str, Cost]:
        """CPU seconds and calls of each instrument. Ticks are the sampler's; what others do in them is theirs too."""
        sampled = self.sampler.statistics()
        costs = {"sampler": Cost(sampled.cpu, sampled.ticks)}
        for monitor in self.loops:
            costs["loop"] = monitor.cost() + costs.get("loop", Cost(0.0, 0))
        for name, instrument in (("gc", self.gc), ("gil", self.gil), ("system", self.system)):
            if instrument is not None:
                costs[name] = instrument.cost()
        return costs

    def statistics(self) -> dict[str, Any]:
        """Plain values of all instruments, for JSON or msgpack; None for those switched off."""
        return {
            "sampler": self.sampler.statistics()._asdict(),
            "loops": [monitor.statistics() for monitor in self.loops],
            "gc": self.gc.statistics() if self.gc else None,
            "gil": self.gil.statistics() if self.gil else None,
            "system": self.system.statistics() if self.system else None,
            "cost": {name: {"cpu": cost.cpu, "calls": cost.calls} for name, cost in self.cost().items()},
        }

    def report(self) -> str:
        """What was seen, as a page of text."""
        lines = []
        for monitor in self.loops:
            lines += _loop_lines(monitor)
        if self.gil is not None:
            lines.append(_gil_line(self.gil.statistics()))
        if self.gc is not None:
            seen = self.gc.statistics()
            longest = _ms(seen["longest"])
            lines.append(f"GC: {seen['collections']} collections, {seen['seconds']:.3f} s, longest {longest}")
        if self.system is not None:
            lines.append(_system_line(self.system))
        seconds = max(self.sampler.statistics().seconds, 1e-9)
        shares = (f"{name} {100 * cost.cpu / seconds:.2f} %" for name, cost in self.cost().items())
        lines.append("own cost, of one processor: " + ", ".join(shares))
        return "\n".join(lines)


def _loop_lines(monitor: LoopMonitor) -> list[str]:
    seen = monitor.statistics()
    lag = seen["lag"]
    lines = [
        f"event loop: {seen['seconds']:.1f} s, busy {100 * seen['busy']:.1f} %"
        f" ({'timed' if seen['exact'] else 'sampled'}), lag p50 {_ms(lag['p50'])}, p99 {_ms(lag['p99'])},"
        f" longest {_ms(lag['max'])}",
        f"stalls: {seen['stalls']}, {seen['stall_seconds']:.2f} s",
    ]
    lines += [f"  {cause}: {row['stalls']}, {row['seconds']:.2f} s" for cause, row in seen["causes"].items()]
    longest = max(monitor.stalls(), key=lambda stall: stall.duration, default=None)
    if longest is not None:
        lines.append(f"  longest: {longest.sentence()}")
    return lines


def _gil_line(seen: dict[str, Any]) -> str:
    if not seen["measured"]:
        return "GIL: not measured"
    return f"GIL: {100 * seen['contended']:.1f} % of ticks waited, {_ms(seen['wait_mean'])} on average of all ticks"


def _system_line(system: SystemMonitor) -> str:
    last = system.series.last()
    if not last:
        return "system: no sample yet"
    known = {name: last[name] for name, there in system.measured.items() if there}
    parts = []
    if "cpu" in known:
        parts.append(f"CPU {known['cpu']:.0f} % of one processor (of {system.processors:g})")
    if "memory" in known:
        limit = f" of {system.memory_limit / 1e6:.0f}" if system.memory_limit else ""
        parts.append(f"memory {known['memory'] / 1e6:.0f}{limit} MB")
    parts += [f"{name} {known[name]:.0f}" for name in ("threads", "fds", "children") if name in known]
    return "system: " + (", ".join(parts) or "not measured")


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.2f} ms"
