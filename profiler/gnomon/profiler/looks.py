"""A look at where all threads are: cheap for their innermost calls, dearer for whole stacks, which are read when asked.

Monitors look many times a second and need a stack only when something is wrong. A look holds code objects and
numbers, no frame. Reading other threads' frames needs care, which is explained in ``plain``.
"""

from __future__ import annotations

import gc
import operator
import sys
from collections.abc import Callable
from functools import partial
from itertools import chain
from types import CodeType, FrameType
from typing import Any

from gnomon.profiler.plain import Stack, current_stacks

__all__ = ["Leaf", "Look"]

_call: Callable[[Callable[[], Any]], Any] = operator.call

#: Code and instruction of a thread's innermost call.
Leaf = tuple[CodeType, int]


class Look:
    """Where the threads of this process are at the moment at which it is made."""

    __slots__ = ("_stacks", "leaves")

    def __init__(self) -> None:
        #: The innermost call of each thread, by ident.
        self.leaves: dict[int, Leaf] = {ident: (frame.f_code, frame.f_lasti) for ident, frame in _leaf_frames().items()}
        self._stacks: dict[int, Stack] | None = None

    def stacks(self) -> dict[int, Stack]:
        """All stacks, leaf first, as of the first time that this is asked for: soon, or the threads have gone on."""
        if self._stacks is None:
            self._stacks = current_stacks()
        return self._stacks


def _without_collection() -> dict[int, FrameType]:
    """``sys._current_frames()`` with collection off, in one call of C code, in which no other thread can run."""
    restore: list[Callable[[], Any]] = []
    choices: dict[bool, Callable[[], Any]] = {True: gc.enable, False: bool}
    choose = choices.__getitem__
    remember = partial(restore.extend, map(choose, map(_call, (gc.isenabled,))))
    steps: tuple[Callable[[], Any], ...] = (remember, gc.disable, sys._current_frames)
    before, after = map(_call, steps), map(_call, map(_call, (restore.pop,)))
    frames: dict[int, FrameType] = list(chain(before, after))[2]
    return frames


_leaf_frames = _without_collection if sys.version_info < (3, 12) else sys._current_frames
