"""Numbers as people read them: three significant digits, one unit, separators in counts.

Contents: time_text, bytes_text, count_text, rate_text, cut.
"""

from __future__ import annotations

from gnomon.reports.recording import TICKS

__all__ = ["bytes_text", "count_text", "cut", "rate_text", "time_text"]


def time_text(ticks: float) -> str:
    """Ticks as a time, from ns to h."""
    seconds = ticks / TICKS
    size = abs(seconds)
    if size == 0:
        return "0 s"
    if size >= 3600:
        return f"{_digits(seconds / 3600)} h"
    if size >= 120:
        return f"{_digits(seconds / 60)} min"
    if size >= 0.9995:
        return f"{_digits(seconds)} s"
    if size >= 0.9995e-3:
        return f"{_digits(seconds * 1e3)} ms"
    if size >= 0.9995e-6:
        return f"{_digits(seconds * 1e6)} µs"
    return f"{seconds * 1e9:.0f} ns"


def bytes_text(count: float) -> str:
    """Bytes in IEC units."""
    if abs(count) < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        count /= 1024
        if abs(count) < 1000:
            return f"{_digits(count)} {unit}"
    return f"{count / 1024:,.1f} PiB"


def count_text(count: int) -> str:
    """A count with separators."""
    return f"{count:,}"


def rate_text(count: float, ticks: int) -> str:
    """How many per second; a dash if no time passed."""
    if ticks <= 0:
        return "-"
    rate = count * TICKS / ticks
    return f"{rate:,.0f} /s" if rate >= 100 else f"{_digits(rate)} /s"


def cut(text: str, length: int = 80) -> str:
    """The text, cut in the middle to ``length`` characters."""
    if len(text) <= length:
        return text
    head = (length - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (length - 1 - head) :]}"


def _digits(value: float) -> str:
    """Three significant digits; more only before the point."""
    size = abs(value)
    if size >= 99.95:
        return f"{value:,.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}"
