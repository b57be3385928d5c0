"""The common queue: ready tasks whose place doesn't matter wait here until a worker has room for them.

Tasks that need nothing (or little: small values that travel with the assignment, or what all of their group needs)
would flood the workers with results if they were all handed out at once, and would be stuck behind the wrong worker.
So they wait by priority, and each worker is given a backlog: enough measured work to cover the way to the scheduler
and back.

How much that is, ``placement`` says.

Contents: TaskQueue.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush

from gnomon.runtime.core.states import QUEUED
from gnomon.runtime.core.task import TaskState

__all__ = ["TaskQueue"]


class TaskQueue:
    """Queued tasks by priority, then age.

    Graphs arrive in order, so most tasks fit at the end of ``line``, where adding and taking are cheap; others go to
    ``heap``. Tasks that leave otherwise than by ``pop`` stay as dead entries; ``discard`` counts them, and sweeps.
    """

    __slots__ = ("heap", "line", "live")

    def __init__(self) -> None:
        self.line: deque[TaskState] = deque()
        self.heap: list[tuple[tuple[int, int, int], int, TaskState]] = []
        self.live = 0

    def push(self, ts: TaskState) -> None:
        """Add a task that has just become queued."""
        self.live += 1
        line = self.line
        if line:
            last: TaskState = line[-1]
            if ts.priority < last.priority or (ts.priority == last.priority and ts.task_id < last.task_id):
                heappush(self.heap, (ts.priority, ts.task_id, ts))
                return
        line.append(ts)

    def peek(self) -> TaskState | None:
        """The first task, left in its place; None if there is none."""
        if self.live == 0:
            self.line.clear()
            self.heap.clear()
            return None
        line = self.line
        heap = self.heap
        while line:
            first: TaskState = line[0]
            if first.state == QUEUED:
                break
            line.popleft()
        while heap:
            top: TaskState = heap[0][2]
            if top.state == QUEUED:
                break
            heappop(heap)
        if not heap:
            return line[0] if line else None
        if not line:
            return heap[0][2]
        first = line[0]
        top = heap[0][2]
        if top.priority < first.priority or (top.priority == first.priority and top.task_id < first.task_id):
            return top
        return first

    def pop(self, ts: TaskState) -> None:
        """Take out the task that ``peek`` has just returned; it is still in state queued."""
        self.live -= 1
        if self.line and self.line[0] is ts:
            self.line.popleft()
        else:
            heappop(self.heap)

    def discard(self) -> None:
        """A queued task has taken another state; its entry is dead."""
        self.live -= 1
        if len(self.line) + len(self.heap) > 2 * self.live + 32:
            self._sweep()

    def _sweep(self) -> None:
        """Drop dead entries, and second entries of tasks that came back."""
        seen: dict[TaskState, None] = {}
        line: deque[TaskState] = deque()
        for ts in self.line:
            if ts.state == QUEUED and ts not in seen:
                seen[ts] = None
                line.append(ts)
        self.line = line
        heap = []
        for entry in self.heap:
            ts = entry[2]
            if ts.state == QUEUED and ts not in seen:
                seen[ts] = None
                heap.append(entry)
        heapify(heap)
        self.heap = heap
