"""Random events in random order: invariants hold after each; in the end all can be finished and forgotten."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from random_life import NAMES, Life

PICK = st.integers(0, 1 << 16)
SATURATIONS = [1.1, 3.0, 1e9]


class Brain(RuleBasedStateMachine):
    """Lives that hypothesis can shrink."""

    @initialize(saturation=st.sampled_from(SATURATIONS), limit=st.sampled_from([1, 5]))
    def begin(self, saturation, limit):
        self.life = Life(saturation, limit)

    @rule(name=st.sampled_from(NAMES), a=PICK, b=PICK, c=PICK)
    def act(self, name, a, b, c):
        self.life.act(name, a, b, c)

    def teardown(self):
        if hasattr(self, "life"):
            self.life.end()


Brain.TestCase.settings = settings(
    max_examples=30, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestBrain = Brain.TestCase


@pytest.mark.parametrize("seed", range(40))
def test_seeded_walks(seed):
    rng = random.Random(seed)
    life = Life(rng.choice(SATURATIONS), rng.choice([1, 5]))
    for _ in range(120):
        life.act(rng.choice(NAMES), rng.randrange(1 << 16), rng.randrange(1 << 16), rng.randrange(1 << 16))
    life.end()
