# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""One look at the stacks of all sampled threads: the part that runs at every tick, compiled.

A stack is read from its leaf to its root as pairs of code object and instruction, and put beside the one that the
thread had before: from the root on, as far as they are the same, the nodes are known. Pairs are compared, not frames:
a frame's address may have been given to another call since. The pairs keep their code objects alive until the next
tick, so that an address of code can't have changed hands either. No frame is kept.
"""

from __future__ import annotations

from array import array

from gnomon.profiler.marks.markers import CUT
from gnomon.profiler.marks.regions import Books
from gnomon.profiler.reading import plain as snapshot
from gnomon.profiler.reading.plain import Stack
from gnomon.profiler.sampling.tape import Tape
from gnomon.profiler.sampling.tree import Tree

__all__ = ["LABEL_BITS", "MAX_LABELS", "MAX_THREADS", "NODE_BITS", "Look", "Watched"]

#: A sample is a number: thread, label and node side by side.
NODE_BITS = 31
LABEL_BITS = 12
MAX_LABELS = 1 << LABEL_BITS
MAX_THREADS = 1 << 16

_NODE_BITS = NODE_BITS
_LABEL_BITS = LABEL_BITS

#: Frames are not followed further than this: the root of a deeper stack stays unknown.
_FAR = 8192

#: ``lasti`` of an entry that is no code.
_NO_CODE = -2


class Watched:
    """A sampled thread: its number in sessions, and the stack that it had at the last tick, leaf first."""

    __slots__ = (
        "changed",
        "entries",
        "frames",
        "ident",
        "lastis",
        "nodes",
        "number",
        "present",
        "renewed",
        "root",
        "size",
        "spare",
        "spare_lastis",
    )

    def __init__(self, ident: int, number: int) -> None:
        self.ident = ident
        self.number = number
        self.present = True  #: whether the last sample found it
        self.renewed = False  #: whether its outermost frame is another than at the last sample
        self.root = 0
        self.changed = True  #: whether its stack is another than at the last sample
        self.size = 0
        self.entries: list[object] = []
        self.lastis = array("i", bytes(0))
        self.nodes = array("i", bytes(0))
        self.spare: list[object] = []
        self.spare_lastis = array("i", bytes(0))
        self.frames = array("q", bytes(0))
        self.grow(64)

    def grow(self, more: int) -> None:
        """Room for deeper stacks."""
        room = bytes(4 * more)
        self.entries.extend([None] * more)
        self.spare.extend([None] * more)
        self.lastis = array("i", bytes(self.lastis) + room)
        self.spare_lastis = array("i", bytes(self.spare_lastis) + room)
        self.nodes = array("i", bytes(self.nodes) + room)
        self.frames = array("q", bytes(self.frames) + bytes(8 * more))

    def forget(self) -> None:
        """Drop the last stack and the code objects that it keeps alive."""
        room = len(self.entries)
        self.size = 0
        self.entries = [None] * room
        self.spare = [None] * room

    def read(self, stack: Stack, books: Books | None) -> int:
        """Read a stack into the spare columns; return its length."""
        count = snapshot.read_stack(stack, self.spare, self.spare_lastis, self.frames)
        while count < 0:
            self.grow(len(self.spare))
            count = snapshot.read_stack(stack, self.spare, self.spare_lastis, self.frames)
        root = self.frames[count - 1] if count else 0
        self.renewed = root != self.root and self.root != 0
        self.root = root
        regions = books.top if books is not None else 0
        if count + regions + 1 >= len(self.spare):
            self.grow(regions + 2)
        if count >= _FAR:
            self.spare[count] = CUT
            self.spare_lastis[count] = _NO_CODE
            self.frames[count] = 0
            count += 1
        if regions and books is not None:
            count = self.add_regions(books, count)
        return count

    def add_regions(self, books: Books, count: int) -> int:
        """Put the open regions in the stack, each below the frame that entered it; return the new length.

        Regions of frames that are not on the stack are left out: those of a coroutine that waits, for one.
        """
        more = 0
        for frame in range(count):
            for at in range(books.top):
                if books.frames[at] == self.frames[frame]:
                    more += 1
        if more == 0 or count + more >= len(self.spare):
            return count
        # From the root to the leaf, so that nothing is overwritten before it was moved.
        free = count + more - 1
        frame = count - 1
        while frame >= 0:
            self.spare[free] = self.spare[frame]
            self.spare_lastis[free] = self.spare_lastis[frame]
            free -= 1
            for at in range(books.top):
                if books.frames[at] == self.frames[frame]:
                    self.spare[free] = books.mark(at)
                    self.spare_lastis[free] = _NO_CODE
                    free -= 1
            frame -= 1
        return count + more

    def cut(self, count: int, depth: int) -> int:
        """Leave out the middle of a stack that is deeper than ``depth``; return the new length."""
        leaves = depth // 4
        roots = depth - leaves - 1
        self.spare[leaves] = CUT
        self.spare_lastis[leaves] = _NO_CODE
        skipped = count - roots - (leaves + 1)
        for at in range(leaves + 1, depth):
            self.spare[at] = self.spare[at + skipped]
            self.spare_lastis[at] = self.spare_lastis[at + skipped]
        return depth

    def place(self, tree: Tree, count: int) -> int:
        """The node of the stack in the spare columns, which become the last stack; -1 for an empty one."""
        node = -1
        here = count - 1
        there = self.size - 1
        shift = count - self.size
        while here >= 0 and there >= 0:
            if self.spare[here] is not self.entries[there] or self.spare_lastis[here] != self.lastis[there]:
                break
            here -= 1
            there -= 1
        shared = here + 1
        self.changed = shared > 0 or shift != 0
        if shared < count:
            node = self.nodes[shared - shift]
        if shift:
            self.shift_nodes(shared, count, shift)
        while here >= 0:
            node = tree.child(node, self.spare[here], self.spare_lastis[here])
            self.nodes[here] = node
            here -= 1
        self.entries, self.spare = self.spare, self.entries
        self.lastis, self.spare_lastis = self.spare_lastis, self.lastis
        self.size = count
        return node

    def shift_nodes(self, first: int, stop: int, shift: int) -> None:
        """Move the nodes of the shared part to where the new stack has it."""
        if shift > 0:
            at = stop - 1
            while at >= first:
                self.nodes[at] = self.nodes[at - shift]
                at -= 1
        else:
            for at in range(first, stop):
                self.nodes[at] = self.nodes[at - shift]


class Look:
    """Takes samples of threads into a tree, as numbers on a tape.

    ``cells`` and ``books``: the threads' labels and regions by ident. ``labels``: numbers of labels, extended by new
    ones; the last number stands for all that come too late. ``depth``: frames kept of a stack.
    """

    __slots__ = ("books", "cells", "changed", "depth", "labels", "renewed", "tape", "tree")

    def __init__(
        self,
        tree: Tree,
        cells: dict[int, list[str]],
        books: dict[int, Books],
        labels: dict[str, int],
        depth: int,
        tape: Tape,
    ) -> None:
        self.tree = tree
        self.cells = cells
        self.books = books
        self.labels = labels
        self.depth = depth
        self.tape = tape
        self.renewed = False  #: whether a thread seems to be another than before, with the same ident
        self.changed = False  #: whether a stack is another than before

    def take(self, watched: tuple[Watched, ...], strangers: list[int] | None, own: int) -> int:
        """Put a number for each thread's stack on the tape; return how many there were.

        ``strangers``: where given, it is filled with the idents of threads that are not in ``watched``; ``own`` is the
        sampler's.
        """
        count = 0
        held = snapshot.hold_collection()
        found = None
        try:
            found = snapshot.current_stacks()
            for thread in watched:
                stack = found.pop(thread.ident, None)
                thread.present = stack is not None
                if stack is None:
                    continue
                length = thread.read(stack, self.books.get(thread.ident))
                if thread.renewed:
                    self.renewed = True
                if length > self.depth:
                    length = thread.cut(length, self.depth)
                node = thread.place(self.tree, length)
                if thread.changed:
                    self.changed = True
                label = _label_number(self.labels, self.cells.get(thread.ident))
                self.tape.key((thread.number << (_NODE_BITS + _LABEL_BITS)) | (label << _NODE_BITS) | node)
                count += 1
            if strangers is not None:
                for ident in found:
                    if ident != own:
                        strangers.append(ident)
        finally:
            # Compiled, these are frames: they must go before other threads run, even if an error was raised.
            stack = None
            if found is not None:
                found.clear()
            snapshot.release_collection(held)
        return count


def _label_number(labels: dict[str, int], cell: list[str] | None) -> int:
    if cell is None:
        return 0
    label = cell[0]
    if type(label) is not str:  # another type's hash or equality might run code
        return 0
    number = labels.get(label)
    if number is None:
        number = len(labels)
        if number >= MAX_LABELS - 1:
            return MAX_LABELS - 1
        labels[label] = number
    return number
