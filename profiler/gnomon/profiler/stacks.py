# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""One look at the stacks of all sampled threads: the part that runs at every tick, compiled.

A stack is read from its leaf to its root as pairs of code object and instruction, and put beside the one that the
thread had before: from the root on, as far as they are the same, the nodes are known. Pairs are compared, not frames:
a frame's address may have been given to another call since. The pairs keep their code objects alive until the next
tick, so that an address of code can't have changed hands either. No frame is kept.
"""

from __future__ import annotations

from array import array
from types import FrameType

from gnomon.profiler import plain as snapshot
from gnomon.profiler.frames import CUT
from gnomon.profiler.regions import Books
from gnomon.profiler.tree import Tree

__all__ = ["LABEL_BITS", "MAX_LABELS", "MAX_THREADS", "NODE_BITS", "Watched", "take_sample"]

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

    __slots__ = ("entries", "ident", "lastis", "nodes", "number", "present", "size", "spare", "spare_lastis")

    def __init__(self, ident: int, number: int) -> None:
        self.ident = ident
        self.number = number
        self.present = True  #: whether the last sample found it
        self.size = 0
        self.entries: list[object] = []
        self.lastis = array("i", bytes(0))
        self.nodes = array("i", bytes(0))
        self.spare: list[object] = []
        self.spare_lastis = array("i", bytes(0))
        self.grow(64)

    def grow(self, more: int) -> None:
        """Room for deeper stacks."""
        room = bytes(4 * more)
        self.entries.extend([None] * more)
        self.spare.extend([None] * more)
        self.lastis = array("i", bytes(self.lastis) + room)
        self.spare_lastis = array("i", bytes(self.spare_lastis) + room)
        self.nodes = array("i", bytes(self.nodes) + room)

    def forget(self) -> None:
        """Drop the last stack and the code objects that it keeps alive."""
        room = len(self.entries)
        self.size = 0
        self.entries = [None] * room
        self.spare = [None] * room

    def read(self, frame: FrameType | None, books: Books | None) -> int:
        """Read a stack into the spare columns; return its length."""
        count = 0
        open_regions = books.top if books is not None else 0
        while frame is not None:
            if count + open_regions + 2 >= len(self.spare):
                self.grow(len(self.spare))
            if open_regions and books is not None:
                count = self.read_regions(books, id(frame), count)
            self.spare[count] = frame.f_code
            self.spare_lastis[count] = frame.f_lasti
            count += 1
            if count >= _FAR:
                self.spare[count] = CUT
                self.spare_lastis[count] = _NO_CODE
                return count + 1
            frame = frame.f_back
        return count

    def read_regions(self, books: Books, frame: int, count: int) -> int:
        """Put the regions that a frame has open in the stack, innermost first; return the stack's length."""
        at = books.top - 1
        while at >= 0:
            if books.frames[at] == frame and count + 2 < len(self.spare):
                self.spare[count] = books.mark(at)
                self.spare_lastis[count] = _NO_CODE
                count += 1
            at -= 1
        return count

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


def take_sample(
    tree: Tree,
    watched: tuple[Watched, ...],
    cells: dict[int, list[str]],
    books: dict[int, Books],
    labels: dict[str, int],
    depth: int,
    keys: array[int],
    first: int,
    strangers: list[int] | None,
    own: int,
) -> int:
    """Put a number for each thread's stack into ``keys`` behind the ``first`` ones; return how many there are then.

    ``cells`` and ``books``: the threads' labels and regions. ``labels``: numbers of labels, extended by new ones; the
    last number stands for all that came too late. ``strangers``: where given, it is filled with the idents of threads
    that are not in ``watched``; ``own`` is the sampler's.
    """
    count = first
    held = snapshot.hold_collection()
    frames = None
    try:
        frames = snapshot.current_frames()
        for thread in watched:
            frame = frames.pop(thread.ident, None)
            thread.present = frame is not None
            if frame is None:
                continue
            length = thread.read(frame, books.get(thread.ident))
            if length > depth:
                length = thread.cut(length, depth)
            node = thread.place(tree, length)
            keys[count] = (
                (thread.number << (_NODE_BITS + _LABEL_BITS))
                | (_label_number(labels, cells.get(thread.ident)) << _NODE_BITS)
                | node
            )
            count += 1
        frame = None
        if strangers is not None:
            for ident in frames:
                if ident != own:
                    strangers.append(ident)
    finally:
        # The sampler's own frame is among them: it would keep itself, and with it all others, alive.
        frame = None
        if frames is not None:
            frames.clear()
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
