"""A workload with its recording: what a comparison's evidence is made of.

``python -m benchmarks.recorded FILE.gnomon`` runs it on a cluster of two workers with processes of their own.

Contents: record.
"""

from __future__ import annotations

import operator
import sys

from gnomon.reports import performance_report
from gnomon.runtime import Client, LocalCluster

__all__ = ["record"]

_TASKS, _LEAVES = 5_000, 1_024


def _chew(number: int) -> int:
    """Some arithmetic, about a tenth of a millisecond of it."""
    return sum([i * number for i in range(2_000)]) % 1_000


def record(path: str) -> None:
    """Many tiny tasks, a tree of sums, and values that have to be pickled, three times over."""
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2)
        client.gather(client.map(operator.neg, range(200)))
        with performance_report(path, client=client):
            for turn in range(3):
                first = turn * _TASKS + 1
                client.gather(client.map(operator.neg, range(first, first + _TASKS)))
                level = client.map(_chew, range(first, first + _LEAVES))
                while len(level) > 1:
                    level = [client.submit(operator.add, *pair) for pair in zip(level[::2], level[1::2], strict=True)]
                level[0].result(60)
                client.gather(client.map(bytes, range(10_000 + first, 10_200 + first)))


if __name__ == "__main__":
    record(sys.argv[1])
