"""Which colour a prefix has: the same one in every figure, every page and every run, as far as nine colours go.

The colours are close to Paul Tol's "muted" set on light ground and his "light" set on dark, aligned by index so that a
hue keeps its meaning when the theme flips; some were moved until every pair, greys included, can be told apart with the
common kinds of colour blindness (a test measures it). A prefix prefers the
slot that its name hashes to; among the nine that took most time, one that finds its slot taken gets the next free one.
The next nine repeat the colours with a hatch, and all others share "other".

Contents: LIGHT, DARK, OTHER, CODING, ERRED, HATCHED, GREYED, slots, css.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

__all__ = ["CODING", "DARK", "ERRED", "GREYED", "HATCHED", "LIGHT", "OTHER", "css", "slots"]

_LIGHT = ("#332288", "#88ccee", "#33bb99", "#117733", "#999933", "#ddcc77", "#e07080", "#99114d", "#aa4499")
_DARK = ("#5588cc", "#99ddff", "#44bb99", "#ccdd55", "#aaaa00", "#eedd88", "#ee8866", "#ff99aa", "#c79fef")

#: Colours by slot on light and on dark ground: nine prefixes, other prefixes, decoding or encoding, erred, nine more
#: prefixes (hatched), and what a filter leaves out.
LIGHT = (*_LIGHT, "#c6c6cc", "#65656d", "#111111", *_LIGHT, "#ececf0")
DARK = (*_DARK, "#8b8b94", "#d2d2da", "#ffffff", *_DARK, "#34343b")

OTHER = 9
CODING = 10
ERRED = 11
HATCHED = 12
GREYED = 21


def slots(prefixes: Sequence[str]) -> dict[str, int]:
    """The slot of each prefix, given in order of descending time."""
    result: dict[str, int] = {}
    for first, base in ((0, 0), (OTHER, HATCHED)):
        free = set(range(OTHER))
        for prefix in prefixes[first : first + OTHER]:
            wish = zlib.crc32(prefix.encode("utf-8", "replace")) % OTHER
            slot = next(slot for step in range(OTHER) if (slot := (wish + step) % OTHER) in free)
            free.discard(slot)
            result[prefix] = base + slot
    for prefix in prefixes[2 * OTHER :]:
        result[prefix] = OTHER
    return result


def css() -> str:
    """The colours by slot as custom properties, for both themes, and a class for each slot."""
    colors = "".join(
        f"--slot-{i}:light-dark({light},{dark});" for i, (light, dark) in enumerate(zip(LIGHT, DARK, strict=True))
    )
    rules = "".join(f".slot-{i}{{--color:var(--slot-{i})}}" for i in range(len(LIGHT)))
    hatched = ",".join(f".slot-{i}" for i in range(HATCHED, HATCHED + OTHER))
    hatch = "background-image:repeating-linear-gradient(135deg,transparent 0 3px,var(--hatch) 3px 5px)"
    return f":root{{{colors}}}{rules}{hatched}{{{hatch}}}"
