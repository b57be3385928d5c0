"""The processes that this one started, and those that they started.

Linux lists the children of each thread in /proc: a few microseconds per thread, whatever else runs on the machine.
Where it doesn't, psutil looks at every process of the system, which takes milliseconds: ask rarely.
"""

from __future__ import annotations

import os
from typing import Any

__all__ = ["descendants"]


def descendants(pid: int, psutil: Any = None) -> list[int]:
    """Ids of all live descendants. ``psutil``: the module, for systems other than Linux; without either, none."""
    if os.path.exists(f"/proc/{pid}/task/{pid}/children"):
        return _by_proc(pid)
    if psutil is None:
        return []
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def _by_proc(pid: int) -> list[int]:
    found: list[int] = []
    seen = {pid}
    ahead = [pid]
    while ahead:
        for child in _children(ahead.pop()):
            if child not in seen:
                seen.add(child)
                found.append(child)
                ahead.append(child)
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        try:
            descriptor = os.open(f"/proc/{pid}/task/{thread}/children", os.O_RDONLY)
        except OSError:
            continue
        try:
            while part := os.read(descriptor, 65536):
                found += map(int, part.split())
        except OSError:
            continue
        finally:
            os.close(descriptor)
    return found
