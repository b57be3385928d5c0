"""Makes asv measure two commits in interleaved rounds, in a folder that ``comparison`` reads.

Each side has an asv environment of its own, so that nothing is installed between rounds; each round is one ``asv run``
per side with a results folder of its own, base first in one round and head first in the next. Counters come first, and
need two rounds to show that they don't vary; then the rounds of what is timed; then those benchmarks that look changed
are measured again. Builds, discovery and processes are asv's.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .comparison import BASE, CONFIRM, COUNT, HEAD, NULL, SCREEN, Build, Comparison, read_comparison
from .results import BrokenResultsError, Row
from .statistics import LEAST_ROUNDS
from .verdict import Change, Rules, judge, suspects

__all__ = [
    "PROBE",
    "Plan",
    "commit_of",
    "derived_config",
    "environment_python",
    "exactly",
    "gate_patterns",
    "measure",
    "output_of",
    "surroundings_of",
]

PROBE = """
from gnomon.runtime.build import is_compiled
from gnomon.runtime.core import reactor
print("compiled" if is_compiled(reactor) else "pure Python")
"""
MOST_SUSPECTS = 12
"""How many benchmarks are measured again at most; a regression needs one, and the strongest come first."""
COUNTING = 2
"""Rounds of counters: the second shows whether they are the same every time."""
SAMPLING = {"warmup_time": "0.02", "repeat": "(2,4,0.25)"}
"""Samples in one round of one side: few, since it is rounds that count."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure, and how thoroughly."""

    config: Path
    folder: Path
    base: str
    head: str
    patterns: Sequence[str]
    """Regular expressions of asv's ``--bench`` for what is measured in rounds; none: every benchmark."""
    counters: Sequence[str] = ()
    """The same for counters that should not vary, so that two rounds are enough."""
    rounds: int = 9
    confirming: int = 16
    sets: int = 2
    """How many times so many at most: another time only while a row is too noisy for a verdict."""
    settle: bool = False
    """Stop where counters alone show a regression: times can add names to that verdict, and take none away."""
    null: bool = False
    """Measure the base twice in each round, to learn the noise."""
    pure: bool = False
    """Run interpreted; otherwise the extensions must be there."""
    probe: str = PROBE
    """Python code that prints how the installed project was built."""
    attributes: Sequence[str] = field(default=())
    """Attributes of all benchmarks to override, as NAME=VALUE, for example ``sample_time=0.05``."""
    environments: Path | None = None
    """The folder of the sides' environments, kept between comparisons; without one, in asv's folder."""
    head_environment: str = "env-head"
    """The name of the head's, where many heads are compared with one base and each keeps its own."""


def gate_patterns(benchmarks: Path, part: str) -> list[str]:
    """The pattern of a part, ``times`` or ``counters``, that ``gate.py`` in the benchmarks' folder writes when run.

    Without a gate there is none, which is every benchmark among the times.
    """
    source = benchmarks / "gate.py"
    return [output_of([sys.executable, str(source), part], dict(os.environ))] if source.exists() else []


