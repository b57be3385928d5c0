"""Replay one seed, or run a campaign: ``python -m tests.simulation SEED`` or ``--seeds A-B``.

``--planted`` instead looks for bugs planted on purpose; it needs ``GNOMON_PURE=1``.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter

from tests.simulation.planted import BUGS, find
from tests.simulation.scenario import Cluster, simulate


def main() -> int:
    """Run what the command line asks for; the exit code counts what failed, at most 100."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seed", type=int, nargs="?", help="replay this seed")
    parser.add_argument("--seeds", metavar="A-B", help="run all seeds from A to B")
    parser.add_argument("--trace", type=int, default=0, metavar="N", help="show the last N events of a failing seed")
    parser.add_argument("--planted", action="store_true", help="look for each planted bug among the seeds")
    parser.add_argument("--hashes", action="store_true", help="print each seed's fingerprint")
    arguments = parser.parse_args()
    if arguments.seeds:
        first, _, last = arguments.seeds.partition("-")
        seeds = range(int(first), int(last or first) + 1)
    elif arguments.seed is not None:
        seeds = range(arguments.seed, arguments.seed + 1)
    else:
        parser.error("give a seed, or --seeds A-B")
    if arguments.planted:
        return min(_find_planted(seeds), 100)
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


def _find_planted(seeds: range) -> int:
    """Print which seed finds each planted bug; returns how many are not found."""
    missed = 0
    for name in BUGS:
        seed = find(name, seeds)
        missed += seed is None
        print(f"{name}: {'not found' if seed is None else f'seed {seed}'}", flush=True)
    return missed


def _show_trace(seed: int, lines: int) -> None:
    """Run a failing seed again, and show its last events."""
    cluster = Cluster(seed, 60_000)
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
