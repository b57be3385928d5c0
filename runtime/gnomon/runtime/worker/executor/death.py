"""Why a child process died, in words and as an error record.

Contents: describe_exit, death_record.
"""

from __future__ import annotations

import signal

from gnomon.runtime.errors import WorkerLostError
from gnomon.runtime.messages import ErrorRecord
from gnomon.runtime.protocol import encode_error
from gnomon.runtime.worker.executor.link import CRASHED

__all__ = ["death_record", "describe_exit"]

_HINTS = {
    "SIGKILL": "likely by the system, for it was out of memory",
    "SIGSEGV": "a crash in compiled code",
    "SIGBUS": "a crash in compiled code, or full shared memory",
    "SIGABRT": "compiled code gave up",
    "SIGFPE": "a crash in compiled code",
    "SIGILL": "a crash in compiled code",
}


def describe_exit(code: int, reason: str = "") -> str:
    """How a process ended, by its exit code as ``subprocess`` gives it; ``reason`` is ours, if we ended it."""
    if reason:
        return f"was ended by its agent: {reason}"
    if code == CRASHED:
        return f"exited with code {code} (it could not go on; its output says why)"
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        return f"was killed by signal {-code}"
    hint = _HINTS.get(name)
    return f"was killed by {name}" + (f" ({hint})" if hint else "")


def death_record(pid: int, code: int, reason: str = "") -> ErrorRecord:
    """The error of the runs that died with a process."""
    return encode_error(WorkerLostError(f"executor process {pid} {describe_exit(code, reason)}"))
