"""Which client is meant when none is named, and what becomes of clients at exit and after a fork.

It is the one of the enclosing ``with client.as_current()``; in a task the task's own; else the last client made with
``set_as_default=True`` that is still open.

Contents: default_client, current_client, use, add, remove, provide_own_client.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import weakref
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

from gnomon.runtime.worker.executor import context

if TYPE_CHECKING:
    from gnomon.runtime.client.client import Client

__all__ = ["add", "current_client", "default_client", "provide_own_client", "remove", "use"]

_open: weakref.WeakSet[Client] = weakref.WeakSet()
_defaults: list[Client] = []
_current: ContextVar[Client | None] = ContextVar("gnomon_client", default=None)
_own_client: Callable[[], Client] | None = None


def default_client(client: Client | None = None) -> Client:
    """The given client, or the one that is meant when none is named.

    Raises ValueError if there is none.
    """
    return client if client is not None else current_client()


def current_client() -> Client:
    """The client of the enclosing block, task or program.

    Raises ValueError if there is none.
    """
    client = _current.get()
    if client is not None:
        return client
    if _own_client is not None and context.cluster() is not None:
        return _own_client()
    if _defaults:
        return _defaults[-1]
    raise ValueError("there is no client: make one with Client(address), or Client() for a cluster on this machine")


@contextlib.contextmanager
def use(client: Client) -> Iterator[Client]:
    """Within the block this client is meant."""
    token = _current.set(client)
    try:
        yield client
    finally:
        _current.reset(token)


def provide_own_client(make: Callable[[], Client]) -> None:
    """Say how a task gets a client of its own."""
    global _own_client
    _own_client = make


def add(client: Client, as_default: bool) -> None:
    """A client has been made."""
    _open.add(client)
    if as_default:
        _defaults.append(client)


def remove(client: Client) -> None:
    """A client is closed."""
    _open.discard(client)
    if client in _defaults:
        _defaults.remove(client)


def _close_all() -> None:
    """At exit: the last word of clients that nobody closed; nothing they could say is of use to anyone now."""
    for client in list(_open):
        client.close_at_exit()


def _after_fork() -> None:
    """In a child: no client works here, for its loop and sockets are the parent's."""
    for client in list(_open):
        client.abandon()
    _open.clear()
    _defaults.clear()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
