"""The user's objects as bytes and back, by family: values, code and arguments, bundles, errors, messages."""

from __future__ import annotations

import operator
import pickle

from benchmarks import callgrind
from benchmarks.graphs import graph, message_of
from benchmarks.values import FAMILIES, value
from benchmarks.zero_worker import ZeroCluster
from gnomon.runtime.client.entries import FLAT, Entries
from gnomon.runtime.core import placement
from gnomon.runtime.messages import decode, encode
from gnomon.runtime.protocol import (
    Ref,
    Segment,
    decode_error,
    decode_payload,
    decode_value,
    dumps_bundle,
    dumps_call,
    dumps_code,
    encode_error,
    encode_payload,
    encode_value,
    loads_call,
    loads_code,
    sizeof,
    substitute,
)

#: Calls per sample of what takes microseconds.
_MANY = 1_000


class Values:
    """Results as frames, and back; ``encode_copy`` and ``payload`` also move the bytes once."""

    params = (list(FAMILIES), [1_000, 100_000, 10_000_000])
    param_names = ("family", "size")

    def setup(self, family, size):
        self.value = value(family, size)
        self.frames = [bytes(frame) for frame in encode_value(self.value).frames]
        self.rounds = max(1, min(_MANY, 10_000_000 // size // (100 if family == "nested" else 1)))

    def time_encode(self, family, size):
        for _ in range(self.rounds):
            encode_value(self.value)

    def time_decode(self, family, size):
        for _ in range(self.rounds):
            decode_value(self.frames)

    def time_payload(self, family, size):
        for _ in range(self.rounds):
            decode_payload(encode_payload(self.value))

    def track_overhead(self, family, size):
        """Bytes sent beyond those of pickle itself."""
        return encode_value(self.value).nbytes - len(pickle.dumps(self.value, 5))

    track_overhead.unit = "bytes"


class Sizes:
    """The estimate of an object's size, made for every result."""

    params = (list(FAMILIES),)
    param_names = ("family",)

    def setup(self, family):
        self.value = value(family, 100_000)

    def time_sizeof(self, family):
        for _ in range(_MANY):
            sizeof(self.value)


class Calls:
    """What one task's function and arguments cost at both ends."""

    def setup(self):
        self.args, self.kwargs = (Ref(0), 17, "name", [Ref(1), 2]), {"scale": 2.5}
        self.call = dumps_call(self.args, self.kwargs)
        self.code = dumps_code(operator.add)

    def time_dumps_call(self):
        for _ in range(_MANY):
            dumps_call(self.args, self.kwargs)

    def time_loads_call(self):
        for _ in range(_MANY):
            loads_call(self.call)

    def time_substitute(self):
        for _ in range(_MANY):
            substitute(self.args, self.kwargs, (1, 2))

    def time_code(self):
        for _ in range(_MANY):
            loads_code(dumps_code(operator.add))

    def time_lambda(self):
        offset = 3
        for _ in range(20):
            dumps_code(lambda x: x + offset)

    def track_call_bytes(self):
        return len(self.call)

    track_call_bytes.unit = "bytes"


class Bundles:
    """Graph tasks pickled together, so that what they share is pickled once."""

    def setup(self):
        shared = {"columns": ["a", "b", "c"], "how": "left"}
        self.entries = Entries([(FLAT, operator.add, (("part", i), shared)) for i in range(64)])
        self.keys = [f"add-{i}" for i in range(64)]
        self.blob = dumps_bundle(self.entries, self.keys)

    def time_dumps(self):
        for _ in range(50):
            dumps_bundle(self.entries, self.keys)

    def time_loads(self):
        for _ in range(50):
            loads_code(self.blob)

    def track_bytes(self):
        return len(self.blob) / len(self.keys)

    track_bytes.unit = "bytes/task"


class Errors:
    """An exception with its cause and traceback, as it comes home from a task."""

    params = ([1, 50],)
    param_names = ("depth",)

    def setup(self, depth):
        self.error = _failure(depth)
        self.record = encode_error(self.error)

    def time_encode(self, depth):
        for _ in range(20):
            encode_error(self.error)

    def time_decode(self, depth):
        for _ in range(20):
            decode_error(self.record)

    def track_bytes(self, depth):
        return sum(map(len, self.record))

    track_bytes.unit = "bytes"


class Messages:
    """Batches of the control plane, by what they carry; 1,000 tasks each."""

    params = (["UpdateGraph", "ComputeTasks", "TasksFinished"],)
    param_names = ("message",)

    def setup(self, message):
        self.batch = [_messages()[message]]
        self.data = encode(self.batch)

    def time_encode(self, message):
        for _ in range(10):
            encode(self.batch)

    def time_decode(self, message):
        for _ in range(10):
            decode(self.data)

    def track_bytes(self, message):
        return len(self.data) / 1_000

    track_bytes.unit = "bytes/task"


class Instructions(callgrind.Counted):
    """Instructions per small message, and per small value, by valgrind's callgrind."""

    params = (["messages", "values"],)
    param_names = ("what",)

    def track_encode(self, counted, what):
        return counted[f"encode {what}"]

    track_encode.unit = "instructions each"

    def track_decode(self, counted, what):
        return counted[f"decode {what}"]

    track_decode.unit = "instructions each"


class Segments:
    """A value written to a segment of shared memory and mapped again."""

    params = ([100_000, 10_000_000],)
    param_names = ("size",)

    def setup(self, size):
        self.frames = encode_value(value("numpy", size)).frames

    def time_write_and_map(self, size):
        with Segment.write(self.frames) as segment:
            decode_value(Segment.frames(segment.fd, segment.layout))


def _failure(depth):
    """An exception raised so deep, with a cause."""

    def fall(left):
        if left:
            fall(left - 1)
        try:
            {}["missing"]
        except KeyError as exc:
            raise ValueError("no such thing") from exc

    try:
        fall(depth)
    except ValueError as exc:
        return exc


def _messages():
    """One message of each kind that speaks of many tasks."""
    update = message_of(graph("map", 1_000))
    cluster = ZeroCluster(workers=1, nthreads=1_000)
    cluster.load(update)
    placement.run(cluster.model, cluster.outbox, 1.0)
    ((_, mail),) = cluster.outbox.drain_workers()
    found = {type(message).__name__: message for message in mail}
    return {"UpdateGraph": update, "TasksFinished": cluster.answers(mail)[0], **found}
