"""Results: waiting for futures, and bringing their values home.

Small values came with the news that a task is done. The others are fetched from the workers that hold them, from
several workers at once, and decoded in the thread of the caller. A holder that can't deliver is reported to the
scheduler, and the wait goes on until somebody holds the value again.

Contents: Results, Nest.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from typing import Any, NamedTuple

from gnomon.runtime.client.connection import Connection, Reply
from gnomon.runtime.client.effects import SLICE, Signal, pause, work
from gnomon.runtime.client.future import FINISHED, PENDING, Countdown, Future, FutureState
from gnomon.runtime.errors import FutureCancelledError, FutureLostError, TaskError
from gnomon.runtime.messages import ByReference, ErrorRecord, Payload
from gnomon.runtime.protocol import Segment, decode_error, decode_value, is_named_tuple
from gnomon.runtime.transfer import Fetcher, TransferError

__all__ = ["Nest", "Results", "answer", "decode_small", "error_of", "raisable"]

#: Values and bytes asked of one worker in one request.
BATCH_VALUES = 2_000
BATCH_BYTES = 64 << 20

#: Seconds without any progress after which values that nobody delivers are given up.
PATIENCE = 60.0


class _Wanted(NamedTuple):
    """A value to fetch."""

    state: FutureState
    task_id: int
    attempt: int


class _Job(NamedTuple):
    """One request to one worker."""

    address: str
    rows: list[_Wanted]


class _Missing(NamedTuple):
    """Values that a worker did not deliver: ``lost`` if it said that it has none of them, else it is out of reach."""

    address: str
    rows: list[_Wanted]
    lost: bool
    why: str


class Results:
    """Fetches for one client.

    Args:
        connection: the stream to the scheduler.
        fetcher: made when first needed.
        pool: threads for several fetches at once, made when first needed.
    """

    def __init__(self, connection: Connection, fetcher: Callable[[], Fetcher], pool: Callable[[], Executor]) -> None:
        self._connection = connection
        self._fetcher = fetcher
        self._pool = pool

    async def wait(
        self, states: Iterable[FutureState], timeout: float | None = None, stop_on_error: bool = False
    ) -> None:
        """Wait until all have ended, or one has ended badly.

        Raises TimeoutError.
        """
        pending = [state for state in states if state.status == PENDING]
        if not pending:
            return
        countdown = Countdown(stop_on_error)
        self._connection.watch(pending, countdown)
        if countdown.left <= 0:
            return
        try:
            await pause(countdown, timeout)
        except TimeoutError:
            key = next((state.key for state in pending if state.status == PENDING), pending[0].key)
            others = f" and {countdown.left - 1} others" if countdown.left > 1 else ""
            raise TimeoutError(f"{key!r}{others} not done within {timeout:g} s") from None
        finally:
            if countdown.left > 0:
                self._connection.unwatch(pending, countdown)

    async def values(
        self, states: Sequence[FutureState], stop_on_error: bool
    ) -> tuple[dict[int, Any], dict[int, BaseException]]:
        """Values, and errors of those that have none, by future id. Waits until there is one or the other of each.

        With ``stop_on_error`` the first error ends it.
        """
        values: dict[int, Any] = {}
        errors: dict[int, BaseException] = {}
        left: Sequence[FutureState] = states
        progress = time.monotonic()
        for round_ in itertools.count():
            await self.wait(left, stop_on_error=stop_on_error)
            far = _sort(left, values, errors)
            if not far or (errors and stop_on_error):
                break
            before = len(values) + len(errors)
            why = await self._fetch(far, values, errors)
            left = [state for state in far if state.id not in values and state.id not in errors]
            if not left:
                break
            if len(values) + len(errors) > before or any(state.status == PENDING for state in left):
                progress = time.monotonic()
            elif time.monotonic() - progress > PATIENCE:
                for state in left:
                    errors[state.id] = FutureLostError(f"no worker delivered {state.key!r} within {PATIENCE:g} s{why}")
                break
            await _rest(min(0.01 * 2**round_, 1.0))
        return values, errors

    async def _fetch(
        self, states: Sequence[FutureState], values: dict[int, Any], errors: dict[int, BaseException]
    ) -> str:
        """One round: ask where the values are, fetch them, report what could not be had; gives the last reason."""
        by_id = {state.id: state for state in states}
        rows = await answer(self._connection.ask("locate", {"future_ids": tuple(by_id)}))
        wanted: dict[str, list[_Wanted]] = defaultdict(list)
        load: dict[str, int] = defaultdict(int)
        for number, task_id, attempt, addresses, value in rows:
            state = by_id[number]
            if value is not None:
                _decode(state, value, values, errors)
            elif addresses:
                address = min(addresses, key=lambda each: load[each])
                load[address] += state.nbytes + 1000
                wanted[address].append(_Wanted(state, task_id, attempt))
        if not wanted:
            return ""
        jobs = list(_jobs(wanted))
        missing: list[_Missing] = await work(lambda: self._run(jobs, values, errors))
        for address, missed, lost, _ in missing:
            arguments = {
                "task_ids": tuple([row.task_id for row in missed]),
                "attempts": tuple([row.attempt for row in missed]),
                "holder": address,
                "lost": lost,
            }
            await answer(self._connection.ask("missing", arguments))
        return f": {missing[-1].why}" if missing else ""

    def _run(self, jobs: list[_Job], values: dict[int, Any], errors: dict[int, BaseException]) -> list[_Missing]:
        """Fetch, side by side if there are several jobs, and decode in this thread."""
        fetcher = self._fetcher()
        missing: list[_Missing] = []
        if len(jobs) == 1:
            missing += _take(jobs[0], _bring(fetcher, jobs[0]), values, errors)
            return missing
        pool = self._pool()
        running = {pool.submit(_bring, fetcher, job): job for job in jobs}
        try:
            while running:
                for done in wait(running, SLICE, FIRST_COMPLETED).done:
                    missing += _take(running.pop(done), done.result(), values, errors)
        finally:
            for future in running:
                future.cancel()
        return missing


def _sort(states: Sequence[FutureState], values: dict[int, Any], errors: dict[int, BaseException]) -> list[FutureState]:
    """Take what is here; gives the states whose values are elsewhere."""
    far = []
    for state in states:
        payload = state.payload
        if payload is not None:
            _decode(state, payload, values, errors)
        elif state.status == FINISHED or state.status == PENDING:
            far.append(state)
        else:
            errors[state.id] = error_of(state)
    return far


def _decode(state: FutureState, payload: Payload, values: dict[int, Any], errors: dict[int, BaseException]) -> None:
    try:
        values[state.id] = decode_small(payload)
    except Exception as exc:  # noqa: BLE001 - whatever unpickling raises is the outcome of this future
        errors[state.id] = exc


def _jobs(wanted: dict[str, list[_Wanted]]) -> Iterator[_Job]:
    for address, rows in wanted.items():
        batch: list[_Wanted] = []
        size = 0
        for row in rows:
            if batch and (len(batch) >= BATCH_VALUES or size + row.state.nbytes > BATCH_BYTES):
                yield _Job(address, batch)
                batch, size = [], 0
            batch.append(row)
            size += row.state.nbytes
        yield _Job(address, batch)


def _bring(fetcher: Fetcher, job: _Job) -> list[Any] | TransferError:
    try:
        return fetcher.fetch(job.address, [(row.task_id, row.attempt) for row in job.rows]).values
    except TransferError as exc:
        return exc


def _take(
    job: _Job, found: list[Any] | TransferError, values: dict[int, Any], errors: dict[int, BaseException]
) -> Iterator[_Missing]:
    """Decode what one worker delivered."""
    if isinstance(found, TransferError):
        yield _Missing(job.address, job.rows, False, str(found))
        return
    absent = []
    for row, value in zip(job.rows, found, strict=True):
        number = row.state.id
        try:
            if value is None:
                absent.append(row)
            elif isinstance(value, ErrorRecord):
                errors[number] = decode_error(value)
            elif isinstance(value, Segment):
                with value:
                    frames = Segment.frames(value.fd, value.layout)
                values[number] = decode_value(frames)
            else:
                values[number] = decode_small(value)
        except Exception as exc:  # noqa: BLE001 - whatever unpickling raises is the outcome of this future
            exc.add_note(f"The result of {row.state.key!r} came, but can't be decoded here.")
            errors[number] = exc
    if absent:
        yield _Missing(job.address, absent, True, f"{job.address} does not have it any more")


def decode_small(payload: Payload) -> Any:
    """The value of a payload that came in one piece."""
    return payload.value if isinstance(payload, ByReference) else decode_value((payload,))


def error_of(state: Any) -> BaseException:
    """Why a future that has ended has no value."""
    error = state.error
    if isinstance(error, ErrorRecord):
        return decode_error(error)
    if isinstance(error, BaseException):
        return error.with_traceback(None)
    return FutureCancelledError(state.key, "released", "this future was released")


#: Raised here, these would not say that a task failed but end the program, the iteration or the waiting coroutine.
_CONTROL = (SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration, StopAsyncIteration, asyncio.CancelledError)


def raisable(exc: BaseException, state: Any) -> BaseException:
    """What to raise for a failed future: its error, or a TaskError from it where it would be misunderstood here."""
    if not isinstance(exc, _CONTROL) or isinstance(exc, FutureCancelledError):
        return exc
    wrapped = TaskError(f"{state.key!r} raised {type(exc).__name__}: {exc}")
    wrapped.__cause__ = exc
    return wrapped


async def answer(reply: Reply, timeout: float | None = None) -> Any:
    """What the scheduler answered.

    Raises what it raised, CommClosedError if the stream ended first, TimeoutError.
    """
    await pause(reply, timeout)
    if reply.error is None:
        return reply.result
    if isinstance(reply.error, ErrorRecord):
        raise decode_error(reply.error)
    raise reply.error


async def _rest(duration: float) -> None:
    try:
        await pause(Signal(), duration)
    except TimeoutError:
        pass


class Nest:
    """Futures in nested lists, tuples, sets and dicts, and the same nest with values in their places.

    Fields:
        states: of the distinct futures.
    """

    def __init__(self, obj: Any) -> None:
        if isinstance(obj, Iterator):
            obj = list(obj)
        self._obj = obj
        self._flat = type(obj) is list and all(type(item) is Future for item in obj)
        self._futures: list[Future] = []
        if self._flat:
            self._futures = obj
        else:
            self._find(obj)
        self.states: list[Any] = list(
            {id(state): state for state in [future.state for future in self._futures]}.values()
        )

    def _find(self, obj: Any) -> None:
        if isinstance(obj, Future):
            self._futures.append(obj)
        elif type(obj) in (list, tuple, set, frozenset) or is_named_tuple(obj):
            for item in obj:
                self._find(item)
        elif type(obj) is dict:
            for item in obj.values():
                self._find(item)

    def fill(self, values: dict[int, Any]) -> Any:
        """The nest with values; a future without one is left out of its container (None if it stands alone)."""
        if self._flat:
            return [values[number] for number in [future.state.id for future in self._futures] if number in values]
        filled = self._fill(self._obj, values)
        return None if filled is _ABSENT else filled

    def _fill(self, obj: Any, values: dict[int, Any]) -> Any:
        if isinstance(obj, Future):
            return values.get(obj.state.id, _ABSENT)
        kind = type(obj)
        if kind in (list, tuple, set, frozenset):
            return kind([item for item in [self._fill(item, values) for item in obj] if item is not _ABSENT])
        if kind is dict:
            filled = {key: self._fill(item, values) for key, item in obj.items()}
            return {key: item for key, item in filled.items() if item is not _ABSENT}
        if is_named_tuple(obj):
            items = [self._fill(item, values) for item in obj]
            return kind._make([None if item is _ABSENT else item for item in items])
        return obj


_ABSENT = object()
