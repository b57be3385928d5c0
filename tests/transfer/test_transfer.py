"""Values over every transport: shared memory, tcp, tls and within the process."""

from __future__ import annotations

import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gnomon.runtime.messages import ByReference, ErrorRecord
from gnomon.runtime.protocol import Segment, decode_payload, encode_error, encode_payload, encode_value
from gnomon.runtime.transfer import DataServer, Fetcher, Told, TransferError, ValueEncodingError, host_identity


def segment_of(value):
    return Segment.write(encode_value(value).frames)


def test_small_values_and_unknown_ones_in_order(pair, store, transport):
    server, fetcher = pair
    store.values = {(1, 1): b"one", (2, 5): b"", (3, 1): b"x" * 100_000}
    fetched = fetcher.fetch(server.address, [(3, 1), (2, 4), (1, 1), (2, 5), (1, 1)])
    assert fetched.values == [b"x" * 100_000, None, b"one", b"", b"one"]
    assert fetched.nbytes == 100_006
    assert fetched.transport == transport
    assert store.prepared == [((3, 1), (2, 4), (1, 1), (2, 5), (1, 1))]


def test_nothing_asked_nothing_answered(pair):
    server, fetcher = pair
    assert fetcher.fetch(server.address, []).values == []


def test_what_the_holder_tells_of_its_values(pair, store):
    server, fetcher = pair
    store.values = {(1, 1): b"one", (3, 1): b"x" * 9_000_000}
    store.type_names = {(1, 1): "Frame", (3, 1): "Array"}
    told = fetcher.fetch(server.address, [(3, 1), (2, 4), (1, 1)]).told
    assert told.type_names == ("Array", "", "Frame")
    assert told.serialise == 0.0
    assert told.hold >= 0.0


def test_how_long_the_holder_was_waited_for_and_what_of_that_was_work(pair, store):
    server, fetcher = pair
    waiting = threading.Event()

    def late():
        waiting.wait(0.02)  # nobody sets it
        return b"late"

    store.values = {(1, 1): late, (2, 1): late}
    store.seconds = 0.015
    hold, serialise = fetcher.fetch(server.address, [(1, 1), (2, 1)]).told[1:]
    assert serialise == pytest.approx(0.015)
    assert hold + serialise >= 0.04


@pytest.mark.parametrize(("seconds", "waited", "told"), [(1.0, 3.0, (2.0, 1.0)), (5.0, 3.0, (0.0, 3.0))])
def test_what_was_ready_before_it_was_waited_for_is_no_part_of_the_wait(seconds, waited, told):
    assert Told.of((("T",), seconds), waited) == (("T",), *told)


def test_large_arrays_arrive_whole_and_writable(pair, store):
    server, fetcher = pair
    array = np.random.default_rng(1).random(2_500_000)
    store.values[1, 1] = segment_of(array)
    for _ in range(2):  # the holder keeps its own
        fetched = fetcher.fetch(server.address, [(1, 1)])
        result = decode_payload(fetched.values[0])
        np.testing.assert_array_equal(result, array)
        result[:] = 0
    assert fetched.nbytes >= array.nbytes


def test_a_mixed_batch(pair, store):
    server, fetcher = pair
    for i in range(200):
        store.values[i, 1] = segment_of(np.full(5000, i)) if i % 3 == 0 else b"%d" % i
    wanted = [(i, 1) for i in range(250)]
    values = fetcher.fetch(server.address, wanted).values
    for i, value in enumerate(values[:200]):
        if i % 3 == 0:
            assert (decode_payload(value) == i).all()
        else:
            assert value == b"%d" % i
    assert values[200:] == [None] * 50


def test_segments_without_bytes(pair, store):
    server, fetcher = pair
    store.values = {(1, 1): Segment.write([]), (2, 1): Segment.write([b"", b"a", b""])}
    empty, some = fetcher.fetch(server.address, [(1, 1), (2, 1)]).values
    assert empty.layout == ()
    assert [bytes(f) for f in Segment.frames(some.fd, some.layout)] == [b"", b"a", b""]
    empty.close()
    some.close()


def test_very_long_bytes(pair, store):
    server, fetcher = pair
    payload = encode_payload(list(range(100)))
    value = decode_payload(payload)
    store.values[1, 1] = pickle.dumps(["x" * 20_000_000, value])
    assert decode_payload(fetcher.fetch(server.address, [(1, 1)]).values[0])[1] == value


def test_what_cannot_be_encoded_is_an_error_of_that_value_only(pair, store):
    server, fetcher = pair
    store.values = {(1, 1): ValueEncodingError(encode_error(TypeError("can't pickle it"))), (2, 1): b"fine"}
    error, fine = fetcher.fetch(server.address, [(1, 1), (2, 1)]).values
    assert isinstance(error, ErrorRecord)
    assert "can't pickle it" in error.text
    assert fine == b"fine"


