"""The main of a child process that runs one scheduler or worker agent: ``python -m gnomon.runtime.deploy.child``.

It is started by ``gnomon.runtime.deploy.process`` and takes its orders from standard input. It never imports the
parent's ``__main__``. It leaves when it is told to, when what it runs has finished, or when the parent is gone however
that came about; in each case it closes in order, and leaves anyway if that takes too long.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import logging
import os
import shutil
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Iterator
from typing import Any

from gnomon.runtime.deploy.control import Launch, Leave, Start, pack_report, read_frame, read_order, receive_launch
from gnomon.runtime.deploy.surroundings import kill_descendants, run
from gnomon.runtime.errors import GnomonError

__all__ = ["main"]

logger = logging.getLogger(__name__)


def main() -> None:
    """Run until told to leave. The exit code is 0 after a close in good order, 1 otherwise."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sock = _take_control_socket()
    try:
        launch = receive_launch(sock)
    except EOFError:
        sys.exit(1)
    _adopt_surroundings(launch)
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s - %(name)s - %(levelname)s - %(message)s")
    logging.getLogger("gnomon").setLevel(launch.log_level)
    try:
        factory = _import_target(launch.target)
    except BaseException:  # noqa: BLE001 - whatever importing raises, the parent is told
        _report_failure(sock)
        sys.exit(1)
    gc.collect()
    gc.freeze()
    sys.exit(run(_Child(launch, sock, factory).live()))


def _take_control_socket() -> socket.socket:
    """Move the socket away from standard input, so that no grandchild inherits it or reads from it."""
    sock = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return sock


def _adopt_surroundings(launch: Launch) -> None:
    """Make imports and relative paths mean what they mean in the parent."""
    sys.path[:] = launch.sys_path
    if launch.python_path is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = launch.python_path
    with contextlib.suppress(OSError):
        os.chdir(launch.directory)


def _import_target(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def _report_failure(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.sendall(_failure())


class _Child:
    """One scheduler or worker, from the first order to the last."""

    def __init__(self, launch: Launch, sock: socket.socket, factory: Any) -> None:
        self.launch = launch
        self.sock = sock
        self.factory = factory

    async def live(self) -> int:
        """Start the target, wait for a reason to leave, close it. Returns the exit code."""
        loop = asyncio.get_running_loop()
        reader, writer = await asyncio.open_unix_connection(sock=self.sock)
        leaving: asyncio.Future[str] = loop.create_future()
        loop.add_signal_handler(signal.SIGTERM, _settle, leaving, "terminated")
        with _watch_parent(self.launch.parent, leaving):
            frame = await read_frame(reader)
            start = None if frame is None else read_order(frame)
            if not isinstance(start, Start):
                return 1
            orders = loop.create_task(_listen(reader, leaving))
            try:
                target = await self._start(start, leaving)
            except BaseException:  # noqa: BLE001 - whatever it is, the parent is told
                writer.write(_failure())
                await writer.drain()
                return 1
            if target is None:
                return 0
            self._use_real_stderr()
            directory = str(getattr(target, "directory", ""))
            writer.write(pack_report("ready", address=str(target.address), directory=directory))
            finished = loop.create_task(target.finished())
            await asyncio.wait([leaving, finished], return_when=asyncio.FIRST_COMPLETED)
            _leave_after(self.launch.grace, directory)
            if not finished.done():
                await target.close(reason=leaving.result())
                finished.cancel()
            orders.cancel()
            await asyncio.wait([finished, orders])
            writer.close()
        return 0 if finished.cancelled() or finished.exception() is None else 1

    async def _start(self, order: Start, leaving: asyncio.Future[str]) -> Any:
        """The running target, or None if the parent changed its mind meanwhile."""
        target = self.factory(*order.arguments, **order.options)
        starting = asyncio.ensure_future(target.start())
        await asyncio.wait([starting, leaving], return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            return target
        _leave_after(self.launch.grace)
        starting.cancel()
        await asyncio.wait([starting])
        await target.close(reason=leaving.result())
        return None

    def _use_real_stderr(self) -> None:
        """From here on messages go where the parent's go; those of the start are shown there too."""
        sys.stderr.flush()
        real = self.launch.stderr
        early = os.pread(2, 1 << 20, 0)
        with contextlib.suppress(OSError):
            os.write(real, early)
        os.dup2(real, 2)
        os.close(real)


def _failure() -> bytes:
    """The report of the current exception; its traceback goes to standard error unless the text says it all."""
    error = sys.exc_info()[1]
    if isinstance(error, GnomonError | OSError) and str(error):
        return pack_report("failed", reason=str(error), explained=True)
    traceback.print_exception(error)
    sys.stderr.flush()
    return pack_report("failed", reason=f"{type(error).__name__}: {error}", explained=False)


async def _listen(reader: asyncio.StreamReader, leaving: asyncio.Future[str]) -> None:
    """Wait for the order to leave, or for the parent's end."""
    while (frame := await read_frame(reader)) is not None:
        order = read_order(frame)
        if isinstance(order, Leave):
            _settle(leaving, order.reason)
    _settle(leaving, "the parent process is gone")


@contextlib.contextmanager
def _watch_parent(parent: int, leaving: asyncio.Future[str]) -> Iterator[None]:
    """Notice the parent's death even if a process that it forked holds the other end of the socket open."""
    if not hasattr(os, "pidfd_open"):
        yield
        return
    loop = asyncio.get_running_loop()
    try:
        descriptor = os.pidfd_open(parent)
    except OSError:
        descriptor = -1
    if descriptor < 0 or os.getppid() != parent:
        _settle(leaving, "the parent process is gone")
        yield
    else:
        loop.add_reader(descriptor, _settle, leaving, "the parent process is gone")
        leaving.add_done_callback(lambda _: loop.remove_reader(descriptor))
        yield
        loop.remove_reader(descriptor)
    if descriptor >= 0:
        os.close(descriptor)


def _settle(leaving: asyncio.Future[str], reason: str) -> None:
    if not leaving.done():
        leaving.set_result(reason)


def _leave_after(seconds: float, directory: str = "") -> None:
    """Leave when the time is up, whatever hangs, and leave neither a process nor a folder behind."""

    def leave() -> None:
        kill_descendants(os.getpid())
        if directory:
            shutil.rmtree(directory, ignore_errors=True)
        os._exit(1)

    timer = threading.Timer(seconds, leave)
    timer.daemon = True
    timer.start()


if __name__ == "__main__":
    main()
