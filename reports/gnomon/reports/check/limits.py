"""The file of limits.

    max_duration = "2 min"
    min_utilisation = 0.8
    max_unaccounted_share = "1 %"

    [prefixes.parse]
    max_mean = "20 ms"

    [prefixes."shuffle-*"]
    max_errors = 0

A limit is ``max_`` or ``min_`` and the name of a measure. Names of prefixes may be patterns as in file names; each that
fits is checked. Times are seconds or text with a unit, sizes are bytes or text with a unit, shares are of 1 or text in
percent.

Contents: Limit, Limits, LimitsError, read_limits, parse_limits.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from gnomon.reports.check.measures import PREFIX, WHOLE, Measure

__all__ = ["Limit", "Limits", "LimitsError", "parse_limits", "read_limits"]

_UNITS = {
    "time": {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0},
    "bytes": {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
              "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40},
    "share": {"%": 0.01},
    "count": {},
    "rate": {"/s": 1.0},
}  # fmt: skip


class LimitsError(ValueError):
    """A file of limits that says nothing, or something that isn't known."""


class Limit(NamedTuple):
    """A bound on a measure: ``most`` tells a maximum from a minimum; ``value`` is in the measure's base unit."""

    name: str
    measure: str
    kind: str
    most: bool
    value: float

    def holds(self, value: float) -> bool:
        """Whether a value keeps the limit."""
        return value <= self.value if self.most else value >= self.value


class Limits(NamedTuple):
    """All limits of a file: on the whole, and by prefix or pattern."""

    whole: list[Limit]
    prefixes: dict[str, list[Limit]]

    def __len__(self) -> int:
        return len(self.whole) + sum(len(limits) for limits in self.prefixes.values())


def read_limits(path: str | PathLike[str]) -> Limits:
    """Read a file of limits. Raises OSError, LimitsError."""
    try:
        return parse_limits(tomllib.loads(Path(path).read_text("utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise LimitsError(f"this is not TOML: {exc}") from exc


def parse_limits(table: Mapping[str, Any]) -> Limits:
    """The limits in a parsed file. Raises LimitsError."""
    whole = {name: value for name, value in table.items() if name != "prefixes"}
    by_prefix = table.get("prefixes", {})
    if not isinstance(by_prefix, dict) or not all(isinstance(each, dict) for each in by_prefix.values()):
        raise LimitsError('limits on prefixes are tables: [prefixes."NAME"]')
    found = _parse(whole, WHOLE, "")
    prefixes = {name: _parse(each, PREFIX, f"prefixes.{name}: ") for name, each in by_prefix.items()}
    if not found and not any(prefixes.values()):
        raise LimitsError(f"there is no limit in the file. {_known(WHOLE)}")
    return Limits(found, prefixes)


def _parse(table: Mapping[str, Any], measures: Mapping[str, Measure], where: str) -> list[Limit]:
    result = []
    for name, value in table.items():
        bound, _, measure = name.partition("_")
        if bound not in ("max", "min") or measure not in measures:
            raise LimitsError(f"{where}unknown limit {name!r}. {_known(measures)}")
        kind = measures[measure].kind
        result.append(Limit(name, measure, kind, bound == "max", _number(value, kind, f"{where}{name}")))
    return result


def _known(measures: Mapping[str, Measure]) -> str:
    return f"Known are max_ and min_ of: {', '.join(measures)}"


def _number(value: Any, kind: str, where: str) -> float:
    units = _UNITS[kind]
    number = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    elif isinstance(value, str) and (
        match := re.fullmatch(r"([0-9][0-9_]*(?:\.[0-9]*)?)\s*([^\s0-9]*)", value.strip())
    ):
        factor = units.get(match[2], 1.0 if not match[2] else None)
        number = None if factor is None else float(match[1].replace("_", "")) * factor
    if number is None or not math.isfinite(number) or number < 0:
        hint = f" or a text with a unit ({', '.join(units)})" if units else ""
        raise LimitsError(f"{where} = {value!r}: a {kind} is a number from 0{hint}")
    return number
