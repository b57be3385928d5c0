"""What a chart is given to draw, what it says of it, and sources that are sent only what changed.

Contents: Frame, Drawn, Sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gnomon.reports.dashboard.model import Model
from gnomon.reports.recording import Recording

__all__ = ["Drawn", "Frame", "Sources"]


@dataclass(slots=True)
class Frame:
    """A window of the model, in its own seconds, and the filter. ``flowing``: the window goes on with the time."""

    model: Model
    start: float
    stop: float
    flowing: bool = True
    prefix: str = ""
    search: str = ""
    _recording: Recording | None = None

    @property
    def offset(self) -> float:
        """Seconds from the beginning of the run to the window's."""
        return self.start - self.model.begin

    def recording(self) -> Recording:
        """What is kept of the window; made once for all charts of a session."""
        if self._recording is None:
            self._recording = self.model.recording(self.start, self.stop)
        return self._recording

    def grey(self, prefix: str) -> bool:
        """Whether the filter leaves out the tasks of a prefix."""
        return bool((self.prefix and prefix != self.prefix) or self.search.casefold() not in prefix.casefold())


@dataclass(slots=True)
class Drawn:
    """Bytes that were put, sentences beside the chart, why there is nothing to see, and facts for the page's script."""

    size: int = 0
    empty: str = ""
    notes: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


class Sources:
    """Puts columns into sources; columns that are what they were are not sent again."""

    def __init__(self) -> None:
        self._put: dict[int, dict[str, bytes]] = {}

    def put(self, source: Any, columns: Mapping[str, Any]) -> int:
        """Put columns (arrays) into a source; how many bytes have to be sent."""
        raw = {name: column.tobytes() for name, column in columns.items()}
        if self._put.get(id(source)) == raw:
            return 0
        self._put[id(source)] = raw
        source.data = dict(columns)
        return sum(map(len, raw.values()))
