"""Running a server in the foreground: start, say where, wait for an end or a signal, close in order.

The first SIGINT or SIGTERM closes in good order; a second one leaves at once. Files that name the process or its
address are removed on the way out. Errors that a user can act on become one line and exit code 1.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn, Protocol

import click

from gnomon.runtime.deploy.surroundings import kill_descendants, run
from gnomon.runtime.errors import GnomonError

__all__ = ["Server", "log_to_stderr", "process_file", "read_scheduler_file", "scheduler_file", "serve"]

logger = logging.getLogger(__name__)

_GRACE = 20.0  # seconds that a server has to close in good order


class Server(Protocol):
    """A scheduler, a worker, or several workers."""

    async def start(self) -> Any:
        """Start."""

    async def close(self, reason: str = "") -> None:
        """Close in good order; safe to call twice."""

    async def finished(self) -> None:
        """Wait until it has closed."""


def log_to_stderr(level: int = logging.INFO) -> None:
    """Simple log lines of ours on standard error."""
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s - %(name)s - %(levelname)s - %(message)s")
    logging.getLogger("gnomon").setLevel(level)


def serve(what: str, build: Callable[[], Server], on_started: Callable[[], None] | None = None) -> None:
    """Build a server on a new loop, start it and run it until it ends or a signal comes.

    The server itself says in the log where it is; ``what`` names it in errors that don't.

    Raises click.ClickException (exit code 1) with the reason if it can't start or ends badly.
    """
    try:
        run(_serve(build, on_started))
    except GnomonError as exc:
        raise click.ClickException(str(exc) or type(exc).__name__) from exc
    except (OSError, ValueError) as exc:
        raise click.ClickException(f"{what}: {exc or type(exc).__name__}") from exc


async def _serve(build: Callable[[], Server], on_started: Callable[[], None] | None) -> None:
    leaving: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    _handle_signals(leaving)
    server = build()
    starting = asyncio.ensure_future(server.start())
    waits: list[asyncio.Future[Any]] = [starting, leaving]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.wait([starting])
        await server.close(reason=leaving.result())
        return
    starting.result()
    if on_started is not None:
        on_started()
    finished = asyncio.ensure_future(server.finished())
    waits = [finished, leaving]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    if not finished.done():
        closing = asyncio.ensure_future(server.close(reason=leaving.result()))
        await asyncio.wait([closing], timeout=_GRACE)
        if not closing.done():
            logger.error("Could not close in order within %g s, and leave", _GRACE)
            _leave_at_once(1)
        closing.result()
    await finished


def _handle_signals(leaving: asyncio.Future[str]) -> None:
    """The first signal settles ``leaving``, the next one ends the process."""
    loop = asyncio.get_running_loop()

    def on_signal(number: signal.Signals) -> None:
        if leaving.done():
            _leave_at_once(128 + number)
        logger.info("Got %s, closing; once more leaves at once", number.name)
        leaving.set_result(f"got {number.name}")

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)


def _leave_at_once(code: int) -> NoReturn:
    """No closing, no clean-up but the files and the processes below us."""
    for path in list(_written):
        _remove(path)
    kill_descendants(os.getpid())
    os._exit(code)


_written: set[Path] = set()


def _remove(path: Path) -> None:
    _written.discard(path)
    with contextlib.suppress(OSError):
        path.unlink()


@contextlib.contextmanager
def process_file(path: str | None) -> Iterator[None]:
    """A file with the process id, for as long as the body runs. Raises click.ClickException if it can't be written."""
    if path is None:
        yield
        return
    _write(Path(path), f"{os.getpid()}\n")
    try:
        yield
    finally:
        _remove(Path(path))


@contextlib.contextmanager
def scheduler_file(path: str | None) -> Iterator[Callable[[str], None]]:
    """Gives a function that writes the scheduler's address to the file, which is removed when the body ends."""

    def write(address: str) -> None:
        if path is not None:
            _write(Path(path), json.dumps({"type": "Scheduler", "address": address}) + "\n")

    try:
        yield write
    finally:
        if path is not None and Path(path) in _written:
            _remove(Path(path))


def read_scheduler_file(path: str) -> str:
    """The address in a scheduler file.

    Raises FileNotFoundError if there is none yet, ValueError if it is no such file.
    """
    text = Path(path).read_text()
    try:
        return str(json.loads(text)["address"])
    except (ValueError, TypeError, KeyError):
        raise ValueError(f"{path} is no scheduler file") from None


def _write(path: Path, text: str) -> None:
    """Write all of the file at once, so that no reader sees half of it."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(name, path)
    except OSError as exc:
        raise click.ClickException(f"{path} can't be written: {exc.strerror}") from exc
    _written.add(path)
