"""Makes the benchmarks importable as asv imports them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "asv_benchmarks"))
