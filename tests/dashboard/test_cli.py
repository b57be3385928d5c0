"""``gnomon dashboard`` and the dashboard of ``gnomon scheduler``, as processes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys

import psutil
import pytest
from click.testing import CliRunner

from gnomon.runtime.cli import main


@pytest.fixture
def command(tmp_path, wait_until):
    """Starts commands; each has ``said(pattern)``, which waits for a line."""
    started = []

    def start(*arguments):
        log = tmp_path / f"log{len(started)}"
        with log.open("w") as file:
            program = [sys.executable, "-c", "from gnomon.runtime.cli import main; main()"]
            process = subprocess.Popen([*program, *map(str, arguments)], stderr=file, start_new_session=True)
        started.append(process)
        process.said = lambda pattern: wait_until(
            lambda: re.search(pattern, log.read_text()), f"{pattern!r} in {log.read_text()}"
        )
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.terminate()
        process.wait(60)


LINK = r"Dashboard at (http://127\.0\.0\.1:\d+/\S*token=\S+)"


def test_of_a_scheduler(command, ask):
    scheduler = command("scheduler", "--port", 0, "--dashboard-address", ":0")
    link = scheduler.said(LINK)[1]
    assert psutil.Process(scheduler.pid).children() == []  # nobody looked
    summary = json.loads(ask(link, "/api/v1/summary.json").body)
    assert (summary["connected"], summary["workers"]) == (True, 0)
    assert ask(link, "/plain", token=False).status == 401
    child = psutil.Process(scheduler.pid).children()[0]
    scheduler.send_signal(signal.SIGINT)
    assert scheduler.wait(60) == 0
    psutil.wait_procs([child], timeout=60)
    assert not child.is_running()


def test_it_dies_with_a_scheduler_that_is_killed(command, ask, wait_until):
    scheduler = command("scheduler", "--port", 0, "--dashboard-address", ":0")
    link = scheduler.said(LINK)[1]
    assert ask(link, "/health").status == 200
    child = psutil.Process(scheduler.pid).children()[0]
    scheduler.kill()
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, "the dashboard's end")


def test_beside_a_scheduler_the_token_can_be_chosen_too(command, ask, monkeypatch):
    monkeypatch.setenv("GNOMON_DASHBOARD_TOKEN", "0123456789abcdef-chosen")
    link = command("dashboard", "tcp://127.0.0.1:9", "--address", ":0").said(LINK)[1]
    assert link.endswith("token=0123456789abcdef-chosen")
    assert ask(link, "/health").status == 200


def test_beside_a_scheduler_that_stops_and_comes_back(command, ask, wait_until):
    scheduler = command("scheduler", "--port", 0, "--no-dashboard")
    address = scheduler.said(r"Scheduler at (tcp://\S+)")[1]
    assert "Dashboard" not in scheduler.said("Scheduler at")[0]
    dashboard = command("dashboard", address, "--address", ":0")
    link = dashboard.said(LINK)[1]

    def summary():
        return json.loads(ask(link, "/api/v1/summary.json").body)

    first = wait_until(lambda: (found := summary())["connected"] and found, "the first data")
    scheduler.terminate()
    assert scheduler.wait(60) == 0
    lost = wait_until(lambda: not (found := summary())["connected"] and found, "the loss")
    assert lost["scheduler"]["id"] == first["scheduler"]["id"]
    assert lost["age"] > 0
    command("scheduler", "--port", address.rpartition(":")[2], "--no-dashboard").said("Scheduler at")
    again = wait_until(lambda: (found := summary())["connected"] and found, "the return")
    assert again["scheduler"]["id"] != first["scheduler"]["id"]
    dashboard.send_signal(signal.SIGTERM)
    assert dashboard.wait(60) == 0


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["dashboard"], "ADDRESS"),
        (["dashboard", "tcp://x:1", "--scheduler-file", "y"], "ADDRESS"),
        (["dashboard", "tcp://x:1", "--address", "here"], "host:port"),
        (["dashboard", "--scheduler-file", "/no/such/file"], "/no/such/file"),
        (["scheduler", "--dashboard-address", "99999999"], "host:port"),
    ],
)
def test_bad_input_is_exit_code_2(arguments, word):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2, result.output
    assert word in result.output
