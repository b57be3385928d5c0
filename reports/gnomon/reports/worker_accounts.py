"""The parts that a thread's time has, and a table of them by worker.

Contents: PARTS, Parts, WorkerAccount, WorkerAccounts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from gnomon.reports.records import Worker

__all__ = ["PARTS", "Parts", "WorkerAccount", "WorkerAccounts"]

#: The parts of a thread's time, in the order in which they are shown.
PARTS = (
    "compute", "offcpu", "decode", "encode", "transfer", "handover", "scheduler", "between", "idle", "unaccounted",
)  # fmt: skip


@dataclass(slots=True)
class Parts:
    """Ticks by part.

    ``compute`` is the user's code on the processor, and ``offcpu`` the user's code waiting for something (where that
    was not measured, ``compute`` is both); ``decode`` and ``encode`` are unpickling arguments and pickling results;
    ``transfer`` is no task on a thread while its worker fetched data; ``handover`` is runs ready on the worker that no
    thread had begun; ``scheduler`` is tasks that waited at the scheduler or were on their way; ``idle`` is
    nothing to do. Recordings without demand have ``between``, the other gaps between two tasks, instead of the last
    three but ``idle``, which then is before a thread's first and after its last task. ``unaccounted`` is what the
    records don't tell.
    """

    compute: int = 0
    offcpu: int = 0
    decode: int = 0
    encode: int = 0
    transfer: int = 0
    handover: int = 0
    scheduler: int = 0
    between: int = 0
    idle: int = 0
    unaccounted: int = 0

    @property
    def busy(self) -> int:
        """Ticks in tasks."""
        return self.compute + self.offcpu + self.decode + self.encode

    def values(self) -> list[int]:
        """The amounts in the order of ``PARTS``."""
        return [getattr(self, name) for name in PARTS]

    def add(self, other: Parts) -> None:
        """Add another's amounts to these."""
        for name in PARTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(slots=True)
class WorkerAccount:
    """One worker: its capacity in ticks, and the parts, which sum to it.

    ``lead`` is how much of ``parts.idle`` lies before a slot's first run with details, or in a slot that has none.
    """

    worker: Worker
    capacity: int = 0
    tasks: int = 0
    erred: int = 0
    nbytes: int = 0
    alongside: int = 0
    lead: int = 0
    parts: Parts = field(default_factory=Parts)


#: The numbers of a worker that are no parts.
_NUMBERS = ("capacity", "tasks", "erred", "nbytes", "alongside", "lead")


class WorkerAccounts(Sequence[WorkerAccount]):
    """The accounts of workers as arrays of numpy; elements are made when they are asked for.

    ``parts`` has a row for each of ``PARTS``, ``numbers`` one for each other number; a column is a worker.
    """

    __slots__ = ("numbers", "parts", "workers")

    def __init__(self, workers: Sequence[Worker] = ()) -> None:
        import numpy

        self.workers = list(workers)
        self.numbers = numpy.zeros((len(_NUMBERS), len(self.workers)), "q")
        self.parts = numpy.zeros((len(PARTS), len(self.workers)), "q")

    def part(self, name: str) -> Any:
        """The column of a part, by worker, to be read and changed."""
        return self.parts[PARTS.index(name)]

    def number(self, name: str) -> Any:
        """The column of one of a worker's other numbers, to be read and changed."""
        return self.numbers[_NUMBERS.index(name)]

    def total(self) -> Parts:
        """The parts of all workers together."""
        return Parts(*self.parts.sum(axis=1).tolist())

    def __len__(self) -> int:
        return len(self.workers)

    @overload
    def __getitem__(self, at: int) -> WorkerAccount: ...

    @overload
    def __getitem__(self, at: slice) -> list[WorkerAccount]: ...

    def __getitem__(self, at: int | slice) -> WorkerAccount | list[WorkerAccount]:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        parts = Parts(*self.parts[:, at].tolist())
        numbers = dict(zip(_NUMBERS, self.numbers[:, at].tolist(), strict=True))
        return WorkerAccount(self.workers[at], parts=parts, **numbers)
