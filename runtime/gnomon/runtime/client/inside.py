"""Inside a running task: the task's way to its own cluster.

Contents: get_client, worker_client, secede, rejoin.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from gnomon.runtime.client import default
from gnomon.runtime.client.client import Client
from gnomon.runtime.worker.executor import context

__all__ = ["get_client", "rejoin", "secede", "worker_client"]


def get_client(address: Any = None, timeout: Any = None) -> Client:
    """The client that is meant here: in a task one of its own cluster, elsewhere the default one.

    A task that waits for others with it keeps its thread; see ``secede`` and ``worker_client``.

    Args:
        address: of a scheduler; only a client of that one will do.

    Raises ValueError if there is none.
    """
    client = default.current_client()
    if address is not None and client.scheduler_address != address:
        raise ValueError(f"the client here is one of {client.scheduler_address}, not of {address}")
    return client


@contextlib.contextmanager
def worker_client(timeout: Any = None, separate_thread: bool = True) -> Iterator[Client]:
    """A client inside a task, which gives up its thread slot so that the tasks it waits for can run.

    Args:
        separate_thread: False keeps the slot, for tasks that only submit.
    """
    client = get_client()
    if separate_thread:
        secede()
    yield client


def secede() -> None:
    """Have the running task leave the worker's slots: others take its place while it goes on.

    Raises RuntimeError outside of tasks.
    """
    context.secede()


def rejoin() -> None:
    """Not needed: a task that left the slots stays outside until it ends."""
    context.current_task()
