"""Peers that have no business here, that lie, stall or vanish; and servers that do."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

import msgpack
import numpy as np
import pytest

from gnomon.runtime.comm.handshake import handshake_blocking
from gnomon.runtime.comm.security import Security
from gnomon.runtime.errors import AuthenticationError, HandshakeError, ListenRefusedError
from gnomon.runtime.protocol import Segment, encode_value
from gnomon.runtime.transfer import DataServer, Fetcher, TransferError, host_identity
from gnomon.runtime.transfer.dialing import Shortcut, dial_unix, sweep

OTHER = b"quite another secret, not ours"
HOST = host_identity()


@pytest.fixture
def server(store, security):
    with DataServer(
        store, address="tcp://127.0.0.1:0", security=security, host_id=HOST, handshake_timeout=1.0, half_open=8
    ) as server:
        yield server


def connected(server):
    host, port = server.address.removeprefix("tcp://").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def frame(header):
    body = header if type(header) is bytes else msgpack.packb(header)
    return struct.pack("!I", len(body)) + body


def authenticated(server, security, role="worker"):
    """A raw socket after a proper handshake and the server's welcome."""
    sock = connected(server)
    identity = security.identity(role, accept=["worker"])
    try:
        handshake_blocking(sock, identity, initiator=True, address=server.address)
    except HandshakeError:
        sock.close()
        raise
    (length,) = struct.unpack("!I", sock.recv(4, socket.MSG_WAITALL))
    sock.recv(length, socket.MSG_WAITALL)
    return sock


def is_closed_by_peer(sock):
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


# ---- who may come ----------------------------------------------------------------------------------------------------


def test_a_wrong_secret_is_refused_and_nothing_read(server, store):
    with (
        Fetcher(Security(secret=OTHER), HOST, "worker") as fetcher,
        pytest.raises(TransferError, match="secret") as caught,
    ):
        fetcher.fetch(server.address, [(1, 1)])
    assert isinstance(caught.value.__cause__, AuthenticationError)
    assert store.asked == store.prepared == []


def test_a_scheduler_has_no_business_here(server, security):
    with pytest.raises(HandshakeError), authenticated(server, security, role="scheduler"):
        pass


def test_requests_before_the_handshake_are_not_read(server, store):
    with connected(server) as sock:
        sock.sendall(frame(("get", ((1, 1),))) + pickle.dumps(print))
        while not is_closed_by_peer(sock):
            pass
    assert store.asked == []


def test_plain_to_tls_and_back(store, security, tls):
    with DataServer(store, address="tls://127.0.0.1:0", security=tls, host_id=HOST) as tls_server:
        with Fetcher(tls, HOST, "worker", shared_memory=False) as fetcher:
            assert fetcher.fetch(tls_server.address, [(1, 1)]).transport == "tls"
        wrong = Security(secret=b"0123456789abcdef0123")
        with Fetcher(wrong, HOST, "worker") as fetcher, pytest.raises(TransferError):
            fetcher.fetch(tls_server.address.replace("tls", "tcp"), [(1, 1)])
    with (
        DataServer(store, address="tcp://127.0.0.1:0", security=security, host_id=HOST) as plain,
        Fetcher(tls, HOST, "worker") as fetcher,
        pytest.raises(TransferError),
    ):
        fetcher.fetch(plain.address.replace("tcp", "tls"), [(1, 1)])


def test_another_authority_is_refused(store, tls):
    with (
        DataServer(store, address="tls://127.0.0.1:0", security=tls, host_id=HOST) as server,
        Fetcher(Security.temporary(), HOST, "worker") as fetcher,
        pytest.raises(TransferError, match="TLS"),
    ):
        fetcher.fetch(server.address, [(1, 1)])


def test_tls_leads_to_shared_memory_too(store, tls):
    store.values[1, 1] = Segment.write([b"x" * 2_000_000])
    with (
        DataServer(store, address="tls://127.0.0.1:0", security=tls, host_id=HOST) as server,
        Fetcher(tls, HOST, "client") as fetcher,
    ):
        assert fetcher.fetch(server.address, [(1, 1)]).transport == "shared-memory"


