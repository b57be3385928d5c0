"""The connection to the scheduler is cut: every call that waits ends with a clear error, and another client works."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import closing

import pytest

from gnomon.runtime import Client, as_completed, config, wait
from gnomon.runtime.errors import CommClosedError, FutureLostError, GnomonError


class Relay:
    """Passes bytes between a client and the scheduler until it is told to cut."""

    def __init__(self, address):
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        self._to = (host, int(port))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._ends = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def address(self):
        return f"tcp://127.0.0.1:{self._listening.getsockname()[1]}"

    def _accept(self):
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            far = socket.create_connection(self._to)
            self._ends += [near, far]
            for source, sink in ((near, far), (far, near)):
                thread = threading.Thread(target=self._pass_on, args=(source, sink), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _pass_on(self, source, sink):
        try:
            while data := source.recv(1 << 16):
                sink.sendall(data)
        except OSError:
            pass

    def cut(self):
        """Reset all connections, as a firewall or a dying host does."""
        for end in self._ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()
        self._ends = []

    def close(self):
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()
        for thread in self._threads:
            thread.join(10)


@pytest.fixture
def relay(cluster):
    with closing(Relay(cluster.scheduler_address)) as relay:
        yield relay


def until(path):
    while not path.exists():
        time.sleep(0.01)


WAITS = {
    "result": lambda client, future: future.result(timeout=30),
    "gather": lambda client, future: client.gather([future]),
    "wait": lambda client, future: wait([future], timeout=30).done.pop().result(timeout=1),
    "as_completed": lambda client, future: next(as_completed([future], timeout=30)).result(timeout=1),
    "a question": lambda client, future: client.wait_for_workers(1000, timeout=30),
}


@pytest.fixture
def end(tmp_path):
    """What tasks wait for; it comes when the test is over."""
    path = tmp_path / "end"
    yield path
    path.touch()


@pytest.mark.parametrize("way", WAITS)
def test_whoever_waits_is_told(cluster, relay, way, end):
    with config.set({"comm.allow_relay": True}), Client(relay.address, set_as_default=False) as client:
        future = client.submit(until, end, pure=False)
        while not any(client.processing().values()):
            time.sleep(0.01)
        outcome = []

        def ask():
            try:
                outcome.append(WAITS[way](client, future))
            except BaseException as exc:
                outcome.append(exc)

        thread = threading.Thread(target=ask)
        thread.start()
        relay.cut()
        thread.join(30)
        (error,) = outcome
        assert isinstance(error, CommClosedError if way == "a question" else FutureLostError)
        assert "the scheduler at" in str(error)
        assert future.status == "lost"
        with pytest.raises(CommClosedError, match="the scheduler at"):
            client.submit(abs, 1, pure=False)
        with pytest.raises(GnomonError):
            future.result(timeout=5)
    end.touch()
    with Client(cluster, set_as_default=False) as another:
        assert another.submit(sum, [1, 2], pure=False).result(timeout=30) == 3
        assert another.gather(another.map(abs, range(-10, 0))) == list(range(10, 0, -1))
