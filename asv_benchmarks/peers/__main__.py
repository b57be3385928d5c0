"""``python -m peers``: measure all systems in interleaved rounds, write the figures, regenerate page and plot.

``--only`` chooses systems and ``--workload`` workloads, ``--minutes`` begins no round after so long, ``--resume`` goes
on with what is missing: a long measurement can so be made in pieces. ``--quick`` runs everything once and small,
``--page-only`` redraws from the figures that are kept. A page is written once nothing is missing.

A system that isn't installed is listed as not available; one that fails ends the command with code 1, and what was
measured before it is kept for ``--resume``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from .measurement import measure_system
from .page import insert_section, section, svg
from .systems import SYSTEMS, System, missing_reason
from .takes import Takes, rounds_wanted
from .workloads import WORKLOADS, Sizes

__all__ = ["main"]

HERE = Path(__file__).resolve().parent
DOCS = HERE.parents[1] / "docs"
QUICK = Sizes(tasks=100, leaves=16, partitions=4, part_bytes=100, trips=5)
MOST_SECONDS = 900.0
"""The longest that one system's round may take."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    options = _parser().parse_args(arguments)
    sizes = QUICK if options.quick else Sizes()
    names = options.workload or [one.name for one in WORKLOADS]
    if options.one:
        sys.stdout.write(
            json.dumps([asdict(taken) for taken in measure_system(_named(options.one), sizes, QUICK, names)])
        )
        return 0
    if not options.page_only:
        code = _measure(options, sizes, names)
        if code is not None:
            return code
    figures = json.loads(options.figures.read_text(encoding="utf-8"))
    options.plot.parent.mkdir(parents=True, exist_ok=True)
    options.plot.write_text(svg(figures), encoding="utf-8")
    insert_section(options.page, section(figures, os.path.relpath(options.plot, options.page.parent)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="peers", description=__doc__)
    known = [one.name for one in SYSTEMS]
    parser.add_argument("--rounds", type=int, default=7, help="rounds of all systems (default 7)")
    parser.add_argument("--only", action="append", choices=known, help="measure just these")
    parser.add_argument("--workload", action="append", choices=[one.name for one in WORKLOADS], help="run just these")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no round after so many minutes")
    parser.add_argument("--resume", action="store_true", help="measure what is missing in the figures that are kept")
    parser.add_argument("--quick", action="store_true", help="one small round, to see that everything runs")
    parser.add_argument("--page-only", action="store_true", help="measure nothing; page and plot from the figures")
    parser.add_argument("--figures", type=Path, default=HERE / "figures.json", help="where the figures are kept")
    parser.add_argument("--takes", type=Path, default=HERE.parent / ".asv" / "peers.jsonl", help="figures by round")
    parser.add_argument("--page", type=Path, default=DOCS / "performance.md", help="the page with the section")
    parser.add_argument("--plot", type=Path, default=DOCS / "images" / "peers.svg", help="the plot")
    parser.add_argument("--one", choices=known, help=argparse.SUPPRESS)
    return parser


def _named(name: str) -> System:
    return next(system for system in SYSTEMS if system.name == name)


def _measure(options: argparse.Namespace, sizes: Sizes, names: list[str]) -> int | None:
    """Measure what is missing and write the figures; an exit code where no page can be made of them."""
    chosen = [system for system in SYSTEMS if not options.only or system.name in options.only]
    missing = {system.title: reason for system in chosen if (reason := missing_reason(system))}
    present = [system for system in chosen if system.title not in missing]
    rounds = 1 if options.quick else options.rounds
    takes = Takes(options.takes, asdict(sizes), resume=options.resume)
    begin = time.monotonic()
    for number, name, workloads in takes.missing(rounds_wanted([one.name for one in present], names, rounds)):
        if time.monotonic() - begin > 60 * options.minutes:
            break
        sys.stderr.write(f"peers: round {number + 1} of {rounds}, {_named(name).title}: {', '.join(workloads)}\n")
        taken = _run_child(name, workloads, quick=options.quick)
        if taken is None:
            return 1
        takes.add(number, name, taken)
    everything = [workload.name for workload in WORKLOADS]
    if left := takes.missing(rounds_wanted([one.name for one in present], everything, rounds)):
        sys.stderr.write(f"peers: {len(left)} rounds are left; go on with --resume\n")
        return 0
    options.figures.write_text(json.dumps(_figures(takes, present, missing, rounds), indent=1) + "\n", encoding="utf-8")
    return None


def _figures(takes: Takes, present: list[System], missing: dict[str, str], rounds: int) -> dict[str, Any]:
    """What the page is made of."""
    systems = [
        {
            "name": system.name,
            "title": system.title,
            "version": version(system.package) if system.package else platform.python_version(),
            "runs": {workload.name: takes.runs(system.name, workload.name) for workload in WORKLOADS},
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


def _run_child(name: str, workloads: Sequence[str], *, quick: bool) -> list[dict[str, Any]] | None:
    """One system's round in a child; its workers find this package by the environment."""
    command = [sys.executable, "-m", "peers", "--one", name, *(["--quick"] if quick else [])]
    for workload in workloads:
        command += ["--workload", workload]
    surroundings = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    try:
        done = subprocess.run(
            command, env=surroundings, stdout=subprocess.PIPE, text=True, check=False, timeout=MOST_SECONDS
        )
    except subprocess.TimeoutExpired:
        sys.stderr.write(f"peers: {name} took longer than {MOST_SECONDS:.0f} s\n")
        return None
    if done.returncode:
        sys.stderr.write(f"peers: {name} failed with {done.returncode}\n")
        return None
    # Systems write to stdout, too; ours is the last line.
    taken: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return taken


if __name__ == "__main__":
    sys.exit(main())
