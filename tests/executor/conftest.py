"""A driver for executors of both kinds, and a check that no test leaves anything behind."""

import asyncio
import itertools
import os
import sys
import threading
from array import array
from pathlib import Path

import psutil
import pytest

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)

from gnomon.runtime.messages import (  # noqa: E402
    CancelTasks,
    Codes,
    DropValues,
    EncodeValues,
    ExecutorReady,
    Failure,
    PutSegments,
    PutValues,
    Request,
    Response,
    RunTasks,
    TasksErred,
    TasksFinished,
    TasksReturned,
    TasksSeceded,
    ValueEncoded,
    ValueLost,
)
from gnomon.runtime.protocol import (  # noqa: E402
    Segment,
    decode_error,
    decode_value,
    dumps_call,
    dumps_code,
    encode_value,
)
from gnomon.runtime.worker.executor.interface import ExecutorSettings  # noqa: E402
from gnomon.runtime.worker.executor.process import ProcessExecutor  # noqa: E402
from gnomon.runtime.worker.executor.thread import ThreadExecutor  # noqa: E402

DEADLINE = 30.0
#: Expected durations, for tests that want outcomes held back, or sent at once.
SHORT, LONG, UNKNOWN = 1e-5, 10.0, -1.0


class Driver:
    """An executor, and all that it said."""

    def __init__(self, kind, *, by_reference=False, **settings):
        settings.setdefault("sys_path", (HERE,))
        self.settings = ExecutorSettings(**settings)
        self.kind = kind
        self.finished, self.errors, self.attempts, self.timings, self.threads = {}, {}, {}, {}, {}
        self.encoded, self.lost_values, self.replies = {}, {}, {}
        self.type_names, self.encoding_seconds = {}, {}
        self.seceded, self.returned, self.losses, self.failed = [], [], [], []
        self.ready = 0
        self.order = []
        self.batches = []
        self._ids = itertools.count(1)
        self._codes = {}
        self._news = asyncio.Event()
        if kind == "process":
            self.executor = ProcessExecutor(
                self.settings, on_messages=self._heard, on_lost=self._lost, on_failed=self._failed
            )
        else:
            self.executor = ThreadExecutor(self.settings, on_messages=self._heard, by_reference=by_reference)

    async def __aenter__(self):
        await self.executor.start()
        await self.until(lambda: self.ready)
        return self

    async def __aexit__(self, *exc):
        await self.executor.close(5.0 if exc[0] is None else 0.0)
        for answer in self.encoded.values():
            if isinstance(answer, Segment):
                answer.close()

    # ---- what it said

    def _heard(self, messages, fds):
        fds = iter(fds)
        self.batches.append(messages)
        for m in messages:
            match m:
                case TasksFinished():
                    times = array("d", m.timings)
                    for i, task_id in enumerate(m.task_ids):
                        self.finished[task_id] = None if m.values[i] is None else decode_value([m.values[i]])
                        self.note(task_id, m.attempts[i], times[4 * i : 4 * i + 4], m.threads[i])
                case TasksErred():
                    times = array("d", m.timings)
                    for i, task_id in enumerate(m.task_ids):
                        self.errors[task_id] = m.errors[i]
                        self.note(task_id, m.attempts[i], times[4 * i : 4 * i + 4], m.threads[i])
                case TasksSeceded():
                    self.seceded.extend(zip(m.task_ids, m.attempts, strict=True))
                case TasksReturned():
                    self.returned.append(set(zip(m.task_ids, m.attempts, strict=True)))
                case ValueEncoded():
                    self.order.append(m.request_id)
                    self.type_names[m.request_id], self.encoding_seconds[m.request_id] = m.type_name, m.seconds
                    self.encoded[m.request_id] = Segment(next(fds), m.layout) if m.layout else m.value
                case ValueLost():
                    self.lost_values[m.request_id] = m.error
                case Response() | Failure():
                    self.replies[m.request_id] = m
                case ExecutorReady():
                    self.ready += 1
                case _:
                    raise AssertionError(m)
        assert not list(fds)
        self._news.set()

    def note(self, task_id, attempt, times, thread):
        self.order.append(task_id)
        self.attempts[task_id] = attempt
        self.timings[task_id] = list(times)
        self.threads[task_id] = thread

    def _lost(self, running, cause):
        self.losses.append((running, cause))
        self._codes.clear()
        self._news.set()

    def _failed(self, cause):
        self.failed.append(cause)
        self._news.set()

    async def until(self, state):
        """Wait until ``state()`` is true, looking whenever something was said, and now and then."""
        async with asyncio.timeout(DEADLINE):
            while not state():
                self._news.clear()
                try:
                    await asyncio.wait_for(self._news.wait(), 0.02)
                except TimeoutError:
                    pass

    # ---- what it is told

    def code(self, function):
        """Send code, once."""
        blob = function if isinstance(function, bytes) else dumps_code(function)
        if blob not in self._codes:
            self._codes[blob] = next(self._ids)
            self.executor.send([Codes((self._codes[blob],), (blob,))])
        return self._codes[blob]

    def row(self, function, *args, deps=(), expected=UNKNOWN, executor="", attempt=1, payload=None, **kwargs):
        task_id = next(self._ids)
        payload = dumps_call(args, kwargs) if payload is None else payload
        return task_id, attempt, f"key-{task_id}", self.code(function), payload, expected, deps, executor

    def run(self, rows):
        """Send rows in one message; their ids."""
        self.executor.send([RunTasks(*zip(*rows, strict=True))])
        return [row[0] for row in rows]

    def submit(self, function, *args, **kwargs):
        return self.run([self.row(function, *args, **kwargs)])[0]

    async def outcome(self, task_id):
        """The inline value, or the exception raised here."""
        await self.until(lambda: task_id in self.finished or task_id in self.errors)
        if task_id in self.errors:
            raise decode_error(self.errors[task_id])
        return self.finished[task_id]

    async def call(self, function, *args, **kwargs):
        return await self.outcome(self.submit(function, *args, **kwargs))

    def ask(self, task_id):
        """Ask for a value; the request's id."""
        request_id = next(self._ids)
        self.executor.send([EncodeValues((request_id,), (task_id,))])
        return request_id

    async def answer(self, request_id):
        """What an ``ask`` brought: the raw answer, or None with ``lost_values``."""
        await self.until(lambda: request_id in self.encoded or request_id in self.lost_values)
        return self.encoded.get(request_id)

    async def value(self, task_id):
        """A value by way of its encoding."""
        answer = await self.answer(self.ask(task_id))
        if isinstance(answer, Segment):
            with answer:
                return decode_value(Segment.frames(answer.fd, answer.layout))
        return decode_value([answer])

    def put(self, value, how="segment", type_names=()):
        """Put a value that came from elsewhere; its task id."""
        task_id = next(self._ids)
        if how == "segment":
            segment = Segment.write(encode_value(value).frames)
            self.executor.send([PutSegments((task_id,), (segment.layout,), type_names)], [os.dup(segment.fd)])
            segment.close()
        else:
            self.executor.send([PutValues((task_id,), (dumps_code(value),))])
        return task_id

    def drop(self, *task_ids):
        self.executor.send([DropValues(task_ids)])

    def cancel(self, *pairs):
        self.executor.send([CancelTasks(*zip(*pairs, strict=True))])

    async def request(self, function, *args, **more):
        request_id = next(self._ids)
        self.executor.send([Request(request_id, "run", {"code": dumps_code((function, args, {})), **more})])
        await self.until(lambda: request_id in self.replies)
        return self.replies[request_id]


@pytest.fixture
def driver():
    """Makes drivers."""
    return Driver


@pytest.fixture(params=["process", "thread"])
def kind(request):
    """Both kinds of executors."""
    return request.param


@pytest.fixture
def signals(tmp_path):
    """Names of files by which tests and tasks wait for each other."""
    names = itertools.count()
    return lambda: str(tmp_path / f"signal-{next(names)}")


def _state():
    fds = {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_open(fd)}
    children = {p.pid for p in psutil.Process().children(recursive=True)}
    return len(fds), set(threading.enumerate()), children, fds


def _is_open(fd):
    return os.path.lexists(f"/proc/self/fd/{fd}")


@pytest.fixture(autouse=True)
def no_leaks():
    """No descriptor, thread or process outlives its test."""
    before = _state()
    yield
    for _ in range(200):  # threads need a moment between their last word and their end
        after = _state()
        if after[0] <= before[0] and after[1] <= before[1] and after[2] <= before[2]:
            return
        threading.Event().wait(0.01)
    assert after[:3] == before[:3], after[3]