def test_a_holder_that_is_still_encoding_keeps_its_peer_patient(pair, store, monkeypatch, transport):
    if transport == "inproc":
        pytest.skip("waits in the caller's own thread")
    server, fetcher = pair
    answers = [TimeoutError(), TimeoutError(), b"at last"]
    store.values = {(1, 1): b"before", (2, 1): lambda: answers.pop(0)}
    assert fetcher.fetch(server.address, [(1, 1), (2, 1)]).values == [b"before", b"at last"]


def test_objects_by_reference(pair, store, transport):
    server, fetcher = pair
    value = ByReference(threading.Lock())
    store.values[1, 1] = value
    (found,) = fetcher.fetch(server.address, [(1, 1)]).values
    if transport == "inproc":
        assert found is value
    else:
        assert isinstance(found, ErrorRecord)
        assert "by reference" in found.text


@pytest.mark.parametrize("kind", ["bytes", "long bytes", "encoded", "segment"])
def test_sending(pair, store, transport, kind):
    server, fetcher = pair
    array = np.arange(300_000)
    value = {"bytes": b"small", "long bytes": b"x" * 3_000_000, "encoded": encode_value(array)}.get(kind)
    if value is None:
        value = segment_of(array)
    assert fetcher.send(server.address, 7, 1, value) == transport
    held = store.values.pop((7, 1))
    if isinstance(held, Segment) and kind == "long bytes":
        assert bytes(Segment.frames(held.fd, held.layout)[0]) == value
    elif isinstance(held, Segment):
        np.testing.assert_array_equal(decode_payload(held), array)
    else:
        assert held == value


def test_a_value_that_is_not_taken(pair):
    server, fetcher = pair
    with pytest.raises(KeyError, match="no room for -1"):
        fetcher.send(server.address, -1, 1, b"x")
    with pytest.raises(KeyError, match="no room"):
        fetcher.send(server.address, -1, 1, encode_value(np.zeros(200_000)))
    fetcher.send(server.address, 1, 1, b"x")


def test_many_small_fetches_at_once(pair, store):
    server, fetcher = pair
    store.values = {(i, 1): b"%d" % i for i in range(100)}
    with ThreadPoolExecutor(20) as threads:
        results = list(threads.map(lambda i: fetcher.fetch(server.address, [(i, 1)]).values, range(100)))
    assert results == [[b"%d" % i] for i in range(100)]


def test_one_connection_serves_many_requests(security, store):
    with DataServer(store, address="tcp://127.0.0.1:0", security=security, host_id="h") as server:
        dialled = []
        with Fetcher(security, "other", "client") as fetcher:
            original = fetcher._connect
            fetcher._connect = lambda address: dialled.append(address) or original(address)
            for _ in range(10):
                assert fetcher.fetch(server.address, [(1, 1)])[:3] == ([None], 0, "tcp")
            with pytest.raises(TransferError):
                fetcher.fetch("tcp://127.0.0.1:1", [(1, 1)])
        assert len(dialled) == 2


def test_an_idle_connection_that_the_server_closed_is_replaced(security, store, wait_until):
    store.values[1, 1] = b"v"
    with (
        DataServer(
            store, address="tcp://127.0.0.1:0", security=security, host_id=host_identity(), idle_timeout=0.05
        ) as server,
        Fetcher(security, host_identity(), "worker") as fetcher,
    ):
        for _ in range(3):
            assert fetcher.fetch(server.address, [(1, 1)]).values == [b"v"]
            wait_until(lambda: not server._connections)


def test_a_new_server_at_an_old_address(security, store):
    store.values[1, 1] = b"v"
    with Fetcher(security, host_identity(), "worker") as fetcher:
        address = "tcp://127.0.0.1:0"
        for _ in range(3):
            with DataServer(store, address=address, security=security, host_id=host_identity()) as server:
                address = server.address
                assert fetcher.fetch(address, [(1, 1)])[:3] == ([b"v"], 1, "shared-memory")


def test_without_the_unix_socket_bytes_go_by_tcp(security, store):
    store.values[1, 1] = segment_of(np.arange(300_000))
    with (
        DataServer(store, address="tcp://127.0.0.1:0", security=security, host_id=host_identity()) as server,
        Fetcher(security, host_identity(), "worker") as fetcher,
    ):
        os.unlink(server._doors.path)
        fetched = fetcher.fetch(server.address, [(1, 1)])
        assert fetched.transport == "tcp"
        assert decode_payload(fetched.values[0]).sum() == np.arange(300_000).sum()
