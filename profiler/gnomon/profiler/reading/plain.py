"""How the interpreter is asked for its threads' stacks, in plain Python. ``native.pxd`` is the same for compiled code.

Stacks of other threads are safe to read only while these don't run. Bytecode can't ensure that, but C code called from
it can, for the interpreter switches threads between bytecodes only: so the whole look, frames and all they are asked
for, is *one* call, ``list`` drawing through a chain of C iterators. What comes out holds code objects and numbers and
no frame.

On Python 3.11 that isn't enough: there, making a frame object may start a garbage collection, and a finalizer in it may
let other threads run after all. Inside ``sys._current_frames()``, which holds the lock of the list of threads, that is
a deadlock (python/cpython#106883); while a frame's caller is looked up it is a crash, for the caller may have ended. So
collection is off during the look, and restored to what it was by the same chain, so that no other thread sees it off,
and none that turns it on or off itself is overruled. (An audit hook written in Python that looks at
``sys._current_frames`` may let others run. No lock is held then; only a change of the collector's setting by another
thread in just that moment could be lost.)
"""

from __future__ import annotations

import gc
import operator
import sys
from array import array
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, chain, islice, repeat, takewhile
from types import CodeType, FrameType
from typing import Any

__all__ = [
    "AT_ONCE",
    "Leaf",
    "Stack",
    "caller_id",
    "current_leaves",
    "current_stacks",
    "hold_collection",
    "read_stack",
    "release_collection",
]

#: Code objects, instructions, and identities of frames, from the leaf to the root.
Stack = tuple[list[CodeType], list[int], list[int]]

#: Code and instruction of a thread's innermost call.
Leaf = tuple[CodeType, int]

#: From 3.12 on collections start between bytecodes only.
_COLLECTS_ANYWHERE = sys.implementation.name == "cpython" and sys.version_info < (3, 12)

#: Frames are not followed further than this.
_FAR = 8192

#: Whether no other thread runs from the beginning of a look to its end, all that is made of it included.
AT_ONCE = False

_call: Callable[[Callable[[], Any]], Any] = operator.call
_LEAF: Callable[[FrameType], Leaf] = operator.attrgetter("f_code", "f_lasti")


def current_stacks() -> dict[int, Stack]:
    """The stacks of all threads by ident. Safe beside threads that come, go, and set the collector."""
    found: list[dict[int, Any]] = []
    frames: list[list[Any]] = []
    codes: list[list[CodeType]] = []
    lastis: list[list[int]] = []
    ids: list[list[int]] = []
    idents = _at_once(
        [
            partial(found.extend, map(_call, (sys._current_frames,))),
            partial(frames.extend, map(list, _with_callers(found))),
            partial(codes.extend, map(list, map(map, repeat(operator.attrgetter("f_code")), frames))),
            partial(lastis.extend, map(list, map(map, repeat(operator.attrgetter("f_lasti")), frames))),
            partial(ids.extend, map(list, map(map, repeat(id), frames))),
            partial(list, map(list.clear, frames)),
            partial(list, map(list, found)),
            partial(list, map(dict.clear, found)),
        ]
    )[-2][0]
    return dict(zip(idents, zip(codes, lastis, ids, strict=True), strict=True))


def current_leaves() -> dict[int, Leaf]:
    """The innermost calls of all threads by ident: a fraction of what their stacks cost. As safe as those."""
    found: list[dict[int, FrameType]] = []
    leaves: list[Leaf] = []
    idents = _at_once(
        [
            partial(found.extend, map(_call, (sys._current_frames,))),
            partial(leaves.extend, map(_LEAF, chain.from_iterable(map(dict.values, found)))),
            partial(list, map(list, found)),
            partial(list, map(dict.clear, found)),
        ]
    )[-2][0]
    return dict(zip(idents, leaves, strict=True))


def _with_callers(found: list[dict[int, FrameType]]) -> Iterator[Iterator[FrameType]]:
    """The frames from each leaf on. To be drawn from when ``found`` has been filled: iterators over lists see that."""
    leaves = map(repeat, chain.from_iterable(map(dict.values, found)), repeat(1))
    callers: Iterator[Any] = map(accumulate, map(chain, leaves, repeat(repeat("f_back"))), repeat(getattr))
    return map(islice, map(takewhile, repeat(bool), callers), repeat(_FAR))


def _at_once(steps: list[Callable[[], Any]]) -> list[Any]:
    """The results of some steps taken inside one call of C code, with collection off where that is needed."""
    if not _COLLECTS_ANYWHERE:
        return list(map(_call, steps))
    restore: list[Callable[[], object]] = []
    choices: dict[bool, Callable[[], object]] = {True: gc.enable, False: bool}
    remember = partial(restore.extend, map(choices.__getitem__, map(_call, (gc.isenabled,))))
    before: tuple[Callable[[], Any], ...] = (remember, gc.disable)
    after: Iterator[Callable[[], Any]] = map(_call, (restore.pop,))
    try:
        return list(map(_call, chain(before, steps, after)))[2:-1]
    finally:
        if restore:  # an audit hook has refused
            restore.pop()()


def read_stack(stack: Stack, entries: list[object], lastis: array[int], frames: array[int]) -> int:
    """Put a stack into columns from the leaf to the root; return its length, -1 if there is no room for it."""
    count = len(stack[0])
    if count > len(entries):
        return -1
    entries[:count] = stack[0]
    lastis[:count] = array("i", stack[1])
    frames[:count] = array("q", stack[2])
    return count


def hold_collection() -> bool:
    """For compiled code, which never lets go of the GIL in a sample. Here other threads would notice."""
    return False


def release_collection(held: bool) -> None:
    """The end of what ``hold_collection`` began."""


def caller_id() -> int:
    """The identity of the frame that called the caller of this function."""
    return id(sys._getframe(2))
