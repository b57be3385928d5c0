"""What a viewer asks to see: a span or range of time, a prefix, a search, how tables are sorted and which leaf of them.

Times of pages are seconds since the run began; the model's are seconds since the epoch.

Contents: SPANS, View.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from gnomon.reports.dashboard.model import Model
from gnomon.reports.dashboard.underway import LiveAccount

__all__ = ["SPANS", "View"]

#: The spans offered, in seconds, and what they are called; "all" is the whole run.
SPANS = (
    ("30", "last 30 s"), ("60", "last 60 s"), ("120", "last 2 min"), ("300", "last 5 min"), ("600", "last 10 min"),
    ("all", "whole run"),
)  # fmt: skip

_RANGE = re.compile(r"(-?\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)")
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class View:
    """Everything of an address's query that this room understands. ``range`` goes before ``span``."""

    span: str = "60"
    range: tuple[float, float] | None = None
    prefix: str = ""
    worker: str = ""
    search: str = ""
    sorts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    leaves: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, query: Mapping[str, list[bytes]], span: str = "60") -> View:
        """The view that a query asks for; what makes no sense in it is left out."""
        said = {name: values[-1].decode("utf-8", "replace")[:_LONGEST] for name, values in query.items() if values}
        asked = said.get("span", span)
        sorts, leaves = {}, {}
        for text in _all(query, "sort"):
            name, at, way = _three(text)
            if at.isdigit() and way in ("1", "-1"):
                sorts[name] = (int(at), int(way))
        for text in _all(query, "page"):
            name, _, page = text.rpartition(":")
            if page.isdigit() and len(page) < 8:
                leaves[name] = int(page)
        return cls(
            span=asked if asked in dict(SPANS) else span,
            range=_range(said.get("t", "")),
            prefix=said.get("prefix", ""),
            worker=said.get("worker", ""),
            search=said.get("search", ""),
            sorts=sorts,
            leaves=leaves,
        )

    def window(self, model: Model) -> tuple[float, float]:
        """From when to when, in the model's seconds; never before the run began."""
        if self.range is not None:
            low, high = (model.begin + each for each in self.range)
            return max(model.begin, low), max(model.begin, min(high, model.now))
        if self.span == "all":
            return model.begin, model.now
        return max(model.begin, model.now - float(self.span)), model.now

    def account(self, model: Model) -> LiveAccount:
        """The account of the window: exact for a chosen range, to whole seconds for one that goes on."""
        return model.account(*self.window(model), exact=self.range is not None)

    def words(self, model: Model) -> str:
        """The window in words."""
        if self.range is not None:
            return f"{self.range[0]:,.2f} to {self.range[1]:,.2f} s"
        return dict(SPANS)[self.span]

    def finds(self, *texts: str) -> bool:
        """Whether the search is in one of the texts."""
        wanted = self.search.casefold()
        return not wanted or any(wanted in text.casefold() for text in texts)


def _range(text: str) -> tuple[float, float] | None:
    match = _RANGE.fullmatch(text)
    if match is None:
        return None
    low, high = (float(each) for each in match.groups())
    return (low, high) if high > low and isfinite(high) else None


def _all(query: Mapping[str, list[bytes]], name: str) -> list[str]:
    return [value.decode("utf-8", "replace")[:_LONGEST] for value in query.get(name, ())][:20]


def _three(text: str) -> tuple[str, str, str]:
    name, _, rest = text.partition(":")
    at, _, way = rest.partition(":")
    return name, at, way
