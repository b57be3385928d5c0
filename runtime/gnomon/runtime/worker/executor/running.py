"""One run: decode what it needs, call the user's function, put the result away, say how it went.

All of it happens on the thread that took the row, and nothing that the user's code raises gets past here, be it
SystemExit, KeyboardInterrupt or GeneratorExit. A function that makes a coroutine (an ``async def``) has it run to its
end by ``asyncio.run`` on the same thread, in an event loop of its own: user code never runs on the agent's loop.

Contents: TaskRunner, finish_coroutine, INLINE_TYPES.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from math import inf, nan
from threading import get_ident
from time import perf_counter, thread_time
from types import CoroutineType
from typing import Any

from gnomon.profiler.marks import regions
from gnomon.runtime.clock import now
from gnomon.runtime.messages import Key, Payload, TaskProfiled, TasksErred
from gnomon.runtime.messages.names import group_name, prefix_name
from gnomon.runtime.protocol import loads_call, loads_index, sizeof, substitute
from gnomon.runtime.worker.executor.context import Place
from gnomon.runtime.worker.executor.failing import record_failure
from gnomon.runtime.worker.executor.outgoing import Outgoing, pack_doubles, pack_times
from gnomon.runtime.worker.executor.page import Cells
from gnomon.runtime.worker.executor.pool import Row
from gnomon.runtime.worker.executor.serving import Server
from gnomon.runtime.worker.executor.store import Code, Store

__all__ = ["INLINE_TYPES", "TaskRunner", "finish_coroutine"]

#: Exact types whose small values leave with the outcome: pickling them runs no user code.
INLINE_TYPES = frozenset({int, float, bool, type(None), str, bytes, complex})

#: Seconds from which a run is long: what may be asked for meanwhile is prepared before.
_LONG = 0.1

#: The processor's clock of a thread costs about a microsecond to read. So it is read for each run whose like took long,
#: else for one in so many; the runs between are taken to have had the same share of the processor.
_ALWAYS = 1e-3
_OFTEN = 1e-4
_ONE_IN_FEW = 8
_ONE_IN_MANY = 128

#: Prefixes that are remembered by what begins a key.
_LABELS = 10_000

_NO_ARGUMENTS: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})


class TaskRunner:
    """Runs rows.

    ``cells``: where runs under way are recorded (see ``page``); ``measure``: how long they are on the CPU.
    """

    def __init__(
        self,
        store: Store,
        outgoing: Outgoing,
        server: Server,
        cells: Cells,
        inline_bytes: int,
        *,
        measure: bool = False,
    ) -> None:
        self._store = store
        self._outgoing = outgoing
        self._server = server
        self._cells = cells
        self._inline_bytes = inline_bytes
        self._measure = measure
        self._unmeasured = _ALWAYS if measure else inf
        self._labels: dict[str, str] = {}
        self._books = regions.by_thread

    def run(self, place: Place, row: Row) -> None:
        """Run one row to its outcome. Raises nothing."""
        task_id, attempt, key, code_id, payload, expected, dependencies = row
        code = self._store.codes.get(code_id)
        if expected < 0.0 and code is not None:
            expected = code.seconds
        if place.fresh and not 0.0 <= expected <= _LONG:
            self._server.prepare(place)
        if self._outgoing.waiting:
            self._outgoing.before_run(expected)
        cells = self._cells
        cell = place.cell
        cells[cell] = task_id
        cells[cell + 1] = attempt
        place.row = row
        begun = ended = 0.0
        started = now()
        try:
            if code is None:
                raise LookupError(f"code {code_id} is not in this executor: an error of gnomon's")
            if type(key) is str and len(key) == code.key_length and key.startswith(code.key_stem):
                place.label[0] = code.label
            else:
                place.label[0] = self._label_of(code, key)
            function, args, kwargs = self._decode(code, payload, dependencies)
            exact = code.unmeasured <= 0 and self._measure
            if exact:
                place.cpu_mark = thread_time()
            begun = now()
            value = function(*args, **kwargs)
            if type(value) is CoroutineType:
                value = finish_coroutine(value)
            ended = now()
            seconds = ended - begun
            if exact or seconds > self._unmeasured:
                cpu = _on_cpu(place, code, seconds)
            else:
                code.unmeasured -= 1
                cpu = seconds * code.cpu_share
            inline = self._inline(value) if type(value) in INLINE_TYPES else None
            nbytes = sizeof(value)
            self._store.values[task_id] = value
        except BaseException as exc:  # noqa: BLE001 - whatever the user's code raises is the outcome of this run
            self._failed(place, exc, (started, begun, ended))
        else:
            if inline is None:
                self._server.made(place, task_id, attempt)
            code.seconds = seconds
            if self._books or place.profile:
                self._tell_details(place)
            times = (started, begun, ended, now())
            self._outgoing.add_finished((task_id, attempt, nbytes, inline, place.thread, times, cpu))
        place.row = None
        cells[cell + 1] = 0

    def _label_of(self, code: Code, key: Key) -> str:
        """What a profile calls the run of a key: its prefix. Remembered with the code for keys alike."""
        if type(key) is tuple and key and type(key[0]) is str:
            base = key[0]
        elif type(key) is str:
            base, _, tail = key.rpartition("-")
            if not base or tail.isalpha():
                base = key
        else:
            return prefix_name(group_name(key))
        label = self._labels.get(base)
        if label is None:
            if len(self._labels) >= _LABELS:
                self._labels.clear()
            label = self._labels[base] = prefix_name(group_name(key))
        if type(key) is str:
            code.label, code.key_stem, code.key_length = label, base, len(key)
        return label

    def _tell_details(self, place: Place) -> None:
        """Send what the run under way, at its end, spent in regions, and its deep profile if it made one."""
        books = self._books.get(get_ident())
        if books is not None and books.changes != place.region_changes:
            place.region_changes = books.changes
            rows = []
            for slot, count, seconds, own in regions.rows(books, perf_counter()):
                before = place.regions.get(slot, (0, 0.0, 0.0))
                if before != (count, seconds, own):
                    place.regions[slot] = (count, seconds, own)
                    name = regions.slot_name(slot)
                    rows.append((place.label[0], name, count - before[0], seconds - before[1], own - before[2]))
            self._outgoing.add_regions(rows)
        if place.profile and place.row is not None:
            self._outgoing.add(TaskProfiled(place.row[0], place.row[1], place.profile))
            place.profile = b""

    def _decode(
        self, code: Code, payload: Payload, dependencies: tuple[int, ...]
    ) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        """What to call with what; whatever the user's objects raise when they are unpickled."""
        if code.blob is not None:
            code.decode()
        if code.is_bundle:
            return code.target[loads_index(payload)].run, (self._values(dependencies),), {}
        args, kwargs = loads_call(payload) if payload else _NO_ARGUMENTS
        if dependencies:
            args, kwargs = substitute(args, kwargs, self._values(dependencies))
        return code.target, args, kwargs

    def _values(self, task_ids: tuple[int, ...]) -> list[Any]:
        missing = [task_id for task_id in task_ids if task_id not in self._store.values]
        if missing:
            raise LookupError(f"values {missing} are not in this executor: an error of gnomon's")
        return [self._store.get(task_id) for task_id in task_ids]

    def _inline(self, value: Any) -> bytes | None:
        """The pickled value, if it is small enough to leave with the outcome."""
        limit = self._inline_bytes
        kind = type(value)
        if (kind is str or kind is bytes) and len(value) > limit:
            return None
        if kind is int and value.bit_length() > 8 * limit:
            return None
        blob = pickle.dumps(value, 5)
        return blob if len(blob) <= limit else None

    def _failed(self, place: Place, exc: BaseException, times: tuple[float, float, float]) -> None:
        """Report an exception as the outcome of the thread's run."""
        started, begun, ended = times
        stopped = now()
        task_id, attempt, key = (place.row or (0, 0, ""))[:3]
        note = ""
        if not begun:
            note = f"Raised while the code, arguments or dependencies of task {key!r} were unpickled."
        cpu = nan
        if self._measure and begun:
            # Since the clock was last read on this thread, which may have been some short runs ago.
            cpu = min(thread_time() - place.cpu_mark, (ended or stopped) - begun)
        times_row = (started, begun or stopped, ended or stopped, now())
        record = record_failure(exc, note)
        self._tell_details(place)
        self._outgoing.add(
            TasksErred((task_id,), (attempt,), (record,), (place.thread,), pack_times([times_row]), pack_doubles([cpu]))
        )


def _on_cpu(place: Place, code: Code, seconds: float) -> float:
    """Processor seconds since the thread's clock was last read, of a run that has just taken ``seconds``."""
    before, place.cpu_mark = place.cpu_mark, thread_time()
    cpu = min(place.cpu_mark - before, seconds)
    code.cpu_share = cpu / seconds if seconds > 0.0 else 1.0
    if seconds >= _ALWAYS:
        code.unmeasured = 0
    else:
        code.unmeasured = (_ONE_IN_FEW if seconds >= _OFTEN else _ONE_IN_MANY) - 1
    return cpu


def finish_coroutine(coroutine: CoroutineType[Any, Any, Any]) -> Any:
    """Run a coroutine to its end on this thread, in an event loop of its own; its result."""
    import asyncio  # a third of the child's start-up, and most tasks are no coroutines

    return asyncio.run(coroutine)
