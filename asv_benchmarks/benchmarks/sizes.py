"""Which parameters run when: large ones only where somebody asks for them.

A benchmark calls ``large`` in its setup for what takes too long for every day; asv shows such parameters as not
available until ``GNOMON_BENCHMARKS=full`` is set.
"""

from __future__ import annotations

import os

__all__ = ["FULL", "large"]

#: Whether everything is to run, however long it takes.
FULL = os.environ.get("GNOMON_BENCHMARKS") == "full"


def large(condition: bool) -> None:
    """Skip these parameters if they are large, unless everything is to run.

    Raises NotImplementedError, which asv takes for a skip.
    """
    if condition and not FULL:
        raise NotImplementedError("runs with GNOMON_BENCHMARKS=full")
