"""``python -m peers``: measure all systems in interleaved rounds, write the figures, regenerate page and plot.

``--only`` chooses systems, ``--quick`` runs everything once and small, ``--page-only`` redraws from the figures that
are kept.
A system that isn't installed is listed as not available; one that fails ends the command with code 1, and nothing is
written.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from .measurement import measure_system
from .page import insert_section, section, svg
from .systems import SYSTEMS, System, missing_reason
from .workloads import WORKLOADS, Sizes

__all__ = ["main"]

HERE = Path(__file__).resolve().parent
DOCS = HERE.parents[1] / "docs"
QUICK = Sizes(tasks=100, leaves=16, partitions=4, part_bytes=100, trips=5)
MOST_SECONDS = 900.0
"""The longest that one system's round may take."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="peers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="rounds of all systems (default 7)")
    parser.add_argument("--only", action="append", choices=[one.name for one in SYSTEMS], help="measure just these")
    parser.add_argument("--quick", action="store_true", help="one small round, to see that everything runs")
    parser.add_argument("--page-only", action="store_true", help="measure nothing; page and plot from the figures")
    parser.add_argument("--figures", type=Path, default=HERE / "figures.json", help="where the figures are kept")
    parser.add_argument("--page", type=Path, default=DOCS / "performance.md", help="the page with the section")
    parser.add_argument("--plot", type=Path, default=DOCS / "images" / "peers.svg", help="the plot")
    parser.add_argument("--one", choices=[one.name for one in SYSTEMS], help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    sizes = QUICK if options.quick else Sizes()
    if options.one:
        sys.stdout.write(json.dumps([asdict(taken) for taken in measure_system(_named(options.one), sizes, QUICK)]))
        return 0
    if not options.page_only:
        chosen = [system for system in SYSTEMS if not options.only or system.name in options.only]
        figures = _measure(chosen, 1 if options.quick else options.rounds, quick=options.quick)
        if figures is None:
            return 1
        options.figures.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    figures = json.loads(options.figures.read_text(encoding="utf-8"))
    options.plot.parent.mkdir(parents=True, exist_ok=True)
    options.plot.write_text(svg(figures), encoding="utf-8")
    insert_section(options.page, section(figures, os.path.relpath(options.plot, options.page.parent)))
    return 0


def _named(name: str) -> System:
    return next(system for system in SYSTEMS if system.name == name)


def _measure(chosen: list[System], rounds: int, *, quick: bool) -> dict[str, Any] | None:
    missing = {system.title: reason for system in chosen if (reason := missing_reason(system))}
    present = [system for system in chosen if system.title not in missing]
    runs: dict[str, dict[str, list[Any]]] = {
        system.name: {workload.name: [] for workload in WORKLOADS} for system in present
    }
    for number in range(rounds):
        for system in present[number % len(present) :] + present[: number % len(present)]:
            sys.stderr.write(f"peers: round {number + 1} of {rounds}, {system.title}\n")
            taken = _run_child(system, quick=quick)
            if taken is None:
                return None
            for one in taken:
                runs[system.name][one.pop("workload")].append(one)
    systems = [
        {
            "name": system.name,
            "title": system.title,
            "version": version(system.package) if system.package else platform.python_version(),
            "runs": runs[system.name],
        }
        for system in present
    ]
    about = {
        "when": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": f"{os.cpu_count()} processors, {psutil.virtual_memory().total / 2**30:.0f} GiB, "
        f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "rounds": rounds,
    }
    return {"about": about, "systems": systems, "missing": missing}


def _run_child(system: System, *, quick: bool) -> list[dict[str, Any]] | None:
    """One system's round in a child; its workers find this package by the environment."""
    command = [sys.executable, "-m", "peers", "--one", system.name, *(["--quick"] if quick else [])]
    surroundings = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    try:
        done = subprocess.run(
            command, env=surroundings, stdout=subprocess.PIPE, text=True, check=False, timeout=MOST_SECONDS
        )
    except subprocess.TimeoutExpired:
        sys.stderr.write(f"peers: {system.title} took longer than {MOST_SECONDS:.0f} s\n")
        return None
    if done.returncode:
        sys.stderr.write(f"peers: {system.title} failed with {done.returncode}\n")
        return None
    # Systems write to stdout, too; ours is the last line.
    taken: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return taken


if __name__ == "__main__":
    sys.exit(main())
