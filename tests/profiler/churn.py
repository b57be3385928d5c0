"""A program of threads that come and go, sampled a thousand times a second: ``python churn.py SECONDS``.

It ends with 0 and one line of JSON if nothing hung or crashed, no task's local outlived its task by a second, and
nothing is left. The threads recurse, raise, label themselves, enter regions, make garbage whose finalizers let other
threads run, switch the collector off and on, and ask for sessions: all that may go on while a look is taken.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import platform
import random
import sys
import threading
import time
import weakref
from collections.abc import Iterator

from gnomon.profiler import GilMonitor, Sampler, label, region
from gnomon.profiler.build import is_compiled
from gnomon.profiler.sampling import stacks

#: Seconds for which a local may outlive its task.
LIMIT = 1.0

#: Threads at a time.
CROWD = 8


class Canary:
    """A local of a task."""


class Garbage:
    """A cycle whose finalizer lets other threads run."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        time.sleep(0)


class Census:
    """The locals of tasks: how many there were, how many live, and how long one outlived its task at most."""

    def __init__(self) -> None:
        self.born = 0
        self.longest = 0.0
        self.living: dict[int, tuple[weakref.ref[Canary], list[float]]] = {}
        self._lock = threading.RLock()

    def watch(self, canary: Canary) -> list[float]:
        """The list is given the time of the task's end."""
        ended: list[float] = []
        with self._lock:
            self.born += 1
            number = self.born

            def gone(_: object) -> None:
                if ended:
                    self.longest = max(self.longest, time.perf_counter() - ended[0])
                self.living.pop(number, None)

            self.living[number] = (weakref.ref(canary, gone), ended)
        return ended

    def overdue(self) -> int:
        """How many live on though their task has ended long ago."""
        now = time.perf_counter()
        return sum(1 for _, ended in list(self.living.values()) if ended and now - ended[0] > LIMIT)


def task(census: Census, chance: random.Random) -> list[float]:
    canary = Canary()
    ended = census.watch(canary)
    kind = chance.randrange(6)
    with label(f"kind {kind}"), region(f"kind {kind}"):
        if kind == 0:
            dive(chance.randrange(5, 150))
        elif kind == 1:
            try:
                dive(20, fail=True)
            except ValueError:
                pass
        elif kind == 2:
            for _ in range(20):
                Garbage()
        elif kind == 3:
            (gc.disable if chance.random() < 0.5 else gc.enable)()
            dive(10)
            gc.enable()
        elif kind == 4:
            sum(number for number in generate(2000))
        else:
            time.sleep(chance.random() * 0.005)
    return ended


def dive(depth: int, *, fail: bool = False) -> int:
    if depth:
        return dive(depth - 1, fail=fail) + 1
    if fail:
        raise ValueError("as was asked for")
    return sum([number * depth for number in range(3000)])


def generate(count: int) -> Iterator[int]:
    yield from range(count)


def live(census: Census, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(chance.randrange(1, 6)):
        ended = task(census, chance)
        ended.append(time.perf_counter())


def churn(seconds: float) -> dict[str, object]:
    """Run; what happened. Raises AssertionError if a local was kept alive or a thread is left."""
    faulthandler.enable()
    faulthandler.dump_traceback_later(seconds + 120, exit=True)
    before = threading.active_count()
    gc.set_threshold(50)
    census, started, sessions = Census(), 0, 0
    with Sampler(interval=0.001, budget=1.0, every_thread=True) as sampler:
        monitor = GilMonitor(sampler)
        monitor.start()
        end = time.perf_counter() + seconds
        crowd: list[threading.Thread] = []
        while time.perf_counter() < end:
            crowd = [thread for thread in crowd if thread.is_alive()]
            while len(crowd) < CROWD:
                started += 1
                thread = threading.Thread(target=live, args=(census, started), name=f"churn {started}")
                thread.start()
                crowd.append(thread)
            time.sleep(0.002)
            assert not census.overdue(), f"{census.overdue()} locals outlived their tasks by {LIMIT} s"
            if started // 2000 > sessions:
                sessions += 1
                sampler.session(time.time() - 5)
        for thread in crowd:
            thread.join()
        monitor.stop()
        statistics = sampler.statistics()
    gc.collect()
    assert not census.living, f"{len(census.living)} locals are still alive"
    assert census.longest < LIMIT
    assert threading.active_count() == before
    faulthandler.cancel_dump_traceback_later()
    return {
        "python": platform.python_version(),
        "compiled": is_compiled(stacks),
        "seconds": round(statistics.seconds, 1),
        "threads": started,
        "tasks": census.born,
        "ticks": statistics.ticks,
        "missed": statistics.missed,
        "samples": statistics.samples,
        "monitored": monitor.lateness.number,
        "sessions": sessions,
        "longest": round(census.longest, 4),
    }


if __name__ == "__main__":
    print(json.dumps(churn(float(sys.argv[1]))))
