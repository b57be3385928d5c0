"""One daemon thread that looks at the stacks of all registered threads, many times a second.

Never from the loop or thread that it looks at. It sleeps until its next deadline (``cadence``), takes one look at all
threads (``stacks``), and puts what it saw in the history. It measures its own CPU, estimates what the program loses by
handing it the GIL (``handover``), and widens its interval to keep both to its budget, and while the process is idle.
The default rate is an odd one, and ticks are not evenly spaced, so that it marches in step with no program's timers.

Monitors may ride on its ticks (it is a ``TickSource``): each wake-up takes the GIL from a busy program, so there is one
thread for all who look.

Compiled, a look is one call that never lets go of the GIL: what it shows is one moment of all threads, no thread's
locals can end up in the sampler's hands, and the collector stays out of it. Interpreted, threads may run on between two
bytecodes of a look; a stack may then mix two moments, and objects whose last reference goes just then are freed here.
A tick makes no other objects that the collector tracks, so that collections, and the finalizers of the program's
objects in them, run on the threads that they would run on without a sampler (but for a few once in a bucket).

A forked child does not sample: it has no such thread, and starts with an empty history.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from typing import Any, NamedTuple

from gnomon.profiler.clock import now
from gnomon.profiler.marks import labels, regions
from gnomon.profiler.reading.ticker import Hook, Hooks
from gnomon.profiler.sampling.assemble import assemble
from gnomon.profiler.sampling.cadence import WIDEST, Cadence
from gnomon.profiler.sampling.frames import Functions
from gnomon.profiler.sampling.history import History
from gnomon.profiler.sampling.ledger import Ledger
from gnomon.profiler.sampling.pulse import Pulse
from gnomon.profiler.sampling.roster import Roster
from gnomon.profiler.sampling.stacks import NODE_BITS, Look
from gnomon.profiler.sampling.tape import Tape
from gnomon.profiler.sampling.tree import Tree
from gnomon.profiler.sessions.session import Session

__all__ = ["Sampler", "Statistics"]

_NODE = (1 << NODE_BITS) - 1

#: Seconds after which code objects that were seen are let go, and how many are held at most until then.
_FORGET_AFTER = 60.0
_FORGET_BEYOND = 50_000

#: Seconds after which names are looked at again, and idents that went to another thread.
_REVIEW_AFTER = 0.1

_all: weakref.WeakSet[Sampler] = weakref.WeakSet()


class Statistics(NamedTuple):
    """What a sampler itself did so far. Times in seconds."""

    running: bool
    seconds: float  #: of wall clock while it ran
    ticks: int
    samples: int
    missed: int
    interval: float  #: at present
    cpu: float
    late_mean: float
    late_max: float
    nodes: int
    functions: int
    buckets: int
    handover: float  #: what others lost by handing over the GIL, estimated


class Sampler:
    """Samples threads of this process.

    ``interval``: seconds between ticks; ``budget``: share of the program's processor time (of one processor at most)
    that sampling may cost, as CPU of its own or for handing over the GIL, before the interval is widened; ``bucket``:
    seconds of one step of the history; ``depth``: frames kept of a stack, the middle of deeper ones is cut out;
    ``every_thread``: sample all threads, not only those given to ``watch_thread``; ``process``: the process's name in
    sessions; ``nodes``: size of the call tree from which it is pruned. Raises ValueError for settings that make no
    sense.
    """

    def __init__(
        self,
        *,
        interval: float = 0.0101,
        budget: float = 0.02,
        bucket: float = 1.0,
        depth: int = 128,
        every_thread: bool = False,
        process: str = "",
        nodes: int = 200_000,
    ) -> None:
        if not 8 <= depth <= 4096:
            raise ValueError(f"a depth of {depth!r} frames is not between 8 and 4096")
        if not bucket > 0:
            raise ValueError(f"a bucket of {bucket!r} s is not a length of time")
        self.bucket = bucket
        self.depth = depth
        self.every_thread = every_thread
        self.process = process
        self.max_nodes = nodes
        self._cadence = Cadence(interval, budget, now())
        self._within = WIDEST
        self._begin()
        _all.add(self)

    def _begin(self) -> None:
        """An empty sampler, not running."""
        self._life = threading.Lock()  # one starts or stops at a time
        self._hooks = Hooks()
        self._hooking = threading.RLock()  # while hooks are called or changed
        self._thread: threading.Thread | None = None
        self._tree = Tree(Functions())
        self._labels: dict[str, int] = {"": 0}
        self._roster = Roster()
        self._ledger = Ledger(self._roster.number_of)
        self._history = History()
        self._tape = Tape()
        look = Look(self._tree, labels.by_thread, regions.by_thread, self._labels, self.depth, self._tape)
        self._pulse = Pulse(self._cadence, look, self._roster, every_thread=self.every_thread)
        self._closed = (0.0, 0)  # CPU and missed ticks up to the last bucket's end
        self._seconds = 0.0
        self._started = 0.0
        self._forgot = 0.0
        self._review_at = 0.0

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Begin to sample; no effect if it runs."""
        with self._life, self._pulse:
            if self._thread is not None:
                return
            regions.watch()
            self._ledger.take()
            self._started = self._forgot = now()
            self._cadence.restart(self._started)
            self._history.open(self._started)
            self._thread = threading.Thread(target=self._run, name="gnomon-sampler", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop sampling; what was recorded stays. May be started again."""
        with self._life:
            thread = self._thread
            if thread is None:
                return
            self._pulse.stop()
            thread.join()
            with self._pulse:
                self._thread = None
                at = now()
                self._close_bucket(at)
                self._seconds += at - self._started
                self._roster.forget_stacks()
                self._tree.forget_codes()
            regions.unwatch()

    def __enter__(self) -> Sampler:
        """Watch the calling thread and start."""
        self.watch_thread()
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    # ------------------------------------------------------------------ threads

    def watch_thread(self, ident: int | None = None, name: str | None = None) -> None:
        """Sample a thread (this one) until it ends or is forgotten. ``name`` in sessions: the thread's own."""
        with self._pulse:
            self._roster.watch(ident if ident is not None else threading.get_ident(), name)

    def forget_thread(self, ident: int | None = None) -> None:
        """Sample a thread (this one) no longer. What was recorded of it stays."""
        with self._pulse:
            self._roster.forget(ident if ident is not None else threading.get_ident())

    def set_label(self, label: str) -> None:
        """Label the calling thread's samples from now on; "" takes the label away. Same as ``labels.set_label``."""
        labels.set_label(label)

    # ------------------------------------------------------------------ monitors

    def add_hook(self, hook: Hook, /) -> None:
        """Call ``hook`` on each tick from now on, while this samples; not more often than each ``interval``."""
        with self._hooking:
            self._hooks.add(hook)
            self._pulse.hooked = True
            self._cadence.widest = min(self._within, WIDEST)

    def remove_hook(self, hook: Hook, /) -> None:
        """Don't call it any more. When this returns, no call is under way (unless this is called by one)."""
        with self._hooking:
            self._hooks.remove(hook)
            if not self._hooks:
                self._pulse.hooked = False
                self._cadence.widest = WIDEST

    def tick_within(self, seconds: float, /) -> None:
        """Never let more time pass between two ticks while there are hooks. The shortest time asked for holds."""
        with self._hooking:
            self._within = min(self._within, seconds)
            if self._hooks:
                self._cadence.widest = min(self._within, WIDEST)

    # ------------------------------------------------------------------ what was recorded

    def mark(self) -> float:
        """Begin a new bucket now, so that windows that start or end here are exact; the time of the mark."""
        with self._pulse:
            at = now()
            if self._thread is not None:
                self._close_bucket(at)
                self._history.open(at)
            return at

    def session(self, start: float | None = None, stop: float | None = None) -> Session:
        """What was recorded between two times of the wall clock, the unfinished bucket included.

        Windows of the last minutes are exact to a tick, older ones to what is left of the history's buckets.
        """
        with self._pulse:
            at = now()
            self._history.take(self._tape)
            history = self._history.copy()
            cpu, missed = self._pulse.cpu - self._closed[0], self._cadence.missed - self._closed[1]
            history.close(at, missed=missed, cpu=cpu, regions=self._ledger.peek())
            tree = (self._tree.parents[:], self._tree.functions[:], self._tree.lines[:])
            functions = list(self._tree.names.keys)
            threads = list(self._roster.threads)
            names = list(self._labels)
        pieces = history.window(start if start is not None else 0.0, stop if stop is not None else at)
        meta: dict[str, Any] = {
            "start": start if start is not None else (pieces[0].start if pieces else at),
            "stop": stop if stop is not None else (pieces[-1].stop if pieces else at),
            "pid": os.getpid(),
            "process": self.process or f"process {os.getpid()}",
            "python": "{}.{}.{}".format(*sys.version_info[:3]),
        }
        return assemble(pieces, tree=tree, functions=functions, threads=threads, labels=names, meta=meta)

    def statistics(self) -> Statistics:
        """What the sampler did so far."""
        with self._pulse:
            cadence = self._cadence
            running = self._thread is not None
            return Statistics(
                running,
                self._seconds + (now() - self._started if running else 0.0),
                cadence.ticks,
                self._pulse.samples,
                cadence.missed,
                cadence.interval,
                self._pulse.cpu,
                cadence.late_sum / cadence.ticks if cadence.ticks else 0.0,
                cadence.late_max,
                self._tree.size(),
                len(self._tree.names.keys),
                self._history.size(),
                self._pulse.handover.seconds,
            )

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        self._pulse.run(self._attend, self._call_hooks)

    def _call_hooks(self, due: float, woke: float) -> bool:
        """A tick for those who ride on it; whether one of them wants the next one soon."""
        with self._hooking:
            return self._hooks.call(due, woke, self.remove_hook)

    def _attend(self, at: float) -> None:
        """What need not be done at each tick: threads that are new or gone, buckets that are full."""
        look, history = self._pulse.look, self._history
        self._roster.drop_absent()
        if look.renewed or at >= self._review_at:
            look.renewed, self._review_at = False, at + _REVIEW_AFTER
            self._roster.review(self.every_thread)
            self._pulse.switch_interval = sys.getswitchinterval()
        # A bucket ends with a tick: what a tick counts for lies before it.
        opened = history.opened
        if opened is not None and at - opened >= self.bucket:
            self._close_bucket(at)
            history.open(at)
            opened = at
        elif self._tape.full():
            history.take(self._tape)
        self._pulse.attend_at = self._review_at if opened is None else min(self._review_at, opened + self.bucket)

    def _close_bucket(self, at: float) -> None:
        """A bucket's end: books are made up, and what has grown is cut back."""
        if self._history.opened is None:
            return
        self._history.take(self._tape)
        (cpu, missed), self._closed = self._closed, (self._pulse.cpu, self._cadence.missed)
        self._history.close(at, missed=self._closed[1] - missed, cpu=self._closed[0] - cpu, regions=self._ledger.take())
        self._roster.forget_ended()
        tree = self._tree
        if tree.size() > self.max_nodes:
            self._history.move(tree.prune(self._history.nodes(_NODE), self.max_nodes // 2), _NODE)
            self._roster.forget_stacks()
        if at - self._forgot > _FORGET_AFTER or tree.names.codes() > _FORGET_BEYOND:
            self._forgot = at
            tree.forget_codes()
            self._roster.forget_stacks()  # else a look might drop a code's last reference, and run who waits for that

    def after_fork(self) -> None:
        """In a forked child: nobody samples here, and what the parent recorded is the parent's."""
        self._cadence = Cadence(self._cadence.base, self._cadence.budget, now())
        self._begin()


def _stop_all() -> None:
    for sampler in list(_all):
        sampler.stop()


def _after_fork() -> None:
    for sampler in list(_all):
        sampler.after_fork()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
