"""Moving tasks that have not begun from workers with much to do to workers with idle threads.

In two steps, so that no task ever runs twice for it: the scheduler asks the worker for a task back (``StealTasks``),
and only what comes back (``StealReplies``) is given to the other. A task is asked for if it would end clearly sooner:
the difference of the backlogs must exceed its run, the transfer of what it needs, and the latency of asking; very
short tasks are left alone unless the difference is large. The queue needs none of this: it is handed out late anyway.

Contents: balance, on_reply.
"""

from __future__ import annotations

from gnomon.runtime.core.model import Model
from gnomon.runtime.core.outbox import Outbox
from gnomon.runtime.core.states import MEMORY, WAITING
from gnomon.runtime.core.task import TaskState
from gnomon.runtime.core.transitions import assign, leave_worker, requeue, set_state
from gnomon.runtime.core.worker import WorkerState

__all__ = ["balance", "on_reply"]

#: Seconds below which a task is worth moving only for a large difference, of so many latencies.
_SHORT = 0.001
_LARGE = 10
#: Tasks of one worker that one call looks at.
_LOOK = 500
#: Seconds without an ended run after which a worker's backlog counts as at least that long.
_STUCK = 0.2


def balance(model: Model, outbox: Outbox, now: float) -> None:
    """Ask for tasks back where that helps. Called about every 100 ms while ``model.stealing_useful``."""
    model.now = now
    idle: list[WorkerState] = []
    busy: list[tuple[float, int, WorkerState]] = []
    working = False
    for ws in model.workers.values():
        working = working or ws.active > 0
        if ws.active < ws.nthreads and not ws.retiring:
            idle.append(ws)
        elif ws.active > ws.nthreads:
            busy.append((-_backlog(ws, now), ws.worker_id, ws))
    model.stealing_useful = working and len(model.workers) > 1
    if not idle or not busy:
        return
    busy.sort()
    loads: dict[WorkerState, float] = {ws: ws.occupancy / ws.nthreads for ws in idle}
    for ts in model.moving.values():
        thief = model.workers.get(ts.thief)
        if thief in loads:
            loads[thief] += ts.expected / thief.nthreads
    for _, _, victim in busy:
        _relieve(model, outbox, victim, loads)


def _backlog(ws: WorkerState, now: float) -> float:
    """Seconds until a task given to a worker now would begin; a worker where nothing ends is stuck behind long runs."""
    stuck = now - ws.last_done
    load = ws.occupancy / ws.nthreads
    return max(load, stuck) if stuck > _STUCK else load


def _relieve(model: Model, outbox: Outbox, victim: WorkerState, loads: dict[WorkerState, float]) -> None:
    """Ask one worker for tasks, the last given first, each for the thief with the least to do."""
    load = _backlog(victim, model.now)
    spare = victim.active - victim.nthreads
    latency = model.settings.steal_latency
    looked = 0
    for ts in reversed(victim.processing):
        looked += 1
        if looked > _LOOK or spare <= 0:
            break
        if ts.seceded:
            continue
        if ts.thief:
            spare -= 1
            load -= ts.expected / victim.nthreads
            continue
        thief = _thief_for(model, ts, loads)
        if thief is None:
            continue
        gain = load - loads[thief]
        if ts.expected < _SHORT and gain < _LARGE * latency:
            continue
        if gain <= ts.expected / victim.nthreads + _transfer_seconds(model, ts, thief) + latency:
            continue
        ts.thief = thief.worker_id
        model.moving[ts.task_id] = ts
        outbox.to_worker(victim.worker_id).steal(ts.task_id, ts.attempt)
        spare -= 1
        load -= ts.expected / victim.nthreads
        loads[thief] += ts.expected / thief.nthreads


def _thief_for(model: Model, ts: TaskState, loads: dict[WorkerState, float]) -> WorkerState | None:
    """The eligible thief with the least to do."""
    best = None
    eligible = model.eligible(ts.options) if ts.options.restricted else None
    for ws, load in loads.items():
        if (eligible is None or ws in eligible) and (best is None or load < loads[best]):
            best = ws
    return best


def _transfer_seconds(model: Model, ts: TaskState, ws: WorkerState) -> float:
    """Time to bring to a worker what it lacks of a task's inputs."""
    missing = 0
    for dep in ts.dependencies:
        if dep.value is None and dep not in ws.has_what:
            missing += dep.nbytes
    return missing / model.bandwidth


def on_reply(model: Model, outbox: Outbox, ws: WorkerState, ts: TaskState, given: bool) -> None:
    """A worker answered for a task, its current attempt, that it was asked to give back."""
    thief = model.workers.get(ts.thief)
    if not given:
        ts.thief = 0
        model.moving.pop(ts.task_id, None)
        return
    leave_worker(model, ts)
    if thief is None or not _may_run(model, ts, thief) or not _inputs_there(ts):
        requeue(model, outbox, ts)
        return
    set_state(model, ts, WAITING)
    ts.waiting_on = 0
    assign(model, outbox, ts, thief)


def _may_run(model: Model, ts: TaskState, ws: WorkerState) -> bool:
    return not ws.retiring and (not ts.options.restricted or ws in model.eligible(ts.options))


def _inputs_there(ts: TaskState) -> bool:
    return all(dep.state == MEMORY for dep in ts.dependencies)
