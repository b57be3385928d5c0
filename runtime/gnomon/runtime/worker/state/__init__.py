"""The brain of a worker: which tasks wait and run, which values it holds or fetches. No input, output, clock or thread.

The shell calls one function of ``events`` per thing that happened, then ``dispatch.run`` once per loop turn, then
drains the outbox. The modules that have a ``.pxd`` beside them run compiled where an extension was built, with the same
results.

Contents:
    settings    limits the brain works by
    states      the states of runs and values, and which may follow which
    records     what is remembered of a run, value, executor pool and flight
    model       the collections, and questions about them
    outbox      what is to be sent, and the fetches to start
    changes     changes of state that keep the collections in step
    events      one function per thing that can happen
    dispatch    the pass that starts fetches and hands runs to the executor
    invariants  what must always hold
"""

from __future__ import annotations

from gnomon.runtime.build import use_chosen_build

use_chosen_build(__name__, __path__)

from gnomon.runtime.worker.state import dispatch, events, invariants  # noqa: E402
from gnomon.runtime.worker.state.model import INLINE, STORED, UNKNOWN, WorkerModel  # noqa: E402
from gnomon.runtime.worker.state.outbox import Fetch, Outbox  # noqa: E402
from gnomon.runtime.worker.state.settings import Settings  # noqa: E402

__all__ = [
    "INLINE",
    "STORED",
    "UNKNOWN",
    "Fetch",
    "Outbox",
    "Settings",
    "WorkerModel",
    "dispatch",
    "events",
    "invariants",
]
