"""The instruments: profiler and monitors that any Python program can use. Imports nothing of the other packages.

::

    from gnomon.profiler import Sampler, region, set_label

    with Sampler() as sampler:
        work()
    print(sampler.session().duration)

Names are imported when they are first used, so that a program pays only for the instruments that it takes.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gnomon.profiler.build import use_chosen_build

if TYPE_CHECKING:
    from gnomon.profiler.gc_monitor import GcMonitor
    from gnomon.profiler.gil import GilMonitor
    from gnomon.profiler.histogram import Histogram
    from gnomon.profiler.labels import label, set_label
    from gnomon.profiler.loop import LoopMonitor
    from gnomon.profiler.regions import region
    from gnomon.profiler.sampler import Sampler, Statistics
    from gnomon.profiler.session import Difference, Session
    from gnomon.profiler.stalls import Stall
    from gnomon.profiler.system import SystemMonitor
    from gnomon.profiler.watching import Watch, watch

use_chosen_build(__name__, __path__)

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
    "Difference": "session",
    "GcMonitor": "gc_monitor",
    "GilMonitor": "gil",
    "Histogram": "histogram",
    "LoopMonitor": "loop",
    "Sampler": "sampler",
    "Session": "session",
    "Stall": "stalls",
    "Statistics": "sampler",
    "SystemMonitor": "system",
    "Watch": "watching",
    "label": "labels",
    "region": "regions",
    "set_label": "labels",
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
