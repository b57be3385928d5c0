"""What the scheduler's brain can be told: plain values, read once by the shell and passed to ``Model``."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Settings"]


class Settings(NamedTuple):
    """How the brain decides.

    Fields:
        saturation: runs per thread that a worker holds of tasks that only produce (the floor, see ``queueing``).
        backlog_seconds: measured work per thread that a worker holds, to cover the way to the scheduler and back.
        backlog_bytes: expected results per thread above which the backlog of ``backlog_seconds`` is cut.
        max_backlog: most queued runs per thread, however short they are.
        allowed_failures: workers a task may take down before it is given up as ``KilledWorker``.
        bandwidth: bytes per second between workers, until transfers were measured.
        unknown_duration: seconds assumed of a task whose like has never run.
        steal_latency: seconds a stolen task costs at least.
        missing_limit: reports that a value can't be fetched from a living holder before that copy is given up; a task
            errs when its inputs were missing three times as often.
        story_length: entries of the story log.
        validate: whether invariants are checked after each reactor call (slow; for tests).
    """

    saturation: float = 1.1
    backlog_seconds: float = 0.05
    backlog_bytes: int = 64 << 20
    max_backlog: int = 1024
    allowed_failures: int = 3
    bandwidth: float = 100e6
    unknown_duration: float = 0.5
    steal_latency: float = 0.005
    missing_limit: int = 5
    story_length: int = 100_000
    validate: bool = False
