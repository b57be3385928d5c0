"""Who wants what: the tie between a client's future and a task.

Contents: want, unwant, cancel, retry.
"""

from __future__ import annotations

from gnomon.runtime.core.clients import ClientState
from gnomon.runtime.core.model import Model
from gnomon.runtime.core.outbox import Outbox
from gnomon.runtime.core.states import ERRED, FORGOTTEN, MEMORY, RELEASED
from gnomon.runtime.core.task import TaskState
from gnomon.runtime.core.transitions import demand, drop_wants, let_go, lose, set_state

__all__ = ["cancel", "retry", "unwant", "want"]


def want(outbox: Outbox, ts: TaskState, client: ClientState, future_id: int) -> None:
    """Tie a future to a task, and tell how the task stands if it is done. The caller demands it if it is released."""
    client.futures[future_id] = ts
    if ts.client is None:
        ts.client = client
        ts.future_id = future_id
    elif ts.more_wants is None:
        ts.more_wants = [(client, future_id)]
    else:
        ts.more_wants.append((client, future_id))
    if ts.state == MEMORY:
        outbox.to_client(client.client_id).done(future_id, ts.nbytes, ts.value)
    elif ts.error is not None:
        outbox.to_client(client.client_id).erred(future_id, ts.blame, ts.error)


def unwant(ts: TaskState, client: ClientState, future_id: int) -> None:
    """Untie a future that the caller has taken out of the client's futures."""
    more = ts.more_wants
    if ts.future_id == future_id and ts.client is client:
        if more is None:
            ts.client = None
            ts.future_id = 0
        else:
            ts.client, ts.future_id = more.pop(0)
    else:
        assert more is not None, ts
        more.remove((client, future_id))
    if more is not None and not more:
        ts.more_wants = None


def cancel(
    model: Model, outbox: Outbox, root: TaskState, client: ClientState, force: bool, reason: str, text: str
) -> None:
    """Withdraw a client's interest (with ``force`` everyone's) in a task, and in what is made from it.

    What somebody else still wants, or needs for what they want, goes on.
    """
    stack = [root]
    touched: dict[TaskState, None] = {}
    while stack:
        ts: TaskState = stack.pop()
        if ts in touched or ts.state == FORGOTTEN:
            continue
        touched[ts] = None
        ts.cancelled = True
        if force:
            drop_wants(outbox, ts, reason, text)
        else:
            _drop_wants_of(outbox, ts, client, reason, text)
        if ts.client is None:
            stack.extend(ts.dependents or ())
    for ts in reversed(list(touched)):
        if ts.client is None and ts in model.scattering:
            lose(model, outbox, ts)  # nobody else can bring it
        else:
            let_go(model, outbox, ts)


def _drop_wants_of(outbox: Outbox, ts: TaskState, client: ClientState, reason: str, text: str) -> None:
    """Take a task from one client, and tell it."""
    wants = [] if ts.client is None else [(ts.client, ts.future_id), *(ts.more_wants or ())]
    for owner, future_id in wants:
        if owner is client:
            del client.futures[future_id]
            unwant(ts, client, future_id)
            outbox.to_client(client.client_id).cancelled(future_id, reason, text)


def retry(model: Model, outbox: Outbox, root: TaskState) -> None:
    """Run an erred task again, with the erred tasks it needs, and the erred tasks that need any of them."""
    stack = [root]
    reset: list[TaskState] = []
    while stack:
        ts: TaskState = stack.pop()
        if ts.state != ERRED:
            continue
        set_state(model, ts, RELEASED)
        ts.error = None
        ts.blame = ""
        ts.retries = ts.options.retries
        ts.failures = 0
        ts.missing = 0
        outbox.tell_pending(ts)
        reset.append(ts)
        stack.extend(ts.dependencies)
        stack.extend(ts.dependents or ())
    for ts in reset:
        if ts.state == RELEASED and (ts.client is not None or ts.waiters):
            demand(model, outbox, ts)
    for ts in reset:
        let_go(model, outbox, ts)
