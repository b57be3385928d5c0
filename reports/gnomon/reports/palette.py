"""Which colour a prefix has: the same one in every figure, every page and every run, as far as nine colours go.

The colours are Paul Tol's "muted" set on light ground and his "light" set on dark, aligned by index so that a hue keeps
its meaning when the theme flips; both can be told apart with the common kinds of colour blindness. A prefix prefers the
slot that its name hashes to; among the nine that took most time, one that finds its slot taken gets the next free one.
All others share "other".

Contents: LIGHT, DARK, OTHER, CODING, ERRED, slots, css.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

__all__ = ["CODING", "DARK", "ERRED", "LIGHT", "OTHER", "css", "slots"]

#: Colours by slot on light and on dark ground: nine prefixes, other prefixes, decoding or encoding, erred.
LIGHT = (
    "#332288", "#88ccee", "#44aa99", "#117733", "#999933", "#ddcc77", "#cc6677", "#882255", "#aa4499",
    "#a9a9b0", "#6f6f78", "#111111",
)  # fmt: skip
DARK = (
    "#77aadd", "#99ddff", "#44bb99", "#bbcc33", "#aaaa00", "#eedd88", "#ee8866", "#ffaabb", "#c79fef",
    "#8b8b94", "#b9b9c2", "#ffffff",
)  # fmt: skip

OTHER = 9
CODING = 10
ERRED = 11


def slots(prefixes: Sequence[str]) -> dict[str, int]:
    """The slot of each prefix, given in order of descending time."""
    result: dict[str, int] = {}
    free = set(range(OTHER))
    for prefix in prefixes:
        if not free:
            result[prefix] = OTHER
            continue
        wish = zlib.crc32(prefix.encode("utf-8", "replace")) % OTHER
        slot = next(slot for step in range(OTHER) if (slot := (wish + step) % OTHER) in free)
        free.discard(slot)
        result[prefix] = slot
    return result


def css() -> str:
    """The colours by slot as custom properties, for both themes, and a class for each slot."""
    light = "".join(f"--slot-{i}:{color};" for i, color in enumerate(LIGHT))
    dark = "".join(f"--slot-{i}:{color};" for i, color in enumerate(DARK))
    rules = "".join(f".slot-{i}{{--color:var(--slot-{i})}}" for i in range(len(LIGHT)))
    return f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}{rules}"
