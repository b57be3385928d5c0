"""How many files a process of ours may have open: as many as the system lets it.

Each value that moves by shared memory is a descriptor for a while, and a large one that is mapped stays one; the usual
soft limit of 1024 is a relic of ``select``. Only processes that are ours alone call this, never the user's.
"""

from __future__ import annotations

import sys

__all__ = ["raise_limit"]


def raise_limit() -> None:
    """Raise the soft limit of open files to the hard limit, where the system has such limits."""
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        pass  # some systems name a hard limit that they don't grant
