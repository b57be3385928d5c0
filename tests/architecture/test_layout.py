"""The house rules that a machine can check: import direction, sizes, public names, no forbidden words."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOTS = {"runtime": ROOT / "runtime", "profiler": ROOT / "profiler", "reports": ROOT / "reports"}

#: What each room may import of ours. A room not named here may import everything below the shells.
BOTTOM = {"config", "errors", "clock", "build", "descriptors"}
ALLOWED = {
    "config": {"errors"},
    "errors": set(),
    "clock": set(),
    "build": set(),
    "descriptors": set(),
    "messages": set(),
    "core": {"messages", "build"},
    "worker.state": {"messages", "build"},
    "protocol": {"messages", "errors"},
    "comm": {"messages"} | BOTTOM,
    "transfer": {"messages", "protocol", "comm"} | BOTTOM,
    "instruments": {"messages"} | BOTTOM,
    "worker.executor": {"messages", "protocol", "instruments"} | BOTTOM,
    "scheduler": {"messages", "core", "comm", "protocol", "instruments"} | BOTTOM,
    "worker": {"messages", "worker.state", "worker.executor", "protocol", "comm", "transfer", "instruments"} | BOTTOM,
    "client": {"messages", "protocol", "comm", "transfer", "worker.executor", "instruments"} | BOTTOM,
    "deploy": {"messages", "scheduler", "worker", "client", "comm", "protocol"} | BOTTOM,
}

MAX_FILE, MAX_FUNCTION, MAX_CORE = 600, 80, 4000


@cache
def sources() -> list[tuple[str, Path]]:
    """Every module of the project with its dotted name."""
    found = []
    for root in ROOTS.values():
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found.append((".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports_of(name: str, path: Path) -> set[str]:
    """Names of our modules that a module imports, anywhere in it."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {module for module in found if module.startswith("gnomon.")}


def room(module: str) -> str:
    """The room of a runtime module: its first folder, two for the worker's brain and executor."""
    parts = module.split(".")[2:]
    if parts[:1] == ["worker"] and len(parts) > 1 and parts[1] in {"state", "executor"}:
        return ".".join(parts[:2])
    return parts[0] if parts else ""


def test_no_namespace_package_has_an_init():
    assert not [root for root in ROOTS.values() if (root / "gnomon" / "__init__.py").exists()]


def test_imports_go_down_only():
    wrong = []
    for name, path in sources():
        for imported in imports_of(name, path):
            package, target = name.split(".")[1], imported.split(".")[1]
            if package == "profiler" and target != "profiler":
                wrong.append(f"{name} imports {imported}")
            if package == "runtime" and target == "reports":
                wrong.append(f"{name} imports {imported}")
            if package == "runtime" and target == "runtime":
                here, there = room(name), room(imported)
                if here in ALLOWED and there not in ALLOWED[here] | {here, ""}:
                    wrong.append(f"{name} imports {imported}")
    assert not wrong


def test_modules_and_functions_stay_small():
    wrong = []
    for name, path in sources():
        lines = len(path.read_text().splitlines())
        if lines > MAX_FILE:
            wrong.append(f"{name}: {lines} lines")
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                if length > MAX_FUNCTION:
                    wrong.append(f"{name}.{node.name}: {length} lines")
    assert not wrong


def test_the_scheduler_brain_stays_readable():
    core = [path for name, path in sources() if name.startswith("gnomon.runtime.core")]
    assert sum(len(path.read_text().splitlines()) for path in core) <= MAX_CORE


def test_every_module_says_what_it_is_for():
    assert not [name for name, path in sources() if not ast.get_docstring(tree(path))]


def test_no_room_is_called_utils():
    assert not [name for name, _ in sources() if name.rsplit(".", 1)[-1] in {"utils", "helpers", "misc", "common"}]


def test_no_private_name_crosses_a_module():
    wrong = []
    for name, path in sources():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("gnomon."):
                wrong += [f"{name}: {node.module}.{a.name}" for a in node.names if a.name.startswith("_")]
    assert not wrong


@pytest.mark.parametrize("package", ["core", "worker.state"])
def test_the_brains_are_sans_io(package):
    forbidden = {"asyncio", "socket", "threading", "time", "random", "logging", "selectors", "ssl", "os", "tornado"}
    wrong = []
    for name, path in sources():
        if not name.startswith(f"gnomon.runtime.{package}"):
            continue
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Import):
                wrong += [f"{name}: {a.name}" for a in node.names if a.name.split(".")[0] in forbidden]
            elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in forbidden:
                wrong.append(f"{name}: {node.module}")
    assert not wrong


def test_only_reports_import_bokeh():
    wrong = []
    for name, path in sources():
        if not name.startswith("gnomon.reports"):
            text = path.read_text()
            if "import bokeh" in text or "from bokeh" in text:
                wrong.append(name)
    assert not wrong


@pytest.mark.parametrize("package", ["gnomon.runtime", "gnomon.profiler", "gnomon.reports"])
def test_public_names_exist(package):
    module = importlib.import_module(package)
    exported = getattr(module, "__all__", ())
    assert [name for name in exported if not hasattr(module, name)] == []
    assert list(exported) == sorted(set(exported))


@pytest.mark.parametrize("package", ["gnomon.runtime", "gnomon.profiler", "gnomon.reports"])
def test_all_modules_import_alone_and_say_what_is_public(package):
    root = importlib.import_module(package)
    for info in pkgutil.walk_packages(root.__path__, f"{package}."):
        if info.name.endswith(("__main__", ".child")):
            continue
        module = importlib.import_module(info.name)
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), f"{info.name}.{name}"


def test_importing_the_runtime_is_light():
    heavy = "numpy, pandas, dask, bokeh, tornado, cloudpickle, pyinstrument, rich, distributed"
    code = f"import sys, gnomon.runtime; print([m for m in '{heavy}'.split(', ') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
