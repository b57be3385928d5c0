"""The states of a task, and which may follow which: tables that code, checks and documentation share.

A task is *released* when its result isn't wanted now (it is kept because a result made from it may be lost), *waiting*
for its dependencies or, with none missing, for the next placement pass, *queued* until some worker has room,
*no-worker* while no worker may run it, *processing* on a worker, in *memory* on workers (or with the scheduler, if
small), *erred*, or *forgotten*: no longer part of the model.
"""

from __future__ import annotations

__all__ = [
    "ERRED",
    "FOLLOWERS",
    "FORGOTTEN",
    "MEMORY",
    "NO_WORKER",
    "PROCESSING",
    "QUEUED",
    "RELEASED",
    "STATE_NAMES",
    "UNFINISHED",
    "WAITING",
]

RELEASED = 0
WAITING = 1
QUEUED = 2
NO_WORKER = 3
PROCESSING = 4
MEMORY = 5
ERRED = 6
FORGOTTEN = 7

STATE_NAMES = ("released", "waiting", "queued", "no-worker", "processing", "memory", "erred", "forgotten")

#: States in which a task needs its dependencies. They are numbered in a row: code compares with the two ends.
UNFINISHED = (WAITING, QUEUED, NO_WORKER, PROCESSING)

#: The states that may follow each state.
FOLLOWERS: dict[int, tuple[int, ...]] = {
    RELEASED: (WAITING, QUEUED, MEMORY, FORGOTTEN),
    WAITING: (RELEASED, QUEUED, NO_WORKER, PROCESSING, MEMORY, ERRED),
    QUEUED: (RELEASED, WAITING, PROCESSING, ERRED),
    NO_WORKER: (RELEASED, WAITING, ERRED),
    PROCESSING: (RELEASED, WAITING, MEMORY, ERRED),
    MEMORY: (RELEASED,),
    ERRED: (RELEASED,),
    FORGOTTEN: (),
}
