"""The lines that this process logs under ``gnomon``, for the cluster's records.

Schedulers and agents that share one process of the system share its loggers: the first that listens tells of them.

Contents: LogLines, Sink, Tail.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

__all__ = ["LogLines", "Sink", "Tail"]

#: Takes a line: its level, its text, and when it was logged (wall clock, seconds).
Sink = Callable[[str, str, float], None]

#: Characters of a line that are kept until they are taken.
_TEXT = 8192


class LogLines(logging.Handler):
    """Hands every line logged under ``gnomon`` to ``sink``, from the thread that logged it, one at a time."""

    _listening: LogLines | None = None

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self._sink = sink

    def start(self) -> None:
        """Listen, unless another in this process does."""
        if LogLines._listening is None:
            LogLines._listening = self
            logging.getLogger("gnomon").addHandler(self)

    def stop(self) -> None:
        """Listen no longer. Idempotent."""
        if LogLines._listening is self:
            LogLines._listening = None
            logging.getLogger("gnomon").removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Hand a line on."""
        try:
            self._sink(record.levelname, self.format(record), record.created)
            self._show_if_nobody_does(record)
        except Exception:  # noqa: BLE001 - as all handlers do: logging must not fail who logs
            self.handleError(record)

    def _show_if_nobody_does(self, record: logging.LogRecord) -> None:
        """Python shows warnings of loggers without any handler; that there is this one must not silence them."""
        logger: logging.Logger | None = logging.getLogger(record.name)
        while logger is not None:
            if any(handler is not self for handler in logger.handlers):
                return
            logger = logger.parent if logger.propagate else None
        last = logging.lastResort
        if last is not None and record.levelno >= last.level:
            last.handle(record)


class Tail:
    """A sink that keeps the latest ``most`` lines until they are taken, and counts those that it had to drop."""

    def __init__(self, most: int = 200) -> None:
        self._lines: deque[tuple[float, str, str]] = deque(maxlen=most)
        self._seen = 0

    def __call__(self, level: str, text: str, time: float) -> None:
        """Keep a line."""
        self._lines.append((time, level, text[:_TEXT]))
        self._seen += 1

    def take(self) -> list[tuple[float, str, str]]:
        """The lines since the last time (time, level, text), oldest first; one of them says how many are missing."""
        lines, seen, self._seen = list(self._lines), self._seen, 0
        self._lines.clear()
        if seen > len(lines):
            lines.insert(0, (lines[0][0], "WARNING", f"{seen - len(lines):,} earlier lines are lost"))
        return lines
