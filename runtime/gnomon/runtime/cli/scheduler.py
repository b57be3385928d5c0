"""``gnomon scheduler``."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import click

from gnomon.runtime.cli.options import (
    SECONDS,
    dashboard_options,
    interface_address,
    make_security,
    option,
    security_options,
)
from gnomon.runtime.cli.service import log_to_stderr, process_file, scheduler_file, serve
from gnomon.runtime.deploy.dashboard import DashboardDoor
from gnomon.runtime.scheduler import Scheduler

__all__ = ["scheduler"]

logger = logging.getLogger(__name__)


@click.command()
@option("--host", default=None, help="Address to listen at.  [default: 127.0.0.1]")
@option("--port", type=click.IntRange(0, 65535), default=8786, help="Port to listen at; 0 takes a free one.")
@option(
    "--interface", callback=interface_address, help="Network interface to listen at, such as eth0, instead of --host."
)
@option(
    "--protocol",
    type=click.Choice(["tcp", "tls"]),
    help="Transport.  [default: tls where certificates are given, else tcp]",
)
@security_options
@option("--idle-timeout", type=SECONDS, help="Close when nothing has run for so long (60, 10m, 1h).")
@option("--pid-file", type=click.Path(dir_okay=False), help="File to write the process id to, removed at the end.")
@option(
    "--scheduler-file",
    type=click.Path(dir_okay=False),
    help="File to write the address to, for --scheduler-file of workers.",
)
@dashboard_options
def scheduler(host: str | None, port: int, interface: str | None, protocol: str | None, **others: Any) -> None:
    """Start a scheduler: the process that clients and workers connect to.

    Without further options it listens to this machine only, and lets in whoever has the user's
    secret, which is made on first use. To listen to others it needs certificates or an explicit secret.
    The log tells the link to its dashboard, which asks for the token in it.

    \b
    Examples:
      gnomon scheduler
      gnomon scheduler --port 0 --scheduler-file cluster.json
      gnomon scheduler --host 10.0.0.5 --tls-ca-file ca.pem --tls-cert me.pem --tls-key me.key
      GNOMON_SECRET=... gnomon scheduler --host 10.0.0.5
    """
    if host and interface:
        raise click.UsageError("give --host or --interface, not both")
    security = make_security(
        "scheduler", protocol, others["tls_ca_file"], others["tls_cert"], others["tls_key"], others["secret_file"]
    )
    log_to_stderr()
    where = host or interface or "127.0.0.1"
    wanted = (others["dashboard_address"] or True) if others["dashboard"] else None
    with process_file(others["pid_file"]), scheduler_file(others["scheduler_file"]) as write_address:

        def build() -> Service:
            return Service(
                DashboardDoor(wanted, security, log_level=logging.INFO),
                lambda services: Scheduler(
                    host=where,
                    port=port,
                    protocol=protocol,
                    security=security,
                    idle_timeout=others["idle_timeout"],
                    services=services,
                ),
                write_address,
            )

        serve(f"a scheduler at {where}:{port}", build)


class Service:
    """A scheduler and the door to its dashboard, as one server."""

    def __init__(
        self,
        door: DashboardDoor,
        build: Callable[[dict[str, str]], Scheduler],
        on_started: Callable[[str], None],
    ) -> None:
        self._door = door
        self._build = build
        self._on_started = on_started
        self._scheduler: Scheduler | None = None

    async def start(self) -> None:
        """Start the scheduler, and let visitors of the dashboard in."""
        link = self._door.open()
        self._scheduler = self._build({"dashboard": link} if link else {})
        await self._scheduler.start()
        self._door.serve(self._scheduler.address)
        if link:
            logger.info("Dashboard at %s", link)
        self._on_started(self._scheduler.address)

    async def close(self, reason: str = "") -> None:
        """Close both."""
        await self._door.close(reason)
        if self._scheduler is not None:
            await self._scheduler.close(reason)

    async def finished(self) -> None:
        """Wait until the scheduler has closed."""
        if self._scheduler is not None:
            await self._scheduler.finished()
            await self._door.close("the scheduler has closed")
