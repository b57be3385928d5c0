"""What a flame graph draws: a profile's call tree, functions joined over lines, with the samples of each time.

The samples stay apart by bucket of time and by label (the prefix of the task), so that a page can draw any range.

Contents: Flame, flame.
"""

from __future__ import annotations

from typing import NamedTuple

from gnomon.profiler import Session

__all__ = ["Flame", "flame"]


class Flame(NamedTuple):
    """A tree in columns: node 0 is the root, every other's ``parent`` comes before it, ``name`` indexes ``names``.

    Samples are columns too: ``bucket`` indexes ``buckets`` (begin and end in seconds since the recording's start),
    ``label`` indexes ``labels``, and ``seconds`` were spent in ``node`` itself. ``hidden`` frames below a share of all
    time were folded into their callers.
    """

    title: str
    names: list[str]
    name: list[int]
    parent: list[int]
    labels: list[str]
    buckets: list[tuple[float, float]]
    bucket: list[int]
    label: list[int]
    node: list[int]
    seconds: list[float]
    hidden: int


def flame(title: str, session: Session, start: float, share: float = 0.001) -> Flame:
    """The tree of a session; ``start`` is the time that the buckets are told from."""
    names: dict[str, int] = {title: 0}
    keys: dict[tuple[int, int], int] = {}
    name, parent = [0], [-1]
    moved: list[int] = []
    for above, function in zip(session.nodes.parent, session.nodes.function, strict=True):
        what = session.functions[function]
        label = f"{what.name} ({what.module})" if what.module else what.name
        key = (moved[above] if above >= 0 else 0, names.setdefault(label, len(names)))
        at = keys.get(key)
        if at is None:
            at = keys[key] = len(name)
            name.append(key[1])
            parent.append(key[0])
        moved.append(at)
    weights = [bucket.tick_seconds for bucket in session.buckets]
    samples: dict[tuple[int, int, int], float] = {}
    for bucket, _, label_, node, count in zip(*session.samples, strict=True):
        row = (bucket, label_, moved[node])
        samples[row] = samples.get(row, 0.0) + count * weights[bucket]
    kept = _kept(parent, samples, share)
    folded: dict[tuple[int, int, int], float] = {}
    for (bucket, label_, node), seconds in samples.items():
        row = (bucket, label_, kept[node])
        folded[row] = folded.get(row, 0.0) + seconds
    first = {new: at for at, new in reversed(list(enumerate(kept)))}
    return Flame(
        title, list(names), [name[first[at]] for at in range(len(first))],
        [kept[parent[first[at]]] if at else -1 for at in range(len(first))],
        list(session.labels), [(round(b.start - start, 4), round(b.stop - start, 4)) for b in session.buckets],
        [row[0] for row in folded], [row[1] for row in folded], [row[2] for row in folded],
        [round(seconds, 6) for seconds in folded.values()], len(name) - len(first),
    )  # fmt: skip


def _kept(parent: list[int], samples: dict[tuple[int, int, int], float], share: float) -> list[int]:
    """For each node its new number, or that of the nearest caller that has at least a share of all time."""
    totals = [0.0] * len(parent)
    for (_, _, node), seconds in samples.items():
        totals[node] += seconds
    for node in range(len(parent) - 1, 0, -1):
        totals[parent[node]] += totals[node]
    new, number = [0], 1
    alive = [True]
    for node in range(1, len(parent)):
        alive.append(alive[parent[node]] and totals[node] > 0 and totals[node] >= share * totals[0])
        new.append(number if alive[node] else new[parent[node]])
        number += alive[node]
    return new
