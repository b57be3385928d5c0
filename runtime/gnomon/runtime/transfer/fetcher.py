"""The asking side: fetches values from data servers, and sends some to them. Blocks; any thread may use it.

Connections are kept for the next time. One is used by one thread at a time, so two threads that fetch from one server
have two. Where the server is on this machine its values come as descriptors of shared memory, otherwise as bytes; the
caller gets segments in either case. In one process they come by reference.

Contents: Fetcher.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any, TypeVar

from gnomon.runtime.comm.security import Security
from gnomon.runtime.errors import HandshakeError
from gnomon.runtime.messages import ByReference, ErrorRecord
from gnomon.runtime.protocol import SEGMENT_FROM, Encoded, Segment, decode_error
from gnomon.runtime.transfer import local
from gnomon.runtime.transfer.dialing import Shortcut, dial, dial_unix
from gnomon.runtime.transfer.link import Link, LinkClosedError, checked_layout, close_fds
from gnomon.runtime.transfer.machine import memory_size
from gnomon.runtime.transfer.records import (
    Fetched,
    Found,
    Held,
    Sendable,
    Source,
    Told,
    TransferError,
    ValueEncodingError,
    Wanted,
    size_of,
)

__all__ = ["Fetcher"]

T = TypeVar("T")

_LOCAL_TIMEOUT = 600.0

#: Characters that the name of a value's type may have.
_TYPE_NAME = 100


class Fetcher:
    """Fetches and sends values, by connections of its own.

    Arguments:
        security: certificates and secret.
        host_id: see ``host_identity``; servers that say the same one share memory with us.
        role: ``worker`` or ``client``.
        shared_memory: False to move bytes within this machine too.
        connect_timeout: seconds within which a connection must stand, handshake included.
        stall_timeout: seconds after which a server that makes no progress is given up.
        idle_timeout: seconds after which an unused connection is closed.
        max_idle: unused connections that are kept.
        max_value: bytes of one value that is accepted; None: the machine's memory.
    """

    def __init__(
        self,
        security: Security,
        host_id: str,
        role: str,
        *,
        shared_memory: bool = True,
        connect_timeout: float = 10.0,
        stall_timeout: float = 30.0,
        idle_timeout: float = 45.0,
        max_idle: int = 128,
        max_value: int | None = None,
    ) -> None:
        self._security = security
        self._host_id = host_id if shared_memory else ""
        self._role = role
        self._connect_timeout = connect_timeout
        self._stall_timeout = stall_timeout
        self._idle_timeout = idle_timeout
        self._max_idle = max_idle
        self._max_value = memory_size() if max_value is None else max_value
        self._lock = threading.Lock()
        self._idle: list[tuple[float, str, Link]] = []  # the longest unused first
        self._busy: set[Link] = set()
        self._shortcuts: dict[str, Shortcut] = {}
        self._closed = False

    # ---- for callers -------------------------------------------------------------------------------------------------

    def fetch(self, address: str, wanted: Sequence[Wanted]) -> Fetched:
        """The values that the server at ``address`` has under these names, in this order.

        Raises TransferError if it can't be reached, is not whom we may talk to, vanishes or stalls, or if there is no
        room here for a value.
        """
        if address.startswith("inproc://"):
            return _fetch_here(address, wanted)
        with _as_transfer_error(address):
            return self._fetch(address, wanted)

    def _fetch(self, address: str, wanted: Sequence[Wanted]) -> Fetched:
        def ask(link: Link) -> Fetched:
            link.send(("get", tuple(wanted)))
            found, told = _receive_answer(link, len(wanted), self._max_value)
            return Fetched(found, sum(map(size_of, found)), link.transport, told)

        return self._exchange(address, ask)

    def send(self, address: str, task_id: int, attempt: int, value: Sendable) -> str:
        """Have the server at ``address`` hold a value; the transport that it took.

        The caller keeps a segment, and can send it to others.
        Raises as ``fetch``, and what the server's side raised when it was to take the value.
        """
        if address.startswith("inproc://"):
            _source_here(address).put(task_id, attempt, _as_held(value))
            return "inproc"
        with _as_transfer_error(address):
            transport, header = self._send(address, task_id, attempt, value)
            record = None if header == (None,) else _checked_error(header[0] if header else None)
        if record is not None:
            raise decode_error(record)
        return transport

    def _send(self, address: str, task_id: int, attempt: int, value: Sendable) -> tuple[str, Any]:
        """Send a value; the transport that it took, and the answer."""

        def put(link: Link) -> tuple[str, Any]:
            _send_put(link, task_id, attempt, value)
            header, fds = link.receive()
            close_fds(fds)
            return link.transport, header

        return self._exchange(address, put)

    def _exchange(self, address: str, talk: Callable[[Link], T]) -> T:
        """Ask something of a server by a link to it, and give the link back.

        An idle link may have been closed while the request was on its way; then it is asked again by a new one, for
        getting or putting a value twice does no harm.
        """
        link, fresh = self._take(address)
        while True:
            try:
                answer = talk(link)
            except LinkClosedError:
                self._discard(link)
                if fresh:
                    raise
                link, fresh = self._take(address, fresh=True)
            except BaseException:
                self._discard(link)
                raise
            else:
                self._give_back(address, link)
                return answer

    def close(self) -> None:
        """Close all connections; transfers under way in other threads fail. Idempotent."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            busy = list(self._busy)
        for link in busy:
            link.abort()
        for _, _, link in idle:
            link.close()

    def __enter__(self) -> Fetcher:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # ---- connections -------------------------------------------------------------------------------------------------

    def _take(self, address: str, *, fresh: bool = False) -> tuple[Link, bool]:
        """A link to use, and whether it was made just now."""
        while not fresh:
            link = self._take_idle(address)
            if link is None:
                break
            if not link.is_stale():
                return link, False
            self._discard(link)
        link = self._connect(address)
        with self._lock:
            if not self._closed:
                self._busy.add(link)
                return link, True
        link.close()
        raise TransferError("the fetcher is closed")

    def _take_idle(self, address: str) -> Link | None:
        """The link to this address that was used last, now busy."""
        with self._lock:
            for i in range(len(self._idle) - 1, -1, -1):
                if self._idle[i][1] == address:
                    link = self._idle.pop(i)[2]
                    self._busy.add(link)
                    return link
        return None

    def _connect(self, address: str) -> Link:
        shortcut = self._shortcuts.get(address)
        if shortcut is not None:
            link = self._connect_unix(shortcut, address)
            if link is not None:
                return link
            self._shortcuts.pop(address, None)
        link, shortcut = dial(
            address,
            security=self._security,
            role=self._role,
            host_id=self._host_id,
            connect_timeout=self._connect_timeout,
            stall_timeout=self._stall_timeout,
        )
        if shortcut is not None:
            unix = self._connect_unix(shortcut, address)
            if unix is not None:
                link.close()
                self._shortcuts[address] = shortcut
                return unix
        return link

    def _connect_unix(self, shortcut: Shortcut, address: str) -> Link | None:
        return dial_unix(
            shortcut,
            address,
            security=self._security,
            role=self._role,
            connect_timeout=self._connect_timeout,
            stall_timeout=self._stall_timeout,
        )

    def _give_back(self, address: str, link: Link) -> None:
        """Keep a link for the next time, and close those that nobody used for long."""
        now = time.monotonic()
        with self._lock:
            self._busy.discard(link)
            if not self._closed:
                self._idle.append((now, address, link))
            count = max(0, len(self._idle) - self._max_idle)
            while count < len(self._idle) and self._idle[count][0] < now - self._idle_timeout:
                count += 1
            old, self._idle = self._idle[:count], self._idle[count:]
            closed = self._closed
        for _, _, other in old:
            other.close()
        if closed:
            link.close()

    def _discard(self, link: Link) -> None:
        with self._lock:
            self._busy.discard(link)
        link.close()


