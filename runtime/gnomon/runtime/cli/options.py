"""Parameter types, and the options that several commands share.

Values are checked here, so that a bad one ends in one line and exit code 2 before anything starts.
"""

from __future__ import annotations

import functools
import re
import socket
from collections.abc import Callable
from typing import Any, TypeVar

import click
import psutil

from gnomon.runtime import config
from gnomon.runtime.comm import Security
from gnomon.runtime.deploy.dashboard import parse_address
from gnomon.runtime.errors import GnomonError

__all__ = [
    "RESOURCES",
    "SECONDS",
    "dashboard_options",
    "interface_address",
    "make_security",
    "no_dashboard_option",
    "option",
    "security_options",
]

F = TypeVar("F", bound=Callable[..., Any])

_SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "m": 60.0, "min": 60.0, "h": 3600.0}


class _Seconds(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on only
    """A duration: ``60``, ``60s``, ``500ms``, ``2m``, ``1h``."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h)?\s*", str(value))
        if match is None:
            self.fail(f"{value!r} is no duration; write 60, 500ms, 2m or 1h", param, ctx)
        return float(match[1]) * _SECONDS[match[2] or ""]


class _Resources(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on only
    """Abstract resources: ``GPU=2 MEM=1e9`` (separated by spaces or commas)."""

    name = "resources"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, float]:
        if isinstance(value, dict):
            return value
        amounts: dict[str, float] = {}
        for part in str(value).replace(",", " ").split():
            name, equals, amount = part.partition("=")
            try:
                number = float(amount)
            except ValueError:
                number = -1.0
            if not name or not equals or not 0 <= number < float("inf"):
                self.fail(f'{part!r} is no resource; write NAME=AMOUNT, such as "GPU=2 MEM=1e9"', param, ctx)
            amounts[name] = number
        return amounts


#: An option whose help shows its default and its environment variable.
option = functools.partial(click.option, show_default=True, show_envvar=True)

SECONDS = _Seconds()
RESOURCES = _Resources()


def security_options(command: F) -> F:
    """The options that say who may talk to whom."""
    existing = click.Path(exists=True, dir_okay=False)
    for add in (
        option(
            "--secret-file",
            type=existing,
            help="File (mode 0600) with the cluster's secret.  [default: the user's own]",
        ),
        option("--tls-key", type=existing, help="This process's private key, PEM."),
        option("--tls-cert", type=existing, help="This process's certificate, PEM."),
        option("--tls-ca-file", type=existing, help="Certificates of the authorities that we trust, PEM."),
    ):
        command = add(command)
    return command


def make_security(
    role: str, protocol: str | None, ca_file: str | None, cert: str | None, key: str | None, secret_file: str | None
) -> Security:
    """What the options say, for a ``scheduler`` or ``worker``.

    Raises click.UsageError for options that contradict each other, click.ClickException for files that are no good.
    """
    given = [name for name, value in (("--tls-ca-file", ca_file), ("--tls-cert", cert), ("--tls-key", key)) if value]
    if given and not (ca_file and cert):
        raise click.UsageError(
            f"{', '.join(given)} alone is not enough: TLS needs --tls-ca-file, --tls-cert and --tls-key"
        )
    if given and protocol == "tcp":
        raise click.UsageError(f"{given[0]} and --protocol tcp contradict each other")
    options: dict[str, Any] = {"require_encryption": True} if given else {}
    for owner in ("scheduler",) if role == "scheduler" else ("worker", "client"):  # tasks may open clients
        options |= {f"tls_{owner}_cert": cert, f"tls_{owner}_key": key} if given else {}
    try:
        if secret_file is not None:
            config.set({"security.secret_file": secret_file})
        security = Security(tls_ca_file=ca_file, **options)
        if protocol == "tls" and not security.has_tls:
            raise click.UsageError("--protocol tls needs --tls-ca-file, --tls-cert and --tls-key")
        security.get_listen_args(role)
        if secret_file is not None or not security.has_tls:
            _ = security.secret  # made or read now, so that what is wrong with it is said before anything starts
    except GnomonError as exc:
        raise click.ClickException(str(exc)) from exc
    return security


def dashboard_options(command: F) -> F:
    """Whether a scheduler has a dashboard, and where."""
    for add in (
        option(
            "--dashboard-address",
            callback=_dashboard_address,
            help="Where the dashboard listens, host:port or :port (this machine only).  "
            "[default: the setting dashboard.address, :8787]",
        ),
        option("--dashboard/--no-dashboard", default=True, help="Offer a dashboard; it starts when somebody opens it."),
    ):
        command = add(command)
    return command


def _dashboard_address(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    try:
        parse_address(value)
    except ValueError as exc:
        raise click.BadParameter(str(exc), ctx, param) from None
    return value


def no_dashboard_option(command: F) -> F:
    """``--no-dashboard`` of a worker, which never has one: the scheduler's shows all workers."""

    def refuse(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
        if value:
            raise click.UsageError(
                "a worker has no dashboard, the scheduler's shows it; use --no-dashboard, or leave the option out", ctx
            )
        return value

    return option(
        "--dashboard/--no-dashboard", default=False, callback=refuse, help="Workers are on the scheduler's dashboard."
    )(command)


def interface_address(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The IPv4 address of a network interface. Raises click.BadParameter for an unknown one."""
    if value is None:
        return None
    interfaces = psutil.net_if_addrs()
    for address in interfaces.get(value, ()):
        if address.family == socket.AF_INET:
            return str(address.address)
    known = ", ".join(sorted(interfaces))
    raise click.BadParameter(f"no interface {value!r} with an IPv4 address; there are {known}", ctx, param)
