"""Instructions that a piece of work costs, counted by valgrind's callgrind: a figure that no busy machine disturbs.

One interpreter runs under valgrind and counts only while it is inside ``PyRun_SimpleString``, through which each job
is run once it has been run before; valgrind writes down what came together after each. Of the scheduler's brain the
simulated workers' answers are part, the same ones each time. The suites share one such run, by ``Counted``.

Contents: JOBS, Counted, available, instructions.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import values
from benchmarks.crowd import Crowd
from benchmarks.graphs import SHAPES, fan, graph, message_of
from benchmarks.zero_worker import ZeroCluster
from gnomon.profiler.sampling.sampler import Sampler
from gnomon.runtime.messages import Request, decode, encode
from gnomon.runtime.protocol import decode_value, encode_value

__all__ = ["JOBS", "Counted", "available", "instructions"]

_TASKS = 500
_INPUTS = 50
_ITEMS = 200
_TICKS = 300
_FRAMING = "gnomon.runtime.comm.framing"
_ROOT = Path(__file__).parents[1]
_GATE = "PyRun_SimpleStringFlags"


class Job(NamedTuple):
    """Work to be counted: so many things, done by calling ``run`` once, and then ``close``."""

    things: int
    run: Callable[[], object]
    close: Callable[[], object] = lambda: None


def _brain(shape: str) -> Callable[[], Job]:
    """A graph of a shape, arrival and release included; per task."""
    message = message_of(graph(shape, _TASKS))

    def prepare() -> Job:
        cluster = ZeroCluster(10)
        return Job(len(message.keys), lambda: cluster.run(message))

    return prepare


def _placement() -> Job:
    """One pass that finds a worker for each of many tasks, all ready at once, by what these hold; per task."""
    message = message_of(fan(_INPUTS, _TASKS))
    cluster = ZeroCluster(10, nthreads=_INPUTS // 10)
    cluster.load(message)
    cluster.place()
    cluster.take(cluster.deliver()[2])
    if len(cluster.model.ready) != _TASKS:
        raise AssertionError(f"{len(cluster.model.ready)} tasks are ready")
    return Job(_TASKS, cluster.place)


def _hand_out() -> Job:
    """One pass that hands a queue out to workers that are all idle; per task."""
    cluster = ZeroCluster(_TASKS)
    cluster.load(message_of(graph("map", _TASKS)))
    return Job(_TASKS, cluster.place)


def _small() -> list[list[Request]]:
    return [[Request(i, "small", {"number": i})] for i in range(_ITEMS)]


def _read() -> Job:
    """Small frames cut from a stream; per frame."""
    framing = importlib.import_module(_FRAMING)
    stream = b"".join(_framed(framing, batch) for batch in _small())
    reader = framing.FrameReader(framing.USUAL_BUFFER)
    reader.usual = framing.USUAL_BUFFER

    def run() -> None:
        at = 0
        while at < len(stream):
            buffer = reader.get_buffer()
            taken = stream[at : at + len(buffer)]
            buffer[: len(taken)] = taken
            reader.advance(len(taken))
            at += len(taken)
            while reader.next_frame() is not None:
                pass

    return Job(_ITEMS, run)


def _write() -> Job:
    """Small messages as frames; per frame."""
    framing, batches = importlib.import_module(_FRAMING), _small()
    return Job(_ITEMS, lambda: [_framed(framing, batch) for batch in batches])


def _framed(framing: Any, batch: list[Request]) -> bytes:
    """A small batch on the wire."""
    (body,) = framing.encode_batches(batch, framing.USUAL_BUFFER)
    return bytes(framing.prefix(body) + body)


def _encode_messages() -> Job:
    """A batch of small messages; per message."""
    messages = [message for batch in _small() for message in batch]
    return Job(_ITEMS, lambda: encode(messages))


def _decode_messages() -> Job:
    """The same back; per message."""
    data = encode([message for batch in _small() for message in batch])
    return Job(_ITEMS, lambda: decode(data))


def _encode_values() -> Job:
    """Small values of plain objects as frames; per value."""
    items = [values.value("nested", 200) for _ in range(_ITEMS)]
    return Job(_ITEMS, lambda: [encode_value(item) for item in items])


def _decode_values() -> Job:
    """The same back; per value."""
    frames = [[bytes(frame) for frame in encode_value(values.value("nested", 200)).frames] for _ in range(_ITEMS)]
    return Job(_ITEMS, lambda: [decode_value(one) for one in frames])


class _Stepped(Sampler):
    """A sampler that ticks when told to: its thread and clock have no say in what a tick costs.

    It reaches behind the sampler's public face, for there is no other way to have ticks without time.
    """

    def _run(self) -> None:
        """No tick by itself."""

    def step(self, ticks: int) -> bool:
        """Tick so many times; whether a thread moved meanwhile."""
        pulse = self._pulse
        pulse.look.changed = False
        for _ in range(ticks):
            at = pulse.cadence.deadline
            with pulse:
                if pulse.tick(at, 0):
                    self._attend(at)
        return pulse.look.changed


def _ticks() -> Job:
    """A sampler's looks at threads that wait, and what it notes of them; per tick."""
    crowd, sampler = Crowd(8, 30), _Stepped(budget=1.0)
    for ident in crowd.idents:
        sampler.watch_thread(ident)
    sampler.start()

    def close() -> None:
        sampler.stop()
        crowd.close()

    while sampler.step(1):
        time.sleep(0.001)  # until all threads stand still
    return Job(_TICKS, lambda: sampler.step(_TICKS), close)


