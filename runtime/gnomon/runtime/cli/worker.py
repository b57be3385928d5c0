"""``gnomon worker``: one worker in this process, or several as its children."""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any

import click

from gnomon.runtime.cli.options import (
    RESOURCES,
    SECONDS,
    make_security,
    no_dashboard_option,
    option,
    security_options,
)
from gnomon.runtime.cli.service import log_to_stderr, process_file, read_scheduler_file, serve
from gnomon.runtime.clock import now
from gnomon.runtime.deploy.crew import Crew
from gnomon.runtime.deploy.machine import split_processors
from gnomon.runtime.deploy.process import ChildProcess
from gnomon.runtime.errors import ClusterError
from gnomon.runtime.worker import Worker

__all__ = ["worker"]

logger = logging.getLogger(__name__)

_WORKER = "gnomon.runtime.worker:Worker"
_FILE_POLL = 0.1  # seconds between looks for a scheduler file


class _Count(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on only
    """A number of workers, or ``auto``."""

    name = "number|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        """None means auto."""
        if value == "auto":
            return None
        try:
            count = int(value)
        except ValueError:
            count = 0
        if count < 1:
            self.fail(f"{value!r} is neither a number of workers nor auto", param, ctx)
        return count


@click.command()
@click.argument("scheduler", required=False, envvar="GNOMON_WORKER_SCHEDULER")
@option("--scheduler-file", type=click.Path(dir_okay=False), help="File in which the scheduler wrote its address.")
@option("--host", help="Address to serve data at.  [default: the one by which the scheduler is reached]")
@option(
    "--port",
    "--worker-port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port to serve data at; 0 takes a free one.",
)
@option("--protocol", type=click.Choice(["tcp", "tls"]), help="Transport.  [default: that of the scheduler's address]")
@security_options
@option(
    "--nthreads", type=click.IntRange(1), help="Tasks that run at once in each worker.  [default: processors / workers]"
)
@option("--nworkers", type=_Count(), default=1, help="Workers to start, or auto.")
@option(
    "--nanny/--no-nanny",
    default=True,
    help="Run tasks in a child process that is replaced when it dies, or in threads.",
)
@option("--name", help="Name of the worker; with several, its beginning.  [default: host and process]")
@option(
    "--resources",
    type=RESOURCES,
    default={},
    show_default=False,
    help='Abstract resources that tasks may ask for: "GPU=2 MEM=1e9".',
)
@option("--local-directory", type=click.Path(file_okay=False), help="Folder for temporary files.")
@option("--death-timeout", type=SECONDS, help="Give up when the scheduler can't be reached for so long (60, 2m).")
@option("--pid-file", type=click.Path(dir_okay=False), help="File to write the process id to, removed at the end.")
@no_dashboard_option
def worker(scheduler: str | None, scheduler_file: str | None, nworkers: int | None, **options: Any) -> None:
    """Start workers that run tasks for the scheduler at the address SCHEDULER.

    \b
    Examples:
      gnomon worker tcp://127.0.0.1:8786
      gnomon worker tcp://127.0.0.1:8786 --nworkers 4 --nthreads 2
      gnomon worker tcp://127.0.0.1:8786 --nworkers auto --resources "GPU=2"
      gnomon worker --scheduler-file cluster.json --death-timeout 60
    """
    if (scheduler is None) == (scheduler_file is None):
        raise click.UsageError("give the scheduler's address or --scheduler-file")
    if nworkers != 1 and options["port"]:
        raise click.UsageError("--port names one port, which several workers can't share")
    security = make_security(
        "worker",
        options["protocol"],
        options["tls_ca_file"],
        options["tls_cert"],
        options["tls_key"],
        options["secret_file"],
    )
    log_to_stderr()
    count, threads = split_processors(nworkers, options["nthreads"], processes=True)
    settings = {
        "host": options["host"],
        "port": options["port"],
        "protocol": options["protocol"],
        "nthreads": threads,
        "resources": options["resources"],
        "nanny": options["nanny"],
        "local_directory": options["local_directory"],
        "security": security,
        "death_timeout": options["death_timeout"],
        "sys_path": tuple(sys.path),
    }
    with process_file(options["pid_file"]):
        address = scheduler or _wait_for_file(str(scheduler_file), options["death_timeout"])
        if count == 1:
            serve(f"a worker of {address}", lambda: Worker(address, **settings, name=options["name"]))
        else:
            stem = options["name"] or f"{socket.gethostname()}-{os.getpid()}"
            names = [f"{stem}-{i}" for i in range(count)]
            serve(
                f"workers of {address}", lambda: _Several(address, {name: {**settings, "name": name} for name in names})
            )


class _Several:
    """Worker processes that start and end together; one that dies is replaced."""

    def __init__(self, address: str, specs: Mapping[str, Mapping[str, Any]]) -> None:
        self._address = address
        self._specs = specs
        self._crew = Crew(lambda name: ChildProcess(_WORKER, f"worker {name}", log_level=logging.INFO))

    async def start(self) -> None:
        """Start all, side by side."""
        await self._crew.prepare(self._specs)
        await self._crew.start(self._address, self._specs)

    async def close(self, reason: str = "") -> None:
        """Close all."""
        await self._crew.close(reason)

    async def finished(self) -> None:
        """Wait until all have left. Raises ClusterError if some kept dying."""
        await self._crew.wait_empty()
        if self._crew.given_up:
            raise ClusterError(f"gave up on {', '.join(self._crew.given_up)}: dying again and again")


def _wait_for_file(path: str, timeout: float | None) -> str:
    """The scheduler's address from a file that may not be there yet.

    Raises click.ClickException when the time is up or the file is something else.
    """
    deadline = None if timeout is None else now() + timeout
    said = False
    while True:
        try:
            return read_scheduler_file(path)
        except FileNotFoundError:
            if deadline is not None and now() >= deadline:
                raise click.ClickException(f"no scheduler file {path} after {timeout:g} s") from None
        except (OSError, ValueError) as exc:
            raise click.ClickException(str(exc)) from exc
        if not said:
            logger.info("Waiting for the scheduler file %s", path)
            said = True
        time.sleep(_FILE_POLL)
