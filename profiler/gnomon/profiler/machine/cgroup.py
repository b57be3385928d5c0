"""The limits that a container puts on this process: memory and processors, by control groups of version 1 or 2.

Groups are nested and each may have a limit: the smallest counts. A limit that can't be read, or one as large as no
machine's memory, is none.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

__all__ = ["Limits", "limits"]

#: Version 1 says "no limit" with a number just below 2**63.
_UNLIMITED = 1 << 60


class Limits(NamedTuple):
    """``memory`` in bytes and ``processors`` in CPUs; None where there is no limit."""

    memory: int | None
    processors: float | None


def limits(root: str = "/") -> Limits:
    """The limits of this process; of the system under ``root`` in tests."""
    base = Path(root)
    memory: list[int] = []
    processors: list[float] = []
    mounts = _mounts(base)
    for controllers, group in _groups(base):
        for kind in ("memory", "cpu") if not controllers else controllers & {"memory", "cpu"}:
            mount = mounts.get(kind if controllers else "")
            if mount is None:
                continue
            for folder in _up(base, mount, group):
                if kind == "memory":
                    memory += _memory_limit(folder)
                else:
                    processors += _processor_limit(folder)
    return Limits(min(memory, default=None), min(processors, default=None))


def _groups(base: Path) -> list[tuple[set[str], str]]:
    """The groups of this process: the controllers (none: version 2) and the path."""
    found = []
    for line in _text(base / "proc/self/cgroup").splitlines():
        fields = line.split(":", 2)
        if len(fields) == 3:
            found.append((set(filter(None, fields[1].split(","))), fields[2]))
    return found


def _mounts(base: Path) -> dict[str, tuple[str, str]]:
    """Where each controller's groups are mounted, and from which group on; "" for version 2."""
    found: dict[str, tuple[str, str]] = {}
    for line in _text(base / "proc/self/mountinfo").splitlines():
        left, separator, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if not separator or len(fields) < 5 or not kind:
            continue
        if kind[0] == "cgroup2":
            found.setdefault("", (fields[4], fields[3]))
        elif kind[0] == "cgroup":
            for option in kind[-1].split(","):
                found.setdefault(option, (fields[4], fields[3]))
    return found


def _up(base: Path, mount: tuple[str, str], group: str) -> list[Path]:
    """The folder of a group, and of those that it is in, as far as they can be seen."""
    point, mounted = mount
    inside = os.path.relpath(group, mounted) if mounted != "/" else group.lstrip("/")
    top = base / point.lstrip("/")
    if inside.startswith("..") or not (top / inside).is_dir():
        # The path is as seen from outside of this container; what is mounted here is our own group.
        return [top]
    parts = Path(inside).parts
    return [top.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]


def _memory_limit(folder: Path) -> list[int]:
    found = []
    for name in ("memory.max", "memory.high", "memory.limit_in_bytes"):
        text = _text(folder / name).strip()
        if text.isdigit() and 0 < int(text) < _UNLIMITED:
            found.append(int(text))
    return found


def _processor_limit(folder: Path) -> list[float]:
    fields = _text(folder / "cpu.max").split()
    if len(fields) != 2:
        fields = [_text(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    if all(field.isdigit() for field in fields) and int(fields[0]) > 0 and int(fields[1]) > 0:
        return [int(fields[0]) / int(fields[1])]
    return []


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
