"""Which runs are under way, written where it outlives the process that runs them.

A page is memory shared by an agent and its child: two cells of 64 bits per thread, task id and attempt, where attempt
0 means that the thread is between runs. The child writes the id, then the attempt, before anything of the run's is
opened, and clears the attempt once its outcome is queued for the agent. The page has no name; it ends with its last
holder.

Contents: RunningPage, Cells, THREADS.
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
from typing import TypeAlias

__all__ = ["THREADS", "Cells", "RunningPage"]

#: Where runs under way are recorded: shared memory, or in the agent's own process just numbers.
Cells: TypeAlias = "memoryview[int] | list[int]"

#: Threads that a page has cells for; those beyond (thousands that seceded) share the last one's.
THREADS = 4096

_SIZE = THREADS * 16


class RunningPage:
    """The page and its file descriptor.

    Fields:
        fd: to hand to the child; -1 when closed.
        cells: the numbers, ``2 * thread`` for the id and the next for the attempt.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._map = mmap.mmap(fd, _SIZE)
        self.cells = memoryview(self._map).cast("q")

    @classmethod
    def create(cls) -> RunningPage:
        """A new page on which nothing runs. Raises OSError where there is no memory or descriptor for it."""
        fd = _open()
        try:
            os.ftruncate(fd, _SIZE)
            return cls(fd)
        except BaseException:
            os.close(fd)
            raise

    def running(self) -> list[tuple[int, int]]:
        """``(task_id, attempt)`` of each thread that is at a run."""
        cells = self.cells.tolist()
        return [(cells[i], cells[i + 1]) for i in range(0, len(cells), 2) if cells[i + 1]]

    def close_fd(self) -> None:
        """Close the descriptor and keep the memory: it has been handed over."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def close(self) -> None:
        """Let go of it. Idempotent."""
        self.close_fd()
        self.cells.release()
        self._map.close()


if sys.platform == "linux":

    def _open() -> int:
        return os.memfd_create("gnomon-running", os.MFD_CLOEXEC)

else:

    def _open() -> int:
        with tempfile.TemporaryFile(buffering=0) as file:
            return os.dup(file.fileno())
