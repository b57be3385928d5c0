"""Graphs of tasks by shape, as clients send them; the same ones every time.

Contents: Graph, SHAPES, graph, message_of, message; fan, tasks that get ready at once; frame_shuffle for the task-based
shuffle of a data frame.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from gnomon.runtime.messages import UpdateGraph

__all__ = ["SHAPES", "Graph", "fan", "frame_shuffle", "graph", "message", "message_of"]

CODE = b"a pickled function"


class Graph(NamedTuple):
    """Rows of a graph: keys, dependencies by row (an empty list: none has any), and the rows that are wanted."""

    keys: list[Any]
    dependencies: list[tuple[int, ...]]
    wanted: list[int]


class _Rows:
    """A graph that grows row by row."""

    def __init__(self) -> None:
        self.keys: list[Any] = []
        self.dependencies: list[tuple[int, ...]] = []

    def add(self, key: Any, needs: tuple[int, ...] = ()) -> int:
        self.keys.append(key)
        self.dependencies.append(needs)
        return len(self.keys) - 1

    def graph(self, wanted: list[int]) -> Graph:
        return Graph(self.keys, self.dependencies, wanted)


def _map(n: int) -> Graph:
    """``n`` tasks that need nothing, all wanted."""
    return Graph([f"inc-0a1b2c3d-{i}" for i in range(n)], [], list(range(n)))


def _merge(n: int) -> Graph:
    """Tasks that need nothing, and one that needs them all."""
    rows = _Rows()
    needs = tuple([rows.add(f"inc-0a1b2c3d-{i}") for i in range(n - 1)])
    return rows.graph([rows.add("merge-5f6a7b8c", needs)])


def _tree(n: int) -> Graph:
    """Leaves, merged two by two down to one."""
    rows = _Rows()
    level = [rows.add(("leaf-0a1b2c3d", i)) for i in range((n + 1) // 2)]
    depth = 0
    while len(level) > 1:
        depth += 1
        level = [rows.add((f"merge-{depth}", i), tuple(level[i : i + 2])) for i in range(0, len(level), 2)]
    return rows.graph(level)


def _stencil(n: int) -> Graph:
    """A square of cells; each needs itself and its neighbours of the step before."""
    width = math.isqrt(n)
    rows = _Rows()
    level = [rows.add(("cell-0a1b2c3d", 0, i)) for i in range(width)]
    for step in range(1, width):
        level = [rows.add(("cell-0a1b2c3d", step, i), tuple(level[max(0, i - 1) : i + 2])) for i in range(width)]
    return rows.graph(level)


def _shuffle(n: int) -> Graph:
    """All to all: ``m`` inputs, ``m`` x ``m`` splits, ``m`` outputs that need a split of every input."""
    m = math.isqrt(n + 1) - 1
    rows = _Rows()
    inputs = [rows.add(("in-0a1b2c3d", i)) for i in range(m)]
    splits = [[rows.add(("split-0a1b2c3d", i, j), (inputs[i],)) for j in range(m)] for i in range(m)]
    return rows.graph([rows.add(("out-0a1b2c3d", j), tuple([row[j] for row in splits])) for j in range(m)])


def _random(n: int) -> Graph:
    """Each task needs up to three of the thousand before it; those that nobody needs are wanted."""
    chance = random.Random(20)
    rows = _Rows()
    needed: set[int] = set()
    for i in range(n):
        count = min(i, chance.randrange(4))
        needs = tuple(chance.sample(range(max(0, i - 1000), i), count))
        needed.update(needs)
        rows.add(("task-0a1b2c3d", i), needs)
    return rows.graph([i for i in range(n) if i not in needed])


#: Shapes by name; each takes about how many tasks there shall be.
SHAPES: dict[str, Callable[[int], Graph]] = {
    "map": _map,
    "merge": _merge,
    "tree": _tree,
    "stencil": _stencil,
    "shuffle": _shuffle,
    "random": _random,
}


def graph(shape: str, n: int) -> Graph:
    """A graph of a shape with about ``n`` tasks."""
    return SHAPES[shape](n)


def fan(inputs: int, n: int) -> Graph:
    """``n`` tasks that each need three of the inputs, which need nothing."""
    chance = random.Random(20)
    rows = _Rows()
    first = [rows.add(("input-0a1b2c3d", i)) for i in range(inputs)]
    return rows.graph([rows.add(("task-0a1b2c3d", i), tuple(sorted(chance.sample(first, 3)))) for i in range(n)])


def frame_shuffle(partitions: int, branches: int = 32) -> Graph:
    """A data frame's partitions exchanged in stages, as dask does it by tasks.

    With ``k`` branches and ``s`` stages (``k ** s`` at least ``partitions``), a stage groups each partition into ``k``
    parts, takes the parts out, and joins those that belong together. The first stage also reads the partitions.
    """
    stages = max(1, math.ceil(math.log(partitions) / math.log(branches) - 1e-9))
    k = math.ceil(partitions ** (1 / stages) - 1e-9)
    rows = _Rows()
    level = [rows.add(("read-0a1b2c3d", i)) if i < partitions else -1 for i in range(k**stages)]
    for stage in range(stages):
        step = k**stage
        groups = [rows.add((f"group-{stage}", i), (row,) if row >= 0 else ()) for i, row in enumerate(level)]
        joined = []
        for i in range(len(level)):
            first = i - i // step % k * step
            mine = i // step % k
            parts = [rows.add((f"split-{stage}", mine, j), (groups[j],)) for j in range(first, first + k * step, step)]
            joined.append(rows.add((f"join-{stage}", i), tuple(parts)))
        level = joined
    return rows.graph(level[:partitions])


def message_of(graph: Graph, first_future: int = 1) -> UpdateGraph:
    """The graph as a client sends it."""
    n = len(graph.keys)
    future_ids = [0] * n
    for k, row in enumerate(graph.wanted):
        future_ids[row] = first_future + k
    return UpdateGraph(
        ((1, CODE),),
        tuple(graph.keys),
        (1,) * n,
        tuple([b"payload %d" % i for i in range(n)]),
        tuple(graph.dependencies),
        (),
        tuple(future_ids),
    )


@lru_cache(maxsize=2)
def message(shape: str, n: int) -> UpdateGraph:
    """The message of a graph of a shape; kept, because asv prepares each sample anew."""
    return message_of(graph(shape, n))
