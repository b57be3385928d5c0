"""What is looked up only when a profile is shown: the modules of functions, and which functions merely wait."""

from __future__ import annotations

import sys
from pathlib import PurePath
from types import ModuleType

from gnomon.profiler.sessions.session import Function

__all__ = ["IDLE", "is_idle", "module_of", "modules_by_file"]

#: (module, last part of the name) of functions that wait: a stack that ends in one counts as idle when shown. Waiting
#: in C code is seen as the Python function that called it, so those are here whose own work is nothing beside it.
IDLE = frozenset(
    [
        ("selectors", "select"),
        ("select", "select"),
        ("select", "poll"),
        ("threading", "wait"),
        ("threading", "wait_for"),
        ("threading", "join"),
        ("threading", "_wait_for_tstate_lock"),
        ("threading", "acquire"),
        ("threading", "__enter__"),
        ("queue", "get"),
        ("queue", "put"),
        ("queue", "join"),
        ("multiprocessing.queues", "get"),
        ("multiprocessing.connection", "_recv"),
        ("multiprocessing.connection", "_poll"),
        ("multiprocessing.connection", "wait"),
        ("multiprocessing.popen_fork", "poll"),
        ("multiprocessing.synchronize", "acquire"),
        ("multiprocessing.synchronize", "wait"),
        ("concurrent.futures.thread", "_worker"),
        ("concurrent.futures._base", "result"),
        ("concurrent.futures._base", "wait"),
        ("asyncio.runners", "run"),  # a loop that is C code and calls no Python to wait, as uvloop's
        ("socket", "accept"),
        ("socket", "recv_into"),
        ("socket", "readinto"),
        ("ssl", "read"),
        ("ssl", "recv_into"),
        ("subprocess", "_try_wait"),
        ("subprocess", "_communicate"),
        ("subprocess", "_wait"),
        ("os", "waitpid"),
        ("signal", "pause"),
    ]
)


def is_idle(function: Function) -> bool:
    """Whether a stack that ends in this function waits rather than works."""
    return (function.module, function.name.rpartition(".")[2]) in IDLE


def modules_by_file() -> dict[str, str]:
    """The names of the loaded modules by their files. Runs no code of theirs, lazy attributes included."""
    names: dict[str, str] = {}
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType):
            try:
                file = object.__getattribute__(module, "__dict__").get("__file__")
            except AttributeError:  # a kind of module without a dict, such as cffi's
                continue
            if isinstance(file, str):
                names.setdefault(file, name)
    return names


def module_of(file: str, known: dict[str, str]) -> str:
    """The module of a source file: as loaded (``modules_by_file``), else told from the path."""
    name = known.get(file)
    if name is not None:
        return name
    if file.startswith("<frozen ") and file.endswith(">"):
        return file[len("<frozen ") : -1]
    if not file.endswith(".py"):
        return ""
    for folder in sys.path:
        if folder and file.startswith(folder):
            parts = PurePath(file).relative_to(folder).with_suffix("").parts
            return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return PurePath(file).stem
