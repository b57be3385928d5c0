"""The group of commands: help, version, plugins."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint

import click
import pytest
from click.testing import CliRunner

from gnomon.runtime.cli import main

COMMANDS = ["demo", "scheduler", "worker"]


@click.command()
def extra():
    """Does something more."""
    click.echo("done")


not_a_command = 5


@pytest.fixture
def plugins(monkeypatch):
    """Pretend that distributions offer these commands."""
    module = sys.modules["gnomon.runtime.cli.main"]
    sys.modules.setdefault("plugin_of_the_tests", sys.modules[__name__])
    points = [
        EntryPoint("extra", "plugin_of_the_tests:extra", "gnomon.commands"),
        EntryPoint("broken", "no_such_module_anywhere:x", "gnomon.commands"),
        EntryPoint("odd", "plugin_of_the_tests:not_a_command", "gnomon.commands"),
        EntryPoint("worker", "plugin_of_the_tests:extra", "gnomon.commands"),
    ]
    monkeypatch.setattr(module, "entry_points", lambda group: points if group == "gnomon.commands" else [])
    yield
    del sys.modules["plugin_of_the_tests"]


def invoke(*arguments):
    return CliRunner().invoke(main, arguments)


def test_version():
    result = invoke("--version")
    assert result.exit_code == 0
    assert result.output.startswith("gnomon, version ")


def test_help_lists_the_commands():
    result = invoke("--help")
    assert result.exit_code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in result.output


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_has_examples_defaults_and_variables(name):
    result = invoke(name, "--help")
    assert result.exit_code == 0, result.output
    assert "Examples:" in result.output
    assert "[default: " in result.output or "default: " in result.output
    assert f"GNOMON_{name.upper()}_" in result.output


def test_unknown_command():
    result = invoke("wroker")
    assert result.exit_code == 2
    assert "wroker" in result.output


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from click.testing import CliRunner; from gnomon.runtime.cli import main;"
        "sys.modules['gnomon.runtime.cli.main'].entry_points = lambda group: [];"
        "assert CliRunner().invoke(main, ['--help']).exit_code == 0;"
        "heavy = {'gnomon.runtime.scheduler', 'gnomon.runtime.worker', 'rich', 'asyncio', 'numpy', 'dask'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


@pytest.mark.usefixtures("plugins")
def test_plugin():
    assert invoke("extra").output == "done\n"
    listing = " ".join(invoke("--help").output.split())
    assert "Does something more." in listing
    assert "could not be loaded" in listing


@pytest.mark.usefixtures("plugins")
def test_broken_plugin_is_one_line():
    result = invoke("broken")
    assert result.exit_code == 1
    assert "no_such_module_anywhere" in result.output
    assert "Traceback" not in result.output
    assert invoke("odd").exit_code == 1


@pytest.mark.usefixtures("plugins")
def test_plugin_does_not_replace_a_command():
    assert "Does something more" not in invoke("worker", "--help").output
