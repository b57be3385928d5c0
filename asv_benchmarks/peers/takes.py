"""Which rounds are to be measured, and a file of those that were: one line of JSON per round of one system.

A measurement of many rounds can so be made in pieces, or go on where it was stopped.

Contents: Round, Takes, rounds_wanted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Round", "Takes", "rounds_wanted"]


class Round(NamedTuple):
    """One start of one system, and what is run on it."""

    number: int
    system: str
    workloads: tuple[str, ...]


def rounds_wanted(systems: Sequence[str], workloads: Sequence[str], rounds: int) -> list[Round]:
    """All rounds, in the order they are measured in: the systems in turn, each round beginning with another one."""
    return [
        Round(number, system, tuple(workloads))
        for number in range(rounds)
        for system in [*systems[number % len(systems) :], *systems[: number % len(systems)]]
    ]


class Takes:
    """The file. What it holds was measured at the sizes that it says; other sizes need another file.

    Raises ValueError where it was written for others.
    """

    def __init__(self, path: Path, sizes: dict[str, Any], *, resume: bool) -> None:
        self.path = path
        self.found: list[dict[str, Any]] = []
        if resume and path.exists():
            first, *rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            if first != sizes:
                raise ValueError(f"{path} holds figures of other sizes: {first}")
            self.found = rows
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(sizes) + "\n", encoding="utf-8")

    def missing(self, wanted: Sequence[Round]) -> list[Round]:
        """What is still to be measured: rounds, with the workloads that they lack."""
        done = {(row["round"], row["system"], row["workload"]) for row in self.found}
        left = [
            round_._replace(
                workloads=tuple(name for name in round_.workloads if (round_.number, round_.system, name) not in done)
            )
            for round_ in wanted
        ]
        return [round_ for round_ in left if round_.workloads]

    def add(self, number: int, system: str, taken: Sequence[dict[str, Any]]) -> None:
        """Keep what a round took."""
        rows = [{"round": number, "system": system, **one} for one in taken]
        self.found += rows
        with self.path.open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows))

    def runs(self, system: str, workload: str) -> list[dict[str, Any]]:
        """What all rounds of a system took for a workload."""
        chosen = [row for row in self.found if row["system"] == system and row["workload"] == workload]
        return [{name: row[name] for name in ("tasks", "seconds", "cpu")} for row in chosen]
