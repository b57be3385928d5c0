"""What a report costs: recordings from the scheduler's telemetry, the time account, the page; and their sizes."""

from __future__ import annotations

import random
from array import array

from benchmarks.sizes import and_large
from gnomon.reports import Recording
from gnomon.reports.account import account
from gnomon.reports.collect import collect
from gnomon.reports.page import build_page
from gnomon.runtime.core import RunColumns
from gnomon.runtime.messages import TransfersDone
from gnomon.runtime.scheduler.telemetry import Telemetry

_START = 1_790_000_000.0
_PREFIXES = ("read", "parse", "count", "merge", "sum", "split")
_WORKERS, _THREADS = 8, 2


class Reports:
    """From the telemetry of so many tasks to a page."""

    params = (and_large([1_000, 10_000], 100_000),)
    param_names = ("tasks",)
    timeout = 120

    def setup(self, tasks):
        self.telemetry, self.mark = _telemetry(tasks)
        self.recording = _recording(self.telemetry, self.mark)
        if len(self.recording.runs.keys) != tasks:
            raise AssertionError(f"the recording holds {len(self.recording.runs.keys)} tasks")
        self.data = self.recording.dumps()

    def time_collect(self, tasks):
        _recording(self.telemetry, self.mark)

    def time_account(self, tasks):
        account(self.recording)

    def time_page(self, tasks):
        build_page(self.recording)

    def time_dumps(self, tasks):
        self.recording.dumps()

    def time_loads(self, tasks):
        Recording.loads(self.data)

    def track_page_bytes(self, tasks):
        return len(build_page(self.recording).encode())

    track_page_bytes.unit = "bytes"

    def track_recording_bytes(self, tasks):
        return len(self.data) / tasks

    track_recording_bytes.unit = "bytes/task"


class ManyWorkers:
    """The account of 2,000 tasks on so many workers: what a live view makes again each second."""

    params = ([10, 1_000],)
    param_names = ("workers",)

    def setup(self, workers):
        self.recording = _recording(*_telemetry(2_000, workers))
        if len(self.recording.workers) != workers:
            raise AssertionError(f"the recording has {len(self.recording.workers)} workers")

    def time_account(self, workers):
        account(self.recording)


class Records:
    """What the scheduler pays per task for its telemetry: 10,000 tasks in turns of 100."""

    def setup(self):
        self.telemetry = _empty()
        self.turns = list(_turns(10_000, 100))

    def time_append(self):
        for columns in self.turns:
            self.telemetry.append_runs(columns)


def _empty(workers=_WORKERS):
    """The telemetry of a cluster that has done nothing yet."""
    telemetry = Telemetry(length=200_000)
    for i in range(1, workers + 1):
        telemetry.worker_joined(
            i, name=f"worker-{i}", address=f"tcp://10.0.0.{i}:1", nthreads=_THREADS, host="host", now=_START
        )
    return telemetry


def _turns(tasks, turn, workers=_WORKERS):
    """Runs as the brain records them, so many per loop turn; each thread is busy almost all the time."""
    chance = random.Random(7)
    clocks = {(worker, thread): _START + 0.1 for worker in range(1, workers + 1) for thread in range(_THREADS)}
    lanes = list(clocks)
    for first in range(0, tasks, turn):
        chosen = [lanes[chance.randrange(len(lanes))] for _ in range(min(turn, tasks - first))]
        prefixes = [_PREFIXES[i * len(_PREFIXES) // tasks] for i in range(first, first + len(chosen))]
        timings = array("d")
        for lane in chosen:
            begin = clocks[lane] + chance.random() * 1e-3
            compute = begin + 2e-4
            stop = compute + chance.expovariate(100)
            clocks[lane] = stop + 1e-4
            timings.extend((begin, compute, stop, clocks[lane]))
        n = len(chosen)
        yield RunColumns(
            [f"{prefix}-{chance.getrandbits(64):016x}" for prefix in prefixes],
            prefixes,
            array("q", [worker for worker, _ in chosen]),
            array("q", [thread for _, thread in chosen]),
            timings,
            array("q", [chance.randrange(10**6) for _ in chosen]),
            array("b", [1] * n),
        )


def _telemetry(tasks, workers=_WORKERS):
    """The telemetry of a cluster that ran so many tasks, and its mark from before."""
    telemetry = _empty(workers)
    mark = telemetry.mark(_START)
    ids = {f"tcp://10.0.0.{i}:1": i for i in range(1, workers + 1)}
    for number, columns in enumerate(_turns(tasks, 100, workers)):
        telemetry.append_runs(columns)
        begin = _START + 0.1 + number / 100
        moved = TransfersDone(("tcp://10.0.0.1:1",), (50_000,), (begin,), (begin + 1e-3,), ("tcp",))
        telemetry.append_transfers(2, moved, ids)
    return telemetry, mark


def _recording(telemetry, mark):
    """The recording since a mark, as a client collects it."""
    conversation, answer = collect(mark), None
    while True:
        try:
            ask = conversation.send(answer)
        except StopIteration as stop:
            return stop.value
        if ask.method == "telemetry_mark":
            answer = telemetry.mark(_START + 10_000.0)
        elif ask.method != "telemetry":
            answer = {}  # nobody was profiled
        else:
            answer = telemetry.since(ask.arguments["since"], ask.arguments["limit"])
