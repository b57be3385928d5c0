"""What stands in a stack beside code: regions of the program's own, and marks of the sampler."""

from __future__ import annotations

from gnomon.profiler.sessions.session import MARKER, REGION

__all__ = ["CUT", "OTHERS", "Marker", "Region"]


class Marker:
    """Something in a stack that is not code, and not the program's."""

    __slots__ = ("name",)
    file = MARKER

    def __init__(self, name: str) -> None:
        self.name = name


class Region(Marker):
    """A region in a stack."""

    __slots__ = ()
    file = REGION


#: Frames left out of a stack that was too deep.
CUT = Marker("(cut)")

#: Functions that came when there was no number left for them.
OTHERS = Marker("(others)")
