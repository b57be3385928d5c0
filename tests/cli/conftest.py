"""What the tests of the command line share: running commands as processes, and waiting for what they say."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from tests.waiting import is_gone, waiter

DEADLINE = 30


class Command:
    """A running ``gnomon`` command whose standard error is read as it comes."""

    def __init__(self, *arguments, env=None, cwd=None):
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from gnomon.runtime.cli import main; main()", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            start_new_session=True,
        )
        self.said = []
        self._lines = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            self._lines.put(line)
        self._lines.put(None)

    def wait_for(self, pattern):
        """Wait for a line on standard error; returns the match."""
        deadline = time.monotonic() + DEADLINE
        while True:
            try:
                line = self._lines.get(timeout=max(0, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                pytest.fail(f"no line matched {pattern!r} among\n{''.join(self.said)}")
            self.said.append(line)
            if match := re.search(pattern, line):
                return match

    def descendants(self):
        return [child.pid for child in psutil.Process(self.process.pid).children(recursive=True)]

    def interrupt(self):
        """What Ctrl-C in a terminal does: a signal to the whole process group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def finish(self):
        """Wait for the end. Returns exit code, standard output and all of standard error."""
        self.process.wait(DEADLINE)
        out = self.process.stdout.read()
        self._reader.join(DEADLINE)
        while (line := self._lines.get()) is not None:
            self.said.append(line)
        return self.process.returncode, out, "".join(self.said)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(DEADLINE)
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture
def gnomon():
    """Start ``gnomon`` commands that end with the test."""
    commands = []

    def start(*arguments, **options):
        commands.append(Command(*arguments, **options))
        return commands[-1]

    yield start
    for command in commands:
        command.end()


@pytest.fixture
def wait_until():
    """Wait for a condition; fails with its name when the deadline passes."""
    return waiter(DEADLINE)


@pytest.fixture
def gone(wait_until):
    """Wait until processes are gone; zombies count as gone."""

    def wait(pids, timeout=10):
        wait_until(lambda: all(map(is_gone, pids)), f"the end of {pids}", timeout)

    return wait
