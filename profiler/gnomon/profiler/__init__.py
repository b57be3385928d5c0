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
    from gnomon.profiler.labels import label, set_label
    from gnomon.profiler.regions import region
    from gnomon.profiler.sampler import Sampler, Statistics
    from gnomon.profiler.session import Difference, Session

use_chosen_build(__name__, __path__)

__all__ = ["Difference", "Sampler", "Session", "Statistics", "label", "region", "set_label"]

_HOMES = {
    "Difference": "session",
    "Sampler": "sampler",
    "Session": "session",
    "Statistics": "sampler",
    "label": "labels",
    "region": "regions",
    "set_label": "labels",
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
