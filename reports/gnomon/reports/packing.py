"""Columns of numbers as they stand in a recording's file: the smallest type that holds them, little endian.

A packed column is ``[code, delta, bytes]``; ``code`` is one of the array module's, ``delta`` says that the values are
differences. The page's script reads the same form.

Contents: RecordingError, pack, pack_floats, unpack.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

__all__ = ["RecordingError", "pack", "pack_floats", "unpack"]


class RecordingError(ValueError):
    """A file that is no recording, is damaged, or was written by a newer version."""


#: Array codes from small to large, with what they hold; what none holds takes ``q``.
_CODES = (("B", 0, 255), ("H", 0, 65_535), ("I", 0, 2**32 - 1), ("i", -(2**31), 2**31 - 1))


def pack(column: array[int], *, delta: bool) -> list[Any]:
    """A column in its smallest form. Delta pays for times, which grow; the first value is the difference to 0."""
    import numpy

    values = numpy.asarray(column, "q")
    if delta:
        values = numpy.diff(values, prepend=0)
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    code = next((code for code, least, most in _CODES if least <= low and high <= most), "q")
    return [code, delta, values.astype("<" + code).tobytes()]


def pack_floats(column: array[float]) -> list[Any]:
    """A column of measurements, in single precision; NaN stays what it is."""
    return ["f", False, _little_endian(array("f", column)).tobytes()]


def unpack(packed: Sequence[Any]) -> array[Any]:
    """The column that ``pack`` (as ``q``) or ``pack_floats`` (as ``d``) made. Raises RecordingError."""
    code, delta, data = packed
    if code not in ("B", "H", "I", "i", "q", "f"):
        raise RecordingError(f"unknown column code {code!r}")
    column: array[Any] = array(code)
    column.frombytes(data)
    values: Iterable[Any] = _little_endian(column)
    if code == "f":
        return array("d", values)
    return array("q", accumulate(values) if delta else values)


def _little_endian(column: array[Any]) -> array[Any]:
    if sys.byteorder != "little":
        column.byteswap()
    return column
