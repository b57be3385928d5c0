"""The engine: scheduler, workers and client of a distributed task runtime.

    from gnomon.runtime import Client, LocalCluster

The public names are imported when they are first used, so that processes which need a part of the engine load that
part.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gnomon.runtime.client import (
        Client,
        Future,
        MemorySampler,
        as_completed,
        default_client,
        fire_and_forget,
        futures_of,
        get_client,
        get_task_metadata,
        get_task_stream,
        span,
        wait,
        worker_client,
    )
    from gnomon.runtime.comm import Security
    from gnomon.runtime.deploy import LocalCluster
    from gnomon.runtime.errors import (
        CommError,
        FutureCancelledError,
        FutureLostError,
        GnomonError,
        KilledWorker,
        TaskError,
    )
    from gnomon.runtime.scheduler import Scheduler
    from gnomon.runtime.worker import Worker
    from gnomon.runtime.worker.executor.context import current_task, secede

__all__ = [
    "Client",
    "CommError",
    "Future",
    "FutureCancelledError",
    "FutureLostError",
    "GnomonError",
    "KilledWorker",
    "LocalCluster",
    "MemorySampler",
    "Scheduler",
    "Security",
    "TaskError",
    "Worker",
    "as_completed",
    "current_task",
    "default_client",
    "fire_and_forget",
    "futures_of",
    "get_client",
    "get_task_metadata",
    "get_task_stream",
    "secede",
    "span",
    "wait",
    "worker_client",
]

_HOMES = {
    "Client": "client",
    "CommError": "errors",
    "Future": "client",
    "FutureCancelledError": "errors",
    "FutureLostError": "errors",
    "GnomonError": "errors",
    "KilledWorker": "errors",
    "LocalCluster": "deploy",
    "MemorySampler": "client",
    "Scheduler": "scheduler",
    "Security": "comm",
    "TaskError": "errors",
    "Worker": "worker",
    "as_completed": "client",
    "current_task": "worker.executor.context",
    "default_client": "client",
    "fire_and_forget": "client",
    "futures_of": "client",
    "get_client": "client",
    "get_task_metadata": "client",
    "get_task_stream": "client",
    "secede": "worker.executor.context",
    "span": "client",
    "wait": "client",
    "worker_client": "client",
}


def __getattr__(name: str) -> Any:
    """Import a public name's module when the name is first used."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
