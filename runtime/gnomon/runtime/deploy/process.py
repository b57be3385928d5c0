"""One scheduler or worker in an interpreter of its own, seen from the parent.

The child (``gnomon.runtime.deploy.child``) is joined by a socket pair that is its standard input: secrets and settings
go there, never into arguments or environment, and its end of file tells each side that the other is gone. The child
has a process group of its own, so Ctrl-C in a terminal reaches the parent alone, which then closes it in order. What it
says on standard error while it starts is kept aside, and becomes part of the error if it fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import IO, Any, NamedTuple

from gnomon.runtime.deploy.control import Launch, Leave, Start, pack_order, read_frame, read_report
from gnomon.runtime.deploy.surroundings import child_environment, kill_descendants
from gnomon.runtime.errors import ClusterError

__all__ = ["ChildProcess", "how_it_left"]

logger = logging.getLogger(__name__)

_POLL = 0.02  # seconds between looks at a child where the system has no descriptors for processes
_TAIL = 4000  # characters of a child's last words that an error quotes


class ChildProcess:
    """A scheduler or worker in a child process. ``descriptors``: that it inherits, under the same numbers.

    Fields:
        title, address, pid: as of every unit.
        returncode: how the child left; None while it lives.
    """

    def __init__(
        self,
        target: str,
        title: str,
        *,
        log_level: int = logging.WARNING,
        grace: float = 10.0,
        descriptors: tuple[int, ...] = (),
    ) -> None:
        self.title = title
        self.address = ""
        self.returncode: int | None = None
        self._target = target
        self._log_level = log_level
        self._grace = grace
        self._descriptors = descriptors
        self._running: _Running | None = None
        self._closing = False

    @property
    def pid(self) -> int | None:
        """Process id; None before it is spawned."""
        return None if self._running is None else self._running.process.pid

    async def prepare(self) -> None:
        """Spawn the interpreter, which imports its part while the caller does other things.

        Raises ClusterError if the system can't start a process.
        """
        if sys.platform == "win32":
            raise ClusterError("clusters of processes need a POSIX system; use processes=False")
        ours, theirs = socket.socketpair()
        early = tempfile.TemporaryFile()  # noqa: SIM115 - lives until the child is up
        stderr = _real_stderr()
        try:
            ours.sendall(pack_order(self._launch(stderr)))
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "gnomon.runtime.deploy.child"],
                stdin=theirs.fileno(),
                stderr=early,
                pass_fds=(stderr, *self._descriptors),
                env=child_environment(),
                process_group=0,
            )
        except OSError as exc:
            ours.close()
            early.close()
            raise ClusterError(f"{self.title} could not start: {exc}") from exc
        finally:
            theirs.close()
            os.close(stderr)
        try:
            reader, writer = await asyncio.open_unix_connection(sock=ours)
        except BaseException:  # such as Ctrl-C: nobody would follow it to its end
            ours.close()
            early.close()
            process.kill()
            process.wait()
            raise
        loop = asyncio.get_running_loop()
        up: asyncio.Future[None] = loop.create_future()
        life = loop.create_task(self._follow(process, reader, writer, early, up))
        self._running = _Running(process, writer, up, life)

    def _launch(self, stderr: int) -> Launch:
        return Launch(
            target=self._target,
            title=self.title,
            sys_path=tuple(entry for entry in sys.path if isinstance(entry, str)),
            directory=os.getcwd(),
            python_path=os.environ.get("PYTHONPATH"),
            parent=os.getpid(),
            stderr=stderr,
            log_level=self._log_level,
            grace=self._grace,
        )

    async def start(self, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> str:
        """Send the child what to run, wait until it is up, and return its address.

        Raises ClusterError with the child's reason and last words, and whatever pickling the options raises.
        """
        if self._running is None:
            await self.prepare()
        assert self._running is not None
        self._running.tell(Start(arguments, dict(options)))
        await asyncio.shield(self._running.up)
        return self.address

    async def _follow(
        self,
        process: subprocess.Popen[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        early: IO[bytes],
        up: asyncio.Future[None],
    ) -> None:
        """Read the child's reports until its end, then reap it."""
        reason, explained, directory = "", False, ""
        with early:
            while (frame := await read_frame(reader)) is not None:
                report = read_report(frame)
                if report["kind"] == "ready":
                    self.address, directory = str(report["address"]), str(report["directory"])
                    up.set_result(None)
                else:
                    reason, explained = str(report["reason"]), bool(report["explained"])
            writer.close()
            self.returncode = await _wait_exit(process)
            if directory:  # of one that was killed, and could not remove it
                shutil.rmtree(directory, ignore_errors=True)
            if not up.done():
                words = "" if explained else _last_words(early)
                up.set_exception(
                    ClusterError(f"{self.title} could not start: {reason or how_it_left(self.returncode)}{words}")
                )
                up.exception()  # seen here, for nobody may be waiting

    async def close(self, reason: str) -> None:
        """Tell the child to leave; after the grace kill it and its descendants."""
        running = self._running
        if running is None:
            return
        self._closing = True
        if not running.life.done():
            if running.up.done():
                running.tell(Leave(reason))
            else:
                running.writer.close()
            done, _ = await asyncio.wait([running.life], timeout=self._grace + 1)
            if not done:
                logger.warning("%s (process %s) did not close in %g s and is killed", self.title, self.pid, self._grace)
                kill_descendants(running.process.pid)
                running.process.kill()
        await asyncio.wait([running.life])
        running.life.result()

    async def wait_ended(self) -> str:
        """Wait until the process is gone; a sentence if nobody asked it to leave and it failed."""
        if self._running is not None:
            await asyncio.wait([self._running.life])
        if self.returncode == 0 or self._closing:
            return ""
        return f"{self.title} (process {self.pid}) {how_it_left(self.returncode)}"


