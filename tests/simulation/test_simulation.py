"""The two brains joined by a seeded fake wire: hundreds of clusters with faults, each replayed by its number."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from gnomon.runtime.build import is_compiled
from gnomon.runtime.core import reactor
from gnomon.runtime.worker.state import events
from tests.simulation.scenario import simulate

ROOT = Path(__file__).parents[2]
BATCH = 50

#: Both builds give the same traces, which is tested: the interpreted one needs not see all of them.
COMPILED = is_compiled(reactor) and is_compiled(events)
SEEDS = 300 if COMPILED else 100

#: Messages, and crossings of them, that every batch of seeds must have seen, or it tests less than it seems to.
SEEN = {
    "CancelFutures",
    "CloseWorker",
    "Codes",
    "ComputeTasks",
    "DropCodes",
    "ExecutorLost",
    "FetchReplicas",
    "ForgetCodes",
    "FreeTasks",
    "FuturesCancelled",
    "FuturesDone",
    "FuturesErred",
    "FuturesPending",
    "Holders",
    "ReleaseFutures",
    "ReplicasAdded",
    "ReplicasMissing",
    "RetryFutures",
    "ScatterData",
    "StealReplies",
    "TasksErred",
    "TasksFinished",
    "TasksReturned",
    "TasksSeceded",
    "UpdateGraph",
    "WantKeys",
    "late news of a task that runs",
    "retired with nothing left",
}


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_clusters_come_to_the_right_end(first: int) -> None:
    counts: Counter[str] = Counter()
    faults = 0
    for seed in range(first, first + BATCH):
        try:
            result = simulate(seed)
        except BaseException:
            print(f"seed {seed} failed; replay: python -m tests.simulation {seed} --trace 100")
            raise
        counts.update(result.counts)
        faults += result.faults
    assert counts.keys() >= SEEN, f"never seen: {SEEN - counts.keys()}"
    assert faults > 5 * BATCH


def run_in_subprocess(*arguments: str, pure: bool) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GNOMON_")}
    environment["PYTHONHASHSEED"] = "12345"
    if pure:
        environment["GNOMON_PURE"] = "1"
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=400, check=False)


def test_compiled_and_pure_do_the_same() -> None:
    """The same seeds, in another process, with another hash seed and the other build where there is one."""
    ours = [f"{seed} {simulate(seed).digest}" for seed in range(1000, 1020)]
    run = run_in_subprocess("--seeds", "1000-1019", "--hashes", pure=COMPILED)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines() == ours


def test_a_seed_replays() -> None:
    assert simulate(7).digest == simulate(7).digest
    assert simulate(7).digest != simulate(8).digest


@pytest.mark.skipif(not COMPILED, reason="the compiled build runs it, interpreted all the same")
@pytest.mark.timeout(450)
def test_planted_bugs_are_found() -> None:
    run = run_in_subprocess("--planted", "--seeds", "1-120", pure=True)
    assert run.returncode == 0, run.stdout + run.stderr
