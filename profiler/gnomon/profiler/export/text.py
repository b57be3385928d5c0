"""The call tree for a terminal: heaviest first, numbers in columns, small parts put together and counted.

Contents: to_text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from gnomon.profiler.export.words import facts, place_text, plain, seconds_text, share_text
from gnomon.profiler.sessions.calltree import THREAD, CallTree, by_function, call_tree
from gnomon.profiler.sessions.processors import fold
from gnomon.profiler.sessions.session import MARKER, Session

__all__ = ["to_text"]

_BOLD, _DIM, _HOT, _WARM, _END = "\033[1m", "\033[2m", "\033[31m", "\033[33m", "\033[0m"
_CALLS = f"{'total':>9}  {'share':>7}  {'own':>9}  call"
_FUNCTIONS = f"{'own':>9}  {'share':>7}  {'total':>9}  function"


def to_text(
    session: Session,
    *,
    width: int = 0,
    color: bool = False,
    share: float = 0.01,
    functions: int = 10,
    unicode: bool = True,
) -> str:
    """The session as lines of text.

    ``width``: cut lines to so many columns (0: don't); ``color``: with ANSI colours; ``share``: put calls below this
    part of the whole together; ``functions``: so many functions with most own time below the tree; ``unicode``: draw
    the tree with line characters.
    """
    tree = call_tree(fold(session, share))
    lines = [*_heading(session, color), ""]
    if not tree.parent:
        return "\n".join([*lines, "No samples: the program was too short, or no thread was watched.", ""])
    lines += [_painted(_CALLS, _DIM, color)]
    lines += [_cut(line, width) for line in _tree(tree, color, "│├└─" if unicode else "||`-")]
    lines += [*_hottest(session, functions, color, width), ""]
    return "\n".join(lines)


def _heading(session: Session, color: bool) -> list[str]:
    name = plain(str(session.meta.get("process") or "this process"))
    values = dict(facts(session))
    first = f"{values['Duration']} of {name}"
    second = (
        f"{values['Samples']} samples of {values['Threads']} threads, every {values['Interval']}; "
        f"ticks missed: {values['Missed']}; cost: {values['Sampler CPU']}"
    )
    return [_painted(first, _BOLD, color), second]


def _tree(tree: CallTree, color: bool, marks: str) -> Iterator[str]:
    """One line per call; callers before callees."""
    children, whole = tree.children(), tree.seconds
    waiting: list[tuple[int, str, str]] = [(call, "", "") for call in reversed(children[-1])]
    while waiting:
        call, lead, further = waiting.pop()
        yield _line(tree, call, lead, whole, color)
        kids = children[call]
        for position in range(len(kids) - 1, -1, -1):
            last = position == len(kids) - 1
            branch = f"{further}{marks[2] if last else marks[1]}{marks[3]} "
            waiting.append((kids[position], branch, further + ("   " if last else f"{marks[0]}  ")))


def _line(tree: CallTree, call: int, lead: str, whole: float, color: bool) -> str:
    function, total, own = tree.functions[tree.function[call]], tree.total[call], tree.own[call]
    part = total / whole if whole else 0.0
    paint = _HOT if part >= 0.5 else _WARM if part >= 0.1 else ""
    numbers = f"{seconds_text(total):>9}  {share_text(total, whole):>7}  {seconds_text(own) if own else '':>9}"
    if function.file == THREAD:
        process = f" of {function.module}" if function.module else ""
        return f"{_painted(numbers, paint, color)}  {_painted(plain(f'thread {function.name}{process}'), _BOLD, color)}"
    name = plain(function.name)
    place = "" if function.file == MARKER else plain(place_text(function))
    shown = f"{_painted(lead, _DIM, color)}{name}  {_painted(place, _DIM, color)}"
    return f"{_painted(numbers, paint, color)}  {shown}".rstrip()


def _hottest(session: Session, count: int, color: bool, width: int) -> list[str]:
    if count <= 0:
        return []
    tree = call_tree(session)
    rows = [row for row in by_function(tree) if row.own > 0]
    lines = ["", _painted(_FUNCTIONS, _DIM, color)]
    for row in rows[:count]:
        numbers = f"{seconds_text(row.own):>9}  {share_text(row.own, tree.seconds):>7}  {seconds_text(row.total):>9}"
        place = _painted(plain(place_text(row.function)), _DIM, color)
        lines.append(_cut(f"{numbers}  {plain(row.function.name)}  {place}".rstrip(), width))
    if len(rows) > count:
        rest = sum(row.own for row in rows[count:])
        lines.append(
            f"{seconds_text(rest):>9}  {share_text(rest, tree.seconds):>7}  {'':>9}  {len(rows) - count:,} more"
        )
    return lines


def _painted(text: str, code: str, color: bool) -> str:
    return f"{code}{text}{_END}" if color and code and text else text


def _cut(line: str, width: int) -> str:
    """The line in at most ``width`` columns of a terminal; escape sequences take none."""
    if width <= 0:
        return line
    columns = 0
    escape = False
    for position, character in enumerate(line):
        if escape:
            escape = character != "m"
        elif character == "\033":
            escape = True
        else:
            columns += 2 if unicodedata.east_asian_width(character) in "WF" else 1
            if columns > width:
                end = _END if "\033" in line else ""
                return line[: max(0, position - 1)] + "…" + end
    return line
