"""Threads that come and go under a sampler at full rate, for as long as is asked for, in both builds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Seconds of each run: ``GNOMON_CHURN_SECONDS=300 pytest -m slow tests/profiler/test_churn.py``.
SECONDS = float(os.environ.get("GNOMON_CHURN_SECONDS", "10"))


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 180)
@pytest.mark.parametrize("pure", ["0", "1"], ids=["as built", "pure"])
def test_neither_hangs_nor_crashes_nor_keeps_a_local_alive(pure):
    program = Path(__file__).with_name("churn.py")
    done = subprocess.run(
        [sys.executable, str(program), str(SECONDS)],
        env={**os.environ, "GNOMON_PURE": pure},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["threads"] > 50
    assert seen["monitored"] > 50
    assert not (seen["compiled"] and pure == "1")
