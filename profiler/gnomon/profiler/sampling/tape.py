# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""The last ticks, side by side in a fixed space: what a tick writes to, and nothing else.

It is emptied into the history now and then: a list of objects, or columns that grow, would be one more thing for each
tick to fetch into the processor's caches, and beside a busy program that is most of what a tick costs.
"""

from __future__ import annotations

from array import array

__all__ = ["Tape"]


class Tape:
    """Room for ``room`` ticks: time, lateness, weight, and where its samples end in the column of all keys.

    ``ticks`` and ``samples`` are how many it holds.
    """

    __slots__ = ("_ends", "_keys", "_lates", "_room", "_times", "_weights", "samples", "ticks")

    def __init__(self, room: int = 128) -> None:
        self.ticks = 0
        self.samples = 0
        self._room = room
        self._times = array("d", bytes(8 * room))
        self._lates = array("d", bytes(8 * room))
        self._weights = array("q", bytes(8 * room))
        self._ends = array("q", bytes(8 * room))
        self._keys = array("q", bytes(8 * room))

    def key(self, key: int) -> int:
        """A sample of the tick that ends next; how many samples there are."""
        if self.samples >= len(self._keys):
            self._keys = array("q", bytes(self._keys) * 2)
        self._keys[self.samples] = key
        self.samples += 1
        return self.samples

    def end(self, at: float, late: float, weight: int) -> int:
        """A tick ends: its time, how late it was in seconds, and for how many points its samples count.

        Returns how many ticks there are. Raises IndexError on a full tape.
        """
        if self.ticks >= self._room:
            raise IndexError("the tape is full")
        self._times[self.ticks] = at
        self._lates[self.ticks] = late
        self._weights[self.ticks] = weight
        self._ends[self.ticks] = self.samples
        self.ticks += 1
        return self.ticks

    def full(self) -> bool:
        """Whether there is no room for another tick."""
        return self.ticks >= self._room

    def clear(self) -> None:
        """Begin anew."""
        self.ticks = 0
        self.samples = 0

    def columns(self) -> tuple[array[float], array[float], array[int], array[int], array[int]]:
        """Times, latenesses, weights, ends and keys, copied."""
        ticks = self.ticks
        return (
            array("d", bytes(self._times[:ticks])),
            array("d", bytes(self._lates[:ticks])),
            array("q", bytes(self._weights[:ticks])),
            array("q", bytes(self._ends[:ticks])),
            array("q", bytes(self._keys[: self.samples])),
        )
