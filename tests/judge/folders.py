"""Folders of rounds as the driver and asv leave them, made up."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

COMMITS = {"base": "a" * 40, "head": "b" * 40, "null": "a" * 40}
COLUMNS = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "samples"]
MACHINE = {"machine": "bench", "arch": "x86_64", "cpu": "made up", "num_cpu": "2", "os": "Linux", "ram": "4 GB"}

Values = Mapping[str, Any]
"""By benchmark: a list of samples, one number (a counter), None (it failed) or NaN (it skipped itself)."""


def write_side(folder: Path, side: str, values: Values, **changes: Any) -> None:
    """One results folder of asv; ``changes`` replace parts of the results file."""
    results, described = {}, {}
    for name, value in values.items():
        timed = ".time_" in name
        described[name] = {"type": "time" if timed else "track", "unit": "seconds" if timed else "messages"}
        samples = [value] if isinstance(value, list) else None
        result = [sorted(value)[len(value) // 2]] if isinstance(value, list) else [value]
        results[name] = [None if value is None else result, [], "1", 0, 0.1, None, samples]
    data = {
        "version": 2,
        "commit_hash": COMMITS[side],
        "env_name": "virtualenv-py3.11",
        "params": MACHINE,
        "python": "3.11",
        "env_vars": {},
        "result_columns": COLUMNS,
        "results": results,
    }
    (folder / "bench").mkdir(parents=True)
    (folder / "benchmarks.json").write_text(json.dumps({"version": 2, **described}))
    (folder / "bench" / "machine.json").write_text(json.dumps({"version": 1, **MACHINE}))
    (folder / "bench" / f"{COMMITS[side][:8]}-virtualenv-py3.11.json").write_text(json.dumps({**data, **changes}))


def write_manifest(folder: Path, *, compiled: tuple[str, str] = ("compiled", "compiled"), null: bool = False) -> None:
    builds = {
        side: {"name": side, "commit": COMMITS[side], "compiled": how, "packages": ["numpy==2.0"]}
        for side, how in zip(("base", "head"), compiled, strict=True)
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps(builds | {"null": null}))


def write_rounds(folder: Path, base: Values, head: Values, *, rounds: int = 6, stage: str = "screen") -> Path:
    """The same values in every round, but for a wobble of the samples that both sides share and one that they don't."""
    if not (folder / "manifest.json").exists():
        write_manifest(folder)
    for number in range(rounds):
        for side, values in (("base", base), ("head", head)):
            wobble = 1 + 0.05 * math.sin(number) + 0.004 * math.cos(7 * number + (side == "head"))
            scaled = {
                name: [sample * wobble for sample in value] if isinstance(value, list) else value
                for name, value in values.items()
            }
            write_side(folder / stage / f"{number:02}" / side, side, scaled)
    return folder