@contextlib.contextmanager
def _as_transfer_error(address: str) -> Iterator[None]:
    """Whatever goes wrong with a connection is one kind of error to callers; its cause tells more."""
    try:
        yield
    except TransferError:
        raise
    except HandshakeError as exc:
        raise TransferError(str(exc)) from exc
    except (OSError, ValueError) as exc:
        raise TransferError(f"a transfer with {address} failed: {exc}") from exc


# ---- what is sent and received ---------------------------------------------------------------------------------------


def _send_put(link: Link, task_id: int, attempt: int, value: Sendable) -> None:
    if type(value) is ByReference:
        raise TypeError("a value by reference can't leave its process")
    if type(value) is bytes:
        if len(value) < SEGMENT_FROM:
            link.send(("put", task_id, attempt, value))
            return
        value = Encoded([value], len(value))
    if isinstance(value, Encoded):
        if not link.shares_memory:
            link.send_frames(("put", task_id, attempt, value.layout), value.frames)
            return
        value = Segment.write(value.frames)
    assert isinstance(value, Segment)
    link.send(("put", task_id, attempt, value.layout), [value])


def _receive_answer(link: Link, count: int, max_value: int) -> tuple[list[Found], Told]:
    """The answer to a request for ``count`` values; signs of life in between are waited through."""
    found: list[Found] = []
    told: Told | None = None
    while told is None:
        try:
            entries, fds = link.receive()
        except LinkClosedError as exc:
            if found:
                raise TransferError(f"{link.address} closed the connection in the middle of an answer") from exc
            raise
        try:
            if entries and type(entries[-1]) is tuple and len(entries[-1]) == len(Told._fields):
                told = _checked_told(entries[-1], count)
                entries = entries[:-1]
                if len(entries) < count - len(found):
                    raise ValueError("fewer values than were asked for")
            if len(entries) > count - len(found):
                raise ValueError("more values than were asked for")
            layouts = [checked_layout(e[0], max_value) for e in entries if type(e) is tuple and len(e) == 1]
            segments = iter(link.receive_segments(layouts, fds))
            found.extend(_checked_entry(entry, segments) for entry in entries)
        except ValueError as exc:
            raise TransferError(f"{link.address} sent {exc}") from exc
        finally:
            close_fds(fds)
    return found, told


