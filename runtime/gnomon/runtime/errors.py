"""Every error that gnomon raises, in one tree; the branch says whose fault it is.

    GnomonError
    |-- ConfigError (ValueError)              a setting: unknown, ill-typed or out of range
    |-- CommError (OSError)                   two processes could not talk
    |   |-- CommClosedError                   the connection is closed, or was lost
    |   |-- ConnectTimeoutError (TimeoutError)    nobody answered at the address before the deadline
    |   |-- FrameTooLargeError (ValueError)   one message is larger than ``comm.max_frame``
    |   |-- ListenRefusedError                we won't listen there unprotected
    |   |-- PeerError                         the peer broke the protocol, and was closed
    |   `-- HandshakeError                    the peer answered, but is not whom we may talk to
    |       |-- VersionMismatchError          another protocol version or Python version
    |       `-- AuthenticationError           no proof of the same secret, or certificates refused
    |-- ClusterError (RuntimeError)           the cluster can't do what was asked: closed, no workers, did not start
    `-- TaskError                             the runtime's word on a task; the user's own exceptions arrive as they are
        |-- SerializationError (TypeError)    a function, argument, result or exception would not pickle or unpickle
        |-- KilledWorker                      the task's workers died too often
        |-- WorkerLostError                   the executor or worker that ran it died, and it may not be run again
        |-- NoValidWorkerError                no worker may ever run it
        |-- FutureLostError                   its value is gone and can't be computed again
        `-- FutureCancelledError (concurrent.futures.CancelledError)

Deadlines of the user's own (``timeout=`` of a wait) raise the builtin ``TimeoutError``. Imports nothing of ours.
"""

from __future__ import annotations

from concurrent.futures import CancelledError
from typing import Any

__all__ = [
    "AuthenticationError",
    "ClusterError",
    "CommClosedError",
    "CommError",
    "ConfigError",
    "ConnectTimeoutError",
    "FrameTooLargeError",
    "FutureCancelledError",
    "FutureLostError",
    "GnomonError",
    "HandshakeError",
    "KilledWorker",
    "ListenRefusedError",
    "NoValidWorkerError",
    "PeerError",
    "SerializationError",
    "TaskError",
    "VersionMismatchError",
    "WorkerLostError",
]


class GnomonError(Exception):
    """Root of all errors of gnomon."""


class ConfigError(GnomonError, ValueError):
    """A setting is unknown, has the wrong type or is out of range; the message names where it came from."""


class CommError(GnomonError, OSError):
    """Two processes could not talk to each other."""


class CommClosedError(CommError):
    """The connection is closed or was lost: nothing more can be sent on it."""


class ConnectTimeoutError(CommError, TimeoutError):
    """Nobody answered at the address before the deadline."""


class FrameTooLargeError(CommError, ValueError):
    """One message alone is larger than ``comm.max_frame`` bytes; nothing of it was sent."""


class ListenRefusedError(CommError):
    """Listening there would leave the cluster open to others: neither TLS nor an explicit secret protects it."""


class PeerError(CommError):
    """The peer broke the protocol; the connection to it is closed, others go on."""


class HandshakeError(CommError):
    """Someone answered at the address, but not one whom we may talk to."""


class VersionMismatchError(HandshakeError):
    """The two sides run different versions of gnomon's protocol or of Python."""


class AuthenticationError(HandshakeError):
    """A side could not prove that it belongs to the cluster: another secret, or certificates that were refused."""


class ClusterError(GnomonError, RuntimeError):
    """The cluster can't do what was asked of it: it is closed, has no workers, or did not start."""


class TaskError(GnomonError):
    """What the runtime itself has to say of a task; exceptions raised by the user's code arrive as they are."""


class SerializationError(TaskError, TypeError):
    """A function, argument, result or exception could not be pickled or unpickled."""


class KilledWorker(TaskError):  # noqa: N818 - the name users of dask know
    """A task was on several workers or executors when they died, and is not tried again.

    ``task`` is its key, where known. The text says how often, where last and of what, as far as the agent could tell.
    """

    def __init__(self, message: str, task: Any = None) -> None:
        super().__init__(message, task)
        self.task = task

    def __str__(self) -> str:
        return f"{self.args[0]}. Does the task crash its process, or run out of memory?"


class WorkerLostError(TaskError):
    """The executor or worker that ran the task died."""


class NoValidWorkerError(TaskError):
    """No worker may ever run the task: restrictions or resources that none has."""


class FutureLostError(TaskError):
    """The value is gone and there is no way to compute it again (scattered data, a scheduler that went away)."""


class FutureCancelledError(TaskError, CancelledError):
    """The future was cancelled, by this client or another.

    Fields:
        key: the task's key.
        reason: one word for programs.
        message: for people.
    """

    def __init__(self, key: Any, reason: str = "unknown", message: str = "") -> None:
        super().__init__(key, reason, message)
        self.key = key
        self.reason = reason
        self.message = message

    def __str__(self) -> str:
        text = f"{self.key!r} was cancelled: {self.reason}"
        return f"{text} ({self.message})" if self.message else text
