"""Clients that come with the wrong thing get a clear error before their deadline, and the cluster goes on."""

from __future__ import annotations

import socket
import threading

import pytest

from gnomon.runtime import Client, LocalCluster, Security
from gnomon.runtime.errors import AuthenticationError, CommError, ConnectTimeoutError, HandshakeError


def inc(x):
    return x + 1


@pytest.fixture(scope="module")
def tls_cluster():
    with LocalCluster(n_workers=1, threads_per_worker=1, security=True) as cluster:
        yield cluster


def still_works(cluster):
    with Client(cluster) as client:
        assert client.submit(inc, 1, pure=False).result(timeout=30) == 2


def test_nobody_listens():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ConnectTimeoutError, match=str(port)):
        Client(f"tcp://127.0.0.1:{port}", timeout=0.5)


@pytest.mark.parametrize("address", ["nonsense", "http://127.0.0.1:1", "tcp://127.0.0.1", "tcp://:x"])
def test_an_address_that_is_none(address):
    with pytest.raises((ValueError, CommError), match=r"address|port|scheme|protocol|[Nn]obody"):
        Client(address, timeout=1)


def test_another_secret(cluster):
    with pytest.raises(AuthenticationError, match="secret"):
        Client(cluster.scheduler_address, security=Security(secret="another secret altogether"), timeout=5)
    still_works(cluster)


def test_something_else_answers_at_the_address():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(1.0)

        def answer():
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                with peer:
                    peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(HandshakeError, match="HTTP server"):
            Client(f"tcp://127.0.0.1:{server.getsockname()[1]}", timeout=5)
    thread.join(5)


def test_no_certificates_for_a_tls_cluster(tls_cluster):
    with pytest.raises((CommError, ValueError), match=r"TLS|tls|certificate"):
        Client(tls_cluster.scheduler_address, timeout=5)
    still_works(tls_cluster)


def test_certificates_of_another_authority(tls_cluster):
    with pytest.raises(CommError, match=r"TLS|tls|certificate"):
        Client(tls_cluster.scheduler_address, security=Security.temporary(), timeout=5)
    still_works(tls_cluster)


def test_plain_client_at_a_tls_port(tls_cluster):
    address = tls_cluster.scheduler_address.replace("tls://", "tcp://")
    with pytest.raises(CommError):
        Client(address, timeout=5)
    still_works(tls_cluster)


def test_tls_client_at_a_plain_port(cluster):
    address = cluster.scheduler_address.replace("tcp://", "tls://")
    with pytest.raises(CommError, match=r"TLS|tls"):
        Client(address, security=Security.temporary(), timeout=5)
    still_works(cluster)
