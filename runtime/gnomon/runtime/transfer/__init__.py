"""Bulk data between processes: results from worker to worker and to clients, scattered data from clients to workers.

Values cross neither an event loop nor the user's threads: blocking sockets in a few threads of a worker's agent, whole
values per system call, shared memory between processes of one machine, references within one process. Payloads stay
closed here: nothing is pickled or unpickled. Which value is needed where, and when, is decided elsewhere.

Contents:
    records   what is asked for and what comes back: Held, Source, Fetched, TransferError
    link      one connection: headers, images of values, file descriptors, deadlines
    dialing   connecting and accepting: sockets, TLS, handshake, addresses
    server    DataServer, the answering side
    fetcher   Fetcher, the asking side, with its pool of connections
    local     the data servers of this process, for ``inproc://``
    machine   which machine this is
"""

from __future__ import annotations

from gnomon.runtime.transfer.fetcher import Fetcher
from gnomon.runtime.transfer.machine import host_identity
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
from gnomon.runtime.transfer.server import DataServer

__all__ = [
    "DataServer",
    "Fetched",
    "Fetcher",
    "Found",
    "Held",
    "Sendable",
    "Source",
    "Told",
    "TransferError",
    "ValueEncodingError",
    "Wanted",
    "host_identity",
    "size_of",
]
