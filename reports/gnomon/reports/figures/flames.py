"""What a flame graph draws: a profile's call tree, functions joined over lines, frames below a share folded away.

Contents: Flame, flame.
"""

from __future__ import annotations

from typing import NamedTuple

from gnomon.profiler import Session

__all__ = ["Flame", "flame"]


class Flame(NamedTuple):
    """A tree in columns: node 0 is the root, every other's ``parent`` comes before it; ``weight`` in seconds.

    ``name`` indexes ``names``; ``hidden`` counts the frames that were folded away.
    """

    title: str
    names: list[str]
    name: list[int]
    parent: list[int]
    weight: list[float]
    hidden: int


def flame(title: str, session: Session, share: float = 0.001) -> Flame:
    """The tree of a session; frames below ``share`` of all its time are left out."""
    totals = session.total_seconds()
    all_seconds = sum(session.own_seconds())
    names: dict[str, int] = {title: 0}
    keys: dict[tuple[int, int], int] = {}
    name, parent, weight = [0], [-1], [all_seconds]
    moved: list[int] = []
    for above, function, seconds in zip(session.nodes.parent, session.nodes.function, totals, strict=True):
        what = session.functions[function]
        label = f"{what.name} ({what.module})" if what.module else what.name
        key = (moved[above] if above >= 0 else 0, names.setdefault(label, len(names)))
        at = keys.get(key)
        if at is None:
            at = keys[key] = len(name)
            name.append(key[1])
            parent.append(key[0])
            weight.append(0.0)
        weight[at] += seconds
        moved.append(at)
    return _folded(Flame(title, list(names), name, parent, weight, 0), share * all_seconds)


def _folded(whole: Flame, least: float) -> Flame:
    """Without the nodes below a weight, and what is above them in no way."""
    new: dict[int, int] = {}
    name: list[int] = []
    parent: list[int] = []
    weight: list[float] = []
    for at, seconds in enumerate(whole.weight):
        if at and (seconds < least or seconds <= 0 or whole.parent[at] not in new):
            continue
        new[at] = len(name)
        name.append(whole.name[at])
        parent.append(new[whole.parent[at]] if at else -1)
        weight.append(round(seconds, 6))
    return whole._replace(name=name, parent=parent, weight=weight, hidden=len(whole.name) - len(name))
