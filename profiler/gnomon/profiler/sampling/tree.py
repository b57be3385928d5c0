# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""The call tree of everything that was sampled, as numbers.

A node is a parent node, a function and a line. Nodes are only ever added, a node after its parent, until the tree is
pruned to what is worth keeping. ``edges`` remembers the way from a node over a code and instruction to its child, so
that a stack that was seen before costs one look-up a frame.
"""

from __future__ import annotations

from array import array

from gnomon.profiler.sampling.frames import Functions

__all__ = ["Tree", "heaviest"]

#: Bits of a key of ``_edges``: node, code, instruction. Together 63.
_CODE_BITS = 20
_PLACE_BITS = 20
_MAX_CODE = (1 << _CODE_BITS) - 1
_MAX_PLACE = (1 << _PLACE_BITS) - 2


class Tree:
    """The nodes as parallel columns ``parents`` (-1 for a root), ``functions`` and ``lines``."""

    __slots__ = ("_edges", "_nodes", "functions", "lines", "names", "parents")

    def __init__(self, names: Functions) -> None:
        self.names = names
        self.parents: array[int] = array("i")
        self.functions: array[int] = array("i")
        self.lines: array[int] = array("i")
        self._nodes: dict[tuple[int, int, int], int] = {}
        self._edges: dict[int, int] = {}

    def child(self, parent: int, entry: object, lasti: int) -> int:
        """The node below ``parent`` (-1: a root) for a code object at an instruction, or for a region or marker."""
        code = self.names.code_number(entry)
        place = lasti >> 1
        if place > _MAX_PLACE:
            place = _MAX_PLACE
        key = ((parent + 1) << (_CODE_BITS + _PLACE_BITS)) | ((code & _MAX_CODE) << _PLACE_BITS) | (place + 1)
        known = self._edges.get(key)
        if known is not None:
            return known
        node = self.node(parent, self.names.function_of(code), self.names.line_of(code, lasti))
        if code <= _MAX_CODE and place < _MAX_PLACE:
            self._edges[key] = node
        return node

    def node(self, parent: int, function: int, line: int) -> int:
        """The node of a function and line below ``parent``, made if need be."""
        key = (parent, function, line)
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = len(self.parents)
            self.parents.append(parent)
            self.functions.append(function)
            self.lines.append(line)
        return node

    def size(self) -> int:
        """How many nodes there are."""
        return len(self.parents)

    def forget_codes(self) -> None:
        """Empty the short memory of code objects; nodes stay."""
        self._edges.clear()
        self.names.forget_codes()

    def prune(self, counts: dict[int, int], limit: int) -> list[int]:
        """Keep the ``limit`` nodes that most samples went through (``counts``: samples that ended in a node).

        Returns for each old node the new number of it or of its nearest ancestor that was kept, -1 if none was.
        """
        kept = heaviest(self.parents, counts, limit)
        old = (self.parents, self.functions, self.lines)
        self.parents, self.functions, self.lines = array("i"), array("i"), array("i")
        self._nodes.clear()
        self._edges.clear()
        moved: list[int] = []
        for node in range(len(old[0])):
            parent = moved[old[0][node]] if old[0][node] >= 0 else -1
            moved.append(self.node(parent, old[1][node], old[2][node]) if kept[node] else parent)
        return moved


def heaviest(parents: array[int], counts: dict[int, int], limit: int) -> bytearray:
    """Flags of at most ``limit`` nodes with the most samples in or below them; an ancestor of a kept node is kept."""
    totals = [0] * len(parents)
    for node, count in counts.items():
        totals[node] += count
    for node in range(len(parents) - 1, -1, -1):
        if parents[node] >= 0:
            totals[parents[node]] += totals[node]
    # An ancestor has at least as many, and of equals it comes first: so it is taken before what is below it.
    ranked = sorted(range(len(parents)), key=totals.__getitem__, reverse=True)
    flags = bytearray(len(parents))
    for node in ranked[:limit]:
        flags[node] = totals[node] > 0
    return flags
