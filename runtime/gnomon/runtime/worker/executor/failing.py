"""Exceptions of user code as records, with nothing kept alive by them.

An exception holds its traceback, that its frames, and those all the arguments and locals of the task that failed. A
record is made, then the frames are emptied and the traceback cut, so that they die now and not when the garbage
collector comes by.

Contents: record_failure.
"""

from __future__ import annotations

import traceback

from gnomon.runtime.messages import ErrorRecord
from gnomon.runtime.protocol import encode_error

__all__ = ["record_failure"]


def record_failure(exc: BaseException, note: str = "") -> ErrorRecord:
    """The exception as a record; its frames are emptied and its traceback is gone afterwards. Never raises.

    ``note`` says what was being done, where the traceback alone would not.
    """
    try:
        if exc.__traceback__ is not None:  # the frame that caught it is ours, and says nothing to users
            exc.__traceback__ = exc.__traceback__.tb_next
        if note:
            exc.add_note(note)
        return encode_error(exc)
    except BaseException:  # noqa: BLE001 - methods of the user's exception ran, and may raise anything
        name = f"{type(exc).__module__}.{type(exc).__qualname__}"
        return ErrorRecord(name, f"{name}: the exception could not be read")
    finally:
        _forget_frames(exc)


def _forget_frames(exc: BaseException) -> None:
    """Cut the exception, and all that hang on it, loose from the frames they came through."""
    found: list[BaseException] = [exc]
    seen = {id(exc)}
    for current in found:  # grows while it is walked
        tb, current.__traceback__ = current.__traceback__, None
        if tb is not None:
            traceback.clear_frames(tb)
        linked = [current.__cause__, current.__context__]
        if isinstance(current, BaseExceptionGroup):
            linked.extend(current.exceptions)
        for other in linked:
            if other is not None and id(other) not in seen:
                seen.add(id(other))
                found.append(other)
