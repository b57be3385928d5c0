"""Instructions that a task costs the brain, counted by valgrind's callgrind: a figure that no busy machine disturbs.

One interpreter runs under valgrind and counts only while it is inside ``PyRun_SimpleString``, through which each graph
is run once it has been run before; valgrind writes down what came together after each. The simulated workers' answers
are part of it, the same ones each time.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.graphs import graph, message_of
from benchmarks.zero_worker import ZeroCluster
from gnomon.runtime.messages import UpdateGraph

__all__ = ["available", "instructions_per_task"]

_TASKS = 500
_ROOT = Path(__file__).parents[1]
_GATE = "PyRun_SimpleStringFlags"


def available() -> bool:
    """Whether valgrind is installed."""
    return shutil.which("valgrind") is not None


def instructions_per_task(shapes: Sequence[str]) -> dict[str, float]:
    """Instructions per task of a graph of each shape, arrival and release included.

    Raises RuntimeError where valgrind or the program under it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        tool += [f"--toggle-collect={_GATE}", f"--dump-after={_GATE}"]
        program = [sys.executable, "-m", "benchmarks.callgrind", *shapes]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            [*tool, *program], check=False, cwd=_ROOT, env=environment, capture_output=True, text=True
        )
        counts = [_total(Path(folder, f"out.{i + 1}")) for i in range(len(shapes))]
    if done.returncode or not all(counts):
        raise RuntimeError(f"callgrind failed ({done.returncode}): {done.stderr[-2000:]}")
    return {shape: n / len(graph(shape, _TASKS).keys) for shape, n in zip(shapes, counts, strict=True)}


def _total(dump: Path) -> int:
    """Instructions in one of callgrind's files; 0 if there is none."""
    if not dump.exists():
        return 0
    found = re.search(r"^(?:totals|summary): (\d+)", dump.read_text(), re.MULTILINE)
    return int(found[1]) if found else 0


def main(shapes: Sequence[str]) -> None:
    """What is counted: each graph once to get warm, and once through the gate."""
    for shape in shapes:
        message = message_of(graph(shape, _TASKS))
        ZeroCluster(10).run(message)
        _counted.append((ZeroCluster(10), message))
        ctypes.pythonapi.PyRun_SimpleString(b"import __main__; __main__.run_counted()")


#: The cluster and the graph that are to be run through the gate.
_counted: list[tuple[ZeroCluster, UpdateGraph]] = []


def run_counted() -> None:
    """Called by way of the gate."""
    cluster, message = _counted.pop()
    cluster.run(message)


if __name__ == "__main__":
    main(sys.argv[1:])
