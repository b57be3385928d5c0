"""Threads to be looked at, and work for those that do any.

Contents: Crowd, work.
"""

from __future__ import annotations

import threading

__all__ = ["Crowd", "work"]


class Crowd:
    """Threads that wait, or work, so many calls deep."""

    def __init__(self, threads: int, depth: int, *, working: bool = False) -> None:
        self._working = working
        self._leave = threading.Event()
        arrived = [threading.Event() for _ in range(threads)]
        self._threads = [
            threading.Thread(target=self._fall, args=(depth, event), name=f"crowd-{i}", daemon=True)
            for i, event in enumerate(arrived)
        ]
        for thread in self._threads:
            thread.start()
        for event in arrived:
            event.wait()
        self.idents = [thread.ident for thread in self._threads]

    def _fall(self, depth: int, arrived: threading.Event) -> None:
        if depth:
            self._fall(depth - 1, arrived)
        else:
            arrived.set()
            while self._working and not self._leave.is_set():
                work(6, 1)
            self._leave.wait()

    def close(self) -> None:
        """Send the threads home and wait for them."""
        self._leave.set()
        for thread in self._threads:
            thread.join()


def work(depth: int, seed: int) -> int:
    """A tree of calls with some arithmetic in each."""
    total = sum([i * seed for i in range(50)])
    return total if depth < 2 else work(depth - 1, seed) + work(depth // 2, total % 7)
