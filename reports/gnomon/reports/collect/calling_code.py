"""The code around a ``with performance_report()``, found from the stack, wherever Python can still tell it.

Scripts, modules and notebooks have their source in a file or in ``linecache``; ``python -c`` has it in the command
line. A string given to ``exec`` and an old REPL keep none: then the record says so. Nothing here raises.

Contents: CallingCode, calling_code.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from types import FrameType
from typing import NamedTuple

__all__ = ["CallingCode", "calling_code"]

#: Lines kept before and after the calling line.
_AROUND = 150


class CallingCode(NamedTuple):
    """Source around a line: ``text`` begins at line ``first``, ``line`` is the caller's; ``note``: what is missing."""

    where: str
    text: str
    first: int
    line: int
    note: str


def calling_code(frame: FrameType | None, level: int = 1) -> CallingCode:
    """The source of the function or module that ``frame`` runs, ``level - 1`` callers further up."""
    for _ in range(level - 1):
        if frame is not None and frame.f_back is not None:
            frame = frame.f_back
    if frame is None:
        return CallingCode("", "", 0, 0, "The calling code is not known: there is no Python caller.")
    file, line = frame.f_code.co_filename, frame.f_lineno
    lines, first = _source(frame)
    if not lines:
        kind = "a string that was executed" if file == "<string>" else file
        note = f"The calling code is not known: {kind} keeps no source."
        return CallingCode(f"{file}, line {line}", "", 0, line, note)
    note = ""
    begin, end = max(0, line - first - _AROUND), line - first + _AROUND + 1
    if begin > 0 or end < len(lines):
        shown = min(end, len(lines)) - begin
        note = f"{shown} of {len(lines)} lines are kept."
    return CallingCode(f"{file}, line {line}", "".join(lines[begin:end]), first + begin, line, note)


def _source(frame: FrameType) -> tuple[list[str], int]:
    """Lines and number of the first of them; no lines if the source can't be had."""
    if frame.f_code.co_filename == "<string>":
        return _command_line(frame), 1
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    if frame.f_code.co_name == "<module>" or not lines:
        return lines, 1
    try:
        block, first = inspect.getsourcelines(frame.f_code)
    except (OSError, TypeError, SyntaxError, IndexError):
        return lines, 1
    return (block, first) if first <= frame.f_lineno < first + len(block) else (lines, 1)


def _command_line(frame: FrameType) -> list[str]:
    """The program of ``python -c``, if it is what this frame runs."""
    arguments = getattr(sys, "orig_argv", [])
    if frame.f_globals.get("__name__") != "__main__" or "-c" not in arguments[:-1]:
        return []
    program = arguments[arguments.index("-c") + 1]
    lines = program.splitlines(keepends=True)
    # A string that the program executes has the same file name; its code object isn't the program's.
    outermost = frame
    while outermost.f_back is not None and outermost.f_back.f_code.co_filename == "<string>":
        outermost = outermost.f_back
    same = outermost is frame or frame.f_code.co_name != "<module>"
    return lines if same and frame.f_lineno <= len(lines) else []
