"""Which build of the compiled modules runs: extension or source.

A compiled module is the same ``.py`` file with a ``.pxd`` beside it. An extension beside its source wins by the import
system's own rules; ``GNOMON_PURE=1`` turns that round, ``GNOMON_REQUIRE_COMPILED=1`` makes a missing one an error.
This lies in the lowest package, so that all packages can use it.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType

__all__ = ["is_compiled", "use_chosen_build"]


class _SourceFirst:
    """Finds the ``.py`` of the modules of some packages even where an extension lies beside it."""

    def __init__(self) -> None:
        self.packages: set[str] = set()

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        parent, _, module = name.rpartition(".")
        if parent not in self.packages or path is None:
            return None
        for folder in path:
            source = Path(folder, f"{module}.py")
            if source.exists():
                return importlib.util.spec_from_file_location(name, source, loader=SourceFileLoader(name, str(source)))
        return None


_finder = _SourceFirst()


def use_chosen_build(package: str, path: Sequence[str]) -> None:
    """Called by a package of compiled modules before it imports them: obey the environment.

    Raises ImportError if ``GNOMON_REQUIRE_COMPILED=1`` and a module with a ``.pxd`` has no extension.
    """
    if os.environ.get("GNOMON_PURE") == "1":
        _finder.packages.add(package)
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)
    elif os.environ.get("GNOMON_REQUIRE_COMPILED") == "1":
        for pxd in Path(path[0]).glob("*.pxd"):
            if not pxd.with_suffix(".py").exists():
                continue  # declarations for the others, no module of its own
            spec = PathFinder.find_spec(f"{package}.{pxd.stem}", path)
            if spec is None or isinstance(spec.loader, SourceFileLoader):
                raise ImportError(
                    f"{package}.{pxd.stem} is not compiled; install with a C compiler, or unset GNOMON_REQUIRE_COMPILED"
                )


def is_compiled(module: ModuleType) -> bool:
    """Whether a module runs as an extension."""
    return not isinstance(getattr(module.__spec__, "loader", None), SourceFileLoader)
