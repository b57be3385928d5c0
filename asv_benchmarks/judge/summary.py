"""A judgement as text: what was compared, where, and only what changed. Markdown that reads well unrendered."""

from __future__ import annotations

from collections.abc import Sequence

from .comparison import Build, Comparison
from .results import Row
from .verdict import Change, Exit, Finding, Judgement

__all__ = ["TITLES", "describe", "describe_broken"]

TITLES = {
    Exit.NO_REGRESSION: "No regression",
    Exit.REGRESSION: "Regression",
    Exit.NOISY: "No verdict: too noisy",
    Exit.BROKEN: "Broken environment",
    Exit.IMPROVEMENT: "Improvement",
}


def describe(comparison: Comparison, judgement: Judgement) -> str:
    """The verdict, its circumstances, and a table per kind of change."""
    counting, rounds, confirming = _rounds(comparison)
    lines = [
        f"## {TITLES[judgement.exit]}",
        "",
        f"- base: {_build(comparison.base)}",
        f"- head: {_build(comparison.head)}",
        f"- machine: {comparison.machine}",
        f"- rounds: {rounds} interleaved, {counting} of counters alone, "
        f"{confirming} more for {len(comparison.confirm.measured)} suspects",
        f"- {_counts(judgement)}",
        *_packages(comparison.base, comparison.head),
    ]
    for change in (Change.REGRESSION, Change.NOISY, Change.IMPROVEMENT):
        found = judgement.of(change)
        if found:
            lines += ["", f"### {change.value.capitalize()}", "", *_table(found)]
    if judgement.added:
        names = ", ".join(row.selector for row in judgement.added)
        lines += ["", f"New in the head, nothing to compare with: {names}"]
    return "\n".join(lines) + "\n"


def describe_broken(reason: object) -> str:
    """The verdict where nothing can be judged."""
    return f"## {TITLES[Exit.BROKEN]}\n\nNothing can be said about regressions: {reason}\n"


def _rounds(comparison: Comparison) -> tuple[int, int, int]:
    """Rounds of counters alone, of everything else, and of suspects."""
    stages = (comparison.count, comparison.screen, comparison.confirm)
    count, screen, confirm = [
        max((len(measured.base) for measured in stage.measured.values()), default=0) for stage in stages
    ]
    return count, screen, confirm


def _build(build: Build) -> str:
    return f"{build.name} ({build.commit[:10]}), {build.compiled}"


def _counts(judgement: Judgement) -> str:
    counts = {change: len(judgement.of(change)) for change in Change}
    return ", ".join(f"{count} {change.value}" for change, count in counts.items() if count) or "nothing measured"


def _packages(base: Build, head: Build) -> list[str]:
    """What differs in the packages installed beside the project; a change of them is no change of the project."""
    before, after = set(base.packages), set(head.packages)
    if before == after:
        return []
    changed = [f"-{name}" for name in sorted(before - after)] + [f"+{name}" for name in sorted(after - before)]
    return [f"- different packages: {', '.join(changed)}"]


def _table(findings: Sequence[Finding]) -> list[str]:
    rows = ["| benchmark | before | after | ratio | sure within | counts past |", "|---|---|---|---|---|---|"]
    for found in findings:
        low, high = found.interval.low, found.interval.high
        sure = "counted" if found.exact else f"{low:.3f} to {high:.3f}"
        past = "any change" if found.threshold == 1.0 else f"{found.threshold:.3f}"
        before, after = _quantity(found.before, found.unit), _quantity(found.after, found.unit)
        rows.append(f"| `{_name(found.row)}` | {before} | {after} | {found.interval.ratio:.3f} | {sure} | {past} |")
    return rows


def _name(row: Row) -> str:
    return row.selector.replace("|", "\\|")


def _quantity(value: float, unit: str) -> str:
    if unit != "seconds":
        return f"{value:.6g} {unit}".strip()
    for size, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value) >= size:
            return f"{value / size:.4g} {name}"
    return f"{value * 1e9:.4g} ns"
