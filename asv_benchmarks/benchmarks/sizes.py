"""Which parameters run when: large ones only where somebody asks for them, by ``GNOMON_BENCHMARKS=full``."""

from __future__ import annotations

import os
from typing import TypeVar

__all__ = ["FULL", "and_large"]

_Size = TypeVar("_Size")

#: Whether everything is to run, however long it takes.
FULL = os.environ.get("GNOMON_BENCHMARKS") == "full"


def and_large(every_day: list[_Size], *large: _Size) -> list[_Size]:
    """The values of a parameter: those of every day, and the large ones where everything is to run."""
    return [*every_day, *large] if FULL else every_day