def measure(plan: Plan, rules: Rules, tell: Callable[[str], None]) -> None:
    """Run both stages.

    Raises BrokenResultsError as soon as a side can't be measured, ValueError if the rounds are too few to judge.
    """
    if plan.rounds < LEAST_ROUNDS or 0 < plan.confirming < LEAST_ROUNDS:
        raise ValueError(f"at least {LEAST_ROUNDS} rounds are needed")
    shutil.rmtree(plan.folder, ignore_errors=True)
    plan.folder.mkdir(parents=True)
    commits = {BASE: commit_of(plan, plan.base), HEAD: commit_of(plan, plan.head)}
    commits[NULL] = commits[BASE]
    _asv(plan, ["machine", "--yes"], check=True)
    if plan.counters:
        _run_rounds(plan, COUNT, COUNTING, commits, list(plan.counters), tell)
        if plan.settle and _settled(read_comparison(plan.folder), rules):
            return
    timed = bool(plan.patterns or not plan.counters)
    if timed:
        _run_rounds(plan, SCREEN, plan.rounds, commits, list(plan.patterns), tell)
    comparison = read_comparison(plan.folder)
    if _settled(comparison, rules):
        return
    if timed and len(suspects(comparison, rules)) > MOST_SUSPECTS:
        # Changes are few: where so many rows are undecided, it is the machine, and all need more rounds.
        _run_rounds(plan, SCREEN, plan.rounds, commits, list(plan.patterns), tell, plan.rounds)
        comparison = read_comparison(plan.folder)
    found = suspects(comparison, rules)[:MOST_SUSPECTS]
    if found and plan.confirming:
        tell(f"measuring again: {', '.join(row.selector for row in found)}")
        patterns = [exactly(row) for row in found]
        for first in range(0, plan.sets * plan.confirming, plan.confirming):
            _run_rounds(plan, CONFIRM, plan.confirming, commits, patterns, tell, first)
            noisy = judge(read_comparison(plan.folder), rules).of(Change.NOISY)
            if not {finding.row for finding in noisy} & set(found):
                return


def _settled(comparison: Comparison, rules: Rules) -> bool:
    """Whether counters say already that something got slower; no more rounds can take that back."""
    return any(found.exact for found in judge(comparison, rules).of(Change.REGRESSION))


def exactly(row: Row) -> str:
    """The pattern of asv's ``--bench`` for one row."""
    return f"^{re.escape(row.selector)}$"


def _run_rounds(
    plan: Plan, stage: str, rounds: int, commits: dict[str, str], patterns: list[str], tell: Callable[[str], None],
    first: int = 0,
) -> None:  # fmt: skip
    """So many rounds of a stage, numbered from ``first`` on."""
    sides = [BASE, HEAD, NULL] if plan.null else [BASE, HEAD]
    for number in range(first, first + rounds):
        tell(f"{stage} round {number + 1} of {first + rounds}")
        for side in sides if number % 2 == 0 else sides[::-1]:
            _run_side(plan, f"{stage}/{number:02}/{side}", side, commits[side], patterns)
        if number == 0 and not (plan.folder / "manifest.json").exists():
            _write_manifest(plan, commits)
        if number == 0:
            read_comparison(plan.folder)  # stops here if anything failed


def _run_side(plan: Plan, results: str, side: str, commit: str, patterns: list[str]) -> None:
    """One ``asv run``; asv returns 2 when a benchmark failed, which the results say as well."""
    config = derived_config(plan, side, commit, plan.folder / results)
    path = plan.folder / f"{side}.json"
    path.write_text(json.dumps(config, indent=1), encoding="utf-8")
    arguments = ["run", f"{commit}^!", "--config", str(path), "--record-samples", "--show-stderr", "-a", "rounds=1"]
    arguments += ["--launch-method", "forkserver"]  # imports the suite once a round, not once a benchmark
    chosen = SAMPLING | dict(attribute.split("=", 1) for attribute in plan.attributes)
    for name, value in chosen.items():
        arguments += ["-a", f"{name}={value}"]
    for pattern in patterns:
        arguments += ["--bench", pattern]
    _asv(plan, arguments)


def derived_config(plan: Plan, side: str, commit: str, results: Path) -> dict[str, Any]:
    """The project's configuration with one environment, kept per side, and folders that are absolute."""
    config: dict[str, Any] = json.loads(plan.config.read_text(encoding="utf-8"))
    here = plan.config.parent
    for name in ("repo", "benchmark_dir"):
        if "://" not in config[name]:
            config[name] = str((here / config[name]).resolve())
    config["matrix"] = {"env_nobuild": {"GNOMON_PURE": ["1"]}} if plan.pure else {}
    config["pythons"] = [f"{sys.version_info.major}.{sys.version_info.minor}"]
    # asv falls back to the tips of these where a commit doesn't build; a side must never be anything but its commit.
    config["branches"] = [commit]
    config.setdefault("install_timeout", 1800.0)  # compiling takes minutes where processors are shared
    config["env_dir"] = str(_environment(plan, side))
    config["results_dir"] = str(results.resolve())
    return config


