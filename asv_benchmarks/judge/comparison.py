"""A folder of interleaved rounds of two commits, and its reading.

Layout: ``manifest.json`` says what was compared; ``count/NN/SIDE``, ``screen/NN/SIDE`` and ``confirm/NN/SIDE`` are
results folders of asv, one per round and side. Sides are ``base``, ``head`` and, where a null run was asked for,
``null``: the base once more. Counters have a few rounds of their own where they are known beforehand. The confirming
rounds are measured last, only for the benchmarks that the others made suspect.

Reading checks that everything that must agree does, and raises BrokenResultsError where not.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .results import BrokenResultsError, Row, SideRound, read_side

__all__ = [
    "BASE",
    "CONFIRM",
    "COUNT",
    "HEAD",
    "NULL",
    "SCREEN",
    "Build",
    "Comparison",
    "Measured",
    "Stage",
    "read_comparison",
]

BASE, HEAD, NULL = "base", "head", "null"
COUNT, SCREEN, CONFIRM = "count", "screen", "confirm"

Rounds = list[list[float]]


@dataclass(frozen=True, slots=True)
class Build:
    """What was installed for a side."""

    name: str
    commit: str
    compiled: str
    """How the probe described the build, for example "compiled"; must be equal on both sides."""
    packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """One row's samples: per round, per side."""

    row: Row
    counter: bool
    unit: str
    base: Rounds
    head: Rounds
    null: Rounds | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """The rounds of one stage, by row; rows only one side has are listed, not measured."""

    measured: dict[Row, Measured]
    added: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that was measured of two commits."""

    base: Build
    head: Build
    machine: str
    count: Stage
    screen: Stage
    confirm: Stage


def read_comparison(folder: Path) -> Comparison:
    """Read and check a folder of rounds.

    Raises BrokenResultsError if results are missing, a benchmark failed, or machine, build or commits don't agree.
    """
    try:
        manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        builds = [Build(**{**manifest[side], "packages": tuple(manifest[side]["packages"])}) for side in (BASE, HEAD)]
        sides = (BASE, HEAD, NULL) if manifest["null"] else (BASE, HEAD)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BrokenResultsError(f"{folder / 'manifest.json'}: {error!r}") from error
    base, head = builds
    if base.compiled != head.compiled:
        raise BrokenResultsError(f"different builds: the base is {base.compiled}, the head is {head.compiled}")
    commits = {BASE: base.commit, HEAD: head.commit, NULL: base.commit}
    rounds = {stage: _read_rounds(folder / stage, sides) for stage in (COUNT, SCREEN, CONFIRM)}
    everything = rounds[COUNT] + rounds[SCREEN] + rounds[CONFIRM]
    if not everything:
        raise BrokenResultsError(f"no rounds in {folder}")
    _check_failures(everything)
    machine = _check_origins(everything, commits)
    return Comparison(base, head, machine, *[_join(rounds[stage]) for stage in (COUNT, SCREEN, CONFIRM)])


def _read_rounds(folder: Path, sides: Sequence[str]) -> list[dict[str, SideRound]]:
    paths = sorted(path for path in folder.glob("[0-9]*") if path.is_dir())
    return [{side: read_side(path / side) for side in sides} for path in paths]


def _check_failures(rounds: list[dict[str, SideRound]]) -> None:
    failed = sorted({(side, row) for one in rounds for side, measured in one.items() for row in measured.failed})
    if failed:
        names = ", ".join(f"{row.selector} in the {side}" for side, row in failed[:10])
        raise BrokenResultsError(f"{len(failed)} benchmarks failed: {names}{', …' if len(failed) > 10 else ''}")


def _check_origins(rounds: list[dict[str, SideRound]], commits: dict[str, str]) -> str:
    """Every round ran the commit it should, where the first one ran, by the same benchmarks; return where."""
    first = rounds[0][BASE]
    for one in rounds:
        for side, measured in one.items():
            if measured.commits != {commits[side]}:
                raise BrokenResultsError(
                    f"results of {sorted(measured.commits)} where {commits[side]} was to be measured"
                )
            if measured.origins != first.origins:
                here, there = _described(first), _described(measured)
                raise BrokenResultsError(f"different machines or environments: {here} and {there}")
            for name, version in measured.versions.items():
                if first.versions.get(name, version) != version:
                    raise BrokenResultsError(f"{name} was edited between rounds")
    return _described(first)


def _described(side: SideRound) -> str:
    return "; ".join(sorted({str(origin) for origin in side.origins.values()}))


def _join(rounds: list[dict[str, SideRound]]) -> Stage:
    """The rounds of a stage turned round: per row, its samples of all rounds.

    A row that the base skips in every round is new. Any other gap is broken.
    """
    if not rounds:
        return Stage({})
    rows = {row for one in rounds for side in one.values() for row in side.samples}
    measured, added = {}, []
    for row in sorted(rows):
        taken = {side: [one[side].samples.get(row) for one in rounds] for side in rounds[0]}
        full = {side: [samples for samples in column if samples is not None] for side, column in taken.items()}
        if not full[BASE] and not full.get(NULL) and len(full[HEAD]) == len(rounds):
            added.append(row)
            continue
        for side, column in full.items():
            if len(column) != len(rounds):
                raise BrokenResultsError(
                    f"{row.selector} is missing in {len(rounds) - len(column)} rounds of the {side}"
                )
        first = rounds[0][BASE]
        measured[row] = Measured(
            row, row in first.counters, first.units[row.benchmark], full[BASE], full[HEAD], full.get(NULL)
        )
    return Stage(measured, tuple(added))
