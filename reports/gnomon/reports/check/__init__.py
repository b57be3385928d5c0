"""Limits that a recording must keep: read from a TOML file, checked, and said one line per breach.

Contents:
    limits     the file: names, units, what is wrong with it
    measures   the numbers of a recording that limits speak of
    verdict    ``check``: the breaches
"""

from __future__ import annotations

from gnomon.reports.check.limits import Limit, Limits, LimitsError, read_limits
from gnomon.reports.check.verdict import Breach, check

__all__ = ["Breach", "Limit", "Limits", "LimitsError", "check", "read_limits"]
