"""What a parent and its child process say to each other, over a socket pair that is the child's standard input.

Parent to child: one ``Launch``, one ``Start``, then at most one ``Leave``, pickled (the child trusts whoever started
it; secrets travel here and nowhere else). Child to parent: small JSON objects (``ready``, ``failed``), because a parent
unpickles nothing. Either side's end of file means that the other is gone.

Every frame is a 4-byte big-endian length and that many bytes.
"""

from __future__ import annotations

import asyncio
import copyreg
import io
import json
import pickle
import socket
from typing import Any, NamedTuple

from gnomon.runtime.comm import Security

__all__ = [
    "Launch",
    "Leave",
    "Start",
    "pack_order",
    "pack_report",
    "read_frame",
    "read_order",
    "read_report",
    "receive_launch",
]

_LENGTH = 4
_LIMIT = 64 << 20


class Launch(NamedTuple):
    """What a child needs before it imports anything of the user's.

    Fields:
        target: the class to run, as ``package.module:Class``.
        title: how log lines and errors name the child.
        sys_path, directory: of the parent, so that what it can import its child can.
        python_path: the parent's own ``PYTHONPATH``; None if it has none.
        parent: process id.
        stderr: descriptor of the real standard error, to be used once the child is up.
        log_level: of the loggers under ``gnomon``.
        grace: seconds that the child takes to close at most before it leaves anyway.
    """

    target: str
    title: str
    sys_path: tuple[str, ...]
    directory: str
    python_path: str | None
    parent: int
    stderr: int
    log_level: int
    grace: float


class Start(NamedTuple):
    """Build the target from these and start it."""

    arguments: tuple[Any, ...]
    options: dict[str, Any]


class Leave(NamedTuple):
    """Close in good order and exit."""

    reason: str


def pack_order(order: Launch | Start | Leave) -> bytes:
    """An order of the parent as a frame.

    Raises whatever pickling an option raises.
    """
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = {**copyreg.dispatch_table, Security: _reduce_security}
    pickler.dump(order)
    return _pack(buffer.getvalue())


def _reduce_security(security: Security) -> tuple[Any, ...]:
    """A Security refuses to be pickled, for good reason; this pipe is the one place where it may."""
    return Security.from_dict, (security.to_dict(),)


def read_order(frame: bytes) -> Launch | Start | Leave:
    """The order in a frame's body."""
    order: Launch | Start | Leave = pickle.loads(frame)
    return order


def pack_report(kind: str, **fields: str | int | bool) -> bytes:
    """A report of the child as a frame."""
    return _pack(json.dumps({"kind": kind, **fields}).encode())


def read_report(frame: bytes) -> dict[str, Any]:
    """The report in a frame's body.

    Raises ValueError if it is none.
    """
    report = json.loads(frame)
    if not isinstance(report, dict) or not isinstance(report.get("kind"), str):
        raise ValueError("a child's report must be an object with a kind")
    return report


async def read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """The next frame's body, or None at the end."""
    try:
        size = int.from_bytes(await reader.readexactly(_LENGTH), "big")
        if size > _LIMIT:
            raise ValueError(f"a frame of {size} bytes on the control pipe")
        return await reader.readexactly(size)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def receive_launch(sock: socket.socket) -> Launch:
    """Wait for the first order, before there is a loop.

    Raises EOFError if the parent left without giving it.
    """
    body = _receive(sock, int.from_bytes(_receive(sock, _LENGTH), "big"))
    order = read_order(body)
    if not isinstance(order, Launch):
        raise EOFError("the first order is no launch")
    return order


def _receive(sock: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = sock.recv(size - len(parts))
        if not part:
            raise EOFError("the parent is gone")
        parts += part
    return bytes(parts)


def _pack(body: bytes) -> bytes:
    return len(body).to_bytes(_LENGTH, "big") + body
