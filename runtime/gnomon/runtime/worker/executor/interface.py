"""What an agent sees of an executor, whichever kind it is.

Contents: ExecutorSettings, Executor, OnMessages, OnLost, OnFailed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias

from gnomon.runtime.messages import ErrorRecord, Message

__all__ = ["Executor", "ExecutorSettings", "OnFailed", "OnLost", "OnMessages"]

#: Called on the loop with what the executor says and the file descriptors that come with it (owned by the callee):
#: one per ``ValueEncoded`` with a layout, in the order of the messages.
OnMessages: TypeAlias = Callable[[list[Message], list[int]], None]

#: Called on the loop when a ready executor died: the runs ``(task_id, attempt)`` that were under way, and why it died.
#: Everything it held is gone, code included. A new one is on its way and will say ``ExecutorReady``.
OnLost: TypeAlias = Callable[[list[tuple[int, int]], ErrorRecord], None]

#: Called on the loop when no executor could be started, time and again; there won't be another.
OnFailed: TypeAlias = Callable[[ErrorRecord], None]

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class ExecutorSettings(NamedTuple):
    """What an executor must know; plain values, so that they can be sent.

    Fields:
        nthreads: of the default executor.
        executors: threads of each further executor, by the name that tasks give in their ``executors`` column.
        inline_bytes: results of plain types up to this many pickled bytes are reported with the run.
        message_bytes: encoded values up to this size travel inside messages; larger ones as segments.
        scheduler: the scheduler's address, for clients that tasks make.
        security: how to reach it: the plain form of the security settings.
        sys_path: (child process) where modules are looked for first.
        environment: (child process) variables set before any user code is imported.
        directory: (child process) working directory; empty: the agent's.
        instruments: fields of ``config.InstrumentSettings``; without any nothing is measured.
    """

    nthreads: int = 1
    executors: Mapping[str, int] = _NOTHING
    inline_bytes: int = 512
    message_bytes: int = 1 << 18
    scheduler: str = ""
    security: Mapping[str, Any] = _NOTHING
    sys_path: tuple[str, ...] = ()
    environment: Mapping[str, str] = _NOTHING
    directory: str = ""
    instruments: Mapping[str, Any] = _NOTHING

    def to_plain(self) -> dict[str, Any]:
        """The settings as values that a message can hold."""
        return {name: dict(value) if isinstance(value, Mapping) else value for name, value in self._asdict().items()}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> ExecutorSettings:
        """The settings of ``to_plain``. Raises TypeError for unknown names."""
        return cls(**plain)


class Executor(Protocol):
    """Runs user code for one worker. All methods are called on the agent's loop.

    Constructors: ``ThreadExecutor(settings, on_messages=..., by_reference=...)`` and ``ProcessExecutor(settings,
    on_messages=..., on_lost=..., on_failed=...)``. Callbacks are called on the loop, never from within ``send``.
    """

    @property
    def pid(self) -> int:
        """Process that runs user code now; 0 if there is none."""
        ...

    @property
    def incarnation(self) -> int:
        """Number of the current executor: 1 for the first, one more for each rebirth."""
        ...

    async def start(self) -> None:
        """Begin; returns without waiting for ``ExecutorReady``, which arrives by ``on_messages``."""
        ...

    def send(self, messages: Sequence[Message], fds: Sequence[int] = ()) -> None:
        """Hand over messages, and the descriptors of their ``PutSegments`` rows in order; never blocks.

        The executor owns the descriptors from here on, and closes them. Dropped while there is no executor.
        """
        ...

    async def close(self, grace: float) -> None:
        """Forget what is queued, give running tasks ``grace`` seconds to end, then leave with or without them.

        Their outcomes are still reported. Idempotent.
        """
        ...
