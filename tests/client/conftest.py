"""A scripted scheduler with a data server: it speaks the real messages over real comms, and runs tasks at once."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from gnomon.runtime.client import Client
from gnomon.runtime.comm import Handlers, Security, listen
from gnomon.runtime.messages import (
    ByReference,
    ErrorRecord,
    Failure,
    FuturesCancelled,
    FuturesDone,
    FuturesErred,
    FuturesPending,
    Response,
)
from gnomon.runtime.protocol import (
    Bundle,
    Segment,
    decode_value,
    encode_error,
    encode_value,
    loads_call,
    loads_code,
    loads_index,
    substitute,
)
from gnomon.runtime.transfer import DataServer, host_identity

DEADLINE = 20
INLINE = (int, float, bool, type(None), str, bytes, complex)


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for a state, not for a time."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "the state did not come"
        time.sleep(0.002)


class Task:
    def __init__(self, number, key, code, payload, needs, options):
        self.id, self.key, self.code, self.payload, self.needs, self.options = (
            number,
            key,
            code,
            payload,
            needs,
            options,
        )
        self.attempt = 1
        self.wanted = set()
        self.value = None
        self.inline = None
        self.error = None
        self.state = "waiting"


class FakeScheduler:
    """Runs tasks as they come, in this process, unless ``hold`` is set: then they wait for ``let_go``."""

    def __init__(self, protocol: str = "tcp", security: Security | None = None) -> None:
        self.inproc = protocol == "inproc"
        self.security = security or Security(secret="a secret of these tests, long enough")
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="fake-scheduler")
        self.thread.start()
        self.messages: list[object] = []
        self.tasks: dict[int, Task] = {}
        self.by_key: dict[object, Task] = {}
        self.futures: dict[int, Task] = {}
        self.codes: dict[int, object] = {}
        self.forgotten: set[int] = set()
        self.hold = False
        self.missing: list[dict] = []
        self.workers = 1
        self.answers: dict[str, Callable] = {}
        self.lost_values: set[object] = set()
        self.asked: list[str] = []
        self._waiting: list[tuple[int, int]] = []
        self.comm = None
        self.joined = threading.Event()
        where = "inproc://" if self.inproc else "tcp://127.0.0.1:0"
        self.listener = self.run(listen(where, self._on_comm, role="scheduler", security=self.security))
        self.data = DataServer(self, address=where, security=self.security, host_id=host_identity())
        self.scheduler_address = self.listener.contact_address

    caught = Exception

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(DEADLINE)

    def do(self, call, *args):
        async def doing():
            return call(*args)

        return self.run(doing())

    def close(self):
        async def closing():
            self.listener.close()
            if self.comm is not None:
                self.comm.close()
                await self.comm.wait_closed()
            await self.listener.wait_closed()

        self.run(closing())
        self.data.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(DEADLINE)
        self.loop.close()

    def vanish(self):
        """As if the process were killed."""
        self.joined.wait(DEADLINE)
        self.do(self.comm.abort, "killed")

    # The data server's source

    def prepare(self, wanted):
        self.wanted = len(wanted)

    def told(self):
        return ("",) * self.wanted, 0.0

    def get(self, task_id, attempt, timeout):
        task = self.tasks.get(task_id)
        if task is None or task.attempt != attempt or task.key in self.lost_values or task.state != "memory":
            return None
        if self.inproc:
            return ByReference(task.value)
        encoded = encode_value(task.value)
        return (
            Segment.write(encoded.frames)
            if encoded.nbytes > 1 << 16 or len(encoded.frames) > 1
            else bytes(encoded.frames[0])
        )

    def put(self, task_id, attempt, value):
        if isinstance(value, ByReference):
            decoded = value.value
        elif isinstance(value, Segment):
            decoded = decode_value(Segment.frames(value.fd, value.layout))
        else:
            decoded = decode_value((value,))
        self.loop.call_soon_threadsafe(self._finish, self.tasks[task_id], decoded)

    # Messages

    def _on_comm(self, comm):
        self.comm = comm
        self.joined.set()
        return Handlers(self._on_messages, lambda comm, exc: None)

    def _on_messages(self, comm, messages):
        for message in messages:
            self.messages.append(message)
            getattr(self, f"_on_{type(message).__name__}")(message)

    def of(self, kind):
        return [message for message in self.messages if type(message) is kind]

    def _on_UpdateGraph(self, graph):
        columns = {len(graph.keys), len(graph.task_codes), len(graph.payloads), len(graph.future_ids)}
        assert len(columns) == 1
        for number, blob in graph.codes:
            assert number not in self.codes, "a code came twice"
            self.codes[number] = loads_code(blob)
        rows = []
        for row, key in enumerate(graph.keys):
            assert graph.task_codes[row] in self.codes
            assert graph.task_codes[row] not in self.forgotten
            options = graph.options[graph.option_rows[row] if graph.option_rows else 0]
            task = self.by_key.get(key)
            if task is None:
                task = Task(
                    len(self.tasks) + 1, key, self.codes[graph.task_codes[row]], graph.payloads[row], None, options
                )
                self.tasks[task.id] = self.by_key[key] = task
            rows.append(task)
        for row, task in enumerate(rows):
            if task.needs is None:
                needs = graph.dependencies[row] if graph.dependencies else ()
                task.needs = [rows[i] if i >= 0 else self.futures[graph.externals[-1 - i]] for i in needs]
            if graph.future_ids[row]:
                self.futures[graph.future_ids[row]] = task
                task.wanted.add(graph.future_ids[row])
                if task.state in ("memory", "erred"):
                    self._tell(task)
        self._run_ready()

    def _run_ready(self):
        again = not self.hold
        while again:
            again = False
            for task in list(self.tasks.values()):
                if task.state == "waiting" and task.code is not None and self._step(task):
                    again = True

    def _step(self, task):
        for need in task.needs:
            if need.state == "erred":
                task.state, task.error = "erred", need.error
                self._tell(task)
                return True
            if need.state != "memory":
                return False
        self._compute(task)
        return True

    def _compute(self, task):
        values = [need.value for need in task.needs]
        try:
            if isinstance(task.code, Bundle):
                value = task.code[loads_index(task.payload)].run(values)
            else:
                args, kwargs = substitute(*loads_call(task.payload), values)
                value = task.code(*args, **kwargs)
        except self.caught as exc:
            task.state, task.error = "erred", encode_error(exc)
            self._tell(task)
        else:
            self._finish(task, value)

    def _finish(self, task, value):
        task.value, task.state = value, "memory"
        if type(value) in INLINE:
            frames = encode_value(value).frames
            if len(frames) == 1 and len(frames[0]) <= 512:
                task.inline = bytes(frames[0])
        self._tell(task)

    def _tell(self, task):
        ids = tuple(task.wanted)
        if not ids:
            return
        if task.state == "memory":
            self.comm.send([FuturesDone(ids, (8,) * len(ids), (task.inline,) * len(ids))])
        else:
            self.comm.send([FuturesErred(ids, (0,) * len(ids), (task.key,) * len(ids), (task.error,))])

    def let_go(self):
        """Run what was held."""

        def go():
            self.hold = False
            self._run_ready()

        self.do(go)

    def send(self, *messages):
        self.joined.wait(DEADLINE)
        self.do(self.comm.send, list(messages))

    def _on_ReleaseFutures(self, message):
        for number in message.future_ids:
            task = self.futures.pop(number, None)
            if task is not None:
                task.wanted.discard(number)
                if not task.wanted and self.by_key.get(task.key) is task and not self._needed(task):
                    del self.by_key[task.key]

    def _needed(self, task):
        return self.hold and any(task in other.needs for other in self.by_key.values() if other.state == "waiting")

    def _on_CancelFutures(self, message):
        for number in message.future_ids:
            task = self.futures.pop(number, None)
            if task is not None:
                task.wanted.discard(number)
                task.state = "cancelled" if task.state == "waiting" else task.state
                self.by_key.pop(task.key, None)

    def _on_RetryFutures(self, message):
        for number in message.future_ids:
            task = self.futures[number]
            task.state, task.error = "waiting", None
        self._run_ready()

    def _on_WantKeys(self, message):
        for key, number in zip(message.keys, message.future_ids, strict=True):
            task = self.by_key.get(key)
            if task is None:
                self.comm.send([FuturesCancelled((number,), "unknown", "the scheduler knows no such key")])
                continue
            self.futures[number] = task
            task.wanted.add(number)
            if task.state in ("memory", "erred"):
                self._tell(task)

    def _on_ForgetCodes(self, message):
        self.forgotten.update(message.codes)

    def _on_ScatterData(self, message):
        rows = []
        for key, number, value in zip(message.keys, message.future_ids, message.values, strict=True):
            task = Task(len(self.tasks) + 1, key, None, b"", [], None)
            self.tasks[task.id] = self.by_key[key] = self.futures[number] = task
            task.wanted.add(number)
            rows.append((task.id, 1, () if value is not None else (self.data.contact_address,)))
            if value is not None:
                self._finish(task, decode_value((value,)))
        self.comm.send([Response(message.request_id, tuple(rows))])

    def _on_Request(self, request):
        self.asked.append(request.method)
        try:
            answer = self.answers.get(request.method) or getattr(self, f"answer_{request.method}")
            if request.method == "wait_for_workers" and request.arguments["n"] > self.workers:
                return
            result = answer(**request.arguments)
        except Exception as exc:
            self.comm.send([Failure(request.request_id, ErrorRecord(type(exc).__name__, str(exc)))])
        else:
            self.comm.send([Response(request.request_id, result)])

    def answer_locate(self, future_ids):
        rows = []
        for number in future_ids:
            task = self.futures.get(number)
            if task is None or task.state != "memory":
                rows.append((number, 0, 0, (), None))
            else:
                rows.append((number, task.id, task.attempt, (self.data.contact_address,), task.inline))
        return tuple(rows)

    def answer_missing(self, task_ids, attempts, holder, lost):
        """Compute what is missing again, as an attempt of its own."""
        self.missing.append({"task_ids": task_ids, "holder": holder, "lost": lost})
        for number in task_ids:
            task = self.tasks[number]
            task.attempt += 1
            task.state = "waiting"
            self.lost_values.discard(task.key)
            self.comm.send([FuturesPending(tuple(task.wanted))])
        self._run_ready()

    def answer_wait_for_workers(self, n):
        return self.workers

    def answer_scheduler_info(self):
        return {"type": "Scheduler", "workers": {self.data.contact_address: {"nthreads": 1, "name": "one"}}}

    def answer_who_has(self, keys=None):
        chosen = self.by_key if keys is None else keys
        return tuple((key, (self.data.contact_address,)) for key in chosen)

    def answer_has_what(self, workers=None):
        return {self.data.contact_address: tuple(self.by_key)}

    def answer_nthreads(self, workers=None):
        return {self.data.contact_address: 1}

    def answer_processing(self, workers=None):
        return {self.data.contact_address: ()}

    def answer_run(self, code, workers=None, wait=True):
        function, args, kwargs = loads_code(code)
        try:
            value = function(*args, **kwargs)
        except Exception as exc:
            return {self.data.contact_address: ("error", tuple(encode_error(exc)))}
        return {self.data.contact_address: ("ok", bytes(encode_value(value).frames[0]))}

    def answer_versions(self):
        return {"python": "3"}

    def answer_shutdown(self):
        return None


@pytest.fixture
def scheduler():
    fake = FakeScheduler()
    yield fake
    fake.close()


@pytest.fixture
def client(scheduler):
    with Client(scheduler.scheduler_address, security=scheduler.security, timeout=DEADLINE) as client:
        yield client


@pytest.fixture
def inproc_scheduler():
    fake = FakeScheduler("inproc")
    yield fake
    fake.close()


@pytest.fixture
def make_scheduler():
    made = []

    def make(*args, **kwargs):
        made.append(FakeScheduler(*args, **kwargs))
        return made[-1]

    yield make
    for fake in made:
        fake.close()


@pytest.fixture
def until():
    return wait_until


@pytest.fixture(autouse=True)
def no_thread_is_left():
    """Every thread of a client is gone when it is closed."""
    before = set(threading.enumerate())
    yield
    wait_until(lambda: not [t for t in set(threading.enumerate()) - before if t.name.startswith(("gnomon", "fake"))])
