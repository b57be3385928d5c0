"""Bulk data from a data server to a fetcher: large values, many small ones, and a client's scatter; by transport."""

from __future__ import annotations

from benchmarks.sizes import and_large
from benchmarks.stage import security_for
from gnomon.runtime.messages import ByReference
from gnomon.runtime.protocol import Segment, decode_payload, encode_payload
from gnomon.runtime.transfer import DataServer, Fetcher, host_identity

_TRANSPORTS = ["tcp", "tls", "shared-memory", "inproc"]
_SMALL = 1_000


class _Store:
    """A source whose values lie ready."""

    def __init__(self) -> None:
        self.values = {}

    def prepare(self, wanted):
        self.wanted = len(wanted)

    def told(self):
        return ("ndarray",) * self.wanted, 0.0

    def get(self, task_id, attempt, timeout):
        return self.values.get((task_id, attempt))

    def put(self, task_id, attempt, value):
        if isinstance(value, Segment):
            value.close()


class _OnServer:
    def setup(self, transport, *rest):
        security = security_for(transport)
        address = {"tls": "tls://127.0.0.1:0", "inproc": "inproc://"}.get(transport, "tcp://127.0.0.1:0")
        shared = transport == "shared-memory"
        self.store = _Store()
        self.server = DataServer(
            self.store, address=address, security=security, host_id=host_identity(), shared_memory=shared
        )
        self.fetcher = Fetcher(security, host_identity(), "worker", shared_memory=shared)
        self.address = self.server.contact_address

    def teardown(self, transport, *rest):
        self.fetcher.close()
        self.server.close()
        for value in self.store.values.values():
            if isinstance(value, Segment):
                value.close()

    def hold(self, transport, task_id, size):
        """Put a value into the store, as a worker has it for this transport."""
        data = bytes(size)
        self.store.values[task_id, 1] = ByReference(data) if transport == "inproc" else encode_payload(data)

    def fetch(self, task_ids):
        """Have the values in hand: a segment that nobody has read has not been moved."""
        found = self.fetcher.fetch(self.address, [(task_id, 1) for task_id in task_ids])
        for value in found.values:
            decode_payload(value)


class Bandwidth(_OnServer):
    """One value at a time, some 64 MB in all, until the bytes are in hand."""

    params = (_TRANSPORTS, [100_000, 4_000_000, 64_000_000])
    param_names = ("transport", "size")

    def setup(self, transport, size):
        super().setup(transport)
        self.hold(transport, 1, size)
        self.rounds = min(100, 64_000_000 // size)
        self.fetch([1])

    def time_fetch(self, transport, size):
        for _ in range(self.rounds):
            self.fetch([1])


class Small(_OnServer):
    """Many small values: in one request, and a request each."""

    params = (_TRANSPORTS, [100, 10_000])
    param_names = ("transport", "size")

    def setup(self, transport, size):
        super().setup(transport)
        self.ids = range(1, _SMALL + 1)
        for task_id in self.ids:
            self.hold(transport, task_id, size)
        self.fetch([1])

    def time_one_request(self, transport, size):
        self.fetch(self.ids)

    def time_a_request_each(self, transport, size):
        for task_id in self.ids:
            self.fetch([task_id])


class Scatter(_OnServer):
    """A client brings values to a worker."""

    params = (_TRANSPORTS, and_large([4_000_000], 64_000_000))
    param_names = ("transport", "size")

    def setup(self, transport, size):
        super().setup(transport)
        self.hold(transport, 1, size)
        self.value = self.store.values[1, 1]

    def time_send(self, transport, size):
        for _ in range(4):
            self.fetcher.send(self.address, 2, 1, self.value)
