"""Who looks at the dashboard, and when to send them something: at most one push under way per look.

Pure: whoever owns a look says what time it is. A browser that is slow, hidden or paused is sent nothing; what it missed
is counted, and the next push shows the state of its own time.

Contents: Look, Looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

__all__ = ["Look", "Looks"]


class Look:
    """One viewer. ``on_data``: called after each change of the model; ``skipped``: due pushes that were not made."""

    def __init__(self, owner: Looks, version: Callable[[], int], interval: float) -> None:
        self.on_data: Callable[[], None] | None = None
        self.interval = interval
        self.visible = True
        self.paused = False
        self.closed = False
        self.skipped = 0
        self._owner = owner
        self._version = version
        self._seen = -1
        self._counted = -1
        self._pushed_at = -inf
        self._number = 0
        self._acknowledged = 0

    def due(self, now: float) -> bool:
        """Whether to push now (``now``: a steady clock)."""
        version = self._version()
        if self.closed or not self.visible or self.paused or version == self._seen:
            return False
        if now - self._pushed_at < 0.8 * self.interval:  # data come about once in an interval: don't miss every other
            return False
        if self._acknowledged < self._number:
            if version != self._counted:
                self._counted = version
                self.skipped += 1
            return False
        self._pushed_at = now
        return True

    def pushed(self) -> int:
        """Something was sent; the number that the browser is to acknowledge."""
        self._seen = self._version()
        self._number += 1
        return self._number

    def acknowledge(self, number: int) -> None:
        """The browser has shown a push."""
        self._acknowledged = max(self._acknowledged, min(number, self._number))

    def show(self, visible: bool) -> None:
        """The browser's tab is visible, or isn't."""
        self.visible = visible
        self._owner.changed()

    def pause(self, paused: bool) -> None:
        """The viewer wants no changes for now; the model goes on."""
        self.paused = paused

    def close(self) -> None:
        """It is gone. Idempotent."""
        self.closed = True
        self._owner.remove(self)


class Looks:
    """All of them. ``on_change``: called when somebody may have begun or ended to look."""

    def __init__(self, version: Callable[[], int], on_change: Callable[[], None]) -> None:
        self._version = version
        self._all: dict[Look, None] = {}
        self._skipped = 0
        self.changed = on_change

    def __len__(self) -> int:
        """How many there are, hidden ones included."""
        return len(self._all)

    def __iter__(self) -> Iterator[Look]:
        """The looks."""
        return iter(tuple(self._all))

    def add(self, interval: float = 1.0) -> Look:
        """A new viewer, to be sent something each ``interval`` seconds at most."""
        look = Look(self, self._version, interval)
        self._all[look] = None
        self.changed()
        return look

    def remove(self, look: Look) -> None:
        """A viewer is gone."""
        if look in self._all:
            del self._all[look]
            self._skipped += look.skipped
            self.changed()

    @property
    def anybody(self) -> bool:
        """Whether a visible one is there."""
        return any(look.visible for look in self._all)

    @property
    def skipped(self) -> int:
        """Pushes that were due and not made, of all there ever were."""
        return self._skipped + sum(look.skipped for look in self._all)
