"""A look at where all threads are: cheap for their innermost calls, dearer for whole stacks, which are read when asked.

Monitors look many times a second and need a stack only when something is wrong. A look holds code objects and
numbers, no frame. Reading other threads' frames needs care, which is explained in ``plain``.
"""

from __future__ import annotations

from gnomon.profiler.reading.plain import Leaf, Stack, current_leaves, current_stacks

__all__ = ["Leaf", "Look"]


class Look:
    """Where the threads of this process are at the moment at which it is made."""

    __slots__ = ("_stacks", "leaves")

    def __init__(self) -> None:
        #: The innermost call of each thread, by ident.
        self.leaves = current_leaves()
        self._stacks: dict[int, Stack] | None = None

    def stacks(self) -> dict[int, Stack]:
        """All stacks, leaf first, as of the first time that this is asked for: soon, or the threads have gone on."""
        if self._stacks is None:
            self._stacks = current_stacks()
        return self._stacks
