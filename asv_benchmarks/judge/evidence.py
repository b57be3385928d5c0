"""What goes with a regression: the commit it began with, and a diff of what a whole cluster did on both builds.

Neither changes a verdict that stands.

Contents: find_commit, report_diff.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys

from .comparison import BASE, HEAD
from .driver import Plan, commit_of, derived_config, environment_python, exactly, output_of, surroundings_of
from .results import BrokenResultsError, Row

__all__ = ["find_commit", "report_diff"]

RECORDINGS = 3
"""Recordings of each side, in turn: the diff tells what differs by chance from what differs."""
USABLE = (0, 1)
"""The exit codes of ``gnomon report diff`` with which it has compared something."""


def find_commit(plan: Plan, row: Row) -> str:
    """Let asv search the commits between base and head for the one that made a row slower; its answer, in words.

    asv halves the range by single runs, so this is sure only for a change well above the noise. The range begins with
    the base itself, because asv never names a range's first commit.
    """
    base, head = commit_of(plan, plan.base), commit_of(plan, plan.head)
    path = plan.folder / "find.json"
    path.write_text(json.dumps(derived_config(plan, HEAD, head, plan.folder / "find"), indent=1), encoding="utf-8")
    command = ["find", f"{base}^..{head}", exactly(row), "--config", str(path), "--skip-save"]
    done = subprocess.run(
        [sys.executable, "-m", "asv", *command],
        cwd=plan.config.parent,
        env=surroundings_of(plan),
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"Greatest regression found: (.+)", done.stdout)
    if found is None:
        return f"The commit that made `{row.selector}` slower was not found: {done.stdout.strip()[-300:]}"
    return f"`{row.selector}` became slower with {found[1].strip()}."


def report_diff(plan: Plan) -> str:
    """Record the suite's workload on both builds, and compare the recordings; what ``gnomon report diff`` says.

    The page lies beside the rounds, as ``diff.html``. Raises BrokenResultsError where a recording or the diff fails;
    a suite without a workload (``recorded.py``) has none, which is an empty text.
    """
    if not (plan.config.parent / "benchmarks" / "recorded.py").exists():
        return ""
    pythons = {side: environment_python(plan, side, commit_of(plan, name)) for side, name in _sides(plan)}
    surroundings = surroundings_of(plan) | ({"GNOMON_PURE": "1"} if plan.pure else {})
    files: dict[str, list[str]] = {BASE: [], HEAD: []}
    for number in range(RECORDINGS):
        for side in (BASE, HEAD) if number % 2 == 0 else (HEAD, BASE):
            path = str(plan.folder / f"{side}-{number}.gnomon")
            output_of([pythons[side], "-m", "benchmarks.recorded", path], surroundings, plan.config.parent)
            files[side].append(path)
    page = plan.folder / "diff.html"
    command = [
        pythons[HEAD],
        "-c",
        "from gnomon.runtime.cli import main; main()",
        "report",
        "diff",
        "--html",
        str(page),
    ]
    done = subprocess.run(
        [*command, *files[BASE], "--", *files[HEAD]], env=surroundings, capture_output=True, text=True, check=False
    )
    if done.returncode not in USABLE:
        raise BrokenResultsError(f"gnomon report diff failed with {done.returncode}: {done.stderr.strip()[-500:]}")
    return f"### What a cluster did, base and head\n\n```\n{done.stdout.strip()}\n```\n\nAs a page: {page}\n"


def _sides(plan: Plan) -> tuple[tuple[str, str], tuple[str, str]]:
    return (BASE, plan.base), (HEAD, plan.head)
