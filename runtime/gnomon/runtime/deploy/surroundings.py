"""What a process of a cluster takes from its surroundings, and what it must not leave in them.

Contents: run (on the configured kind of event loop), child_environment, kill_descendants.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

import psutil

from gnomon.runtime import config
from gnomon.runtime.comm.loops import new_event_loop

__all__ = ["child_environment", "kill_descendants", "run"]

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on a new loop of the configured kind."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)


def child_environment() -> dict[str, str]:
    """This process's environment for a child of it: with the settings in force here, and without secrets.

    The import path makes the child find this very package; it puts back the parent's own ``PYTHONPATH`` itself.
    """
    environment = {name: value for name, value in os.environ.items() if not _is_setting(name)}
    environment.pop("GNOMON_SECRET", None)
    environment.pop("GNOMON_DASHBOARD_TOKEN", None)
    environment.update(config.environment())
    environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if isinstance(entry, str) and entry)
    return environment


def _is_setting(name: str) -> bool:
    return name.startswith("GNOMON_") and "__" in name


def kill_descendants(pid: int) -> None:
    """Kill all children of a process and theirs."""
    with contextlib.suppress(psutil.Error):
        for descendant in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                descendant.kill()