def test_the_unix_socket_wants_the_token(server, security):
    shortcut = Shortcut(server._doors.path, bytes(16), tls=False)
    with pytest.raises(AuthenticationError):
        dial_unix(shortcut, server.address, security=security, role="worker", connect_timeout=5, stall_timeout=5)


def test_the_unix_socket_is_private(server):
    folder = os.path.dirname(server._doors.path)
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert len(server._doors.path) < 108


@pytest.mark.parametrize("host", ["0.0.0.0", ""])
def test_listening_openly_is_refused(store, host, monkeypatch):
    monkeypatch.delenv("GNOMON_SECRET", raising=False)
    with pytest.raises(ListenRefusedError, match=r"GNOMON_SECRET.*127\.0\.0\.1"):
        DataServer(store, address=f"tcp://{host}:0", security=Security(), host_id=HOST)


def test_listening_everywhere_with_a_secret(store, security):
    store.values[1, 1] = b"v"
    with (
        DataServer(store, address="tcp://0.0.0.0:0", security=security, host_id=HOST) as server,
        Fetcher(security, HOST, "worker") as fetcher,
    ):
        assert "0.0.0.0" not in server.contact_address
        assert fetcher.fetch(server.contact_address, [(1, 1)]).values == [b"v"]


def test_required_encryption(store, security):
    strict = Security(True, secret=OTHER)
    with pytest.raises(ListenRefusedError, match="encryption"):
        DataServer(store, address="tcp://127.0.0.1:0", security=strict, host_id=HOST)
    with Fetcher(strict, HOST, "worker") as fetcher, pytest.raises(TransferError, match="encryption"):
        fetcher.fetch("tcp://127.0.0.1:1", [(1, 1)])


# ---- peers that sit, lie or vanish -----------------------------------------------------------------------------------


def test_silent_peers_are_closed_and_do_not_keep_others_out(server, store, security):
    store.values[1, 1] = b"v"
    silent = [connected(server) for _ in range(40)]
    with Fetcher(security, HOST, "worker") as fetcher:
        assert fetcher.fetch(server.address, [(1, 1)]).values == [b"v"]
    assert all(is_closed_by_peer(sock) for sock in silent)
    for sock in silent:
        sock.close()


def test_the_longest_idle_peer_makes_room(store, security, wait_until):
    with DataServer(store, address="tcp://127.0.0.1:0", security=security, host_id=HOST, max_connections=3) as server:
        socks = []
        for i in range(6):
            socks.append(authenticated(server, security))
            wait_until(lambda: all(c.state == "idle" for c in list(server._connections)))
            assert len(server._connections) <= 3, i
        assert is_closed_by_peer(socks[0])
        socks[-1].sendall(frame(("get", ((1, 1),))))
        (length,) = struct.unpack("!I", socks[-1].recv(4, socket.MSG_WAITALL))
        found, told = msgpack.unpackb(socks[-1].recv(length, socket.MSG_WAITALL))
        assert (found, told[0]) == (None, [""])
        for sock in socks:
            sock.close()


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("!I", 0xFFFFFFFF),
        frame(b"\xc1"),
        frame(b"\x91" * 5000),
        frame(b"\xdd\xff\xff\xff\xff"),
        frame("text"),
        frame(()),
        frame(("get",)),
        frame(("get", 5)),
        frame(("get", ((1,),))),
        frame(("get", (("a", "b"),))),
        frame(("explode", 1, 2)),
        frame(("put", 1, 1, (1 << 60,))),
        frame(("put", 1, 1, (-5,))),
        frame(("put", "a", 1, b"")),
        frame({"a": 1}),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
    ids=range(16),
)
def test_garbage_closes_that_peer_only(server, store, security, data, caplog):
    store.values[1, 1] = b"v"
    with Fetcher(security, HOST, "worker") as fetcher, authenticated(server, security) as sock:
        fetcher.fetch(server.address, [(1, 1)])
        with caplog.at_level(logging.INFO):
            sock.sendall(data)
            assert is_closed_by_peer(sock)
        assert fetcher.fetch(server.address, [(1, 1)]).values == [b"v"]
    assert len(caplog.records) <= 1


