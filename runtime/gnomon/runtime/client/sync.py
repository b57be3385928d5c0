"""The loop thread of sync clients: one per process, started by the first that needs it, gone with the last.

Contents: LoopThread.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import wait
from typing import Any, TypeVar

from gnomon.runtime.client.effects import SLICE
from gnomon.runtime.comm.loops import new_event_loop

__all__ = ["LoopThread"]

T = TypeVar("T")


class _Shared:
    """The process's loop thread and how many use it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread: threading.Thread | None = None
        self.users = 0

    def acquire(self) -> asyncio.AbstractEventLoop:
        with self.lock:
            self.users += 1
            if self.loop is None:
                self.loop = new_event_loop()
                self.thread = threading.Thread(target=_run, args=(self.loop,), name="gnomon-loop", daemon=True)
                self.thread.start()
            return self.loop

    def give_back(self) -> None:
        with self.lock:
            self.users -= 1
            if self.users or self.loop is None:
                return
            loop, thread = self.loop, self.thread
            self.loop = self.thread = None
        loop.call_soon_threadsafe(loop.stop)
        if thread is not None and thread is not threading.current_thread():
            thread.join()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


_shared = _Shared()


def _after_fork() -> None:
    global _shared
    _shared = _Shared()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class LoopThread:
    """Runs coroutines for a caller that waits.

    Args:
        loop: the running loop of another thread to use; by default the one that all sync clients share.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._owner = None if loop is not None else _shared
        self.loop = loop if loop is not None else _shared.acquire()

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """The coroutine's result. It is cancelled if the caller is interrupted, or after ``timeout`` seconds.

        Raises TimeoutError, RuntimeError if called on the loop's own thread or after the loop has ended.
        """
        if self.is_current():
            coroutine.close()
            raise RuntimeError("a sync call on the loop's own thread would wait for itself; use an asynchronous client")
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        except RuntimeError:  # the loop has ended
            coroutine.close()
            raise
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            while not wait((future,), SLICE).done:
                if deadline is not None and time.monotonic() > deadline:
                    raise TimeoutError(f"not done within {timeout:g} s")
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def is_current(self) -> bool:
        """Whether the caller is on the loop's thread."""
        return _running_loop() is self.loop

    def close(self) -> None:
        """Give the thread back. Idempotent."""
        owner, self._owner = self._owner, None
        # After a fork the thread is the parent's.
        if owner is not None and owner is _shared:
            owner.give_back()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
