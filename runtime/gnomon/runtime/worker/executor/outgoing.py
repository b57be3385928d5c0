"""Outcomes on their way from an executor to its agent, many to a message.

A finished run costs one append to a deque. What is queued leaves when the thread that queued it has nothing else to do,
when the oldest outcome has waited ``PATIENCE``, and before a run that is long or of unknown length. Should a run that
was thought short turn out long, a guard thread sees to it that nothing waits longer than ``LIMIT`` behind it. The guard
sleeps on a lock while nothing is left waiting at the start of a run, so that an idle executor costs nothing. (It needs
the GIL; a run that keeps it in C code for long keeps the outcomes as well.)

Contents: Outgoing, pack_times, pack_doubles, Emit, FinishedRow, RegionRow, PATIENCE, LIMIT.
"""

from __future__ import annotations

import threading
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, TypeAlias

from gnomon.runtime.clock import now
from gnomon.runtime.messages import Message, Payload, RegionsTimed, TasksFinished

__all__ = ["LIMIT", "PATIENCE", "Emit", "FinishedRow", "Outgoing", "RegionRow", "pack_doubles", "pack_times"]

#: Seconds that an outcome may wait while its thread goes on with short runs.
PATIENCE = 0.001

#: Seconds after which the guard sends what a busy thread has left.
LIMIT = 0.005

#: Rounds of the guard without anything to guard before it sleeps without a deadline.
_QUIET_ROUNDS = 4

#: Takes messages and the descriptors that go with them, in order; called by one thread at a time, from any.
Emit: TypeAlias = Callable[[list[Message], list[int]], None]

#: ``(task_id, attempt, nbytes, value, thread, (four times), processor seconds)``, see ``TasksFinished``.
FinishedRow: TypeAlias = "tuple[int, int, int, Payload | None, int, tuple[float, float, float, float], float]"

#: ``(prefix, region, entries, seconds, own seconds)``
RegionRow: TypeAlias = "tuple[str, str, int, float, float]"


class _Described:
    """A message with descriptors."""

    __slots__ = ("fds", "message")

    def __init__(self, message: Message, fds: Sequence[int]) -> None:
        self.message = message
        self.fds = fds


class Outgoing:
    """The queue of one executor.

    Fields:
        waiting: what has not left yet. Rows of finished runs are plain tuples, everything else is not.
    """

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.waiting: deque[Any] = deque()
        self._oldest = 0.0
        self._regions: deque[RegionRow] = deque()
        self._sending = threading.Lock()
        self._arming = threading.Lock()
        self._armed = False
        self._guard: threading.Thread | None = None
        self._bell = threading.Semaphore(0)
        self._closed = threading.Event()

    def add_finished(self, row: FinishedRow) -> None:
        """Queue the outcome of a run that ended well."""
        if not self.waiting:
            self._oldest = row[5][3]
        self.waiting.append(row)

    def add(self, message: Message, fds: Sequence[int] = ()) -> None:
        """Queue any other message; the caller flushes. The descriptors are closed by whoever gets them."""
        self.waiting.append(_Described(message, fds))

    def add_regions(self, rows: Iterable[RegionRow]) -> None:
        """Queue what a run spent in regions; leaves summed up, before the outcomes that are queued after this."""
        self._regions.extend(rows)

    def before_run(self, expected: float) -> None:
        """Something waits, and a run of ``expected`` seconds (negative: unknown) is about to keep this thread busy."""
        if not 0.0 <= expected <= PATIENCE or now() - self._oldest > PATIENCE:
            self.flush()
        elif not self._armed:
            self._arm()

    def flush(self) -> None:
        """Hand everything queued so far to the agent."""
        with self._sending:
            waiting = self.waiting
            messages: list[Message] = []
            fds: list[int] = []
            rows: list[FinishedRow] = []
            if self._regions:
                messages.append(self._summed())
            for _ in range(len(waiting)):
                item = waiting.popleft()
                if type(item) is tuple:
                    rows.append(item)
                    continue
                if rows:
                    messages.append(_finished(rows))
                    rows = []
                messages.append(item.message)
                fds.extend(item.fds)
            if rows:
                messages.append(_finished(rows))
            if messages:
                self._emit(messages, fds)

    def _summed(self) -> RegionsTimed:
        """Take the queued times in regions, summed by prefix and name."""
        sums: dict[tuple[str, str], list[Any]] = {}
        for _ in range(len(self._regions)):
            prefix, name, count, seconds, own = self._regions.popleft()
            total = sums.setdefault((prefix, name), [0, 0.0, 0.0])
            total[0] += count
            total[1] += seconds
            total[2] += own
        prefixes, names = zip(*sums, strict=True)
        counts, times, owns = zip(*sums.values(), strict=True)
        return RegionsTimed(now(), prefixes, names, counts, times, owns)

    def close(self) -> None:
        """Send what waits and end the guard. Idempotent."""
        self.flush()
        with self._arming:
            self._closed.set()
            guard = self._guard
        self._bell.release()
        if guard is not None and guard is not threading.current_thread():
            guard.join()

    def _arm(self) -> None:
        """Wake the guard, or start it."""
        with self._arming:
            if self._armed or self._closed.is_set():
                return
            self._armed = True
            if self._guard is None:
                self._guard = threading.Thread(target=self._watch, name="gnomon-outcomes", daemon=True)
                self._guard.start()
        self._bell.release()

    def _watch(self) -> None:
        """Main of the guard."""
        while True:
            self._bell.acquire()
            quiet = 0
            while quiet < _QUIET_ROUNDS:
                if self._closed.wait(LIMIT):
                    return
                quiet = 0 if self.waiting else quiet + 1
                if self.waiting and now() - self._oldest >= LIMIT:
                    self.flush()
            self._armed = False
            # A thread may have queued an outcome, and seen the guard armed, just before that.
            if self.waiting:
                self._arm()


def _finished(rows: list[FinishedRow]) -> TasksFinished:
    task_ids, attempts, nbytes, values, threads, times, cpus = zip(*rows, strict=True)
    return TasksFinished(task_ids, attempts, nbytes, values, threads, pack_times(times), pack_doubles(cpus))


def pack_doubles(values: Iterable[float]) -> bytes:
    """A column of doubles."""
    return array("d", values).tobytes()


def pack_times(rows: Iterable[tuple[float, float, float, float]]) -> bytes:
    """The ``timings`` column of rows of four times."""
    return array("d", chain.from_iterable(rows)).tobytes()
