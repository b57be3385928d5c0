"""Stacks of one thread, weighed by time, and the frames that dominate them.

For a handful of samples of one stall; the sampler's tree is for millions. Code objects are kept while it lasts, frames
never.
"""

from __future__ import annotations

import sysconfig
from collections import defaultdict
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

__all__ = ["Frame", "WeighedStacks", "own_code", "stack_of"]

#: Frames kept of a stack, counted from the innermost.
DEPTH = 100

_HERE = str(Path(__file__).parent) + "/"
_LIBRARIES = tuple({sysconfig.get_paths()["stdlib"] + "/", sysconfig.get_paths()["platstdlib"] + "/"})


class Frame(NamedTuple):
    """One line of a stack, readable after the code is gone."""

    function: str
    file: str
    line: int

    def __str__(self) -> str:
        """As people write it: function (file:line)."""
        return f"{self.function} ({self.file}:{self.line})"


def stack_of(frame: FrameType | None) -> tuple[Frame, ...]:
    """The stack that ends in a frame, outermost first."""
    return tuple(Frame(code.co_qualname, code.co_filename, line) for code, line in _walk(frame))


def own_code(stack: tuple[Frame, ...]) -> Frame | None:
    """The innermost frame that is neither Python's own library nor this package, or else the innermost of all."""
    for frame in reversed(stack):
        if not _is_library(frame.file):
            return frame
    return stack[-1] if stack else None


class WeighedStacks:
    """Weights, in seconds, of the stacks that were seen."""

    def __init__(self) -> None:
        self._weights: defaultdict[tuple[tuple[CodeType, int], ...], float] = defaultdict(float)
        self.number = 0
        self.seconds = 0.0

    def add(self, frame: FrameType, weight: float) -> None:
        """Count ``weight`` seconds for the stack that ends in ``frame``."""
        self._weights[_walk(frame)] += weight
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
            by_line: defaultdict[tuple[CodeType, int], float] = defaultdict(float)
            for stack, weight in rows:
                by_code[stack[depth][0]] += weight
                by_line[stack[depth]] += weight
            if not by_code:
                break
            code = max(by_code, key=by_code.__getitem__)
            if by_code[code] < half:
                break
            line = max((weight, line) for (of, line), weight in by_line.items() if of is code)[1]
            found.append(Frame(code.co_qualname, code.co_filename, line))
            rows = [(stack, weight) for stack, weight in rows if stack[depth][0] is code]
        return tuple(found)


def _is_library(file: str) -> bool:
    """Whether a file belongs to Python itself (installed packages don't) or to this package."""
    if file.startswith((_HERE, "<frozen")):
        return True
    return file.startswith(_LIBRARIES) and "site-packages" not in file


def _walk(frame: FrameType | None) -> tuple[tuple[CodeType, int], ...]:
    rows: list[tuple[CodeType, int]] = []
    while frame is not None and len(rows) < DEPTH:
        rows.append((frame.f_code, frame.f_lineno or 0))
        frame = frame.f_back
    rows.reverse()
    return tuple(rows)
