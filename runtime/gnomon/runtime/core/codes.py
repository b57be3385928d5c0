"""Code that tasks run: opaque blobs, named by number, sent once to each worker that needs them.

A blob lives as long as a task or a client names it; ``Code.references`` counts both.
"""

from __future__ import annotations

from gnomon.runtime.messages import Payload

__all__ = ["Code"]


class Code:
    """One blob. ``workers`` are the ids of the workers that were sent it."""

    __slots__ = ("blob", "code_id", "references", "workers")

    def __init__(self, code_id: int, blob: Payload) -> None:
        self.code_id = code_id
        self.blob = blob
        self.references = 0
        self.workers: list[int] = []
