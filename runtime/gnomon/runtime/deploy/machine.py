"""Processors of this machine that we may use, how to split them into workers, and sizes as people write them."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

__all__ = ["cpu_count", "parse_bytes", "split_processors"]

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def cpu_count() -> int:
    """Processors that this process may use: those of the machine, less what affinity and control groups forbid."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        return count
    if quota == "max":
        return count
    return max(1, min(count, math.ceil(int(quota) / int(period))))


def split_processors(
    n_workers: int | None, threads_per_worker: int | None, *, processes: bool, cpus: int | None = None
) -> tuple[int, int]:
    """Workers and threads per worker where the caller left one or both open.

    Up to four processors get a single-threaded worker each; more are split into at least as many workers as each has
    threads. Without processes, more workers than one bring nothing.

    Raises ValueError for negative counts or no threads.
    """
    if n_workers is not None and n_workers < 0:
        raise ValueError(f"n_workers must not be negative, got {n_workers}")
    if threads_per_worker is not None and threads_per_worker < 1:
        raise ValueError(f"threads_per_worker must be at least 1, got {threads_per_worker}")
    total = cpus or cpu_count()
    if n_workers is None:
        if not processes:
            n_workers = 1
        elif threads_per_worker is not None:
            n_workers = max(1, total // threads_per_worker)
        elif total <= 4:
            n_workers = total
        else:
            n_workers = min(n for n in range(1, total + 1) if total % n == 0 and n * n >= total)
    if threads_per_worker is None:
        threads_per_worker = max(1, total // n_workers) if n_workers else 1
    return n_workers, threads_per_worker


def parse_bytes(text: str | int | float) -> int:
    """A number of bytes: 1000, "4 GB", "512MiB".

    Raises ValueError for anything else.
    """
    if not isinstance(text, str):
        return int(text)
    match = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([kmgt]i?)?b?\s*", text.lower())
    if match is None:
        raise ValueError(f"not a number of bytes: {text!r} (examples: 500MB, 4GiB)")
    return int(float(match[1]) * _UNITS[match[2] or ""])
