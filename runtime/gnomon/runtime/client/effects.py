"""One implementation for sync and async: coroutines that say what they wait for, and two drivers that do the waiting.

A client call is written once, as a coroutine that awaits ``pause`` (for a signal) and ``work`` (a blocking function).
``drive`` runs it in the calling thread: it blocks there, no other thread or loop is involved, and Ctrl-C gets through.
``drive_async`` runs it as part of a task of any event loop: pauses give way to the loop, work goes to a thread.

Contents: Signal, pause, work, drive, drive_async, SLICE.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor
from typing import Any, TypeVar

__all__ = ["SLICE", "Effect", "Signal", "drive", "drive_async", "pause", "work"]

T = TypeVar("T")

#: Longest single wait for a lock in seconds. A signal that comes just before a wait begins does not end it, and on some
#: systems none does: Ctrl-C is noticed between two waits at the latest.
SLICE = 0.1 if sys.platform == "win32" else 0.5


class Signal:
    """Something that may have happened, and wakes the one who waits for it. Any thread may ``fire`` it, and again."""

    __slots__ = ("fired", "wake")

    def __init__(self) -> None:
        self.fired = False
        self.wake: Callable[[], None] | None = None

    def fire(self) -> None:
        """It has happened."""
        # The order of the two lines, and that of their counterparts in the waits below, is what makes this safe
        # without a lock: whoever comes second sees what the first one wrote.
        self.fired = True
        wake = self.wake
        if wake is not None:
            wake()


class Effect:
    """What a coroutine of the client waits for."""

    __slots__ = ()

    def __await__(self) -> Generator[Effect, Any, Any]:
        return (yield self)

    def block(self) -> Any:
        """Do it in this thread."""
        raise NotImplementedError

    async def give_way(self, pool: Executor | None) -> Any:
        """Do it without blocking the running loop."""
        raise NotImplementedError


class pause(Effect):  # noqa: N801 - awaited like a function
    """Wait until the signal has fired.

    Raises TimeoutError after ``timeout`` seconds (None: never).
    """

    __slots__ = ("signal", "timeout")

    def __init__(self, signal: Signal, timeout: float | None = None) -> None:
        self.signal = signal
        self.timeout = timeout

    def block(self) -> None:
        """Wait on a lock, which a signal handler may interrupt."""
        signal = self.signal
        if signal.fired:
            return
        gate = threading.Lock()
        gate.acquire()

        def wake() -> None:
            try:
                gate.release()
            except RuntimeError:
                pass  # it is open already: the signal fired twice

        signal.wake = wake
        deadline = None if self.timeout is None else time.monotonic() + self.timeout
        while not signal.fired:
            left = SLICE if deadline is None else min(deadline - time.monotonic(), SLICE)
            if left <= 0:
                raise TimeoutError(f"nothing came within {self.timeout:g} s")
            gate.acquire(timeout=left)

    @staticmethod
    def _late(signal: Signal) -> bool:
        """Whether it fired while we were getting ready."""
        return signal.fired

    async def give_way(self, pool: Executor | None) -> None:
        """Wait on a future of the running loop."""
        signal = self.signal
        if signal.fired:
            return
        loop = asyncio.get_running_loop()
        here = threading.get_ident()
        gate: asyncio.Future[None] = loop.create_future()

        def open_gate() -> None:
            if not gate.done():
                gate.set_result(None)

        def wake() -> None:
            if threading.get_ident() == here:
                open_gate()
            elif not loop.is_closed():
                loop.call_soon_threadsafe(open_gate)

        signal.wake = wake
        if self._late(signal):
            return
        try:
            await asyncio.wait_for(gate, self.timeout)
        except TimeoutError:
            raise TimeoutError(f"nothing came within {self.timeout:g} s") from None


class work(Effect):  # noqa: N801 - awaited like a function
    """Call a function that may block or take long, and give its result."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call

    def block(self) -> Any:
        """Call it here."""
        return self.call()

    async def give_way(self, pool: Executor | None) -> Any:
        """Call it in a thread of the pool."""
        return await asyncio.get_running_loop().run_in_executor(pool, self.call)


def drive(coroutine: Coroutine[Effect, Any, T]) -> T:
    """Run a coroutine of this kind to its end in the calling thread."""
    try:
        effect = coroutine.send(None)
        while True:
            try:
                result = effect.block()
            except BaseException as exc:  # noqa: BLE001 - it belongs to the coroutine, Ctrl-C too
                effect = coroutine.throw(exc)
            else:
                effect = coroutine.send(result)
    except StopIteration as stop:
        value: T = stop.value
        return value


async def drive_async(coroutine: Coroutine[Effect, Any, T], pool: Executor | None = None) -> T:
    """Run a coroutine of this kind to its end inside the running loop's current task."""
    try:
        effect = coroutine.send(None)
        while True:
            try:
                result = await effect.give_way(pool)
            except BaseException as exc:  # noqa: BLE001 - it belongs to the coroutine, cancellation too
                effect = coroutine.throw(exc)
            else:
                effect = coroutine.send(result)
    except StopIteration as stop:
        value: T = stop.value
        return value
