"""The states of runs and values on a worker, and which change into which: tables, read by checks and by the docs.

A run waits for values; is ready, or constrained (ready, and needs resources, which may be taken); is executing once it
was handed to the executor; seceded when it left its thread slot. A run that ended or was freed is gone from the model,
except that a freed run already handed over is remembered until the executor is rid of it.

A value's states: fetch (wanted, some holder is known), flight (being fetched), missing (wanted, no holder is known),
memory.
"""

from __future__ import annotations

__all__ = [
    "CONSTRAINED",
    "EXECUTING",
    "FETCH",
    "FLIGHT",
    "GONE",
    "MEMORY",
    "MISSING",
    "READY",
    "RUN_ARROWS",
    "SECEDED",
    "VALUE_ARROWS",
    "WAITING",
]

WAITING = "waiting"
READY = "ready"
CONSTRAINED = "constrained"
EXECUTING = "executing"
SECEDED = "seceded"
GONE = "gone"

FETCH = "fetch"
FLIGHT = "flight"
MISSING = "missing"
MEMORY = "memory"

#: Which state of a run may follow which.
RUN_ARROWS: dict[str, tuple[str, ...]] = {
    WAITING: (READY, CONSTRAINED, GONE),
    READY: (EXECUTING, GONE),
    CONSTRAINED: (EXECUTING, GONE),
    EXECUTING: (SECEDED, GONE),
    SECEDED: (GONE,),
    GONE: (),
}

#: Which state of a value may follow which. A value in flight goes back to fetch when the fetch failed.
VALUE_ARROWS: dict[str, tuple[str, ...]] = {
    FETCH: (FLIGHT, MISSING, MEMORY, GONE),
    FLIGHT: (FETCH, MISSING, MEMORY, GONE),
    MISSING: (FETCH, FLIGHT, MEMORY, GONE),
    MEMORY: (GONE,),
    GONE: (),
}