def test_a_sender_that_vanishes_leaves_nothing(server, store, security, wait_until):
    sock = authenticated(server, security)
    sock.sendall(frame(("put", 1, 1, (10_000_000,))) + bytes(3_000_000))
    sock.close()
    wait_until(lambda: not server._connections)
    assert store.values == {}


def test_a_stalled_sender_is_given_up(store, security):
    with DataServer(store, address="tcp://127.0.0.1:0", security=security, host_id=HOST, stall_timeout=0.2) as server:
        sock = authenticated(server, security)
        sock.sendall(frame(("put", 1, 1, (10_000_000,))) + bytes(1000))
        assert is_closed_by_peer(sock)
        sock.close()


# ---- servers that sit, lie or vanish ---------------------------------------------------------------------------------


class Impostor:
    """A server that authenticates and then does what the test wants."""

    def __init__(self, security, behave):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._security = security
        self._behave = behave
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        sock, _ = self._listener.accept()
        with sock:
            identity = self._security.identity("worker", accept=["worker", "client"])
            handshake_blocking(sock, identity, initiator=False, address="test")
            sock.sendall(frame(("", b"")))
            (length,) = struct.unpack("!I", sock.recv(4, socket.MSG_WAITALL))
            sock.recv(length, socket.MSG_WAITALL)
            self._behave(sock)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._listener.close()
        self._thread.join(10)
        assert not self._thread.is_alive()


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        (b"", "closed"),
        (b"\x00\x00", "closed"),
        (struct.pack("!I", 0xFFFFFFFF), "header of"),
        (frame(b"\xc1"), "malformed"),
        (frame((b"a", b"b")), "more values"),
        (frame((5,)), "no value"),
        (frame((("t", "x", b"", 5),)), "no value"),
        (frame((((1 << 60,),),)), "over the limit"),
        (frame((((-1,),),)), "layout"),
        (frame((((1_000_000,),),)) + bytes(1000), "middle"),
        (frame(((("T",), 0.0, 0.0),)), "fewer values"),
        (frame((b"a", ((), 0.0, 0.0))), "no sense"),
        (frame((b"a", ((5,), 0.0, 0.0))), "no sense"),
        (frame((b"a", (("T" * 101,), 0.0, 0.0))), "no sense"),
        (frame((b"a", (("T",), -1.0, 0.0))), "no sense"),
        (frame((b"a", (("T",), 0.0, float("nan")))), "no sense"),
        (frame((b"a", (("T",), 0, "1"))), "no sense"),
        (frame((b"a", b"b", (("T",), 0.0, 0.0))), "more values"),
    ],
)
def test_answers_that_are_none(security, answer, match):
    with (
        Impostor(security, lambda sock: sock.sendall(answer)) as impostor,
        Fetcher(security, HOST, "worker") as fetcher,
        pytest.raises(TransferError, match=match),
    ):
        fetcher.fetch(impostor.address, [(1, 1)])


def test_a_server_that_stalls_in_the_middle(security):
    done = threading.Event()

    def behave(sock):
        sock.sendall(frame((((1_000_000,),),)) + bytes(1000))
        done.wait(10)

    with (
        Impostor(security, behave) as impostor,
        Fetcher(security, HOST, "worker", stall_timeout=0.2) as fetcher,
    ):
        with pytest.raises(TransferError, match="no progress"):
            fetcher.fetch(impostor.address, [(1, 1)])
        done.set()


def test_a_server_that_never_shakes_hands(security):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        with (
            Fetcher(security, HOST, "worker", connect_timeout=0.3) as fetcher,
            pytest.raises(TransferError, match="handshake"),
        ):
            fetcher.fetch(address, [(1, 1)])


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "inproc://1/none", "tcp://no-such-host.invalid:5"])
def test_nobody_there(security, address):
    with Fetcher(security, HOST, "worker") as fetcher, pytest.raises(TransferError, match="can't reach"):
        fetcher.fetch(address, [(1, 1)])


def test_closing_the_server_ends_what_waits_on_it(store, security):
    asked = threading.Event()
    release = threading.Event()

    def wait():
        asked.set()
        release.wait(10)
        return TimeoutError()

    store.values[1, 1] = wait
    server = DataServer(store, address="tcp://127.0.0.1:0", security=security, host_id=HOST)
    errors = []

    def fetch():
        with Fetcher(security, HOST, "worker") as fetcher:
            try:
                fetcher.fetch(server.address, [(1, 1)])
            except TransferError as exc:
                errors.append(exc)

    thread = threading.Thread(target=fetch)
    thread.start()
    assert asked.wait(10)
    threading.Timer(0.05, release.set).start()
    server.close()
    server.close()
    thread.join(10)
    assert len(errors) == 1


