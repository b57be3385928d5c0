"""The group of commands: our own, imported on demand, and those of plugins."""

from __future__ import annotations

import importlib
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from typing import Any, NamedTuple

import click

__all__ = ["main"]

_GROUP = "gnomon.commands"


class _Own(NamedTuple):
    """A command of ours: where it is, and its line in the list of commands."""

    target: str
    summary: str


_OWN = {
    "demo": _Own("gnomon.runtime.cli.demo:demo", "Run a real workload on this machine and write a performance report."),
    "scheduler": _Own("gnomon.runtime.cli.scheduler:scheduler", "Start a scheduler."),
    "worker": _Own("gnomon.runtime.cli.worker:worker", "Start workers that connect to a scheduler."),
}


class _Commands(click.Group):
    """Commands by name, loaded when asked for. A plugin's can't replace one of ours."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*_OWN, *_plugins()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        own = _OWN.get(cmd_name)
        if own is not None:
            module, _, name = own.target.partition(":")
            return _checked(cmd_name, getattr(importlib.import_module(module), name))
        plugin = _plugins().get(cmd_name)
        return None if plugin is None else _load(plugin)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing ours."""
        rows = []
        for name in self.list_commands(ctx):
            own = _OWN.get(name)
            if own is not None:
                rows.append((name, own.summary))
            else:
                rows.append((name, _summary(_plugins()[name])))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _plugins() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=_GROUP)}


def _load(plugin: EntryPoint) -> click.Command:
    """A plugin's command. Raises click.ClickException if it can't be imported."""
    try:
        loaded = plugin.load()
    except Exception as exc:
        raise click.ClickException(f"the command {plugin.name!r} ({plugin.value}) could not be loaded: {exc}") from exc
    return _checked(plugin.name, loaded)


def _checked(name: str, command: Any) -> click.Command:
    if not isinstance(command, click.Command):
        raise click.ClickException(f"the command {name!r} is no click command but a {type(command).__name__}")
    return command


def _summary(plugin: EntryPoint) -> str:
    """A plugin's line in the list; one that can't be loaded says so there and spoils nothing else."""
    try:
        return _load(plugin).get_short_help_str(limit=100)
    except click.ClickException as exc:
        return f"({exc.format_message()})"


def _version() -> str:
    try:
        return version("gnomon")
    except PackageNotFoundError:
        return "unknown"


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "GNOMON", "max_content_width": 100},
)
@click.version_option(_version(), prog_name="gnomon")
def main() -> None:
    """A distributed task runtime for Python that shows where its own time goes.

    \b
    Try it:       gnomon demo
    A cluster:    gnomon scheduler
                  gnomon worker tcp://127.0.0.1:8786

    Every option of a command can also be given by the environment variable that its --help shows.
    """
