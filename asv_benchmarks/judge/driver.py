"""Makes asv measure two commits in interleaved rounds, in a folder that ``comparison`` reads.

Each side has an asv environment of its own, so that nothing is installed between rounds; each round is one ``asv run``
per side with a results folder of its own, base first in one round and head first in the next. After the first rounds
those benchmarks that look changed are measured again. Builds, discovery and processes are asv's.
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

from .comparison import BASE, CONFIRM, HEAD, NULL, SCREEN, Build, read_comparison
from .results import BrokenResultsError, Row
from .statistics import LEAST_ROUNDS
from .verdict import Rules, suspects

__all__ = ["PROBE", "Plan", "find_commit", "gate_patterns", "measure"]

PROBE = """
from gnomon.runtime.build import is_compiled
from gnomon.runtime.core import reactor
print("compiled" if is_compiled(reactor) else "pure Python")
"""
MOST_SUSPECTS = 12
"""How many benchmarks are measured again at most; a regression needs one, and the strongest come first."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure, and how thoroughly."""

    config: Path
    folder: Path
    base: str
    head: str
    patterns: Sequence[str]
    """Regular expressions of asv's ``--bench``; none: every benchmark."""
    rounds: int = 9
    confirming: int = 16
    null: bool = False
    """Measure the base twice in each round, to learn the noise."""
    pure: bool = False
    """Run interpreted; otherwise the extensions must be there."""
    probe: str = PROBE
    """Python code that prints how the installed project was built."""
    attributes: Sequence[str] = field(default=())
    """Attributes of all benchmarks to override, as NAME=VALUE, for example ``sample_time=0.05``."""


def gate_patterns(benchmarks: Path) -> list[str]:
    """The pattern that ``gate.py`` in the benchmarks' folder writes when it is run; none (everything) without it."""
    source = benchmarks / "gate.py"
    return [_output([sys.executable, str(source)], dict(os.environ))] if source.exists() else []


def measure(plan: Plan, rules: Rules, tell: Callable[[str], None]) -> None:
    """Run both stages.

    Raises BrokenResultsError as soon as a side can't be measured, ValueError if the rounds are too few to judge.
    """
    if plan.rounds < LEAST_ROUNDS or 0 < plan.confirming < LEAST_ROUNDS:
        raise ValueError(f"at least {LEAST_ROUNDS} rounds are needed")
    shutil.rmtree(plan.folder, ignore_errors=True)
    plan.folder.mkdir(parents=True)
    commits = {BASE: _commit(plan, plan.base), HEAD: _commit(plan, plan.head)}
    commits[NULL] = commits[BASE]
    _asv(plan, ["machine", "--yes"], check=True)
    patterns = list(plan.patterns)
    _run_rounds(plan, SCREEN, plan.rounds, commits, patterns, tell)
    found = suspects(read_comparison(plan.folder), rules)[:MOST_SUSPECTS]
    if found and plan.confirming:
        tell(f"measuring again: {', '.join(row.selector for row in found)}")
        _run_rounds(plan, CONFIRM, plan.confirming, commits, [_exactly(row) for row in found], tell)


def find_commit(plan: Plan, row: Row) -> str:
    """Let asv search the commits between base and head for the one that made a row slower; its answer, in words.

    asv halves the range by single runs, so this is sure only for a change well above the noise. The range begins with
    the base itself, because asv never names a range's first commit.
    """
    base, head = _commit(plan, plan.base), _commit(plan, plan.head)
    path = plan.folder / "find.json"
    path.write_text(json.dumps(_derived_config(plan, HEAD, head, plan.folder / "find"), indent=1), encoding="utf-8")
    command = ["find", f"{base}^..{head}", _exactly(row), "--config", str(path), "--skip-save"]
    done = subprocess.run(
        [sys.executable, "-m", "asv", *command],
        cwd=plan.config.parent,
        env=_surroundings(plan),
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"Greatest regression found: (.+)", done.stdout)
    if found is None:
        return f"The commit that made `{row.selector}` slower was not found: {done.stdout.strip()[-300:]}"
    return f"`{row.selector}` became slower with {found[1].strip()}."


def _exactly(row: Row) -> str:
    return f"^{re.escape(row.selector)}$"


