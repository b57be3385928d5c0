"""Starting clusters from Python: a scheduler and its workers on this machine.

Names are resolved on first use, so that a child process that enters through ``gnomon.runtime.deploy.child`` imports
nothing but what it runs. Nothing here decides where tasks go or touches a result.

Contents:
    local     LocalCluster
    crew      the workers of a cluster: how many there are, and replacing those that die
    surroundings  kind of loop, environment of children, killing descendants
    units     one scheduler or worker, wherever it runs; the one inside this process
    dashboard the link to the cluster's dashboard, and its process once somebody looks
    process   one scheduler or worker in an interpreter of its own, seen from the parent
    child     the same, seen from inside
    control   what the two say to each other
    link      questions that a cluster asks its scheduler
    machine   processors, and how they are split into workers
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gnomon.runtime.deploy.local import LocalCluster

__all__ = ["LocalCluster"]

_HOMES = {"LocalCluster": "local"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
