"""Replay one seed, or run a campaign: ``python -m tests.simulation SEED`` or ``--seeds A-B``."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter

from tests.simulation.scenario import Cluster, simulate


def main() -> int:
    """Run what the command line asks for; the exit code counts failing seeds, at most 100."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seed", type=int, nargs="?", help="replay this seed")
    parser.add_argument("--seeds", metavar="A-B", help="run all seeds from A to B")
    parser.add_argument("--trace", type=int, default=0, metavar="N", help="show the last N events of a failing seed")
    parser.add_argument("--hashes", action="store_true", help="print each seed's fingerprint")
    arguments = parser.parse_args()
    if arguments.seeds:
        first, _, last = arguments.seeds.partition("-")
        seeds = range(int(first), int(last or first) + 1)
    elif arguments.seed is not None:
        seeds = range(arguments.seed, arguments.seed + 1)
    else:
        parser.error("give a seed, or --seeds A-B")
    return min(_run(seeds, arguments.trace, arguments.hashes), 100)


def _run(seeds: range, trace: int, hashes: bool) -> int:
    started = time.perf_counter()
    failed = events = faults = 0
    counts: Counter[str] = Counter()
    for seed in seeds:
        try:
            result = simulate(seed)
        except Exception:
            failed += 1
            print(f"seed {seed} failed; replay: python -m tests.simulation {seed}")
            traceback.print_exc()
            if trace:
                _show_trace(seed, trace)
            continue
        events += result.events
        faults += result.faults
        counts.update(result.counts)
        if hashes:
            print(f"{seed} {result.digest}")
    seconds = time.perf_counter() - started
    print(f"{len(seeds)} seeds, {failed} failed, {events} events, {faults} faults, {seconds:.1f} s", file=sys.stderr)
    print(dict(sorted(counts.items())), file=sys.stderr)
    return failed


def _show_trace(seed: int, lines: int) -> None:
    """Run a failing seed again, and show its last events."""
    cluster = Cluster(seed)
    cluster.world.keep = lines
    try:
        cluster.play()
        cluster.heal()
        cluster.check_ended()
        cluster.release()
        cluster.check_empty()
    except Exception:
        print("\n".join(cluster.world.recent))


if __name__ == "__main__":
    sys.exit(main())
