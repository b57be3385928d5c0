"""Workers that are to leave in good order: nothing new goes to them, and what they alone have goes elsewhere first.

A retiring worker gets no more tasks and no data. Tasks that it has not begun are asked back as by ``stealing``; what
runs may end. Values of which it holds the only copy are copied to the others, the emptiest first. ``advance`` is called
again and again and does what is left to do, so that it doesn't matter who dies meanwhile and which copies fail.

Contents: begin, advance, forget_recipient.
"""

from __future__ import annotations

from gnomon.runtime.core.model import Model
from gnomon.runtime.core.outbox import Outbox
from gnomon.runtime.core.task import TaskState
from gnomon.runtime.core.worker import WorkerState

__all__ = ["advance", "begin", "forget_recipient"]


def begin(model: Model, ws: WorkerState) -> None:
    """From now on a worker is given nothing."""
    if ws.retiring:
        return
    ws.retiring = True
    model.retiring[ws] = {}
    model.open.pop(ws, None)
    model.workers_version += 1  # who may run restricted tasks has changed


def advance(model: Model, outbox: Outbox, ws: WorkerState) -> int:
    """Do what can be done for a retiring worker to leave; returns how many tasks and values still keep it here.

    Tasks that left their thread don't: they may never end. Neither do values that nobody else can take.
    """
    asked = model.retiring[ws]
    others = [other for other in model.workers.values() if not other.retiring]
    if not others:
        return 0
    kept = sum(ws.worker_id in expected for expected in model.scattering.values())
    for ts in ws.processing:
        if ts.seceded:
            continue
        kept += 1
        if ts not in asked and not ts.thief:
            asked[ts] = ws
            ts.thief = ws.worker_id  # from which it goes to any other, for this one takes none
            model.moving[ts.task_id] = ts
            outbox.to_worker(ws.worker_id).steal(ts.task_id, ts.attempt)
    load = {other: other.nbytes for other in others}
    for ts, recipient in asked.items():
        if recipient in load and recipient not in ts.holders:
            load[recipient] += ts.nbytes
    for ts in ws.has_what:
        if ts.value is not None or any(not holder.retiring for holder in ts.holders):
            continue
        kept += 1
        if asked.get(ts) not in load and not _is_moved_by_another(model, ts, ws):
            recipient = min(load, key=lambda other: (load[other], other.worker_id))
            load[recipient] += ts.nbytes
            asked[ts] = recipient
            outbox.to_worker(recipient.worker_id).fetch(ts)
    return kept


def _is_moved_by_another(model: Model, ts: TaskState, ws: WorkerState) -> bool:
    """Whether of several retiring holders an earlier one sees to a value."""
    return next(holder for holder in ts.holders if holder in model.retiring) is not ws


def forget_recipient(model: Model, ts: TaskState | None, recipient: WorkerState) -> None:
    """A worker couldn't have a copy of a value; None: of any, for it is gone or has lost what it was told."""
    for asked in model.retiring.values():
        if ts is not None:
            if asked.get(ts) is recipient:
                del asked[ts]
        else:
            for other in [t for t, asked_from in asked.items() if asked_from is recipient]:
                del asked[other]
