"""What every transport of the control plane offers, whatever carries it.

A **comm** is an established, authenticated connection that carries batches of messages both ways, in order. It is used
from the thread of its event loop only. A **listener** accepts comms. Transports implement both; callers see only this.

Contents: Comm, Counters, Handlers, Listener, OnClose, OnComm, OnMessages, Peer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from gnomon.runtime.messages import Message

__all__ = ["Comm", "Counters", "Handlers", "Listener", "OnClose", "OnComm", "OnMessages", "Peer"]


class Peer(NamedTuple):
    """Who is at the other end, as proved (role) or said (the rest) in the handshake.

    Fields:
        role: ``scheduler``, ``worker``, ``client`` or ``peer``.
        address: of the other end of the connection, with scheme; for messages and logs, not to connect to.
        name: what it calls itself; may be empty.
        info: what else it said of itself.
    """

    role: str
    address: str
    name: str
    info: dict[str, Any]


class Counters:
    """What a comm did so far. Plain integers that only grow.

    Fields:
        messages_sent, messages_received: messages.
        bytes_sent, bytes_received: bytes on the wire without TLS's own; 0 for inproc.
        writes: batches handed to the operating system. reads: loop wake-ups that brought bytes or messages.
    """

    __slots__ = ("bytes_received", "bytes_sent", "messages_received", "messages_sent", "reads", "writes")

    def __init__(self) -> None:
        self.messages_sent = 0
        self.messages_received = 0
        self.bytes_sent = 0
        self.bytes_received = 0
        self.writes = 0
        self.reads = 0


class Comm(ABC):
    """One connection. ``peer`` is at its other end, ``local_address`` at this one."""

    peer: Peer
    local_address: str
    counters: Counters

    @abstractmethod
    def send(self, messages: Sequence[Message]) -> None:
        """Queue messages; never blocks. What is sent within one turn of the loop leaves in one write, in order.

        Raises CommClosedError when the comm is closed or closing, FrameTooLargeError for a message that no frame can
        hold and TypeError for a value that the transport can't carry; in these cases nothing of the call is sent.
        """

    @property
    @abstractmethod
    def backlog(self) -> int:
        """Bytes queued here that the operating system has not taken yet (inproc: messages not delivered yet)."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether ``send`` would raise: closed from either side, or closing."""

    @abstractmethod
    def close(self) -> None:
        """Send what is queued, then say goodbye and close. No message is delivered here any more. Idempotent.

        A peer that does not take what is queued within ``comm.close_timeout`` loses it.
        """

    @abstractmethod
    def abort(self, reason: str = "") -> None:
        """Close at once; what is queued is lost, and the peer told nothing. ``reason`` is for our own ``on_close``."""

    @abstractmethod
    async def wait_closed(self) -> None:
        """Wait until ``on_close`` has been called and the transport is released."""


#: Called on the loop with what arrived in one wake-up. Raising PeerError or MessageError closes that peer, with one
#: log line; any other exception closes it too, and goes to the loop's exception handler.
OnMessages: TypeAlias = Callable[[Comm, "list[Message]"], None]

#: Called on the loop exactly once: with None after a goodbye from either side, with the cause when the connection was
#: lost.
OnClose: TypeAlias = Callable[[Comm, "BaseException | None"], None]


class Handlers(NamedTuple):
    """What a listening side does with one comm."""

    on_messages: OnMessages
    on_close: OnClose


#: Called on the loop when a peer has authenticated. Raising HandshakeError or PeerError closes that peer.
OnComm: TypeAlias = Callable[[Comm], Handlers]


class Listener(ABC):
    """An address at which peers connect.

    Fields:
        address: where it listens, with the actual port (``tcp://0.0.0.0:40001``).
        contact_address: one that peers may connect to (``tcp://192.168.1.5:40001``).
    """

    address: str
    contact_address: str

    @abstractmethod
    def close(self) -> None:
        """Stop accepting and drop whoever has not authenticated yet; comms that were accepted live on. Idempotent."""

    @abstractmethod
    async def wait_closed(self) -> None:
        """Wait until the address is free and nothing of the listener runs."""