def _checked_told(entry: Any, count: int) -> Told:
    """What is told of ``count`` values. Raises ValueError for what is nothing of the kind."""
    told = Told._make(entry)
    if (
        type(told.type_names) is not tuple
        or len(told.type_names) != count
        or not all(type(name) is str and len(name) <= _TYPE_NAME for name in told.type_names)
        or not all(type(seconds) is float and 0.0 <= seconds < inf for seconds in told[1:])
    ):
        raise ValueError("words on its values that make no sense")
    return told


def _checked_entry(entry: Any, segments: Any) -> Found:
    """One value of an answer. Raises ValueError for what is none."""
    if entry is None or type(entry) is bytes:
        found: bytes | None = entry
        return found
    if type(entry) is tuple and len(entry) == 1:
        segment: Segment = next(segments)
        return segment
    return _checked_error(entry)


def _checked_error(entry: Any) -> ErrorRecord:
    """An error record from the wire. Raises ValueError for what is none."""
    if type(entry) is tuple and len(entry) == 4 and [type(field) for field in entry] == [str, str, bytes, bytes]:
        return ErrorRecord._make(entry)
    raise ValueError("an entry that is no value")


# ---- within this process ---------------------------------------------------------------------------------------------


def _source_here(address: str) -> Source:
    source = local.find(address)
    if source is None:
        raise TransferError(f"can't reach {address}: closed, or in another process")
    return source


def _fetch_here(address: str, wanted: Sequence[Wanted]) -> Fetched:
    source = _source_here(address)
    begun = time.monotonic()
    source.prepare(wanted)
    found: list[Found] = []
    for task_id, attempt in wanted:
        try:
            held = source.get(task_id, attempt, _LOCAL_TIMEOUT)
        except ValueEncodingError as exc:
            found.append(exc.record)
        except TimeoutError as exc:
            raise TransferError(f"{address} made no progress for {_LOCAL_TIMEOUT:g} s") from exc
        else:
            # A segment has one owner; the source keeps its own.
            found.append(Segment(os.dup(held.fd), held.layout) if isinstance(held, Segment) else held)
    told = Told.of(source.told(), time.monotonic() - begun)
    return Fetched(found, sum(map(size_of, found)), "inproc", told)


def _as_held(value: Sendable) -> Held:
    if isinstance(value, Encoded):
        return Segment.write(value.frames)
    return Segment(os.dup(value.fd), value.layout) if isinstance(value, Segment) else value