def test_closing_the_fetcher_ends_what_waits(store, security):
    asked, release = threading.Event(), threading.Event()

    def wait():
        asked.set()
        release.wait(10)
        return b"late"

    store.values[1, 1] = wait
    errors = []
    with DataServer(store, address="tcp://127.0.0.1:0", security=security, host_id=HOST) as server:
        fetcher = Fetcher(security, HOST, "worker")

        def fetch():
            try:
                fetcher.fetch(server.address, [(1, 1)])
            except TransferError as exc:
                errors.append(exc)

        thread = threading.Thread(target=fetch)
        thread.start()
        assert asked.wait(10)
        fetcher.close()
        thread.join(10)
        assert len(errors) == 1
        with pytest.raises(TransferError, match="closed"):
            fetcher.fetch(server.address, [(1, 1)])
        release.set()


def test_a_source_that_fails_gives_no_word_on_the_value(store, security):
    store.values[1, 1] = RuntimeError("closing")
    with (
        DataServer(store, address="tcp://127.0.0.1:0", security=security, host_id=HOST) as server,
        Fetcher(security, HOST, "worker") as fetcher,
        pytest.raises(TransferError),
    ):
        fetcher.fetch(server.address, [(1, 1)])


SERVER = textwrap.dedent(
    """
    import os, sys, tempfile, time
    import numpy as np
    from gnomon.runtime.comm.security import Security
    from gnomon.runtime.protocol import Segment, encode_value
    from gnomon.runtime.transfer import DataServer, host_identity
    tempfile.tempdir = sys.argv[1]
    class Source:
        def prepare(self, wanted): self.wanted = len(wanted)
        def told(self): return ("ndarray",) * self.wanted, 0.0
        def get(self, task_id, attempt, timeout):
            if task_id == 2:
                os.kill(os.getpid(), 9)
            return Segment.write(encode_value(np.ones(3_000_000)).frames)
    server = DataServer(Source(), address="tcp://127.0.0.1:0", security=Security(secret=sys.argv[2]),
                        host_id=host_identity(), shared_memory=sys.argv[3] == "True")
    print(server.address, flush=True)
    sys.stdin.read()
    """
)


@pytest.mark.parametrize("shared", [True, False])
def test_a_server_killed_in_the_middle_of_a_fetch(security, shared, tmp_path, wait_until):
    secret = "a secret of this test's own"
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, tempfile.gettempdir(), secret, str(shared)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        address = process.stdout.readline().strip()
        with Fetcher(security, HOST, "worker") as fetcher:
            (segment,) = fetcher.fetch(address, [(1, 1)]).values
            with pytest.raises(TransferError):
                fetcher.fetch(address, [(1, 1), (2, 1), (3, 1)])
            assert process.wait(10) == -signal.SIGKILL
            with pytest.raises(TransferError, match="can't reach"):
                fetcher.fetch(address, [(1, 1)])
    with segment:  # outlives the process that made it
        assert np.frombuffer(Segment.frames(segment.fd, segment.layout)[1]).sum() == 3_000_000
    folders = list(Path(tempfile.gettempdir()).glob("gnomon-data-*"))
    assert len(folders) == int(shared)
    sweep(Path(tempfile.gettempdir()))
    assert list(Path(tempfile.gettempdir()).glob("gnomon-data-*")) == folders  # too young
    sweep(Path(tempfile.gettempdir()), age=0)
    assert not list(Path(tempfile.gettempdir()).glob("gnomon-data-*"))


def test_sweeping_leaves_the_living_alone(server, store, security):
    store.values[1, 1] = Segment.write(encode_value(np.ones(1000)).frames)
    sweep(Path(tempfile.gettempdir()), age=0)
    with Fetcher(security, HOST, "worker") as fetcher:
        assert fetcher.fetch(server.address, [(1, 1)]).transport == "shared-memory"
