"""What the brain wants sent: to the scheduler, to the executor, and the fetches to start.

Rows of one kind that come up in one turn leave as one message. The order that matters is kept: what was said before the
executor was lost stays before it, and to the executor values are dropped before new ones are put and tasks run.
"""

from __future__ import annotations

from typing import NamedTuple

from gnomon.runtime.messages import (
    CancelTasks,
    Codes,
    DropValues,
    Message,
    Payload,
    PutValues,
    ReplicasAdded,
    ReplicasMissing,
    RunTasks,
    StealReplies,
)
from gnomon.runtime.worker.state.records import Run

__all__ = ["Fetch", "Outbox"]


class Fetch(NamedTuple):
    """Values to fetch from one holder in one request; at most one fetch per holder is under way at a time.

    ``asked``: since when the first of them has been waiting to be fetched.
    """

    holder: str
    task_ids: tuple[int, ...]
    attempts: tuple[int, ...]
    nbytes: tuple[int, ...]
    asked: float = 0.0


class Outbox:
    """Effects in the order in which they are to happen, per destination."""

    def __init__(self) -> None:
        self.scheduler: list[Message] = []
        self.executor: list[Message] = []
        self.fetches: list[Fetch] = []
        self.steal_rows: list[tuple[int, int, bool]] = []
        self.added_rows: list[tuple[int, int, int]] = []
        self.missing_rows: list[tuple[int, int, str, bool]] = []
        self.dropped: list[int] = []

    def take_scheduler(self) -> list[Message]:
        """The messages for the scheduler, which are then no longer here."""
        self.close_scheduler_rows()
        messages = self.scheduler
        self.scheduler = []
        return messages

    def take_executor(self) -> list[Message]:
        """The messages for the executor, which are then no longer here."""
        self.close_executor_rows()
        messages = self.executor
        self.executor = []
        return messages

    def take_fetches(self) -> list[Fetch]:
        """The fetches to start, which are then no longer here."""
        fetches = self.fetches
        self.fetches = []
        return fetches

    def is_empty(self) -> bool:
        """Whether nothing is to be sent or fetched."""
        return not (
            self.scheduler
            or self.executor
            or self.fetches
            or self.steal_rows
            or self.added_rows
            or self.missing_rows
            or self.dropped
        )

    def send_scheduler(self, message: Message) -> None:
        """A message for the scheduler, after every row of this turn so far."""
        self.close_scheduler_rows()
        self.scheduler.append(message)

    def send_executor(self, message: Message) -> None:
        """A message for the executor, after every value dropped so far."""
        self.close_executor_rows()
        self.executor.append(message)

    def forget_executor(self) -> None:
        """The executor that these messages were for is gone."""
        self.executor = []
        self.dropped = []

    def close_scheduler_rows(self) -> None:
        """Make messages of the rows collected for the scheduler."""
        if self.steal_rows:
            self.scheduler.append(StealReplies(*zip(*self.steal_rows, strict=True)))
            self.steal_rows = []
        if self.added_rows:
            self.scheduler.append(ReplicasAdded(*zip(*self.added_rows, strict=True)))
            self.added_rows = []
        if self.missing_rows:
            self.scheduler.append(ReplicasMissing(*zip(*self.missing_rows, strict=True)))
            self.missing_rows = []

    def close_executor_rows(self) -> None:
        """Make a message of the values to drop."""
        if self.dropped:
            self.executor.append(DropValues(tuple(self.dropped)))
            self.dropped = []

    def cancel_runs(self, runs: list[Run]) -> None:
        """Ask the executor to take runs out of its queue."""
        self.send_executor(CancelTasks(tuple([run.task_id for run in runs]), tuple([run.attempt for run in runs])))

    def hand_over(self, runs: list[Run], codes: dict[int, Payload], values: dict[int, Payload]) -> None:
        """Send runs to the executor, and before them the code and the small values that it hasn't got yet."""
        self.close_executor_rows()
        if codes:
            self.executor.append(Codes(tuple(codes), tuple(codes.values())))
        if values:
            self.executor.append(PutValues(tuple(values), tuple(values.values())))
        if runs:
            depend = False
            named = False
            for run in runs:
                if run.dependencies:
                    depend = True
                if run.executor:
                    named = True
            self.executor.append(
                RunTasks(
                    tuple([run.task_id for run in runs]),
                    tuple([run.attempt for run in runs]),
                    tuple([run.key for run in runs]),
                    tuple([run.code_id for run in runs]),
                    tuple([run.payload for run in runs]),
                    tuple([run.expected for run in runs]),
                    tuple([run.dependencies for run in runs]) if depend else (),
                    tuple([run.executor for run in runs]) if named else (),
                )
            )
