"""The decision: per row slower, faster, unchanged or too noisy; over all rows, one exit code.

Times are judged in two steps. The first rounds make a row *suspect* if the interval of its ratio (at 20 %) excludes
"no change" and its estimate is past the factor; a fresh set of rounds, measured for the suspects alone, must confirm
it. A row changed if then the whole interval is past what counts: the factor, or the row's own noise floor where that is
larger. A false alarm has to pass both steps, so the confirming level is the share of the error of the whole set that
one row may use, divided by the first step's. Rows without confirming rounds, or that the first step did not suspect,
get their plain share (Bonferroni).

Counters that are the same in every round of a side are judged exactly: one more is a regression. Instructions and
blocks of memory are nearly exact (where memory lies, and what the interpreter has at hand, moves them by some
thousandths): the ranges of both sides must be apart by the factor.
Less is better, for counters as for times. Counters that vary otherwise are judged as times are, one sample a round.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from .comparison import Comparison, Measured
from .results import Row
from .statistics import LEAST_ROUNDS, Interval, Logs, log_rounds, noise_floor, ratio_interval

__all__ = ["Change", "Exit", "Finding", "Judgement", "Rules", "judge", "suspects"]

PLAIN = 0.05
NEARLY_EXACT = ("instructions", "blocks")
"""How the units of counters begin that are the same every time but for a few thousandths."""


class Change(enum.Enum):
    """What became of one row."""

    REGRESSION = "slower"
    IMPROVEMENT = "faster"
    UNCHANGED = "unchanged"
    NOISY = "too noisy"


class Exit(enum.IntEnum):
    """The exit codes; where several hold, the first of BROKEN, REGRESSION, NOISY, IMPROVEMENT wins."""

    NO_REGRESSION = 0
    REGRESSION = 1
    NOISY = 2
    BROKEN = 3
    IMPROVEMENT = 4


@dataclass(frozen=True, slots=True)
class Rules:
    """The judge's settings."""

    factor: float = 1.03
    """A change of less than this ratio does not count, however sure."""
    false_alarms: float = 0.05
    """The chance that any row at all of a comparison without change is called changed."""
    screening: float = 0.20
    """The chance that a row without change becomes suspect."""
    tolerance: float = 1.25
    """A row counts as unchanged only if a slow-down by this ratio can be excluded (at 95 %); else it is too noisy."""
    least_rows: int = 0
    """Judge as if at least so many rows were compared by time: a part of a set, no more lenient than all of it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One row's verdict and the figures behind it."""

    row: Row
    change: Change
    interval: Interval
    threshold: float
    """The ratio the interval had to be past; 1.0 for exact counters, where any change counts."""
    exact: bool
    before: float
    after: float
    unit: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """All findings and what they amount to."""

    findings: tuple[Finding, ...]
    added: tuple[Row, ...]
    exit: Exit

    def of(self, change: Change) -> list[Finding]:
        """The findings of a kind, largest change first."""
        chosen = [finding for finding in self.findings if finding.change is change]
        return sorted(chosen, key=lambda finding: -max(finding.interval.ratio, 1 / finding.interval.ratio))


def judge(comparison: Comparison, rules: Rules | None = None) -> Judgement:
    """Judge every row of a comparison. Raises ValueError if there are too few rounds for an interval."""
    rules = rules or Rules()
    confirm = comparison.confirm.measured
    rows = _first_rounds(comparison)
    timed = sum(not _by_range(measured) for measured in rows.values())
    share = rules.false_alarms / max(1, timed, rules.least_rows)
    findings = tuple(_find(first, confirm.get(row), share, rules) for row, first in rows.items())
    added = comparison.count.added + comparison.screen.added
    return Judgement(findings, added, _exit_of([finding.change for finding in findings]))


def suspects(comparison: Comparison, rules: Rules | None = None) -> list[Row]:
    """The rows worth confirming rounds, strongest first; those too noisy to exclude a slow-down come last.

    A counter that was measured in few rounds because it should not vary, and does, is one of these.
    """
    rules = rules or Rules()
    ranked = []
    for row, measured in _first_rounds(comparison).items():
        if _by_range(measured):
            continue
        if _short(measured):
            ranked.append((1, 0.0, row))
            continue
        logs = log_rounds(measured.base, measured.head)
        interval = ratio_interval(logs, PLAIN)
        if _is_suspect(logs, rules):
            ranked.append((0, -max(interval.ratio, 1 / interval.ratio), row))
        elif interval.high > rules.tolerance:
            ranked.append((1, -interval.high, row))
    return [row for _, _, row in sorted(ranked)]


