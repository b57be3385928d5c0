"""``gnomon dashboard``: a dashboard beside any cluster, in the foreground."""

from __future__ import annotations

import logging
import os
from typing import Any

import click

from gnomon.reports.dashboard.server import Dashboard
from gnomon.runtime import config
from gnomon.runtime.cli.options import make_security, option, security_options
from gnomon.runtime.cli.service import log_to_stderr, process_file, read_scheduler_file, serve
from gnomon.runtime.deploy.dashboard import chosen_token, parse_address

__all__ = ["dashboard"]

logger = logging.getLogger("gnomon.dashboard")


@click.command()
@click.argument("scheduler_address", metavar="ADDRESS", required=False)
@option("--scheduler-file", type=click.Path(dir_okay=False), help="File with the scheduler's address.")
@option(
    "--address", "where", default=":8787", help="Where to listen, host:port or :port (this machine only); 0: any port."
)
@option("--prefix", default=None, help="What all paths begin with, for a reverse proxy.")
@option("--public-host", "hosts", multiple=True, help="Another name (host or host:port) that browsers may use for it.")
@option(
    "--token/--no-token",
    default=None,
    allow_from_autoenv=False,  # GNOMON_DASHBOARD_TOKEN is the token itself
    show_envvar=False,
    help="Ask for the token that is in the link, that of GNOMON_DASHBOARD_TOKEN or a new one.",
)
@option("--pid-file", type=click.Path(dir_okay=False), help="File to write the process id to, removed at the end.")
@security_options
def dashboard(
    scheduler_address: str | None,
    scheduler_file: str | None,
    where: str,
    prefix: str | None,
    hosts: tuple[str, ...],
    token: bool | None,
    pid_file: str | None,
    **files: str | None,
) -> None:
    """Show the cluster of the scheduler at ADDRESS in a browser.

    The scheduler need not be there yet, and may come back. It is asked for what is new once a second while somebody
    looks, and for nothing otherwise.

    \b
    Examples:
      gnomon dashboard tcp://127.0.0.1:8786
      gnomon dashboard tls://10.0.0.5:8786 --tls-ca-file ca.pem --tls-cert me.pem --tls-key me.key
      gnomon dashboard tcp://127.0.0.1:8786 --prefix /gnomon --public-host tools.example.org
    """
    if (scheduler_address is None) == (scheduler_file is None):
        raise click.UsageError("give the scheduler's ADDRESS, or --scheduler-file")
    try:
        address = scheduler_address or read_scheduler_file(scheduler_file or "")
        listen = parse_address(where)
        settings = config.get().dashboard
        secret = chosen_token() if (settings.token if token is None else token) else ""
    except (OSError, ValueError) as exc:
        raise click.UsageError(str(exc)) from None
    if listen is None:
        raise click.UsageError("--address must say where to listen")
    protocol = address.partition("://")[0] if "://" in address else None
    security = make_security(
        "worker", protocol, files["tls_ca_file"], files["tls_cert"], files["tls_key"], files["secret_file"]
    )
    log_to_stderr()
    built: list[Dashboard] = []

    def build() -> Dashboard:
        os.environ.pop("GNOMON_DASHBOARD_TOKEN", None)
        options: dict[str, Any] = {"host": listen[0], "port": listen[1], "token": secret}
        names = (*hosts, *settings.hosts.replace(",", " ").split())
        chosen = settings.prefix if prefix is None else prefix
        built.append(Dashboard(address, security=security, prefix=chosen, hosts=names, name=address, **options))
        return built[0]

    with process_file(pid_file):
        serve(f"a dashboard at {where}", build, lambda: logger.info("Dashboard at %s", built[0].link))
