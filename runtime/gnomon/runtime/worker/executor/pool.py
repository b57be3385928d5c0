"""Threads that take runs from one queue, in order, and the errands that go before them.

A thread that is busy takes its next row with one ``popleft``; locks are touched only to fall asleep and to be woken.
Threads start when there is work that no idle thread can take, up to the pool's number. What a row or an errand means is
the business of who made the pool; neither may raise, and ``crashed`` is told if one does.

Contents: Pool, Row, Numbers.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable, Iterable
from time import monotonic
from typing import TypeAlias

from gnomon.runtime.messages import Key, Payload
from gnomon.runtime.worker.executor.context import Cluster, Place, enter
from gnomon.runtime.worker.executor.observing import Observing

__all__ = ["Numbers", "Pool", "Row"]

#: ``(task_id, attempt, key, code_id, payload, expected seconds, dependencies)``
Row: TypeAlias = "tuple[int, int, Key, int, Payload, float, tuple[int, ...]]"


class Numbers:
    """Gives out the smallest free numbers from 0, for threads."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._next = 0
        self._lock = threading.Lock()

    def take(self) -> int:
        """A number that nobody has."""
        with self._lock:
            if self._free:
                return heapq.heappop(self._free)
            self._next += 1
            return self._next - 1

    def give_back(self, number: int) -> None:
        """A number that is free again."""
        with self._lock:
            heapq.heappush(self._free, number)


class Pool:
    """Up to ``nthreads`` threads, not counting those that seceded.

    Fields:
        queue: runs not begun.
        errands: calls that the next free thread makes before any run.
    """

    def __init__(
        self,
        name: str,
        nthreads: int,
        *,
        run: Callable[[Place, Row], None],
        idle: Callable[[], None],
        numbers: Numbers,
        cluster: Cluster | None = None,
        observing: Observing | None = None,
        seceded: Callable[[Place], None] | None = None,
        crashed: Callable[[], None] | None = None,
    ) -> None:
        self.name = name
        self.nthreads = nthreads
        self.queue: deque[Row] = deque()
        self.errands: deque[Callable[[Place], None]] = deque()
        self._run = run
        self._idle = idle
        self._numbers = numbers
        self._cluster = cluster
        self._observing = observing
        self._seceded = seceded
        self._crashed = crashed
        self._mutex = threading.Lock()
        self._asleep: list[threading.Lock] = []
        self._active = 0
        self._threads: set[threading.Thread] = set()
        self._closing = False
        self._on_exit: Callable[[], None] | None = None

    def put(self, rows: Iterable[Row]) -> None:
        """Runs for the end of the queue."""
        before = len(self.queue)
        self.queue.extend(rows)
        self._wake(max(1, len(self.queue) - before))

    def put_errand(self, errand: Callable[[Place], None]) -> None:
        """A call for the next thread that is free, before any run."""
        self.errands.append(errand)
        self._wake(1)

    def take_back(self, wanted: set[tuple[int, int]]) -> list[tuple[int, int]]:
        """Take these runs ``(task_id, attempt)`` out of the queue; answers those that no thread had begun."""
        taken = []
        for row in list(self.queue):
            if row[:2] in wanted:
                try:
                    self.queue.remove(row)
                except ValueError:  # a thread was faster
                    continue
                taken.append(row[:2])
        return taken

    def close(self, on_exit: Callable[[], None] | None = None) -> None:
        """Forget what is queued; threads end when they are free. ``on_exit`` is called by the last one, or at once."""
        with self._mutex:
            self._closing = True
            self._on_exit = on_exit
            self.queue.clear()
            self.errands.clear()
            asleep, self._asleep = self._asleep, []
            empty = not self._threads
        for bed in asleep:
            bed.release()
        if empty and on_exit is not None:
            on_exit()

    def join(self, timeout: float) -> bool:
        """Wait for the threads of a closed pool; whether all ended in ``timeout`` seconds."""
        deadline = monotonic() + timeout
        for thread in self.threads():
            thread.join(max(0.0, deadline - monotonic()))
        return not self.threads()

    def threads(self) -> list[threading.Thread]:
        """Threads that have not ended, those that seceded as well."""
        with self._mutex:
            return list(self._threads)

    def _wake(self, count: int) -> None:
        """Wake, or else start, up to ``count`` threads."""
        with self._mutex:
            if self._closing:
                self.queue.clear()
                self.errands.clear()
                return
            while count > 0 and self._asleep:
                self._asleep.pop().release()
                count -= 1
            while count > 0 and self._active < self.nthreads:
                try:
                    self._start()
                except RuntimeError:  # the system has no more threads; those that there are do the work
                    if self._active == 0:
                        raise
                    return
                count -= 1

    def _start(self) -> None:
        number = self._numbers.take()
        name = f"gnomon-{self.name or 'task'}-{number}"
        thread = threading.Thread(target=self._main, args=(number,), name=name, daemon=True)
        self._active += 1
        self._threads.add(thread)
        try:
            thread.start()
        except BaseException:
            self._active -= 1
            self._threads.discard(thread)
            self._numbers.give_back(number)
            raise

    def _main(self, number: int) -> None:
        place = Place(number, self.name, self._cluster, self._leave)
        enter(place)
        if self._observing is not None:
            self._observing.enter(place)
        bed = threading.Lock()
        bed.acquire()
        queue, errands, run = self.queue, self.errands, self._run
        row: Row | None
        try:
            while not place.left:
                try:
                    if errands:
                        errand = errands.popleft()
                        place.label[0] = ""
                        errand(place)
                        del errand
                        continue
                except IndexError:  # another thread took it
                    continue
                try:
                    row = queue.popleft()
                except IndexError:
                    row = None
                if row is not None:
                    run(place, row)
                    row = None
                    continue
                place.label[0] = ""
                self._idle()
                if not self._sleep(bed):
                    break
        except BaseException:
            if self._crashed is not None:
                self._crashed()
            raise
        finally:
            self._ended(place)

    def _sleep(self, bed: threading.Lock) -> bool:
        """Wait for work; False if there won't be any."""
        with self._mutex:
            if self._closing:
                return False
            if self.queue or self.errands:
                return True
            self._asleep.append(bed)
        bed.acquire()
        return True

    def _leave(self, place: Place) -> None:
        """The calling thread's run goes on outside of the pool."""
        place.left = True
        with self._mutex:
            self._active -= 1
        if self._seceded is not None:
            self._seceded(place)
        if self.queue or self.errands:
            self._wake(1)

    def _ended(self, place: Place) -> None:
        self._idle()
        if self._observing is not None:
            self._observing.leave()
        self._numbers.give_back(place.thread)
        with self._mutex:
            if not place.left:
                self._active -= 1
            self._threads.discard(threading.current_thread())
            last = self._closing and not self._threads
        if last and self._on_exit is not None:
            self._on_exit()
