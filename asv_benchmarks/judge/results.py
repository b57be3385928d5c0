"""asv's result files as plain records: one ``SideRound`` is what one round measured of one side.

Only what asv documents is read: the columns of a results file (API version 2) and the kinds in ``benchmarks.json``.
A benchmark that raised has no value (``null``) and is listed as failed; one that skipped itself (NotImplementedError in
its ``setup``), and parameters that were not selected, are NaN there and absent here.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["BrokenResultsError", "Origin", "Row", "SideRound", "read_side"]

API_VERSION = 2
TIMED = ("time", "timeraw")


class BrokenResultsError(Exception):
    """Results are missing, unreadable or contradict each other; nothing can be judged from them."""


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """One thing measured: a benchmark, its parameters' representations, the asv environment."""

    benchmark: str
    parameters: tuple[str, ...]
    environment: str

    @property
    def selector(self) -> str:
        """The name that asv matches its ``--bench`` patterns against."""
        return f"{self.benchmark}({', '.join(self.parameters)})" if self.parameters else self.benchmark


@dataclass(frozen=True, slots=True)
class Origin:
    """What a result must share with another one to be compared with it."""

    machine: str
    details: tuple[tuple[str, str], ...]
    python: str
    variables: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        details = ", ".join(f"{name} {value}" for name, value in self.details if value)
        chosen = "".join(f", {name}={value}" for name, value in self.variables if value)
        return f"{self.machine} ({details}), Python {self.python}{chosen}"


@dataclass(slots=True)
class SideRound:
    """One round of one side: samples per row, failures, and where they were made."""

    commits: set[str] = field(default_factory=set)
    origins: dict[str, Origin] = field(default_factory=dict)
    """By asv environment."""
    samples: dict[Row, list[float]] = field(default_factory=dict)
    failed: set[Row] = field(default_factory=set)
    counters: set[Row] = field(default_factory=set)
    """The rows that are single values and no times."""
    versions: dict[str, str] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)


def read_side(folder: Path) -> SideRound:
    """What asv wrote into a results folder.

    Raises BrokenResultsError if there is nothing, or it isn't of the format known here.
    """
    described = _load(folder / "benchmarks.json")
    side = SideRound()
    paths = sorted(path for path in folder.glob("*/*.json") if path.name != "machine.json")
    if not paths:
        raise BrokenResultsError(f"no results in {folder}: the build failed, or asv did not run")
    for path in paths:
        _read_file(path, described, side)
    if not side.samples and not side.failed:
        raise BrokenResultsError(f"{path} holds no benchmark")
    return side


def _load(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BrokenResultsError(f"{path} is missing: the build failed, or asv did not run") from None
    except ValueError as error:
        raise BrokenResultsError(f"{path} is not JSON: {error}") from error
    if not isinstance(data, dict) or data.get("version") != API_VERSION:
        raise BrokenResultsError(f"{path} is not of asv's format {API_VERSION}")
    return data


def _read_file(path: Path, described: dict[str, Any], side: SideRound) -> None:
    data = _load(path)
    try:
        environment = data["env_name"]
        side.commits.add(data["commit_hash"])
        side.origins[environment] = _origin(data)
        for name, values in data["results"].items():
            cells = dict(zip(data["result_columns"], values, strict=False))
            kind = described[name]["type"]
            side.versions[name] = str(cells.get("version"))
            side.units[name] = described[name].get("unit", "")
            for row, value, samples in _cells(name, environment, cells):
                _add(side, row, value, samples if kind in TIMED else None, timed=kind in TIMED)
    except (KeyError, TypeError) as error:
        raise BrokenResultsError(f"{path} lacks {error}") from error


def _origin(data: dict[str, Any]) -> Origin:
    facts = data["params"]
    details = tuple((name, str(facts.get(name, ""))) for name in ("arch", "cpu", "num_cpu", "os", "ram"))
    variables = tuple(sorted((name, str(value)) for name, value in data.get("env_vars", {}).items()))
    return Origin(str(facts["machine"]), details, str(data["python"]), variables)


def _cells(name: str, environment: str, cells: dict[str, Any]) -> Iterator[tuple[Row, Any, list[float] | None]]:
    """A benchmark's rows with their values; columns that are missing or null count as null for each row."""
    choices = list(itertools.product(*(cells.get("params") or [])))
    values = cells.get("result") or [None] * len(choices)
    samples = cells.get("samples") or [None] * len(choices)
    for parameters, value, taken in zip(choices, values, samples, strict=True):
        yield Row(name, tuple(parameters), environment), value, taken


def _add(side: SideRound, row: Row, value: Any, samples: list[float] | None, *, timed: bool) -> None:
    if value is None:
        side.failed.add(row)
    elif math.isnan(value):
        return
    elif not timed:
        side.counters.add(row)
        side.samples[row] = [float(value)]
    elif not samples:
        raise BrokenResultsError(f"{row.selector} has no samples; record them with --record-samples")
    else:
        side.samples[row] = [float(sample) for sample in samples]
