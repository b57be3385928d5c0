# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Order of the tasks of an arriving graph: depth first, so that what has begun is finished before more is begun.

A row comes after all it depends on. From each sink (a row nothing depends on) we go down, the deepest branch first, and
number rows on the way back up. As soon as a row is numbered, the few dependents that have become complete follow at
once: they consume it while it is in memory. (Rows with many dependents don't draw them along: all the leaves of a
graph may hang on one common input.) So a graph of many branches holds about one branch's inputs at a time. Linear in
the edges.
"""

from __future__ import annotations

from array import array

__all__ = ["depth_first"]

#: Rows with more dependents than this don't draw them along.
_FEW = 8


def depth_first(dependencies: tuple[tuple[int, ...], ...], externals: int) -> list[int] | None:
    """The rows in the order they should run; None if no row depends on another: their order is as good as any.

    ``dependencies`` and ``externals`` are those of ``UpdateGraph`` (the latter's length).
    Raises ValueError for an index that names nothing, and for a cycle.
    """
    edges = _count_edges(dependencies, externals)
    if edges == 0:
        return None
    n = len(dependencies)
    down_at = array("i", bytes(4 * (n + 1)))
    down = array("i", bytes(4 * edges))
    up_at = array("i", bytes(4 * (n + 1)))
    up = array("i", bytes(4 * edges))
    _link(dependencies, n, down_at, down, up_at, up)
    heights = array("i", bytes(4 * n))
    _measure(n, down_at, up_at, up, heights)
    _deepest_first(n, down_at, down, heights)
    return _number(n, down_at, down, up_at, up)


def _count_edges(dependencies: tuple[tuple[int, ...], ...], externals: int) -> int:
    """How many dependencies are rows of the graph itself."""
    n = len(dependencies)
    edges = 0
    for row in dependencies:
        for item in row:
            target = item
            if target >= 0:
                if target >= n:
                    raise ValueError(f"a row depends on row {target} of {n}")
                edges += 1
            elif -1 - target >= externals:
                raise ValueError(f"a row depends on external {-1 - target} of {externals}")
    return edges


def _link(
    dependencies: tuple[tuple[int, ...], ...],
    n: int,
    down_at: array[int],
    down: array[int],
    up_at: array[int],
    up: array[int],
) -> None:
    """Fill the edges of all rows, both ways: those of row ``i`` are at ``at[i]`` to ``at[i + 1]``."""
    position = 0
    for i in range(n):
        down_at[i] = position
        for item in dependencies[i]:
            target = item
            if target >= 0:
                down[position] = target
                up_at[target + 1] += 1
                position += 1
    down_at[n] = position
    for i in range(n):
        up_at[i + 1] += up_at[i]
    fill = array("i", bytes(4 * n))
    for i in range(n):
        fill[i] = up_at[i]
    for i in range(n):
        for k in range(down_at[i], down_at[i + 1]):
            target = down[k]
            up[fill[target]] = i
            fill[target] += 1


def _measure(n: int, down_at: array[int], up_at: array[int], up: array[int], heights: array[int]) -> None:
    """The longest way down from each row. Raises ValueError for a cycle."""
    missing = array("i", bytes(4 * n))
    line = array("i", bytes(4 * n))
    end = 0
    for i in range(n):
        missing[i] = down_at[i + 1] - down_at[i]
        if missing[i] == 0:
            line[end] = i
            end += 1
    begin = 0
    while begin < end:
        row = line[begin]
        begin += 1
        height = heights[row] + 1
        for k in range(up_at[row], up_at[row + 1]):
            target = up[k]
            if heights[target] < height:
                heights[target] = height
            missing[target] -= 1
            if missing[target] == 0:
                line[end] = target
                end += 1
    if end < n:
        raise ValueError("the tasks of a graph depend on each other in a cycle")


def _deepest_first(n: int, down_at: array[int], down: array[int], heights: array[int]) -> None:
    """Sort the dependencies of each row by height, the highest first; equals keep their order."""
    for i in range(n):
        start = down_at[i]
        stop = down_at[i + 1]
        in_order = True
        for k in range(start + 1, stop):
            if heights[down[k]] > heights[down[k - 1]]:
                in_order = False
                break
        if in_order:
            continue
        ranked = [(-heights[down[k]], k, down[k]) for k in range(start, stop)]
        ranked.sort()
        k = start
        for entry in ranked:
            down[k] = entry[2]
            k += 1


def _number(n: int, down_at: array[int], down: array[int], up_at: array[int], up: array[int]) -> list[int]:
    """The rows in order, by the walk that the head of this module describes."""
    missing = array("i", bytes(4 * n))
    cursor = array("i", bytes(4 * n))
    numbered = array("b", bytes(n))
    # A row is on the stack at most twice: on the way down, and drawn along by a dependency.
    stack = array("i", bytes(8 * n))
    sequence: list[int] = []
    for i in range(n):
        cursor[i] = down_at[i]
        missing[i] = down_at[i + 1] - down_at[i]
    for i in range(n):
        if up_at[i + 1] > up_at[i] or numbered[i]:
            continue
        stack[0] = i
        top = 0
        while top >= 0:
            row = stack[top]
            if numbered[row]:
                top -= 1
                continue
            k = cursor[row]
            stop = down_at[row + 1]
            while k < stop and numbered[down[k]]:
                k += 1
            cursor[row] = k
            if k < stop:
                top += 1
                stack[top] = down[k]
                continue
            top -= 1
            numbered[row] = 1
            sequence.append(row)
            start = up_at[row]
            stop = up_at[row + 1]
            few = stop - start <= _FEW
            k = stop - 1
            while k >= start:
                target = up[k]
                missing[target] -= 1
                if few and missing[target] == 0:
                    top += 1
                    stack[top] = target
                k -= 1
    return sequence
