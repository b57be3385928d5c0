"""How tasks want to be treated: one record per distinct ``TaskOptions``, shared by the tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.runtime.messages import TaskOptions

if TYPE_CHECKING:
    from gnomon.runtime.core.worker import WorkerState

__all__ = ["Options"]


class Options:
    """The options of many tasks.

    Attributes:
        wish: the record as the client sent it.
        restricted: whether only some workers may run the task, so that it can't wait in the common queue.
        eligible, eligible_version: the workers that may run it, as of that version of the set of workers.
    """

    __slots__ = (
        "eligible",
        "eligible_version",
        "executor",
        "loose",
        "resources",
        "restricted",
        "retries",
        "span",
        "user_priority",
        "wish",
    )

    def __init__(self, wish: TaskOptions) -> None:
        self.wish = wish
        self.user_priority = wish.priority
        self.retries = wish.retries
        self.resources = wish.resources
        self.executor = wish.executor
        self.span = wish.span
        self.loose = wish.allow_other_workers
        self.restricted = bool(wish.workers) or bool(wish.resources)
        self.eligible: list[WorkerState] = []
        self.eligible_version = -1