def _first_rounds(comparison: Comparison) -> dict[Row, Measured]:
    """All rows by their rounds before the confirming ones; one that was counted and timed keeps its timed rounds."""
    return {**comparison.count.measured, **comparison.screen.measured}


def _is_suspect(logs: Logs, rules: Rules) -> bool:
    """Whether the interval excludes "no change" and the estimate is one that would count."""
    interval = ratio_interval(logs, rules.screening)
    if interval.ratio > 1:
        return interval.low > 1 and interval.ratio > rules.factor
    return interval.high < 1 and interval.ratio < 1 / rules.factor


def _find(first: Measured, second: Measured | None, share: float, rules: Rules) -> Finding:
    if _by_range(first) and (second is None or _by_range(second)):
        return _compare_counters(first, rules.factor if _nearly_exact(first) else 1.0)
    if _short(first):
        if second is None:
            return _undecided(first)
        first, second = second, None
    everything = logs = log_rounds(first.base, first.head)
    level, judged = share, first
    if second is not None:
        if _is_suspect(logs, rules):
            level = min(PLAIN, share / rules.screening)
        logs, judged = log_rounds(second.base, second.head), second
        everything = everything.and_also(logs)
    interval = ratio_interval(logs, level)
    threshold = max(rules.factor, noise_floor(judged.base, judged.null))
    if interval.low > threshold:
        change = Change.REGRESSION
    elif interval.high < 1 / threshold:
        change = Change.IMPROVEMENT
    elif (of_all := ratio_interval(everything, PLAIN)).high > rules.tolerance:
        change, interval = Change.NOISY, of_all
    else:
        change = Change.UNCHANGED
    return Finding(
        first.row, change, interval, threshold, False, _middle(judged.base), _middle(judged.head), first.unit
    )


def _exact(measured: Measured) -> bool:
    """A counter that no round of a side saw differently, or one that is zero or below somewhere (no ratio exists)."""
    if not measured.counter:
        return False
    base, head = [one[0] for one in measured.base], [one[0] for one in measured.head]
    return (len(set(base)) == 1 and len(set(head)) == 1) or min(base + head) <= 0


def _nearly_exact(measured: Measured) -> bool:
    return measured.counter and measured.unit.startswith(NEARLY_EXACT)


def _by_range(measured: Measured) -> bool:
    """Whether ranges decide, and no interval."""
    return _exact(measured) or _nearly_exact(measured)


def _short(measured: Measured) -> bool:
    """A counter of so few rounds that only ranges could decide."""
    return measured.counter and len(measured.base) < LEAST_ROUNDS


def _undecided(measured: Measured) -> Finding:
    """A counter that varies, of which there are too few rounds."""
    before, after = _middle(measured.base), _middle(measured.head)
    anything = Interval(after / before, 0.0, float("inf"))
    return Finding(measured.row, Change.NOISY, anything, 1.0, False, before, after, measured.unit)


def _compare_counters(measured: Measured, factor: float) -> Finding:
    """Exact values differ or not; others differ where their ranges are apart by the factor."""
    base, head = [one[0] for one in measured.base], [one[0] for one in measured.head]
    if min(head) > max(base) * factor:
        change = Change.REGRESSION
    elif max(head) * factor < min(base):
        change = Change.IMPROVEMENT
    else:
        change = Change.UNCHANGED
    before, after = _middle(measured.base), _middle(measured.head)
    if before > 0 and after > 0:
        ratio = after / before
    else:
        ratio = {Change.REGRESSION: float("inf"), Change.IMPROVEMENT: 1e-9}.get(change, 1.0)
    return Finding(measured.row, change, Interval(ratio, ratio, ratio), factor, True, before, after, measured.unit)


def _middle(rounds: Sequence[Sequence[float]]) -> float:
    """The median over rounds of their medians."""
    return median(median(one) for one in rounds)


def _exit_of(changes: Sequence[Change]) -> Exit:
    if not changes:
        return Exit.BROKEN
    for change, code in (
        (Change.REGRESSION, Exit.REGRESSION),
        (Change.NOISY, Exit.NOISY),
        (Change.IMPROVEMENT, Exit.IMPROVEMENT),
    ):
        if change in changes:
            return code
    return Exit.NO_REGRESSION
