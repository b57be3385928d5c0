"""Effects of the brain: what is to be sent, in order per destination, and the records of runs.

Rows for one destination that follow each other and are of one kind become one message; nothing is sent from here. The
builders of messages are in ``columns``.

Contents: Outbox, RunColumns.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from gnomon.runtime.core.columns import ClientMail, WorkerMail
from gnomon.runtime.core.task import TaskState
from gnomon.runtime.core.worker import WorkerState
from gnomon.runtime.messages import ErrorRecord, Key, Message

__all__ = ["Outbox", "RunColumns"]


class RunColumns(NamedTuple):
    """Accepted runs of one loop turn, one row each; ``timings`` has four doubles per row (see ``TasksFinished``).

    ``spans`` is empty if no run has one.
    """

    keys: list[Key]
    prefixes: list[str]
    worker_ids: array[int]
    threads: array[int]
    timings: array[float]
    nbytes: array[int]
    ok: array[int]
    cpus: Sequence[float] = ()
    spans: Sequence[tuple[str, ...]] = ()


class Outbox:
    """What a loop turn leaves to be done."""

    __slots__ = (
        "clients",
        "cpus",
        "keys",
        "nbytes",
        "ok",
        "prefixes",
        "spanned",
        "spans",
        "threads",
        "timings",
        "worker_ids",
        "workers",
    )

    def __init__(self) -> None:
        self.workers: dict[int, WorkerMail] = {}
        self.clients: dict[int, ClientMail] = {}
        self._fresh_records()

    def _fresh_records(self) -> None:
        self.keys: list[Key] = []
        self.prefixes: list[str] = []
        self.worker_ids: array[int] = array("q")
        self.threads: array[int] = array("q")
        self.timings: array[float] = array("d")
        self.nbytes: array[int] = array("q")
        self.ok: array[int] = array("b")
        self.cpus: array[float] = array("d")
        self.spans: list[tuple[str, ...]] = []
        self.spanned = False

    def to_worker(self, worker_id: int) -> WorkerMail:
        """The mail for a worker, to be appended to."""
        mail = self.workers.get(worker_id)
        if mail is None:
            mail = self.workers[worker_id] = WorkerMail()
        return mail

    def to_client(self, client_id: int) -> ClientMail:
        """The mail for a client, to be appended to."""
        mail = self.clients.get(client_id)
        if mail is None:
            mail = self.clients[client_id] = ClientMail()
        return mail

    def free(self, ws: WorkerState, task_id: int, attempt: int) -> None:
        """Let a worker drop what it has of a run."""
        self.to_worker(ws.worker_id).free(task_id, attempt)

    def tell(self, ts: TaskState) -> None:
        """Tell everyone who wants a task that it is in memory."""
        if ts.client is not None:
            self.to_client(ts.client.client_id).done(ts.future_id, ts.nbytes, ts.value)
            if ts.more_wants is not None:
                for client, future_id in ts.more_wants:
                    self.to_client(client.client_id).done(future_id, ts.nbytes, ts.value)

    def tell_erred(self, ts: TaskState, error: ErrorRecord) -> None:
        """Tell everyone who wants a task that it failed."""
        if ts.client is not None:
            self.to_client(ts.client.client_id).erred(ts.future_id, ts.blame, error)
            if ts.more_wants is not None:
                for client, future_id in ts.more_wants:
                    self.to_client(client.client_id).erred(future_id, ts.blame, error)

    def tell_pending(self, ts: TaskState) -> None:
        """Tell everyone who wants a task that was done or erred that it is being computed again."""
        if ts.client is not None:
            self.to_client(ts.client.client_id).pending(ts.future_id)
            if ts.more_wants is not None:
                for client, future_id in ts.more_wants:
                    self.to_client(client.client_id).pending(future_id)

    def record_run(self, ts: TaskState) -> None:
        """Begin the record of an accepted run; ``record_rows`` adds the rest, for all of a message."""
        self.keys.append(ts.key)
        self.prefixes.append(ts.group.prefix.name)
        span = ts.options.span
        self.spans.append(span)
        if span:
            self.spanned = True

    def record_rows(
        self,
        worker_id: int,
        threads: array[int],
        timings: array[float],
        cpus: array[float],
        nbytes: array[int],
        ok: int,
        skipped: list[int],
    ) -> None:
        """The columns of a message whose rows, but for those skipped, were given to ``record_run``."""
        if skipped:
            kept = [i for i in range(len(threads)) if i not in skipped]
            threads = array("q", [threads[i] for i in kept])
            timings = array("d", [timings[4 * i + k] for i in kept for k in range(4)])
            cpus = array("d", [cpus[i] for i in kept])
            nbytes = array("q", [nbytes[i] for i in kept])
        n = len(threads)
        self.worker_ids.extend(array("q", [worker_id]) * n)
        self.ok.extend(array("b", [ok]) * n)
        self.threads.extend(threads)
        self.timings.extend(timings)
        self.cpus.extend(cpus)
        self.nbytes.extend(nbytes)

    def drop_worker(self, worker_id: int) -> None:
        """A worker is gone; nothing can be sent to it."""
        self.workers.pop(worker_id, None)

    def drop_client(self, client_id: int) -> None:
        """A client is gone; nothing can be sent to it."""
        self.clients.pop(client_id, None)

    def drain_workers(self) -> list[tuple[int, list[Message]]]:
        """Take the messages for workers, by worker id."""
        if not self.workers:
            return []
        mails = self.workers
        self.workers = {}
        return [(worker_id, mail.messages()) for worker_id, mail in mails.items()]

    def drain_clients(self) -> list[tuple[int, list[Message]]]:
        """Take the messages for clients, by client id."""
        if not self.clients:
            return []
        mails = self.clients
        self.clients = {}
        return [(client_id, mail.messages()) for client_id, mail in mails.items()]

    def take_records(self) -> RunColumns | None:
        """Take the records of the runs that were accepted since the last time; None if there are none."""
        if not self.keys:
            return None
        columns = RunColumns(
            self.keys,
            self.prefixes,
            self.worker_ids,
            self.threads,
            self.timings,
            self.nbytes,
            self.ok,
            self.cpus,
            self.spans if self.spanned else (),
        )
        self._fresh_records()
        return columns

    def is_empty(self) -> bool:
        """Whether nothing is left to be sent or recorded."""
        return not self.workers and not self.clients and not self.keys