def _environment(plan: Plan, side: str) -> Path:
    """Where a side's environment is kept between comparisons; the null run uses the base's."""
    folder = plan.environments or plan.config.parent / ".asv" / "compare"
    return (folder / (plan.head_environment if side == HEAD else "env-base")).resolve()


def _write_manifest(plan: Plan, commits: dict[str, str]) -> None:
    builds = {
        BASE: _probe(plan, BASE, plan.base, commits[BASE]),
        HEAD: _probe(plan, HEAD, plan.head, commits[HEAD]),
    }
    manifest = {side: asdict(build) for side, build in builds.items()} | {"null": plan.null}
    (plan.folder / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _probe(plan: Plan, side: str, name: str, commit: str) -> Build:
    """Ask the installed project how it was built."""
    python = environment_python(plan, side, commit)
    # asv's matrix chooses the interpreted twin for the runs; here that is for us to do.
    surroundings = surroundings_of(plan) | ({"GNOMON_PURE": "1"} if plan.pure else {})
    compiled = output_of([python, "-c", plan.probe], surroundings)
    packages = output_of([python, "-m", "pip", "freeze", "--exclude-editable"], surroundings).splitlines()
    return Build(name, commit, compiled, tuple(line for line in packages if "@ file:" not in line))


def environment_python(plan: Plan, side: str, commit: str) -> str:
    """The interpreter with a side's build. Raises BrokenResultsError if the commit is not installed there."""
    status = sorted(_environment(plan, side).glob("*/asv-install-status.json"))
    installed = [path for path in status if json.loads(path.read_text(encoding="utf-8"))["commit_hash"] == commit]
    if not installed:
        raise BrokenResultsError(f"the {side} ({commit[:10]}) could not be built or installed")
    return str(installed[-1].parent / "bin" / "python")


def commit_of(plan: Plan, name: str) -> str:
    """The full hash of a commit. Raises BrokenResultsError if there is none of this name."""
    command = ["git", "-C", str(plan.config.parent), "rev-parse", "--verify", f"{name}^{{commit}}"]
    return output_of(command, dict(os.environ))


def output_of(command: list[str], surroundings: dict[str, str], folder: Path | None = None) -> str:
    """What a command prints that runs in a folder. Raises BrokenResultsError if it fails."""
    done = subprocess.run(command, env=surroundings, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BrokenResultsError(f"{' '.join(command[:4])} … failed: {done.stderr.strip()[-500:]}")
    return done.stdout.strip()


def surroundings_of(plan: Plan) -> dict[str, str]:
    """A build that falls back to pure Python would be measured as a slow-down, so it must fail instead."""
    build = {} if plan.pure else {"GNOMON_REQUIRE_COMPILED": "1"}
    # setuptools compiles one extension after the other unless a file says otherwise.
    parallel = plan.folder / "build.cfg"
    parallel.write_text(f"[build_ext]\nparallel = {os.cpu_count() or 1}\n", encoding="utf-8")
    build["DIST_EXTRA_CONFIG"] = str(parallel)
    return {name: value for name, value in os.environ.items() if not name.startswith("GNOMON_")} | build


def _asv(plan: Plan, arguments: list[str], *, check: bool = False) -> None:
    command = [sys.executable, "-m", "asv", *arguments]
    surroundings = surroundings_of(plan)
    # What asv tells goes to stderr; stdout is the verdict's.
    done = subprocess.run(command, cwd=plan.config.parent, env=surroundings, stdout=2, check=False)
    if check and done.returncode:
        raise BrokenResultsError(f"asv {arguments[0]} failed with {done.returncode}")
