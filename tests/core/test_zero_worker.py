"""The zero-worker benchmark runs on every graph it knows and leaves nothing behind (it checks that itself)."""

from __future__ import annotations

import pytest
from zero_worker import GRAPHS, ZeroCluster, message_of


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("name", list(GRAPHS))
def test_graphs_run_to_their_end(name, inline):
    message = message_of(GRAPHS[name](400))
    cost = ZeroCluster(workers=5, inline=inline).run(message)
    assert cost.tasks == len(message.keys)
