"""The instruments: profiler and monitors that any Python program can use. Imports nothing of the other packages.

::

    from gnomon.profiler import Sampler, region, set_label

    with Sampler() as sampler:
        work()
    print(sampler.session().duration)

Names are imported when they are first used, so that a program pays only for the instruments that it takes.

Rooms, each of which uses only those above it, and the modules of this folder:
    sessions     what was sampled, as a value; ``export`` shows or hands it on
    reading      how stacks are read, and the heartbeat for monitors
    marks        labels and regions: what threads say about themselves
    sampling     the sampler
    interpreter  monitors of the GIL and of garbage collection
    loops        the monitor of event loops
    machine      the monitor of process and machine
    watching     all of them together for a service, in one line
    program, deep, __main__     other programs under the sampler; one function under pyinstrument; the command
    clock, cost, histogram, series, build     what the rooms are built on
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gnomon.profiler.histogram import Histogram
    from gnomon.profiler.interpreter.gc_monitor import GcMonitor
    from gnomon.profiler.interpreter.gil import GilMonitor
    from gnomon.profiler.loops.monitor import LoopMonitor
    from gnomon.profiler.loops.stalls import Stall
    from gnomon.profiler.machine.system import SystemMonitor
    from gnomon.profiler.marks.labels import label, set_label
    from gnomon.profiler.marks.regions import region
    from gnomon.profiler.sampling.sampler import Sampler, Statistics
    from gnomon.profiler.sessions.session import Difference, Session
    from gnomon.profiler.watching import Watch, watch

__all__ = [
    "Difference",
    "GcMonitor",
    "GilMonitor",
    "Histogram",
    "LoopMonitor",
    "Sampler",
    "Session",
    "Stall",
    "Statistics",
    "SystemMonitor",
    "Watch",
    "label",
    "region",
    "set_label",
    "watch",
]

_HOMES = {
    "Difference": "sessions.session",
    "GcMonitor": "interpreter.gc_monitor",
    "GilMonitor": "interpreter.gil",
    "Histogram": "histogram",
    "LoopMonitor": "loops.monitor",
    "Sampler": "sampling.sampler",
    "Session": "sessions.session",
    "Stall": "loops.stalls",
    "Statistics": "sampling.sampler",
    "SystemMonitor": "machine.system",
    "Watch": "watching",
    "label": "marks.labels",
    "region": "marks.regions",
    "set_label": "marks.labels",
    "watch": "watching",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
