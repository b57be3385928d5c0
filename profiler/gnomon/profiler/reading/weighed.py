"""Stacks of one thread, weighed by time, and the frames that dominate them.

For a handful of samples of one stall; the sampler's tree is for millions. Code objects are kept while it lasts.
"""

from __future__ import annotations

import sysconfig
from collections import defaultdict
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from gnomon.profiler.reading.looks import Leaf
from gnomon.profiler.reading.plain import Stack

__all__ = ["Frame", "WeighedStacks", "frames_of", "own_code"]

#: Frames kept of a stack, counted from the innermost.
_DEPTH = 200

_HERE = str(Path(__file__).parents[1]) + "/"
_LIBRARIES = tuple({sysconfig.get_paths()["stdlib"] + "/", sysconfig.get_paths()["platstdlib"] + "/"})


class Frame(NamedTuple):
    """One line of a stack, readable after the code is gone."""

    function: str
    file: str
    line: int

    def __str__(self) -> str:
        """As people write it: function (file:line)."""
        return f"{self.function} ({self.file}:{self.line})"


def frames_of(stack: Stack | None) -> tuple[Frame, ...]:
    """A stack in readable form, outermost first."""
    return tuple(Frame(code.co_qualname, code.co_filename, _line(code, lasti)) for code, lasti in _calls(stack))


def own_code(stack: tuple[Frame, ...]) -> Frame | None:
    """The innermost frame that is neither Python's own library nor this package, or else the innermost of all."""
    for frame in reversed(stack):
        if not _is_library(frame.file):
            return frame
    return stack[-1] if stack else None


class WeighedStacks:
    """Weights, in seconds, of the stacks that were seen."""

    def __init__(self) -> None:
        self._weights: defaultdict[tuple[Leaf, ...], float] = defaultdict(float)
        self.number = 0
        self.seconds = 0.0

    def add(self, stack: Stack, weight: float) -> None:
        """Count ``weight`` seconds for a stack."""
        self._weights[_calls(stack)] += weight
        self.number += 1
        self.seconds += weight

    def dominating(self) -> tuple[Frame, ...]:
        """The deepest stack that was there for at least half of the time, each frame at its heaviest line."""
        rows = [(stack, weight) for stack, weight in self._weights.items() if weight > 0]
        half = sum(weight for _, weight in rows) / 2
        found: list[Frame] = []
        while rows:
            depth = len(found)
            rows = [(stack, weight) for stack, weight in rows if len(stack) > depth]
            by_code: defaultdict[CodeType, float] = defaultdict(float)
            by_call: defaultdict[Leaf, float] = defaultdict(float)
            for stack, weight in rows:
                by_code[stack[depth][0]] += weight
                by_call[stack[depth]] += weight
            if not by_code:
                break
            code = max(by_code, key=by_code.__getitem__)
            if by_code[code] < half:
                break
            found.append(Frame(code.co_qualname, code.co_filename, _heaviest_line(code, by_call)))
            rows = [(stack, weight) for stack, weight in rows if stack[depth][0] is code]
        return tuple(found)


def _is_library(file: str) -> bool:
    """Whether a file belongs to Python itself (installed packages don't) or to this package."""
    if file.startswith((_HERE, "<frozen")):
        return True
    return file.startswith(_LIBRARIES) and "site-packages" not in file


def _calls(stack: Stack | None) -> tuple[Leaf, ...]:
    """Code and instruction of each call, outermost first."""
    if stack is None:
        return ()
    return tuple(zip(stack[0][:_DEPTH], stack[1][:_DEPTH], strict=True))[::-1]


def _heaviest_line(code: CodeType, by_call: dict[Leaf, float]) -> int:
    by_line: defaultdict[int, float] = defaultdict(float)
    for (of, lasti), weight in by_call.items():
        if of is code:
            by_line[_line(code, lasti)] += weight
    return max(by_line, key=by_line.__getitem__)


def _line(code: CodeType, lasti: int) -> int:
    """The line of an instruction; of the function where the instruction has none."""
    for start, end, line in code.co_lines():
        if start <= lasti < end and line is not None:
            return line
    return code.co_firstlineno
