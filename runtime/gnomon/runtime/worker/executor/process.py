"""The executor as a child process: the agent's side, which starts it, listens to it, and starts another when it dies.

A child is a fresh interpreter. All it is told goes through the link, but for the few variables that an interpreter or
its C library reads before any code runs (``SPAWN_ENVIRONMENT``); its command line holds a descriptor's number alone. It
ends with the thread that runs the agent's loop, however that ends.

Life of a child: started, ready (it said so), ended. A child that dies once ready is reported by ``on_lost``, with the
runs it was at, and followed by another: at once if there were such runs, for then they are to blame, else after a
delay that doubles from death to death. A child that dies before it is ready leaves only a line in the log; after
``MAX_FAILED_STARTS`` of those in a row it is ``on_failed``.

Contents: ProcessExecutor, SPAWN_ENVIRONMENT, DEFAULT_ENVIRONMENT, MAX_FAILED_STARTS.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from time import monotonic

from gnomon.runtime.messages import ErrorRecord, ExecutorReady, Message, Request, ShutdownExecutor
from gnomon.runtime.worker.executor.death import death_record, describe_exit
from gnomon.runtime.worker.executor.interface import ExecutorSettings, OnFailed, OnLost, OnMessages
from gnomon.runtime.worker.executor.link import AgentLink, LinkError
from gnomon.runtime.worker.executor.page import RunningPage

__all__ = ["DEFAULT_ENVIRONMENT", "MAX_FAILED_STARTS", "SPAWN_ENVIRONMENT", "ProcessExecutor"]

logger = logging.getLogger(__name__)

#: Set before the interpreter starts, unless the agent's environment has them: hashes of strings must be the same in all
#: workers (bags are grouped by them), and freed memory should go back to the system soon.
SPAWN_ENVIRONMENT = {"PYTHONHASHSEED": "6640", "MALLOC_TRIM_THRESHOLD_": "65536"}

#: Set before user code is imported, unless the agent's environment has them: one thread per task is what we count on.
DEFAULT_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

#: Children in a row that die before they are ready, until we give up.
MAX_FAILED_STARTS = 5

_MODULE = "gnomon.runtime.worker.executor.child"

#: Seconds until the second, third... start without success; the last one for all that follow.
_BACKOFF = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0)

#: Seconds after which a child's life counts as a success.
_LONG_LIFE = 10.0

#: Seconds that a child has to die of its own after its link ended, and after SIGTERM.
_LAST_WORDS = 1.0


class _Child:
    """One child process and what joins it to us."""

    __slots__ = ("ended", "exit_watch", "link", "page", "popen", "ready", "reason", "started")

    def __init__(self, popen: subprocess.Popen[bytes], page: RunningPage) -> None:
        self.popen = popen
        self.page = page
        self.link: AgentLink | None = None
        self.exit_watch = -1
        self.ready = False
        self.reason = ""
        self.started = monotonic()
        self.ended = asyncio.Event()


class ProcessExecutor:
    """Runs user code in a child process; when that dies, says why and starts another. See ``Executor``."""

    def __init__(
        self, settings: ExecutorSettings, *, on_messages: OnMessages, on_lost: OnLost, on_failed: OnFailed
    ) -> None:
        missing = {name: value for name, value in DEFAULT_ENVIRONMENT.items() if name not in os.environ}
        self._settings = settings._replace(environment={**missing, **settings.environment})
        self._on_messages = on_messages
        self._on_lost = on_lost
        self._on_failed = on_failed
        self._loop: asyncio.AbstractEventLoop | None = None
        self._child: _Child | None = None
        self._incarnation = 0
        self._failures = 0
        self._failed_starts = 0
        self._respawn: asyncio.TimerHandle | None = None
        self._closing = False

    @property
    def pid(self) -> int:
        """The child's process; 0 between two children."""
        return 0 if self._child is None else self._child.popen.pid

    @property
    def incarnation(self) -> int:
        """How many children were started."""
        return self._incarnation

    async def start(self) -> None:
        """Start the first child; it will say ``ExecutorReady``."""
        self._loop = asyncio.get_running_loop()
        self._spawn()

    def send(self, messages: Sequence[Message], fds: Sequence[int] = ()) -> None:
        """Hand over messages; dropped while there is no child. See ``Executor.send``."""
        if self._child is None or self._child.link is None:
            for fd in fds:
                os.close(fd)
        else:
            self._child.link.send(messages, fds)

    def kill(self, reason: str) -> None:
        """End the child now, for a reason that becomes the cause given to ``on_lost``; another is started."""
        if self._child is not None:
            self._child.reason = reason
            self._child.popen.kill()

    async def close(self, grace: float) -> None:
        """Let running tasks end, for ``grace`` seconds, then terminate the child, then kill it. Idempotent."""
        self._closing = True
        if self._respawn is not None:
            self._respawn.cancel()
            self._respawn = None
        child = self._child
        if child is None:
            return
        child.reason = child.reason or "closed"
        if child.ready and child.link is not None:
            child.link.send([ShutdownExecutor(grace)])
            if await _ended(child, grace + _LAST_WORDS):
                return
        child.popen.terminate()
        if not await _ended(child, _LAST_WORDS):
            child.popen.kill()
            await child.ended.wait()

    # ---- birth -------------------------------------------------------------------------------------------------------

    def _spawn(self) -> None:
        """Start a child, or count it as a failed start."""
        self._respawn = None
        self._incarnation += 1
        try:
            self._child = self._begin()
        except OSError as exc:
            self._not_ready(f"could not be started: {exc}", death_record(0, 1, f"it could not be started: {exc}"))

    def _begin(self) -> _Child:
        """A child on its way up. Raises OSError, leaving nothing behind."""
        assert self._loop is not None
        page = RunningPage.create()
        ours, theirs = socket.socketpair()
        page_fd = os.dup(page.fd)
        try:
            fd = theirs.fileno()
            popen = subprocess.Popen(
                [sys.executable, "-P", "-m", _MODULE, str(fd)],
                stdin=subprocess.DEVNULL,
                pass_fds=[fd],
                env={**SPAWN_ENVIRONMENT, **os.environ},
            )
        except OSError:
            os.close(page_fd)
            page.close()
            ours.close()
            raise
        finally:
            theirs.close()
        child = _Child(popen, page)
        child.link = AgentLink(
            self._loop,
            ours,
            lambda messages, fds: self._heard(child, messages, fds),
            lambda error: self._link_ended(child, error),
        )
        page.close_fd()
        child.link.send([Request(0, "configure", self._settings.to_plain())], [page_fd])
        self._watch_exit(child)
        return child

    def _watch_exit(self, child: _Child) -> None:
        """Have ``_ended`` called when the process has ended."""
        loop = self._loop
        assert loop is not None
        try:
            child.exit_watch = os.pidfd_open(child.popen.pid)
            loop.add_reader(child.exit_watch, self._exited, child)
        except (AttributeError, OSError):  # no Linux, or one without them

            def wait() -> None:
                child.popen.wait()
                try:
                    loop.call_soon_threadsafe(self._exited, child)
                except RuntimeError:  # the loop is closed
                    pass

            threading.Thread(target=wait, name="gnomon-child-exit", daemon=True).start()

    def _heard(self, child: _Child, messages: list[Message], fds: list[int]) -> None:
        if child is not self._child:
            for fd in fds:
                os.close(fd)
            return
        if not child.ready and any(isinstance(message, ExecutorReady) for message in messages):
            child.ready = True
            self._failed_starts = 0
        self._on_messages(messages, fds)

    # ---- death -------------------------------------------------------------------------------------------------------

    def _link_ended(self, child: _Child, error: LinkError | None) -> None:
        """The child closed its end: it is dying, or user code closed a descriptor that was not its own."""
        if child.ended.is_set():
            return
        assert self._loop is not None
        reason = f"the link to it was damaged: {error}" if error is not None else "it closed its link"
        self._loop.call_later(_LAST_WORDS if error is None else 0.0, self._finish_off, child, reason)

    def _finish_off(self, child: _Child, reason: str) -> None:
        if not child.ended.is_set() and child.popen.poll() is None:
            child.reason = child.reason or reason
            child.popen.kill()

    def _exited(self, child: _Child) -> None:
        """The process has ended: hear its last words, bury it, and see to the next."""
        code = child.popen.wait()
        if child.exit_watch >= 0:
            assert self._loop is not None
            self._loop.remove_reader(child.exit_watch)
            os.close(child.exit_watch)
            child.exit_watch = -1
        child.ended.set()
        running = child.page.running()
        if child.link is not None:
            child.link.drain()
            child.link.close()
        child.page.close()
        self._child = None
        if self._closing:
            return
        cause = death_record(child.popen.pid, code, child.reason)
        how = describe_exit(code, child.reason)
        if child.ready:
            self._lost(child, running, cause, how)
        else:
            self._not_ready(f"(pid {child.popen.pid}) {how}", cause)

    def _lost(self, child: _Child, running: list[tuple[int, int]], cause: ErrorRecord, how: str) -> None:
        at_fault = bool(running) or bool(child.reason)
        if at_fault or monotonic() - child.started > _LONG_LIFE:
            self._failures = 0
        delay = _BACKOFF[min(self._failures, len(_BACKOFF) - 1)]
        self._failures += 1
        logger.warning(
            "executor process %d %s while it ran %d tasks; the next starts in %.1f s",
            child.popen.pid,
            how,
            len(running),
            delay,
        )
        self._spawn_later(delay)
        self._on_lost(running, cause)

    def _not_ready(self, how: str, cause: ErrorRecord) -> None:
        self._failed_starts += 1
        if self._failed_starts >= MAX_FAILED_STARTS:
            logger.error(
                "executor process %s before it was ready, %d times in a row; giving up", how, MAX_FAILED_STARTS
            )
            self._on_failed(cause)
            return
        delay = _BACKOFF[min(self._failed_starts, len(_BACKOFF) - 1)]
        logger.warning("executor process %s before it was ready; the next starts in %.1f s", how, delay)
        self._spawn_later(delay)

    def _spawn_later(self, delay: float) -> None:
        assert self._loop is not None
        self._respawn = self._loop.call_later(delay, self._spawn)


async def _ended(child: _Child, timeout: float) -> bool:
    """Whether the child ends within ``timeout`` seconds."""
    try:
        await asyncio.wait_for(child.ended.wait(), timeout)
    except TimeoutError:
        return False
    return True
