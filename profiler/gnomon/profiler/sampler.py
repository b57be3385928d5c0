"""One daemon thread that looks at the stacks of all registered threads, many times a second."""

from __future__ import annotations

from typing import NamedTuple

from gnomon.profiler.session import Session

__all__ = ["Sampler", "Statistics"]


class Statistics(NamedTuple):
    """What the sampler itself did so far. Times in seconds."""

    running: bool
    seconds: float  # of wall clock since the first start, pauses left out
    ticks: int
    samples: int
    missed: int
    interval: float  # at present
    cpu: float
    late_mean: float
    late_max: float
    nodes: int
    functions: int
    buckets: int


class Sampler:
    """Samples threads of this process.

    ``interval``: seconds between ticks; ``budget``: share of one CPU that sampling may use before the interval is
    widened; ``bucket``: seconds of one step of the history; ``depth``: frames kept of a stack; ``every_thread``:
    sample all threads, not only those given to ``watch_thread``; ``process``: the name in sessions.
    """

    def __init__(
        self,
        *,
        interval: float = 0.0101,
        budget: float = 0.01,
        bucket: float = 1.0,
        depth: int = 128,
        every_thread: bool = False,
        process: str = "",
    ) -> None:
        raise NotImplementedError

    def start(self) -> None:
        """Begin to sample; no effect if it runs."""
        raise NotImplementedError

    def stop(self) -> None:
        """Stop sampling; what was recorded stays. May be started again."""
        raise NotImplementedError

    def watch_thread(self, ident: int | None = None, name: str | None = None) -> None:
        """Sample a thread (this one) until it ends or is forgotten. ``name`` in sessions: the thread's own."""
        raise NotImplementedError

    def forget_thread(self, ident: int | None = None) -> None:
        """Sample a thread (this one) no longer."""
        raise NotImplementedError

    def set_label(self, label: str) -> None:
        """Label the calling thread's samples from now on; "" takes the label away. Same as ``labels.set_label``."""
        raise NotImplementedError

    def mark(self) -> float:
        """Begin a new bucket now, so that windows that start or end here are exact; the time of the mark."""
        raise NotImplementedError

    def session(self, start: float | None = None, stop: float | None = None) -> Session:
        """What was recorded between two times of the wall clock, the unfinished bucket included."""
        raise NotImplementedError

    def statistics(self) -> Statistics:
        """What the sampler did so far."""
        raise NotImplementedError

    def __enter__(self) -> Sampler:
        """Watch the calling thread and start."""
        raise NotImplementedError

    def __exit__(self, *exception: object) -> None:
        """Stop."""
        raise NotImplementedError
