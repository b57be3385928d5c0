"""How the judge is judged: comparisons of a commit with itself, and with itself made slower on purpose.

In a clone of the repository, each plant becomes a commit, and one more commit changes a comment only. Every commit is
built once, in an environment of its own, and compared with the base again and again; each comparison is what
``judge compare`` does, with fresh rounds. Its outcome is a line of JSON in ``outcomes.jsonl``, so that a campaign goes
on where it was stopped, and the table is made of the lines.

A plant is caught where the verdict is "regression" and a benchmark that has to see it is named. Unless told otherwise,
plants are compared by the part of the gate that has to see them, and judged as severely as by all of it; where counters
show one, nothing is measured in time any more.

Contents: Campaign, Outcome, run, read_outcomes, table.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from .comparison import read_comparison
from .driver import Plan, gate_patterns, measure
from .plants import PLANTS, Plant, apply_plant
from .results import BrokenResultsError
from .verdict import Change, Exit, Rules, judge

__all__ = ["SAME", "Campaign", "Outcome", "read_outcomes", "run", "table"]

SAME = "same"
"""The name of the commit that changes a comment only."""
_COMMENTED = "runtime/gnomon/runtime/build.py"


@dataclass(frozen=True, slots=True)
class Campaign:
    """What to try, how often, where."""

    config: Path
    folder: Path
    base: str = "HEAD"
    runs: int = 10
    only: Sequence[str] = ()
    """Names of plants, or ``same``; none: all."""
    whole: bool = False
    """Compare plants by the whole gate, not by those of its benchmarks that have to see them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One comparison."""

    trial: str
    number: int
    base: str
    """The commit."""
    exit: int
    seconds: float
    rows: int
    timed: int
    """How many of the rows were judged by rounds, not as counters."""
    changed: dict[str, tuple[str, float]]
    """By benchmark: what became of it, and its ratio."""
    broken: str = ""

    def named(self, plant: Plant) -> bool:
        """Whether a benchmark that has to see the plant is called slower."""
        return any(
            kind == Change.REGRESSION.value and re.search(plant.named, row) for row, (kind, _) in self.changed.items()
        )


def run(campaign: Campaign, rules: Rules, tell: Callable[[str], None]) -> list[Outcome]:
    """Make the comparisons that are missing; all outcomes of this base.

    Raises BrokenResultsError or ValueError where a commit can't be made; a comparison that fails is an outcome.
    """
    campaign.folder.mkdir(parents=True, exist_ok=True)
    clone = _clone(campaign)
    base = _git(clone, "rev-parse", "HEAD")
    done = [one for one in read_outcomes(campaign.folder) if one.base == base]
    known = {plant.name: plant for plant in PLANTS}
    for name in campaign.only or [SAME, *known]:
        if name != SAME and name not in known:
            raise ValueError(f"no plant is called {name}; there are {', '.join([SAME, *known])}")
        head = _commit(clone, base, name, known.get(name))
        for number in range(campaign.runs):
            if not any(one.trial == name and one.number == number for one in done):
                tell(f"{name}, {number + 1} of {campaign.runs}")
                least = max([one.timed for one in done if one.trial == SAME], default=0)
                outcome = _compare(campaign, clone, (base, head), (name, number), replace(rules, least_rows=least))
                done.append(outcome)
                _append(campaign.folder, outcome)
                tell(f"{name}, {number + 1}: {Exit(outcome.exit).name.lower()} after {outcome.seconds:.0f} s")
    return done


def _clone(campaign: Campaign) -> Path:
    """The clone, its working tree at the base: benchmarks are taken from there."""
    clone = campaign.folder / "clone"
    origin = campaign.config.parent.parent
    wanted = _git(origin, "rev-parse", "--verify", f"{campaign.base}^{{commit}}")
    if not clone.exists():
        _git(campaign.folder, "clone", "--quiet", "--no-checkout", str(origin), str(clone))
    _git(clone, "fetch", "--quiet", "origin", wanted)
    _git(clone, "checkout", "--quiet", "--force", "--detach", wanted)
    return clone


def _commit(clone: Path, base: str, name: str, plant: Plant | None) -> str:
    """The commit on top of the base with a plant, or with a comment; made once, so that its build is kept."""
    tag = f"{name}-on-{base[:12]}"
    if _git(clone, "tag", "--list", tag):
        return _git(clone, "rev-parse", f"{tag}^{{commit}}")
    try:
        if plant is None:
            with (clone / _COMMENTED).open("a", encoding="utf-8") as file:
                file.write("\n# The same again.\n")
        else:
            apply_plant(plant, clone)
        who = ("-c", "user.name=campaign", "-c", "user.email=campaign@localhost")
        _git(clone, *who, "commit", "--quiet", "--all", "--message", plant.what if plant else "A comment")
        _git(clone, "tag", tag)
        return _git(clone, "rev-parse", "HEAD")
    finally:
        _git(clone, "checkout", "--quiet", "--force", "--detach", base)


def _compare(
    campaign: Campaign, clone: Path, commits: tuple[str, str], trial: tuple[str, int], rules: Rules
) -> Outcome:
    """One comparison, from its first round to its verdict."""
    name, number = trial
    benchmarks = clone / campaign.config.parent.name / "benchmarks"
    plant = next((one for one in PLANTS if one.name == name and not campaign.whole), None)
    gate = {part: gate_patterns(benchmarks, part) for part in ("times", "counters")}
    if plant:
        gate = {part: [_both(one, plant.named) for one in gate[part] if part in plant.parts] for part in gate}
    plan = Plan(
        config=benchmarks.parent / campaign.config.name,
        folder=campaign.folder / "rounds" / f"{name}-{number:02}",
        base=commits[0],
        head=commits[1],
        patterns=gate["times"],
        counters=gate["counters"],
        settle=not campaign.whole,
        environments=campaign.folder / "environments",
        head_environment=f"env-{name}",
    )
    begin = time.monotonic()
    try:
        measure(plan, rules, lambda message: None)
        judgement = judge(read_comparison(plan.folder), rules)
    except (BrokenResultsError, ValueError, OSError) as error:
        seconds = time.monotonic() - begin
        return Outcome(name, number, commits[0], int(Exit.BROKEN), seconds, 0, 0, {}, str(error))
    changed = {
        found.row.selector: (found.change.value, round(found.interval.ratio, 4))
        for found in judgement.findings
        if found.change is not Change.UNCHANGED
    }
    timed = sum(not found.exact for found in judgement.findings)
    seconds = round(time.monotonic() - begin, 1)
    return Outcome(name, number, commits[0], int(judgement.exit), seconds, len(judgement.findings), timed, changed)


def _both(pattern: str, other: str) -> str:
    """The pattern of what both patterns find."""
    return f"^(?=.*(?:{pattern}))(?=.*(?:{other}))"


def _append(folder: Path, outcome: Outcome) -> None:
    with (folder / "outcomes.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(outcome)) + "\n")


def read_outcomes(folder: Path) -> list[Outcome]:
    """What was done so far; the last line may have been cut short."""
    path = folder / "outcomes.jsonl"
    outcomes = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            row: dict[str, Any] = json.loads(line)
        except ValueError:
            continue
        row["changed"] = {name: (kind, ratio) for name, (kind, ratio) in row["changed"].items()}
        outcomes.append(Outcome(**row))
    return outcomes


def table(outcomes: Sequence[Outcome]) -> str:
    """False alarms of comparisons without change, and how often each plant was caught; in Markdown."""
    by_trial: dict[str, list[Outcome]] = {}
    for one in outcomes:
        by_trial.setdefault(one.trial, []).append(one)
    lines = _false_alarms(by_trial.get(SAME, []))
    lines += ["", "| planted | caught | ratio seen | also called changed | seconds each |", "|---|---|---|---|---|"]
    for plant in PLANTS:
        if found := by_trial.get(plant.name):
            lines.append(_planted(plant, found))
    broken = [one for one in outcomes if one.broken]
    lines += [""] * bool(broken) + [f"Broken: {one.trial} {one.number + 1}: {one.broken}" for one in broken]
    return "\n".join(lines) + "\n"


def _false_alarms(found: Iterable[Outcome]) -> list[str]:
    """Broken comparisons are counted as such, neither as silent nor as alarms."""
    judged = [one for one in found if not one.broken]
    alarms = [(row, kind) for one in judged for row, (kind, _) in one.changed.items() if kind != Change.NOISY.value]
    noisy = sum(kind == Change.NOISY.value for one in judged for kind, _ in one.changed.values())
    rows = sum(one.rows for one in judged)
    if not rows:
        return ["No comparison of a commit with itself."]
    exits = Counter(Exit(one.exit).name.lower().replace("_", " ") for one in judged)
    lines = [
        f"{len(judged)} comparisons of a commit with itself, {rows} rows: {len(alarms)} false alarms "
        f"({100 * len(alarms) / rows:.2f} %), {noisy} rows too noisy; "
        f"{', '.join(f'{count} {name}' for name, count in exits.most_common())}; "
        f"{median(one.seconds for one in judged):.0f} s each (median).",
    ]
    return lines + [f"- {count} times: `{row}` {kind}" for (row, kind), count in Counter(alarms).most_common()]


def _planted(plant: Plant, found: Sequence[Outcome]) -> str:
    caught = sum(one.exit == Exit.REGRESSION and one.named(plant) for one in found)
    ratios: dict[str, list[float]] = {}
    others: Counter[str] = Counter()
    for one in found:
        for row, (kind, ratio) in one.changed.items():
            if kind == Change.REGRESSION.value and re.search(plant.named, row):
                ratios.setdefault(row, []).append(ratio)
            elif kind != Change.NOISY.value:
                others[row.partition("(")[0]] += 1
    strongest = max(ratios, key=lambda row: (len(ratios[row]), median(ratios[row])), default=None)
    seen = f"{median(ratios[strongest]):.2f} by `{strongest}`".replace("|", "\\|") if strongest else "none"
    also = ", ".join(f"`{row}` {count}" for row, count in others.most_common(4)) or "none"
    seconds = median(one.seconds for one in found)
    return f"| {plant.what} | {caught} of {len(found)} | {seen} | {also} | {seconds:.0f} |"


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BrokenResultsError(f"git {arguments[0]} failed: {done.stderr.strip()[-500:]}")
    return done.stdout.strip()
