"""Build of the three packages, and of the compiled modules where a C compiler is found.

A module is compiled when an augmenting ``.pxd`` lies beside its ``.py``; the ``.py`` is installed as well, so that the
same code can be run interpreted (``GNOMON_PURE=1``). Without Cython or a compiler the package installs and runs as
plain Python. ``GNOMON_REQUIRE_COMPILED=1`` turns a failing extension into an error.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import Extension, find_namespace_packages, setup

ROOTS = ("runtime", "profiler", "reports")
REQUIRED = os.environ.get("GNOMON_REQUIRE_COMPILED") == "1"


def packages() -> tuple[list[str], dict[str, str]]:
    """Every package, and the folder it lives in."""
    names: list[str] = []
    folders: dict[str, str] = {}
    for root in ROOTS:
        for name in find_namespace_packages(root, include=["gnomon.*"]):
            names.append(name)
            folders[name] = str(Path(root, *name.split(".")))
    return names, folders


def extensions() -> list[Extension]:
    """The modules that have a ``.pxd``, as extensions; none where Cython is missing or pure Python is asked for."""
    if os.environ.get("GNOMON_PURE") == "1":
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        if REQUIRED:
            raise
        return []
    modules = []
    for root in ROOTS:
        for pxd in sorted(Path(root).rglob("*.pxd")):
            source = pxd.with_suffix(".py")
            if source.exists() and source.name != "__init__.py":
                name = ".".join(source.relative_to(root).with_suffix("").parts)
                modules.append(Extension(name, [str(source)], extra_compile_args=["-O2"]))
    if not modules:
        return []
    compiled: list[Extension] = cythonize(
        modules,
        include_path=list(ROOTS),
        compiler_directives={"language_level": 3, "annotation_typing": False, "binding": True, "embedsignature": True},
        build_dir="build/cython",
        quiet="-q" in sys.argv,
    )
    for extension in compiled:  # cythonize makes new ones, and forgets what was optional
        extension.optional = not REQUIRED
    return compiled


names, folders = packages()
setup(
    packages=names,
    package_dir=folders,
    package_data={name: ["*.pxd", "py.typed", "*.html", "*.css", "*.js"] for name in names},
    ext_modules=extensions(),
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
