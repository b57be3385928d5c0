"""The scheduler's shell: what turns sockets into calls of the brain, and the brain's effects into writes.

It decides nothing about tasks (that is ``gnomon.runtime.core``) and never unpickles anything of a user's.

Contents:
    server      Scheduler: listening, streams of clients and workers, the loop turn, timers, closing
    requests    what clients may ask
    telemetry   numbered rings of what ran, and complete totals: runs, workers, errors
    transfers, observations
                the rings of what moved between workers, and of what processes say of themselves
    ring, pace  what a ring is, and how much of it is handed out at once
    watching    what the scheduler observes: its own process, what waits for workers
    texts       keys and texts as they leave the scheduler
    budget      where the time of its loop goes
"""

from __future__ import annotations

from gnomon.runtime.scheduler.server import Scheduler

__all__ = ["Scheduler"]
