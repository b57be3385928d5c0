"""Sums over runs, which stay complete whatever rows are gone.

Contents: Totals, columns.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

__all__ = ["Totals", "columns"]

_WHOLE = ("count", "erred", "nbytes")
_SECONDS = ("decode", "compute", "encode", "cpu", "measured")


class Totals:
    """Sums over the runs of one prefix, span or worker.

    ``cpu`` is seconds on the processor, and ``measured`` seconds of compute of which these are a part.
    """

    __slots__ = (*_WHOLE, *_SECONDS)

    def __init__(self) -> None:
        self.count = self.erred = self.nbytes = 0
        self.decode = self.compute = self.encode = 0.0
        self.cpu = self.measured = 0.0

    def add(
        self,
        count: int,
        erred: int,
        nbytes: int,
        decode: float,
        compute: float,
        encode: float,
        cpu: float,
        measured: float,
    ) -> None:
        """Add the sums over further runs."""
        self.count += count
        self.erred += erred
        self.nbytes += nbytes
        self.decode += decode
        self.compute += compute
        self.encode += encode
        self.cpu += cpu
        self.measured += measured

    def row(self, name: str | int | tuple[str, ...]) -> tuple[Any, ...]:
        """Name, count, erred, nbytes, seconds of decode, compute and encode."""
        return name, self.count, self.erred, self.nbytes, self.decode, self.compute, self.encode


def columns(totals: Mapping[int, Totals]) -> dict[str, bytes]:
    """A table as bytes of arrays: ``names``, ``count``, ``erred`` and ``nbytes`` (q), seconds of the rest (d)."""
    rows = list(totals.values())
    return {
        "names": array("q", totals).tobytes(),
        **{name: array("q", map(attrgetter(name), rows)).tobytes() for name in _WHOLE},
        **{name: array("d", map(attrgetter(name), rows)).tobytes() for name in _SECONDS},
    }