def _run_rounds(
    plan: Plan, stage: str, rounds: int, commits: dict[str, str], patterns: list[str], tell: Callable[[str], None]
) -> None:
    sides = [BASE, HEAD, NULL] if plan.null else [BASE, HEAD]
    for number in range(rounds):
        tell(f"{stage} round {number + 1} of {rounds}")
        for side in sides if number % 2 == 0 else sides[::-1]:
            _run_side(plan, f"{stage}/{number:02}/{side}", side, commits[side], patterns)
        if stage == SCREEN and number == 0:
            _write_manifest(plan, commits)
            read_comparison(plan.folder)  # stops here if anything failed


def _run_side(plan: Plan, results: str, side: str, commit: str, patterns: list[str]) -> None:
    """One ``asv run``; asv returns 2 when a benchmark failed, which the results say as well."""
    config = _derived_config(plan, side, commit, plan.folder / results)
    path = plan.folder / f"{side}.json"
    path.write_text(json.dumps(config, indent=1), encoding="utf-8")
    arguments = ["run", f"{commit}^!", "--config", str(path), "--record-samples", "--show-stderr", "-a", "rounds=1"]
    arguments += ["--launch-method", "forkserver"]  # imports the suite once a round, not once a benchmark
    for attribute in plan.attributes:
        arguments += ["-a", attribute]
    for pattern in patterns:
        arguments += ["--bench", pattern]
    _asv(plan, arguments)


def _derived_config(plan: Plan, side: str, commit: str, results: Path) -> dict[str, Any]:
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
    return (plan.config.parent / ".asv" / "compare" / f"env-{HEAD if side == HEAD else BASE}").resolve()


def _write_manifest(plan: Plan, commits: dict[str, str]) -> None:
    builds = {
        BASE: _probe(plan, BASE, plan.base, commits[BASE]),
        HEAD: _probe(plan, HEAD, plan.head, commits[HEAD]),
    }
    manifest = {side: asdict(build) for side, build in builds.items()} | {"null": plan.null}
    (plan.folder / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _probe(plan: Plan, side: str, name: str, commit: str) -> Build:
    """Ask the installed project how it was built."""
    status = sorted(_environment(plan, side).glob("*/asv-install-status.json"))
    installed = [path for path in status if json.loads(path.read_text(encoding="utf-8"))["commit_hash"] == commit]
    if not installed:
        raise BrokenResultsError(f"the {side} ({name}, {commit[:10]}) could not be built or installed")
    python = str(installed[-1].parent / "bin" / "python")
    # asv's matrix chooses the interpreted twin for the runs; here that is for us to do.
    surroundings = _surroundings(plan) | ({"GNOMON_PURE": "1"} if plan.pure else {})
    compiled = _output([python, "-c", plan.probe], surroundings)
    packages = _output([python, "-m", "pip", "freeze", "--exclude-editable"], surroundings).splitlines()
    return Build(name, commit, compiled, tuple(line for line in packages if "@ file:" not in line))


def _commit(plan: Plan, name: str) -> str:
    command = ["git", "-C", str(plan.config.parent), "rev-parse", "--verify", f"{name}^{{commit}}"]
    return _output(command, dict(os.environ))


def _output(command: list[str], surroundings: dict[str, str]) -> str:
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BrokenResultsError(f"{' '.join(command[:4])} … failed: {done.stderr.strip()[-500:]}")
    return done.stdout.strip()


def _surroundings(plan: Plan) -> dict[str, str]:
    """A build that falls back to pure Python would be measured as a slow-down, so it must fail instead."""
    build = {} if plan.pure else {"GNOMON_REQUIRE_COMPILED": "1"}
    return {name: value for name, value in os.environ.items() if not name.startswith("GNOMON_")} | build


def _asv(plan: Plan, arguments: list[str], *, check: bool = False) -> None:
    command = [sys.executable, "-m", "asv", *arguments]
    surroundings = _surroundings(plan)
    # What asv tells goes to stderr; stdout is the verdict's.
    done = subprocess.run(command, cwd=plan.config.parent, env=surroundings, stdout=2, check=False)
    if check and done.returncode:
        raise BrokenResultsError(f"asv {arguments[0]} failed with {done.returncode}")
