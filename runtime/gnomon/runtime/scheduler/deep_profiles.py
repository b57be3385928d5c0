"""The deep profiles of tasks that workers sent: the latest ones, within a number of bytes, numbered from 0.

Contents: DeepProfiles.
"""

from __future__ import annotations

from typing import Any

from gnomon.runtime.messages import Key
from gnomon.runtime.scheduler.texts import key_text

__all__ = ["DeepProfiles"]


class DeepProfiles:
    """Of one scheduler. Profiles are opaque bytes; of a key the last one is kept, and the oldest go first."""

    def __init__(self, limit: int) -> None:
        self.made = 0  # also the number of the next one
        self._limit = limit
        self._bytes = 0
        self._kept: dict[Key, tuple[int, str, bytes]] = {}

    def keep(self, key: Key, prefix: str, profile: bytes) -> None:
        """Keep a profile; one above the limit counts as made, and is gone."""
        number, self.made = self.made, self.made + 1
        if len(profile) > self._limit:
            return
        self._drop(key)
        self._kept[key] = (number, prefix, profile)
        self._bytes += len(profile)
        while self._bytes > self._limit:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: Key) -> None:
        if key in self._kept:
            self._bytes -= len(self._kept.pop(key)[2])

    def of(self, key: Key) -> bytes | None:
        """The profile of a key's last run; None if none was made, or it is gone."""
        kept = self._kept.get(key)
        return None if kept is None else kept[2]

    def since(self, number: int, most: int) -> dict[str, Any]:
        """Profiles numbered ``number`` and above: ``rows`` of number, key as text, prefix and bytes, oldest first.

        Rows end with the one that reaches ``most`` bytes; ``next`` is the number to go on with.
        """
        rows: list[tuple[int, str, str, bytes]] = []
        size = 0
        for key, (each, prefix, profile) in self._kept.items():
            if each < number:
                continue
            if size >= most:
                return {"rows": rows, "next": each}
            rows.append((each, key_text(key), prefix, profile))
            size += len(profile)
        return {"rows": rows, "next": self.made}