#: What is counted, by name; each prepares a job anew.
JOBS: dict[str, Callable[[], Job]] = {
    **{shape: _brain(shape) for shape in SHAPES},
    "place ready": _placement,
    "place queued": _hand_out,
    "read frames": _read,
    "write frames": _write,
    "encode messages": _encode_messages,
    "decode messages": _decode_messages,
    "encode values": _encode_values,
    "decode values": _decode_values,
    "sampler's ticks": _ticks,
}


def available() -> bool:
    """Whether valgrind is installed."""
    return shutil.which("valgrind") is not None


class Counted:
    """What suites of instructions derive from: all jobs are counted in one run, whose figures they share.

    asv fills a cache once for each function that does it, whoever's it is. Skipped without valgrind.
    """

    timeout = 300

    def setup_cache(self) -> dict[str, float]:
        """Instructions of all jobs; empty without valgrind."""
        return instructions(list(JOBS)) if available() else {}

    setup_cache.timeout = 300  # type: ignore[attr-defined]

    def setup(self, counted: dict[str, float], *params: object) -> None:
        """Skip where nothing was counted."""
        if not counted:
            raise NotImplementedError("valgrind is not installed")


def instructions(names: Sequence[str]) -> dict[str, float]:
    """Instructions per thing of each of these jobs.

    Raises RuntimeError where valgrind or the program under it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        tool += [f"--toggle-collect={_GATE}", f"--dump-after={_GATE}"]
        program = [sys.executable, "-m", "benchmarks.callgrind", *names]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            [*tool, *program], check=False, cwd=_ROOT, env=environment, capture_output=True, text=True
        )
        counts = [_total(Path(folder, f"out.{i + 1}")) for i in range(len(names))]
    if done.returncode or not all(counts):
        raise RuntimeError(f"callgrind failed ({done.returncode}): {done.stderr[-2000:]}")
    things = [int(line) for line in done.stdout.split()]
    return {name: n / each for name, n, each in zip(names, counts, things, strict=True)}


def _total(dump: Path) -> int:
    """Instructions in one of callgrind's files; 0 if there is none."""
    if not dump.exists():
        return 0
    found = re.search(r"^(?:totals|summary): (\d+)", dump.read_text(), re.MULTILINE)
    return int(found[1]) if found else 0


def main(names: Sequence[str]) -> None:
    """What is counted: each job once to get warm, and once through the gate; prints how many things each has done."""
    _leave_out_package(_FRAMING)
    gc.disable()  # else it would run in one job or in another, by what came before
    for name in names:
        warm = JOBS[name]()
        warm.run()
        warm.close()
        _waiting.append(JOBS[name]())
        gc.collect()
        ctypes.pythonapi.PyRun_SimpleString(b"import __main__; __main__.run_waiting()")
        job = _waiting.pop()
        sys.stdout.write(f"{job.things}\n")
        job.close()


def _leave_out_package(module: str) -> None:
    """Let a module be imported without the rest of its package: under valgrind an import takes fifty times as long."""
    package = module.rpartition(".")[0]
    found = importlib.util.find_spec(package)
    if found is not None and package not in sys.modules:
        bare = types.ModuleType(package)
        bare.__path__ = list(found.submodule_search_locations or ())
        sys.modules[package] = bare


#: The job that is to be run through the gate.
_waiting: list[Job] = []


def run_waiting() -> None:
    """Called by way of the gate."""
    _waiting[0].run()


if __name__ == "__main__":
    main(sys.argv[1:])
