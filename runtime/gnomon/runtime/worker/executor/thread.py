"""The executor as threads of the agent's own process, for in-process clusters and workers without a nanny.

User code and the loop share the interpreter here: a run that keeps the GIL keeps the agent waiting, and one that kills
the process takes the agent with it. In exchange nothing crosses a process boundary, and objects can go by reference.

Contents: ThreadExecutor.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Sequence

from gnomon.runtime.messages import ExecutorReady, Message, ShutdownExecutor
from gnomon.runtime.worker.executor.interface import ExecutorSettings, OnMessages
from gnomon.runtime.worker.executor.runner import Runner

__all__ = ["ThreadExecutor"]

logger = logging.getLogger(__name__)

#: Seconds that threads have to end once they run nothing.
_LAST_STEPS = 1.0


class ThreadExecutor:
    """Runs user code on threads of this process; there is one incarnation, and it is never lost. See ``Executor``.

    ``by_reference``: ``EncodeValues`` is answered with the objects themselves.
    """

    def __init__(self, settings: ExecutorSettings, *, on_messages: OnMessages, by_reference: bool = True) -> None:
        self._on_messages = on_messages
        self._runner = Runner(settings, self._emit, by_reference=by_reference)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heard: deque[tuple[list[Message], list[int]]] = deque()
        self._woken = False
        self._stopped: asyncio.Event | None = None
        self._closed = False

    @property
    def pid(self) -> int:
        """This process."""
        return os.getpid()

    @property
    def incarnation(self) -> int:
        """Always 1."""
        return 1

    async def start(self) -> None:
        """Be ready, and say so on the loop's next turn."""
        self._loop = asyncio.get_running_loop()
        self._emit([ExecutorReady(os.getpid())], [])
        self._runner.observe(own_process=False)

    def send(self, messages: Sequence[Message], fds: Sequence[int] = ()) -> None:
        """Hand over messages; see ``Executor.send``."""
        if self._closed:
            for fd in fds:
                os.close(fd)
            return
        if any(isinstance(message, ShutdownExecutor) for message in messages):
            raise ValueError("an executor in the agent's process is closed, not told to leave")
        self._runner.handle(messages, fds)

    async def close(self, grace: float) -> None:
        """Let running tasks end, for ``grace`` seconds; threads that go on are left to themselves, as daemons."""
        if self._stopped is None:
            self._closed = True
            self._stopped = stopped = asyncio.Event()
            loop = asyncio.get_running_loop()

            def on_stopped() -> None:
                try:
                    loop.call_soon_threadsafe(stopped.set)
                except RuntimeError:  # the loop is closed: it did not wait so long
                    pass

            self._runner.stop(on_stopped)
        try:
            await asyncio.wait_for(self._stopped.wait(), grace)
        except TimeoutError:
            logger.warning("tasks still run after a grace of %g s; their threads are left behind", grace)
            self._runner.join(0.0)
        else:
            self._runner.join(_LAST_STEPS)
        self._loop = None
        self._deliver()

    def _emit(self, messages: list[Message], fds: list[int]) -> None:
        """Called by the runner's threads: have the loop take it, one wake-up for all that came since the last."""
        self._heard.append((messages, fds))
        if self._woken:
            return
        self._woken = True
        try:
            if self._loop is None:
                raise RuntimeError("closed")
            self._loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:  # nobody listens any more
            self._woken = False
            self._drop()

    def _deliver(self) -> None:
        self._woken = False
        while self._heard:
            messages, fds = self._heard.popleft()
            self._on_messages(messages, fds)

    def _drop(self) -> None:
        while self._heard:
            for fd in self._heard.popleft()[1]:
                os.close(fd)
