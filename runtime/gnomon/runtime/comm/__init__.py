"""The control plane: connections that carry batches of messages between client, scheduler and workers.

A comm is used from its loop's thread. This room knows sockets, handshakes and frames; what messages mean and how big
data moves (``gnomon.runtime.transfer``) is none of its business.

Contents:
    base        what every transport offers: Comm, Listener, Peer
    connecting  connect() and listen(), the entry points
    security    certificates and secret; TLS contexts
    secret      where the secret comes from; the user's own secret file
    certificates  throw-away certificates, and the roles they name
    handshake   who are you, and do you know the secret: sans-IO, with a driver for blocking sockets
    address     addresses taken apart
    loops       the event loop our processes run on
    framing     frames on a byte stream, sans-IO
    stream      a comm over a byte stream
    tcp, tcp_listener, asyncio_backend, tornado_backend   tcp:// and tls://
    inproc      inproc://
"""

from __future__ import annotations

from gnomon.runtime.comm.base import Comm, Counters, Handlers, Listener, OnClose, OnComm, OnMessages, Peer
from gnomon.runtime.comm.connecting import connect, listen
from gnomon.runtime.comm.loops import new_event_loop
from gnomon.runtime.comm.security import Security
from gnomon.runtime.errors import CommClosedError

__all__ = [
    "Comm",
    "CommClosedError",
    "Counters",
    "Handlers",
    "Listener",
    "OnClose",
    "OnComm",
    "OnMessages",
    "Peer",
    "Security",
    "connect",
    "listen",
    "new_event_loop",
]
