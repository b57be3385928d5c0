"""A worker: the agent (event loop, brain, data server) and the executor where user code runs.

Contents:
    agent       Worker: streams, loop turn, heartbeats, supervision
    serving     values of this worker for peers and clients
    fetching    values of other workers for this one
    state/      the worker's brain, sans-IO
    executor/   where user code runs: threads, or a child process

``Worker`` is imported when it is first used: an executor's process imports this package on its way to ``executor/``,
and must not load the agent.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gnomon.runtime.worker.agent import Worker

__all__ = ["Worker"]


def __getattr__(name: str) -> Any:
    """Import the agent when its name is first used."""
    if name != "Worker":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = importlib.import_module(f"{__name__}.agent").Worker
    globals()[name] = value
    return value
