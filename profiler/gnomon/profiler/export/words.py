"""How times, shares and places are put into words, alike in all exports.

Contents: seconds_text, share_text, place_text, plain, facts.
"""

from __future__ import annotations

from gnomon.profiler.sessions.calltree import short_path
from gnomon.profiler.sessions.session import MARKER, REGION, Function, Session

__all__ = ["facts", "place_text", "plain", "seconds_text", "share_text"]


def seconds_text(seconds: float) -> str:
    """Three significant digits and one unit, from µs to h."""
    size = abs(seconds)
    if size == 0:
        return "0 s"
    for least, unit, scale in ((7200, "h", 3600.0), (120, "min", 60.0), (0.9995, "s", 1.0), (0.9995e-3, "ms", 1e-3)):
        if size >= least:
            return f"{_digits(seconds / scale)} {unit}"
    return f"{_digits(seconds * 1e6)} µs"


def share_text(part: float, whole: float) -> str:
    """A part in percent, to a tenth; 0 of 0 is 0."""
    return f"{100 * part / whole if whole else 0:.1f} %"


def place_text(function: Function) -> str:
    """Where a function is defined, as short as it can be found again; empty for regions and markers."""
    if function.file in (REGION, MARKER):
        return "region" if function.file == REGION else ""
    if not function.file:
        return ""
    path = short_path(function.file)
    return f"{path}:{function.first_line}" if function.first_line else path


def plain(text: str) -> str:
    """The text on one line, without control characters (a name can hold any), as in ``a\\nb`` for a line break."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def facts(session: Session) -> list[tuple[str, str]]:
    """What to know of the recording before one trusts it, as (name, value)."""
    meta = session.meta
    ticks, missed = int(meta.get("ticks", 0)), int(meta.get("missed", 0))
    duration = session.duration
    return [
        ("Duration", seconds_text(duration)),
        ("Samples", f"{int(meta.get('samples', 0)):,}"),
        ("Threads", f"{len(set(session.samples.thread)):,}"),
        ("Interval", seconds_text(duration / ticks) if ticks else "-"),
        ("Missed", f"{missed:,} of {ticks + missed:,}"),
        ("Sampler CPU", share_text(float(meta.get("cpu", 0.0)), duration) + " of one core"),
    ]


def _digits(value: float) -> str:
    size = abs(value)
    return f"{value:,.0f}" if size >= 99.95 else f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"