class _Running(NamedTuple):
    """A spawned child: its process, the pipe to it, whether it is up, and the task that follows it to its end."""

    process: subprocess.Popen[bytes]
    writer: asyncio.StreamWriter
    up: asyncio.Future[None]
    life: asyncio.Task[None]

    def tell(self, order: Start | Leave) -> None:
        """Send an order, unless the child has hung up: how it left is then all there is to say, and ``life`` says it.

        Raises whatever pickling the order raises.
        """
        packed = pack_order(order)
        if not self.writer.is_closing():  # uvloop, unlike asyncio, raises RuntimeError for a transport that is closed
            self.writer.write(packed)


def how_it_left(returncode: int | None) -> str:
    """A process's exit code as the end of a sentence."""
    if returncode is None:
        return "is still running"
    if returncode >= 0:
        return f"left with exit code {returncode}"
    try:
        return f"was killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"was killed by signal {-returncode}"


def _last_words(early: IO[bytes]) -> str:
    """The end of what a child said while it started, to be added to an error."""
    size = early.seek(0, os.SEEK_END)
    early.seek(max(0, size - _TAIL))
    words = early.read().decode(errors="replace").strip()
    return f"\nits last words:\n{words}" if words else ""


def _real_stderr() -> int:
    """A new descriptor for where this process's errors go, or for nowhere if that is closed."""
    try:
        return os.dup(2)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)


async def _wait_exit(process: subprocess.Popen[bytes]) -> int:
    """Reap the process when it is gone. No thread: this must work while the interpreter shuts down."""
    if process.poll() is None and hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):
            descriptor = os.pidfd_open(process.pid)
            loop = asyncio.get_running_loop()
            gone = asyncio.Event()
            loop.add_reader(descriptor, gone.set)
            try:
                await gone.wait()
            finally:
                loop.remove_reader(descriptor)
                os.close(descriptor)
    while (code := process.poll()) is None:
        await asyncio.sleep(_POLL)
    return code
