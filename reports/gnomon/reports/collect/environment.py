"""What a recording says about where it was made: versions, machine, settings. Everything is plain text or numbers.

Contents: environment.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import sys
from typing import Any

from gnomon.runtime import config, core
from gnomon.runtime.build import is_compiled

__all__ = ["environment"]

#: Packages whose versions bear on speed or on what a page shows; those that aren't installed are left out.
_PACKAGES = (
    "gnomon", "bokeh", "cloudpickle", "msgpack", "tornado", "uvloop", "cython", "psutil", "numpy", "pandas", "pyarrow",
    "dask", "lz4", "zstandard",
)  # fmt: skip


def environment() -> dict[str, Any]:
    """Versions, the client's machine, the build, and the settings in force in the calling process."""
    versions = {"python": f"{platform.python_version()} ({platform.python_implementation()})"}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "created": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "versions": versions,
        "machine": {
            "system": f"{platform.system()} {platform.release()} ({platform.machine()})",
            "processors": str(os.cpu_count() or "unknown"),
            "host": platform.node(),
        },
        "build": "compiled" if is_compiled(sys.modules[core.Model.__module__]) else "pure Python",
        "settings": config.environment(),
    }
