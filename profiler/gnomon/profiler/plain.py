"""How the interpreter is asked for its threads' frames, in plain Python. ``native.pxd`` is the same for compiled code.

On Python 3.11 ``sys._current_frames()`` may deadlock: it makes frame objects while it holds the lock of the list of
threads; making one may start a garbage collection; a finalizer in that needs the same lock, or lets another thread run
that waits for it while holding the GIL (python/cpython#106883). So collection is held off across the call, and the
setting restored. Between two bytecodes another thread may run and turn collection on or off itself; so that neither
side undoes what the other did, the steps run inside *one* call of C code, in which the interpreter never switches
threads. (Where an audit hook written in Python looks at ``sys._current_frames``, it may switch inside the hook. No
lock is held then; only a change of the setting by another thread in just that moment could be lost.)
"""

from __future__ import annotations

import gc
import operator
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from types import FrameType
from typing import Any

__all__ = ["caller_id", "current_frames", "hold_collection", "release_collection"]

#: From 3.12 on collections start between bytecodes only.
_MAY_DEADLOCK = sys.implementation.name == "cpython" and sys.version_info < (3, 12)

_call: Callable[[Callable[[], Any]], Any] = operator.call


def _frames_without_collection() -> dict[int, FrameType]:
    """``sys._current_frames()`` with collection off, as a chain of C iterators that ``list`` draws through."""
    restore: list[Callable[[], object]] = []
    choices: dict[bool, Callable[[], object]] = {True: gc.enable, False: bool}
    remember = partial(restore.extend, map(choices.__getitem__, map(_call, (gc.isenabled,))))
    steps: tuple[Callable[[], Any], ...] = (remember, gc.disable, sys._current_frames)
    last: Iterator[Callable[[], Any]] = map(_call, (restore.pop,))
    try:
        frames: dict[int, FrameType] = list(map(_call, chain(steps, last)))[2]
        return frames
    finally:
        if restore:  # an audit hook has refused
            restore.pop()()


current_frames = _frames_without_collection if _MAY_DEADLOCK else sys._current_frames
"""The running frame of every thread by ident. Safe beside threads that come, go, and set the collector."""


def hold_collection() -> bool:
    """For compiled code, which never lets go of the GIL in a sample. Here other threads would notice."""
    return False


def release_collection(held: bool) -> None:
    """The end of what ``hold_collection`` began."""


def caller_id() -> int:
    """The identity of the frame that called the caller of this function."""
    return id(sys._getframe(2))
