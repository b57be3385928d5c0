"""Data servers and fetchers on this machine, and a check that nothing is left behind."""

from __future__ import annotations

import glob
import os
import tempfile
import threading
import time

import pytest

from gnomon.runtime.comm.security import Security
from gnomon.runtime.transfer import DataServer, Fetcher, host_identity

SECRET = b"a secret of this test's own"


class Store:
    """A source whose values are in a dictionary; a callable is called, an exception raised.

    ``type_names``: by name of the value. ``seconds``: what it says that making them ready took.
    """

    def __init__(self, **values):
        self.values = {}
        self.prepared = []
        self.asked = []
        self.type_names = {}
        self.seconds = 0.0
        self.mine = threading.local()

    def prepare(self, wanted):
        self.prepared.append(tuple(wanted))
        self.mine.wanted = wanted

    def told(self):
        return tuple(self.type_names.get(name, "") for name in self.mine.wanted), self.seconds

    def get(self, task_id, attempt, timeout):
        self.asked.append((task_id, attempt))
        value = self.values.get((task_id, attempt))
        if callable(value):
            value = value()
        if isinstance(value, Exception):
            raise value
        return value

    def put(self, task_id, attempt, value):
        if task_id < 0:
            raise KeyError(f"no room for {task_id}")
        self.values[task_id, attempt] = value


def _wait_until(condition, timeout=10.0):
    """Wait for a state, with a deadline."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "the state was not reached in time"
        time.sleep(0.005)


def open_fds():
    return len(os.listdir("/proc/self/fd"))


def own_threads():
    return [t.name for t in threading.enumerate() if t.name.startswith("gnomon-")]


def socket_folders():
    return glob.glob(os.path.join(tempfile.gettempdir(), "gnomon-data-*"))


@pytest.fixture
def wait_until():
    return _wait_until


@pytest.fixture(autouse=True)
def nothing_left(tmp_path, monkeypatch):
    """No descriptor, thread or file more than before."""
    folder = f"/tmp/gt-{os.getpid()}"
    os.makedirs(folder, exist_ok=True)
    monkeypatch.setattr(tempfile, "tempdir", folder)
    fds = open_fds()
    yield
    _wait_until(lambda: not own_threads())
    _wait_until(lambda: open_fds() <= fds)
    assert not socket_folders()
    os.rmdir(folder)


@pytest.fixture(scope="session")
def tls():
    return Security.temporary()


@pytest.fixture
def security(request):
    return Security(secret=SECRET)


@pytest.fixture(params=["shared-memory", "tcp", "tls", "inproc"])
def transport(request):
    return request.param


@pytest.fixture
def store():
    source = Store()
    yield source
    source.values.clear()


@pytest.fixture
def pair(transport, store, security, tls):
    """A server and a fetcher joined by each transport in turn."""
    scheme = {"shared-memory": "tcp", "tcp": "tcp", "tls": "tls", "inproc": "inproc"}[transport]
    address = "inproc://" if scheme == "inproc" else f"{scheme}://127.0.0.1:0"
    chosen = tls if transport == "tls" else security
    shared = transport == "shared-memory"
    with (
        DataServer(store, address=address, security=chosen, host_id=host_identity(), shared_memory=shared) as server,
        Fetcher(chosen, host_identity(), "worker") as fetcher,
    ):
        yield server, fetcher
