"""The scheduler's shell: what turns sockets into calls of the brain, and the brain's effects into writes.

It decides nothing about tasks (that is ``gnomon.runtime.core``) and never unpickles anything of a user's.

Contents:
    server      Scheduler: listening, streams of clients and workers, the loop turn, timers, closing
    requests    what clients may ask
    telemetry   the numbered ring of what ran, for reports
"""

from __future__ import annotations

from gnomon.runtime.scheduler.server import Scheduler

__all__ = ["Scheduler"]
