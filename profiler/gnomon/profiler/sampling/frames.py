# cython: boundscheck=False, wraparound=False
"""Code objects as small numbers, and what to call them when somebody looks.

``Functions`` knows two numberings. A *function* is a name, file and first line: its number lasts, and the same function
defined again (by a reload, or unpickled once a task) is the same. A *code* is one code object, or the name of a region
or marker, in the short memory of what was seen of late: that memory holds its code objects, so that no identity is
used twice while it lasts, and is emptied now and then, so that no code is kept for good.
"""

from __future__ import annotations

from bisect import bisect_right
from types import CodeType
from typing import Any

from gnomon.profiler.marks.markers import OTHERS
from gnomon.profiler.sessions.session import MARKER

__all__ = ["Functions"]


class Functions:
    """Numbers for functions and codes. See the module's head.

    ``limit``: how many functions get a number of their own.
    """

    __slots__ = ("_codes", "_functions", "_lines", "_numbers", "_seen", "keys", "limit")

    def __init__(self, limit: int = 100_000) -> None:
        self.limit = limit
        self.keys: list[tuple[str, str, int]] = []  #: name, file, first line of each function
        self._numbers: dict[tuple[str, str, int], int] = {}
        self._seen: dict[int, int] = {}  # id of the entry -> code number
        self._codes: list[Any] = []  # keeps the ids above true
        self._functions: list[int] = []
        self._lines: dict[int, tuple[list[int], list[int]]] = {}

    def code_number(self, entry: object) -> int:
        """The number of a code object, region or marker in the short memory."""
        number = self._seen.get(id(entry))
        if number is None:
            number = self._see(entry)
        return number

    def _see(self, entry: Any) -> int:
        number = len(self._codes)
        self._codes.append(entry)
        if isinstance(entry, CodeType):
            key = (entry.co_qualname, entry.co_filename, entry.co_firstlineno)
        else:
            key = (entry.name, entry.file, 0)
        self._functions.append(self._number(key))
        self._seen[id(entry)] = number
        return number

    def _number(self, key: tuple[str, str, int]) -> int:
        function = self._numbers.get(key)
        if function is None:
            if len(self.keys) >= self.limit and key[1] != MARKER:
                return self._number((OTHERS.name, OTHERS.file, 0))
            function = self._numbers[key] = len(self.keys)
            self.keys.append(key)
        return function

    def function_of(self, code: int) -> int:
        """The function of a code in the short memory."""
        return self._functions[code]

    def line_of(self, code: int, lasti: int) -> int:
        """The line of an instruction (its byte offset) of a code in the short memory; 0 where there is none."""
        entry = self._codes[code]
        if not isinstance(entry, CodeType):
            return 0
        table = self._lines.get(code)
        if table is None:
            table = ([], [])
            for start, _, line in entry.co_lines():
                table[0].append(start)
                table[1].append(line or entry.co_firstlineno)
            self._lines[code] = table
        at = bisect_right(table[0], lasti) - 1
        return table[1][at] if at >= 0 else entry.co_firstlineno

    def codes(self) -> int:
        """How many codes the short memory holds."""
        return len(self._codes)

    def forget_codes(self) -> None:
        """Empty the short memory: code numbers begin anew, function numbers stay."""
        self._seen.clear()
        self._functions.clear()
        self._lines.clear()
        self._codes.clear()
