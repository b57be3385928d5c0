"""The limits that a worker's brain works by: plain values, read once when the model is made."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Settings"]


class Settings(NamedTuple):
    """How one worker runs.

    Fields:
        nthreads: tasks that run at once on the default executor.
        resources: pairs of abstract resource and amount that tasks may hold.
        executors: pairs of named executor and its threads; a task that names another runs by the default's limits.
        prefetch_seconds: work per thread that is handed to the executor ahead of its turn (but never fewer than
            two tasks per thread).
        shortest_run: seconds that a handed-over task counts at least, which bounds how many are handed over.
        fetch_concurrency: holders fetched from at once.
        fetch_bytes: bytes of one fetch; a larger value travels alone.
        fetch_rows: values of one fetch.
        fetch_failures: after so many vain tries to reach a holder for a value, it is reported as lost.
        story: batches of events kept for ``story``; 0 keeps none.
        validate: check each change of a task's state against the table of those allowed.
    """

    nthreads: int = 1
    resources: tuple[tuple[str, float], ...] = ()
    executors: tuple[tuple[str, int], ...] = ()
    prefetch_seconds: float = 0.005
    shortest_run: float = 10e-6
    fetch_concurrency: int = 10
    fetch_bytes: int = 50_000_000
    fetch_rows: int = 1000
    fetch_failures: int = 3
    story: int = 500
    validate: bool = False
