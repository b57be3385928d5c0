"""Bytes moved by the event loop's own transports: asyncio's, or uvloop's.

Contents: attach.
"""

from __future__ import annotations

import asyncio
import socket
import ssl

from gnomon.runtime.comm.stream import StreamComm

__all__ = ["attach"]


async def attach(
    sock: socket.socket, comm: StreamComm, *, tls: ssl.SSLContext | None, server_hostname: str | None
) -> None:
    """Put a connected socket under a comm, after TLS's handshake if there is a context; no name: as server.

    The caller sets the deadline. Raises OSError (of which ssl.SSLError is one); the socket is the caller's to close.
    """
    loop = asyncio.get_running_loop()
    # The caller's deadline counts; asyncio wants one of its own, so it is given one that is later.
    patience = 3600.0 if tls is not None else None
    if server_hostname is not None:
        await loop.create_connection(
            lambda: comm,
            sock=sock,
            ssl=tls,
            server_hostname=server_hostname if tls is not None else None,
            ssl_handshake_timeout=patience,
        )
    else:
        await loop.connect_accepted_socket(lambda: comm, sock, ssl=tls, ssl_handshake_timeout=patience)
