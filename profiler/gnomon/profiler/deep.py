"""A deep profile of one call: pyinstrument on the calling thread, its stacks in their order, once a millisecond.

The sampler sees each thread of a process a hundred times a second at next to no cost; this sees one call ten times as
often, in the order of time, and slows pure Python code down by a good part. It is for calls that somebody has chosen.

The result travels as bytes: pyinstrument's own session file, gzipped. ``load`` gives it back as pyinstrument's
``Session``; :func:`gnomon.profiler.export.pyinstrument.from_pyinstrument` turns that into one of ours.

Contents: profile, Recording, load, INTERVAL.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyinstrument.session import Session

T = TypeVar("T")

__all__ = ["INTERVAL", "Recording", "load", "profile"]

#: Seconds between two stacks.
INTERVAL = 0.001

#: What pyinstrument puts between the parts of a stack entry: behind this come line number and other attributes.
_ATTRIBUTES = "\x01"

#: How entries of the recording's own calls begin: it may be seen as it starts and stops.
_OWN = tuple(f"{name}\x00{__file__}\x00" for name in ("__enter__", "__exit__"))


def profile(
    func: Callable[..., T],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    interval: float = INTERVAL,
) -> tuple[T, bytes]:
    """Call ``func(*args, **kwargs)`` on this thread under pyinstrument; give its result and the session's bytes.

    The stacks begin at ``func``: what called this is cut off. Only this thread is seen. What ``func`` raises is raised,
    without a profile; use :class:`Recording` where the profile of a failing call is wanted.
    """
    recording = Recording(interval=interval, description=getattr(func, "__qualname__", repr(func)))
    with recording.below(sys._getframe()):
        result = func(*args, **(kwargs or {}))
    return result, recording.data


class Recording:
    """A context manager that records its thread from entry to exit; ``data`` then holds the session's bytes.

    The exit must be on the thread of the entry. Entered under another pyinstrument profiler of the same thread, both
    record. A profile function set by ``sys.setprofile`` is put back at the exit; it hears nothing in between.
    """

    def __init__(self, *, interval: float = INTERVAL, description: str = "") -> None:
        from pyinstrument import Profiler

        self.data = b""
        self.description = description
        self._profiler = Profiler(interval=interval, async_mode="disabled")
        self._cut = 0
        self._frame: FrameType | None = None
        self._before: Any = None

    def below(self, frame: FrameType) -> Recording:
        """Cut ``frame`` and its callers off every stack; without this, the callers of the block are cut off."""
        self._frame = frame
        return self

    def __enter__(self) -> Recording:
        frame = self._frame or sys._getframe().f_back
        self._cut = _depth(frame) - (self._frame is None)
        self._frame = None
        self._before = sys.getprofile()
        self._profiler.start(caller_frame=frame, target_description=self.description or None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        session = self._profiler.stop()
        before, self._before = self._before, None
        if sys.getprofile() is None and callable(before):
            sys.setprofile(before)
        start = session.start_call_stack
        session.frame_records = _shortened(session.frame_records, start[: self._cut + 1])
        session.start_call_stack = start[:1]
        self.data = gzip.compress(json.dumps(session.to_json()).encode(), compresslevel=3, mtime=0)


def load(data: bytes) -> Session:
    """The pyinstrument session of a deep profile; ``ValueError`` if the bytes are none."""
    from pyinstrument.session import Session

    try:
        session: Session = Session.from_json(json.loads(gzip.decompress(data)))
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise ValueError("these bytes are no deep profile") from error
    return session


def _depth(frame: FrameType | None) -> int:
    depth = 0
    while frame is not None:
        depth += 1
        frame = frame.f_back
    return depth


def _shortened(records: list[tuple[list[str], float]], outer: list[str]) -> list[tuple[list[str], float]]:
    """The records without the outer callers and this module's own calls, and with equal neighbours made one.

    The first entry of each stack names the thread and stays. A stack that does not start with the outer callers (a
    greenlet has its own) stays whole.
    """
    wanted = [entry.partition(_ATTRIBUTES)[0] for entry in outer]
    count = len(wanted)
    result: list[tuple[list[str], float]] = []
    for stack, seconds in records:
        if [entry.partition(_ATTRIBUTES)[0] for entry in stack[:count]] == wanted:
            stack = stack[:1] + stack[count:]
            if len(stack) > 1 and stack[1].startswith(_OWN):
                continue
        if result and result[-1][0] == stack:
            result[-1] = (stack, result[-1][1] + seconds)
        else:
            result.append((stack, seconds))
    return result
