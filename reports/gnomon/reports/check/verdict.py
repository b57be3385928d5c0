"""Whether a recording keeps its limits.

Contents: Breach, check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from gnomon.reports.account import account
from gnomon.reports.check.limits import Limit, Limits
from gnomon.reports.check.measures import values_by_prefix, values_of_whole
from gnomon.reports.recording import TICKS, Recording
from gnomon.reports.units import bytes_text, cut, time_text

__all__ = ["Breach", "check"]


class Breach(NamedTuple):
    """A limit that isn't kept. ``prefix`` is empty for the whole; ``value`` is None if it could not be measured.

    ``limit`` is None for a prefix that is not in the recording at all.
    """

    prefix: str
    limit: Limit | None
    value: float | None

    def __str__(self) -> str:
        where = f"prefix {cut(self.prefix, 60)!r}: " if self.prefix else ""
        if self.limit is None:
            return f"{where}has limits, but nothing of this name ran"
        bound = f"{'at most' if self.limit.most else 'at least'} {_shown(self.limit.value, self.limit.kind)}"
        if self.value is None:
            return f"{where}{self.limit.measure} was not measured, limit {bound}"
        return f"{where}{self.limit.measure} {_apart(self.value, self.limit)}, limit {bound}"


def check(recording: Recording, limits: Limits) -> list[Breach]:
    """The breaches, in the order of the file. What can't be measured is a breach, for nobody knows that it holds."""
    result = account(recording)
    found = _breaches("", limits.whole, values_of_whole(recording, result))
    by_prefix = values_by_prefix(recording, result)
    for pattern, of_prefix in limits.prefixes.items():
        names = [pattern] if pattern in by_prefix else [name for name in by_prefix if fnmatchcase(name, pattern)]
        if not names:
            found.append(Breach(pattern, None, None))
        for name in names:
            found += _breaches(name, of_prefix, by_prefix[name])
    return found


def _breaches(prefix: str, limits: Sequence[Limit], values: Mapping[str, float | None]) -> list[Breach]:
    measured = [(limit, values[limit.measure]) for limit in limits]
    return [Breach(prefix, limit, value) for limit, value in measured if value is None or not limit.holds(value)]


def _apart(value: float, limit: Limit) -> str:
    """The value, with as many digits as tell it from the limit."""
    shown = _shown(value, limit.kind)
    if shown != _shown(limit.value, limit.kind):
        return shown
    return f"{shown} ({value!r} against {limit.value!r})"


def _shown(value: float, kind: str) -> str:
    if kind == "time":
        return time_text(value * TICKS)
    if kind == "bytes":
        return bytes_text(value)
    if kind == "share":
        return f"{100 * value:.1f} %"
    return f"{value:,.0f}" if value == round(value) else f"{value:,.2f}"
