"""Which machine this is, told so that only processes that can share memory tell the same.

Contents: host_identity, memory_size.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import uuid
from pathlib import Path

__all__ = ["host_identity", "memory_size"]


@functools.cache
def host_identity() -> str:
    """32 hexadecimal digits: the same for processes of one user on one running system, and for no others.

    Containers on one machine differ by their host names; where they don't, connecting to the other's unix socket fails
    and bytes go over the network as between machines.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = f"{uuid.getnode():x}"
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    return hashlib.sha256(f"gnomon {boot} {platform.node()} {user}".encode()).hexdigest()[:32]


def memory_size() -> int:
    """Bytes of this machine's memory, or very many where they can't be told."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 46
