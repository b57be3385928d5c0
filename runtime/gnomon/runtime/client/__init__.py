"""The user's side of a cluster: submit functions and graphs, hold futures, wait for them, bring results home.

Names are resolved on first use: an executor imports ``client.entries`` to run graph tasks, and nothing else of it.
Nothing here decides where a task runs, and no object of the user's is pickled or unpickled on an event loop.

Contents:
    client      Client, the public face; view: its questions about the cluster
    future      Future and what it shares with others of the same key
    waiting     wait, as_completed
    default     which client is meant when none is named; what happens at exit and after a fork
    inside      a running task's own client: get_client, worker_client, secede, rejoin
    connection  the stream to the scheduler: one buffer out, one dispatch in
    outgoing    what goes out in one loop turn, merged into few messages
    packing     functions and arguments to code, payload and dependencies
    keys        names by content
    graph       dask graphs, raw or of task nodes, to rows and bundles; entries: what of them runs in executors
    dask_adapter  collections: compute, persist, annotations, and gnomon as dask's scheduler
    observing   questions to the cluster's instruments; records: what they say of tasks; spans: groups of tasks
    gather      results: small ones from messages, large ones from the workers that hold them
    scatter     data from here to workers
    effects     one implementation for sync and async: what it waits for, and the two drivers
    sync        the loop thread of a sync client
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gnomon.runtime.client.client import Client
    from gnomon.runtime.client.default import default_client
    from gnomon.runtime.client.future import Future, fire_and_forget, futures_of
    from gnomon.runtime.client.inside import get_client, rejoin, secede, worker_client
    from gnomon.runtime.client.records import MemorySampler, get_task_metadata, get_task_stream
    from gnomon.runtime.client.spans import span
    from gnomon.runtime.client.waiting import as_completed, wait

__all__ = [
    "Client",
    "Future",
    "MemorySampler",
    "as_completed",
    "default_client",
    "fire_and_forget",
    "futures_of",
    "get_client",
    "get_task_metadata",
    "get_task_stream",
    "rejoin",
    "secede",
    "span",
    "wait",
    "worker_client",
]

_HOMES = {
    "Client": "client",
    "Future": "future",
    "MemorySampler": "records",
    "as_completed": "waiting",
    "default_client": "default",
    "fire_and_forget": "future",
    "futures_of": "future",
    "get_client": "inside",
    "get_task_metadata": "records",
    "get_task_stream": "records",
    "rejoin": "inside",
    "secede": "inside",
    "span": "spans",
    "wait": "waiting",
    "worker_client": "inside",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
