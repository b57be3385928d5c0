"""Main program of an executor's process: ``python -m gnomon.runtime.worker.executor.child FD``.

``FD`` is its end of the link. The first frame is a ``Request`` "configure" that brings the settings and the descriptor
of the page. Then the main thread does nothing but read the link; user code runs on threads of the runner.

The process never outlives its agent: when the link ends it leaves at once, whatever runs; should a run keep the
interpreter from noticing, the kernel ends it with its parent (on Linux).

It must be up soon and small, so nothing is imported here that it can start without: no asyncio, logging, numpy.

Contents: main.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

from gnomon.runtime import descriptors
from gnomon.runtime.messages import ExecutorReady, Message, Request, ShutdownExecutor, TasksErred, TasksFinished
from gnomon.runtime.worker.executor.context import set_cluster
from gnomon.runtime.worker.executor.interface import ExecutorSettings
from gnomon.runtime.worker.executor.link import CRASHED, ChildLink
from gnomon.runtime.worker.executor.page import THREADS, RunningPage
from gnomon.runtime.worker.executor.runner import Runner

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1


def main(fd: int) -> int:
    """Serve the agent at the other end until it is done with us; the process's exit code."""
    os.set_inheritable(fd, False)
    _guard()
    try:
        _serve(ChildLink(socket.socket(fileno=fd)))
    except Exception:  # noqa: BLE001 - whatever it is, it must not leave a process that nobody leads
        _crash()
    return 0


def _serve(link: ChildLink) -> None:
    """Be the executor until told to leave."""
    first = link.receive()
    if first is None:
        return
    settings, page = _configure(*first)
    runner = Runner(settings, _emitter(link, page), cells=page.cells, crashed=_crash)
    link.send([ExecutorReady(os.getpid())])
    gc.freeze()
    runner.observe(own_process=True)
    while (frame := link.receive()) is not None:
        messages, fds = frame
        end = next((m for m in messages if isinstance(m, ShutdownExecutor)), None)
        if end is not None:
            _shut_down(runner, link, end.grace)
            return
        runner.handle(messages, fds)
    os._exit(0)


def _guard() -> None:
    """Signals, limits, and the kernel's promise not to let us outlive the agent."""
    # Ctrl-C in a terminal reaches all its processes; the agent decides what becomes of us. A handler, not SIG_IGN: that
    # would be inherited by programs that tasks start.
    signal.signal(signal.SIGINT, lambda signum, frame: None)
    if sys.stderr is not None:
        faulthandler.enable()
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    descriptors.raise_limit()


def _configure(messages: list[Message], fds: list[int]) -> tuple[ExecutorSettings, RunningPage]:
    """Be as the agent wants us to be."""
    arguments: dict[str, Any] = messages[0].arguments if isinstance(messages[0], Request) else {}
    settings = ExecutorSettings.from_plain(arguments)
    page = RunningPage(fds[0])
    page.close_fd()
    os.environ.update(settings.environment)
    if settings.directory:
        os.chdir(settings.directory)
    sys.path[:] = dict.fromkeys([*settings.sys_path, *sys.path])
    if settings.scheduler:
        set_cluster(settings.scheduler, settings.security)
    return settings, page


def _emitter(link: ChildLink, page: RunningPage) -> Callable[[list[Message], list[int]], None]:
    """What sends the runner's messages. Without the agent there is nothing left to do here."""

    def emit(messages: list[Message], fds: list[int]) -> None:
        try:
            link.send(messages, fds)
        except ConnectionError:
            os._exit(0)
        except Exception:  # noqa: BLE001 - an outcome that can't be sent would leave the agent waiting for ever
            _blame(messages, page)
            _crash()

    return emit


def _blame(messages: list[Message], page: RunningPage) -> None:
    """Record the runs whose outcomes could not be sent as under way, lest they be run again and again."""
    outcomes = [m for m in messages if isinstance(m, TasksFinished | TasksErred)]
    pairs = [pair for m in outcomes for pair in zip(m.task_ids, m.attempts, strict=True)]
    for i, (task_id, attempt) in enumerate(pairs[:THREADS]):
        page.cells[2 * i] = task_id
        page.cells[2 * i + 1] = attempt


def _crash() -> None:
    """An error of gnomon's own: better dead, and started anew, than with a thread missing."""
    traceback.print_exc()
    os._exit(CRASHED)


def _shut_down(runner: Runner, link: ChildLink, grace: float) -> None:
    """Let running tasks end, for ``grace`` seconds; meanwhile the agent may still die."""

    def watch() -> None:
        try:
            while link.receive() is not None:
                pass
        finally:
            os._exit(0)

    runner.stop()
    threading.Thread(target=watch, name="gnomon-link", daemon=True).start()
    if not runner.join(grace):
        os._exit(0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
