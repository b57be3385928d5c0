"""The zero-worker method runs on every graph that benchmarks know and leaves nothing behind (it checks that itself)."""

from __future__ import annotations

import pytest
from benchmarks.graphs import SHAPES, graph, message_of
from benchmarks.zero_worker import ZeroCluster, brain_seconds


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("name", list(SHAPES))
def test_graphs_run_to_their_end(name, inline):
    message = message_of(graph(name, 400))
    before = brain_seconds()
    cluster = ZeroCluster(workers=5, inline=inline, weigh=True)
    cost = cluster.run(message)
    assert cost.tasks == len(message.keys)
    assert cluster.counts.assignments == cost.tasks
    assert cluster.transitions >= 4 * cost.tasks
    assert cluster.counts.bytes > 20 * cost.tasks
    assert brain_seconds() > before
