"""What is seen of an executor's threads: the instruments of the process, and what is asked of them.

Threads announce themselves; what a thread is at stands in its ``Place``. The instruments are imported and started once
the executor is ready, on a thread of their own, for that takes a part of the time in which a child comes up.

Answers to requests are made on a thread of their own too: neither the one that reads the link nor one that runs tasks
waits for them.

Contents: Observing, METHODS.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gnomon.profiler.marks import labels
from gnomon.profiler.reading.plain import current_stacks
from gnomon.profiler.reading.weighed import frames_of
from gnomon.runtime.messages import ErrorRecord, Failure, Message, Request, Response
from gnomon.runtime.worker.executor.context import Place

if TYPE_CHECKING:
    from gnomon.runtime.instruments.carried import Instruments

__all__ = ["METHODS", "Observing"]

#: Requests that are answered here.
METHODS = frozenset({"report", "profile", "call_stack"})

#: Files whose frames lie around the user's code in every stack.
_OURS = os.path.dirname(os.path.abspath(__file__))

#: The stack of a task that is a function without Python code.
_IN_C = "in a function that is not written in Python"


class Observing:
    """Of one executor. ``settings``: the fields of ``config.InstrumentSettings``; without any nothing is observed."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._places: dict[int, Place] = {}
        self._idents: set[int] = set()  # of all threads that there ever were
        self._lock = threading.Lock()
        self._instruments: Instruments | None = None
        self._closed = False
        self._active = True

    # Threads

    def enter(self, place: Place) -> None:
        """The calling thread is ``place`` and will run tasks."""
        place.label = labels.cell()
        ident = threading.get_ident()
        with self._lock:
            self._places[ident] = place
            self._idents.add(ident)
            if self._instruments is not None:
                self._instruments.watch_thread(ident, threading.current_thread().name)

    def leave(self) -> None:
        """The calling thread runs no more tasks."""
        ident = threading.get_ident()
        with self._lock:
            self._places.pop(ident, None)
            if self._instruments is not None:
                self._instruments.forget_thread(ident)

    # Life

    def start(self, *, own_process: bool) -> None:
        """Begin to observe, soon; ``own_process``: nobody else of gnomon's is in this process."""
        if self._settings.get("enabled"):
            threading.Thread(target=self._start, args=(own_process,), name="gnomon-instruments", daemon=True).start()

    def _start(self, own_process: bool) -> None:
        from gnomon.runtime.config import InstrumentSettings  # see the module's head
        from gnomon.runtime.instruments.carried import Instruments

        instruments = Instruments("executor", InstrumentSettings(**self._settings), children=True, host=not own_process)
        with self._lock:
            if self._closed:
                return
            instruments.start()
            self._instruments = instruments
            names = {thread.ident: thread.name for thread in threading.enumerate()}
            for ident in self._places:
                instruments.watch_thread(ident, names.get(ident, "task"))

    def wake(self) -> None:
        """There is something to do."""
        self._active = True
        if self._instruments is not None:
            self._instruments.wake()

    def close(self) -> None:
        """Observe no more. Idempotent."""
        with self._lock:
            self._closed = True
            if self._instruments is not None:
                self._instruments.stop()

    # Questions

    def answer(self, request: Request, send: Callable[[Message], None]) -> None:
        """Have a request of ``METHODS`` answered by ``send``, from another thread."""

        def work() -> None:
            try:
                reply: Message = Response(request.request_id, getattr(self, request.method)(**request.arguments))
            except Exception as exc:  # noqa: BLE001 - whatever it is, who asked must not wait for ever
                reply = Failure(request.request_id, ErrorRecord(type(exc).__name__, str(exc)))
            send(reply)

        if request.method == "report":
            work()  # a few dozen microseconds; a thread would cost as much
        else:
            threading.Thread(target=work, name=f"gnomon-{request.method}", daemon=True).start()

    def report(self) -> dict[str, Any]:
        """Measurements since the last time; see ``instruments.carried``."""
        with self._lock:
            if self._instruments is None:
                return {}
            report = self._instruments.report()
            if not self._active and all(place.row is None for place in self._places.values()):
                self._instruments.rest()
            self._active = False
            return report

    def profile(self, start: float | None = None, stop: float | None = None, prefix: str = "") -> bytes:
        """The packed session of tasks whose prefix begins so; empty if nobody samples."""
        if self._instruments is None:
            return b""
        return self._instruments.profile(start, stop, threads=self._idents, prefix=prefix)

    def call_stack(self, task_ids: tuple[int, ...] | None = None) -> tuple[tuple[Any, tuple[str, ...]], ...]:
        """Pairs of key and stack, outermost frame first, of the runs under way (of these tasks, if given)."""
        stacks = current_stacks()
        found = []
        for ident, place in tuple(self._places.items()):
            row, stack = place.row, stacks.get(ident)
            if row is None or stack is None or (task_ids is not None and row[0] not in task_ids):
                continue
            theirs: list[str] = []
            for frame in reversed(frames_of(stack)):
                if os.path.dirname(frame.file) == _OURS:
                    break
                theirs.append(f'File "{frame.file}", line {frame.line}, in {frame.function}')
            found.append((row[2], tuple(reversed(theirs)) or (_IN_C,)))
        return tuple(found)
