"""A bounded log that answers "what happened to this task": one entry per change of state."""

from __future__ import annotations

from collections import deque

from gnomon.runtime.core.states import STATE_NAMES
from gnomon.runtime.messages import Key

__all__ = ["Story"]


class Story:
    """The latest changes. Entries name tasks by key and id, so that the log keeps no task alive."""

    __slots__ = ("entries",)

    def __init__(self, length: int) -> None:
        self.entries: deque[tuple[float, Key, int, int, int, int, int]] = deque(maxlen=length)

    def of(self, key: Key) -> list[tuple[float, int, str, str, int, int]]:
        """Of a key, oldest first: time, task id, state before and after, attempt, worker id (0: none)."""
        return [
            (now, task_id, STATE_NAMES[before], STATE_NAMES[after], attempt, worker_id)
            for now, k, task_id, before, after, attempt, worker_id in self.entries
            if k == key
        ]
