"""What a thread says it is working on: a label that its samples carry, so that profiles can be filtered by it.

Setting it is one store in a list of one item; whoever sets it very often keeps that list: ``cell()[0] = "load"``.
Labels belong to the process, all samplers read the same ones. They should be few (a task's prefix, not its key).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gnomon.profiler.marks.threads import PerThread, new_table

__all__ = ["by_thread", "cell", "label", "set_label"]

#: The cells of threads that have one, by ident. For readers.
by_thread: dict[int, list[str]] = new_table()


def _new_cell() -> list[str]:
    return [""]


_mine: PerThread[list[str]] = PerThread(_new_cell, by_thread)


def set_label(label: str) -> None:
    """Label the calling thread's samples from now on; "" takes the label away."""
    _mine.record[0] = label


def cell() -> list[str]:
    """The list whose only item is the calling thread's label."""
    return _mine.record


@contextmanager
def label(name: str) -> Iterator[None]:
    """Label the calling thread's samples inside a ``with`` block."""
    mine = _mine.record
    before = mine[0]
    mine[0] = name
    try:
        yield
    finally:
        mine[0] = before
