"""The instruments: ticks of the sampler by threads and depth, regions, the system monitor, a program's loss."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from benchmarks import callgrind
from benchmarks.crowd import Crowd, work
from gnomon.profiler import Sampler, Session, region
from gnomon.profiler.machine.system import SystemMonitor
from gnomon.profiler.marks.regions import enter, leave, slot
from gnomon.profiler.sessions.session import Bucket, Function, Nodes, Samples, Thread

_spent = 0.0


def ticks_seconds():
    """CPU seconds that samplers used for the ticks that were asked for; a timer for asv."""
    return _spent


class Ticks:
    """What a sampler uses for a hundred ticks, as it counts its own CPU: of threads that wait, or one that works."""

    params = (["1 waiting", "8 waiting", "64 waiting", "1 working"], [10, 100])
    param_names = ("threads", "depth")
    timer = staticmethod(ticks_seconds)
    warmup_time = 0

    def setup(self, threads, depth):
        count, _, kind = threads.partition(" ")
        self.crowd = Crowd(int(count), depth, working=kind == "working")
        self.sampler = Sampler(interval=0.001, budget=1.0)
        for ident in self.crowd.idents:
            self.sampler.watch_thread(ident)
        self.sampler.start()
        self._tick(10)

    def teardown(self, threads, depth):
        self.sampler.stop()
        self.crowd.close()

    def _tick(self, count):
        """Wait for some ticks; CPU seconds and ticks."""
        begin = self.sampler.statistics()
        while (now := self.sampler.statistics()).ticks < begin.ticks + count:
            time.sleep(0.005)
        return now.cpu - begin.cpu, now.ticks - begin.ticks

    def time_hundred(self, threads, depth):
        global _spent
        cpu, ticks = self._tick(100)
        _spent += cpu / ticks * 100


class Instructions(callgrind.Counted):
    """Instructions of a sampler's tick, of threads that wait, by valgrind's callgrind."""

    params = (["8 waiting"],)
    param_names = ("threads",)

    def track_tick(self, counted, threads):
        return counted["sampler's ticks"]

    track_tick.unit = "instructions/tick"


class Loss:
    """A program of pure Python, with and without a sampler beside it."""

    params = (["alone", "sampled", "sampled 1 kHz"],)
    param_names = ("how",)

    def setup(self, how):
        self.sampler = None
        if how != "alone":
            self.sampler = Sampler(interval=0.001, budget=1.0) if how.endswith("kHz") else Sampler()
            self.sampler.__enter__()

    def teardown(self, how):
        if self.sampler is not None:
            self.sampler.stop()

    def time_program(self, how):
        for i in range(60):
            work(8, i)


class Sessions:
    """What was sampled, made ready to look at: assembled, merged, packed."""

    params = ([1_000, 20_000],)
    param_names = ("nodes",)

    def setup(self, nodes):
        self.session = _session(nodes)
        self.others = [_session(nodes) for _ in range(4)]

    def time_merge(self, nodes):
        Session.merge(self.others)

    def time_total_seconds(self, nodes):
        self.session.total_seconds()

    def time_pack_and_unpack(self, nodes):
        Session.from_plain(self.session.to_plain())


class Regions:
    """Entering and leaving a region 10,000 times, while a sampler counts them and while none does."""

    params = (["watched", "unwatched"],)
    param_names = ("by",)

    def setup(self, by):
        self.sampler = Sampler(interval=1.0)
        if by == "watched":
            self.sampler.__enter__()
        self.number = slot("benchmark")

    def teardown(self, by):
        self.sampler.stop()

    def time_with(self, by):
        parse = region("benchmark")
        for _ in range(10_000):
            with parse:
                pass

    def time_enter_and_leave(self, by):
        number = self.number
        for _ in range(10_000):
            enter(number)
            leave(number)


class System:
    """A row of the system monitor, without and with children."""

    params = ([0, 4],)
    param_names = ("children",)

    def setup(self, children):
        program = [sys.executable, "-S", "-c", "import sys; sys.stdin.read()"]
        self.children = [subprocess.Popen(program, stdin=subprocess.PIPE) for _ in range(children)]
        self.monitor = SystemMonitor(children=bool(children), children_every=0.0 if children else 2.0)

    def teardown(self, children):
        for child in self.children:
            child.stdin.close()
            child.wait()

    def time_sample(self, children):
        for _ in range(20):
            self.monitor.sample()


class Psutil:
    """The same counters of this process by psutil, in one go and one by one."""

    params = (["oneshot", "one by one"],)
    param_names = ("how",)

    def setup(self, how):
        import psutil

        self.process = psutil.Process(os.getpid())

    def time_read(self, how):
        for _ in range(50):
            if how == "oneshot":
                with self.process.oneshot():
                    self._read()
            else:
                self._read()

    def _read(self):
        process = self.process
        return (
            process.cpu_times(),
            process.memory_info(),
            process.num_threads(),
            process.num_fds(),
            process.num_ctx_switches(),
        )


def _session(nodes):
    """A session of a minute with so many nodes in a tree of functions that call each other."""
    functions = [Function(f"function_{i}", f"/project/module_{i % 40}.py", i, f"module_{i % 40}") for i in range(300)]
    ids = range(nodes)
    buckets = [Bucket(float(i), i + 1.0, 100, 0, 0.0, 0.0, 0.001) for i in range(60)]
    meta = {"start": 0.0, "stop": 60.0, "interval": 0.01, "samples": 2 * nodes, "ticks": 6_000, "missed": 0, "cpu": 0.1}
    return Session(
        meta={**meta, "pid": 1, "process": "made", "python": "3.11.0"},
        functions=tuple(functions),
        nodes=Nodes(tuple([(i - 1) // 3 if i else -1 for i in ids]), tuple([i % 300 for i in ids]), (7,) * nodes),
        buckets=tuple(buckets),
        threads=(Thread(1, "MainThread", "made"),),
        labels=("",),
        samples=Samples(tuple([i % 60 for i in ids]), (0,) * nodes, (0,) * nodes, tuple(ids), (2,) * nodes),
    )
