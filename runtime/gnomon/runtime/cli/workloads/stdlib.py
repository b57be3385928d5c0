"""Parse every module of the running Python's standard library and count the kinds of syntax nodes.

One task per file, then a tree of tasks that merges the counts. Nothing is needed but Python itself.
"""

from __future__ import annotations

import ast
import sysconfig
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gnomon.runtime.client import Client, Future

__all__ = ["Counts", "count_nodes", "find_files", "merge_counts", "submit"]

_FAN_IN = 16  # counts that one task merges


class Counts(NamedTuple):
    """What was found in some files.

    Fields:
        files: looked at. unparsed: those of them that are no valid source (the test suite has some on purpose).
        lines: of source.
        nodes: how many nodes of each kind.
    """

    files: int
    unparsed: int
    lines: int
    nodes: dict[str, int]


def find_files() -> list[str]:
    """Every source file of the standard library, its tests included where they are installed, largest first."""
    root = Path(sysconfig.get_paths()["stdlib"])
    found = [path for path in root.rglob("*.py") if not {"site-packages", "dist-packages"} & set(path.parts)]
    return [str(path) for path in sorted(found, key=lambda path: (-path.stat().st_size, str(path)))]


def count_nodes(path: str) -> Counts:
    """Parse one file and count its nodes by kind."""
    source = Path(path).read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the compiler thinks of old code is not our business
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return Counts(1, 1, source.count(b"\n"), {})
    return Counts(1, 0, source.count(b"\n"), dict(Counter(type(node).__name__ for node in ast.walk(tree))))


def merge_counts(parts: Sequence[Counts]) -> Counts:
    """The sum of several counts."""
    nodes: Counter[str] = Counter()
    for part in parts:
        nodes.update(part.nodes)
    files, unparsed, lines = (sum(column) for column in zip(*(part[:3] for part in parts), strict=True))
    return Counts(files, unparsed, lines, dict(nodes))


def submit(client: Client, paths: Sequence[str]) -> list[Future]:
    """All tasks, submitted; the last future is the total."""
    level = client.map(count_nodes, paths)
    futures = list(level)
    while len(level) > 1:
        level = [client.submit(merge_counts, level[i : i + _FAN_IN]) for i in range(0, len(level), _FAN_IN)]
        futures.extend(level)
    return futures
