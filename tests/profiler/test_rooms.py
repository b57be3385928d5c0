"""The rooms of the profiler: each uses only those that it stands on."""

from __future__ import annotations

import ast
from pathlib import Path

import gnomon.profiler

HOME = Path(gnomon.profiler.__file__).parent

#: What each room may import, beside the modules of the package's own folder that all are built on.
ALLOWED = {
    "sessions": set(),
    "export": {"sessions"},
    "reading": set(),
    "marks": {"reading", "sessions"},
    "sampling": {"reading", "marks", "sessions"},
    "interpreter": {"reading"},
    "loops": {"reading", "interpreter"},
    "machine": set(),
}
BOTTOM = {"build", "clock", "cost", "histogram", "series"}


def imported(path):
    """Names below ``gnomon.profiler`` of what a module imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_every_folder_is_a_known_room():
    assert {path.parent.name for path in HOME.glob("*/__init__.py")} == set(ALLOWED)


def test_rooms_use_only_what_they_stand_on():
    wrong = []
    for path in HOME.rglob("*.py"):
        room = path.relative_to(HOME).parts[0]
        allowed = BOTTOM | ALLOWED[room] | {room} if room in ALLOWED else None
        if path.stem in BOTTOM and path.parent == HOME:
            allowed = BOTTOM
        if allowed is not None:
            ours = [name for name in imported(path) if name.startswith("gnomon.profiler.")]
            wrong += [f"{path.relative_to(HOME)} imports {name}" for name in ours if name.split(".")[2] not in allowed]
    assert not wrong
