"""Runs another program as ``__main__`` of this process, as plain ``python`` would have started it.

What the program sees is its own: ``sys.argv``, the first entry of ``sys.path``, a fresh module ``__main__`` that stays
in place after its last line (threads and pickles need it), and tracebacks without the frames that are above it. What
it raises leaves :func:`run` as it is, so that the interpreter ends with the exit code that it would have had.

It can't undo what has happened before: modules that are imported already are not imported again.

Contents: Program, ProgramError, load_script, load_module, run, shorten_tracebacks.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.machinery
import importlib.util
import io
import os
import sys
from collections.abc import Sequence
from importlib.abc import InspectLoader
from types import CodeType, ModuleType, TracebackType
from typing import Any, NamedTuple

__all__ = ["Program", "ProgramError", "load_module", "load_script", "run", "shorten_tracebacks"]


class ProgramError(Exception):
    """The program can't be started. The text is what ``python`` would have said; ``exit_code`` its exit code."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


class Program(NamedTuple):
    """A program ready to run: its code, the attributes of its ``__main__``, and what becomes of ``sys``."""

    code: CodeType
    attributes: dict[str, Any]
    argv: list[str]
    folder: str | None  # becomes sys.path[0]; None: the path stays


def load_script(path: str, args: Sequence[str]) -> Program:
    """A file with source or byte code, or a folder or zip file with a ``__main__.py``.

    Raises ProgramError if there is none, SyntaxError and the like as the compiler does.
    """
    full = os.path.join(os.getcwd(), path)  # as python does: absolute, but not made shorter
    argv = [path, *args]
    package = importlib.machinery.PathFinder.find_spec("__main__", [full]) if not path.endswith(".py") else None
    if package is not None:
        return Program(*_of_spec(package), argv, full)
    if os.path.isdir(full):
        raise ProgramError(f"{sys.executable}: can't find '__main__' module in {full!r}", 1)
    try:
        with io.open_code(full) as file:
            source = file.read()
    except OSError as error:
        raise ProgramError(
            f"{sys.executable}: can't open file {full!r}: [Errno {error.errno}] {error.strerror}", 2
        ) from None
    loader: InspectLoader
    if source.startswith(importlib.util.MAGIC_NUMBER):
        loader = importlib.machinery.SourcelessFileLoader("__main__", full)
        code = loader.get_code("__main__")
        assert code is not None
    else:
        loader = importlib.machinery.SourceFileLoader("__main__", full)
        code = compile(source, full, "exec", dont_inherit=True)
    attributes = {"__file__": full, "__cached__": None, "__loader__": loader, "__package__": None, "__spec__": None}
    return Program(code, attributes, argv, os.path.dirname(os.path.realpath(full)))


def load_module(name: str, args: Sequence[str]) -> Program:
    """A module or package by its name, from the working folder or installed.

    Raises ProgramError if there is none; what the import of its parent packages raises comes through.
    """
    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd()
    spec = _find(name)
    if spec is not None and spec.submodule_search_locations is not None:
        package, name = name, f"{name}.__main__"
        spec = _find(name)
        if spec is None:
            text = f"No module named {name}; {package!r} is a package and cannot be directly executed"
            raise ProgramError(f"{sys.executable}: {text}", 1)
    if spec is None:
        raise ProgramError(f"{sys.executable}: No module named {name}", 1)
    code, attributes = _of_spec(spec)
    return Program(code, attributes, [attributes["__file__"] or name, *args], None)


def run(program: Program) -> None:
    """Run it in this process and thread. Whatever the program raises is raised.

    From here on tracebacks that reach the top are shown without the frames above the program's.
    """
    sys.argv[:] = program.argv
    if program.folder is not None and not sys.flags.safe_path:
        sys.path[0] = program.folder
    main = ModuleType("__main__")
    main.__dict__.update(program.attributes, __builtins__=builtins)
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    sys.modules["__main__"] = main
    try:
        exec(program.code, main.__dict__)
    except SystemExit:
        raise
    except BaseException:
        shorten_tracebacks(program.code)
        raise


def shorten_tracebacks(code: CodeType | None) -> None:
    """Show what reaches the top of this thread only from ``code`` on; without any frame if ``code`` is None.

    The present hook, which may be the program's own, is wrapped in one that gives it that part of the traceback.
    """
    show = sys.excepthook

    def shown(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        own = traceback
        while own is not None and own.tb_frame.f_code is not code:
            own = own.tb_next
        show(kind, error.with_traceback(own), own)

    sys.excepthook = shown


def _find(name: str) -> importlib.machinery.ModuleSpec | None:
    """Where the import system finds a module; what goes wrong inside its parent packages is theirs to tell."""
    parent = name.rpartition(".")[0]
    if parent:
        try:
            importlib.import_module(parent)
        except ImportError as error:
            if error.name is None or not f"{parent}.".startswith(f"{error.name}."):
                raise
    try:
        return importlib.util.find_spec(name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        text = f"Error while finding module specification for {name!r} ({type(error).__name__}: {error})"
        if name.endswith(".py"):
            text += f". Try using '{name[:-3]}' instead of '{name}' as the module name."
        raise ProgramError(f"{sys.executable}: {text}", 1) from error


def _of_spec(spec: importlib.machinery.ModuleSpec) -> tuple[CodeType, dict[str, Any]]:
    """The code of a module that the import system found, and the attributes that it would give it."""
    loader: Any = spec.loader  # not every loader that can give code says so by its class
    code: CodeType | None = loader.get_code(spec.name) if hasattr(loader, "get_code") else None
    if code is None:
        raise ProgramError(f"{sys.executable}: No code object available for {spec.name}", 1)
    return code, {
        "__file__": spec.origin if spec.has_location else None,
        "__cached__": spec.cached,
        "__loader__": loader,
        "__package__": spec.parent,
        "__spec__": spec,
    }
