"""Makes the helpers of this folder importable (``zero_worker``, ``brain_env``)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
