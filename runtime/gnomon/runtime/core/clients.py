"""What is known of a client: which task each of its futures stands for, and the code it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gnomon.runtime.core.codes import Code
    from gnomon.runtime.core.task import TaskState

__all__ = ["ClientState"]


class ClientState:
    """One connection of a client."""

    __slots__ = ("client_id", "codes", "futures", "name")

    def __init__(self, client_id: int, name: str) -> None:
        self.client_id = client_id
        self.name = name
        self.futures: dict[int, TaskState] = {}
        self.codes: dict[int, Code] = {}
