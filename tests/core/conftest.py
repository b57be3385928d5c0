"""Makes the helpers of this folder importable (``brain_env``), and those of the benchmarks (``benchmarks``)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "asv_benchmarks"))
