"""What must hold between any two events. For tests; costs a walk over the whole model."""

from __future__ import annotations

from gnomon.runtime.worker.state import states
from gnomon.runtime.worker.state.model import WorkerModel
from gnomon.runtime.worker.state.records import Run, Value

__all__ = ["check_all"]


def check_all(model: WorkerModel) -> None:
    """Raises AssertionError, with the story of a task concerned, if the model contradicts itself."""
    for task_id, run in model.runs.items():
        _check(model, task_id, run.task_id == task_id and not run.freed, "a current run under another's id, or freed")
        _check_run(model, run)
    for (task_id, attempt), run in model.freed.items():
        ok = run.task_id == task_id and run.attempt == attempt and run.freed
        _check(
            model, task_id, ok and run.state in (states.EXECUTING, states.SECEDED), "a freed run not with the executor"
        )
    for task_id, value in model.values.items():
        _check(model, task_id, value.task_id == task_id, "a value under another's id")
        _check_value(model, value)
    _check_sums(model)
    _check_flights(model)
    if not model.ready:
        handed = [r for r in model.runs.values() if r.state in (states.EXECUTING, states.SECEDED)]
        assert not handed, f"runs handed to no executor: {handed}"
        assert not model.freed, "freed runs remembered without an executor"
        assert not model.sent_codes, "code counted as sent to no executor"


def _check(model: WorkerModel, task_id: int, holds: bool, what: str) -> None:
    assert holds, f"task {task_id}: {what}; its story: {model.story(task_id)}"


def _check_run(model: WorkerModel, run: Run) -> None:
    absent = 0
    for dep in dict.fromkeys(run.dependencies):
        value = model.values.get(dep)
        if value is None:
            raise AssertionError(
                f"task {run.task_id}: dependency {dep} is unknown; its story: {model.story(run.task_id)}"
            )
        ours = value.dependents is not None and value.dependents.get(run.task_id) is run
        _check(model, run.task_id, ours, f"dependency {dep} doesn't know of it")
        absent += value.state != states.MEMORY
        if run.state == states.EXECUTING:
            _check(model, run.task_id, value.stored, f"handed over without dependency {dep}")
    _check(model, run.task_id, absent == run.absent, f"counts {run.absent} absent dependencies, {absent} are")
    _check(model, run.task_id, (run.state == states.WAITING) == (absent > 0), f"{run.state} with {absent} absent")
    if run.state == states.READY:
        _check(model, run.task_id, any(e[2] is run for e in run.pool.ready), "ready, but not in the heap")
    if run.state == states.CONSTRAINED:
        heap = run.pool.constrained.get(run.resources, [])
        _check(model, run.task_id, any(e[2] is run for e in heap), "constrained, but not in the heap")
    if run.asked:
        listed = any(r is run for r in model.asked) or any(r is run for r in model.to_cancel)
        _check(model, run.task_id, listed, "asked back, but not on the list")
    _check(model, run.task_id, run.asked or not run.stealing, "to be stolen, but not asked back")


def _check_value(model: WorkerModel, value: Value) -> None:
    task_id = value.task_id
    for dependent, run in (value.dependents or {}).items():
        _check(model, task_id, model.runs.get(dependent) is run, f"dependent {dependent} is no current run")
    _check(model, task_id, bool(value.held or value.wanted or value.dependents), "kept for nobody")
    if value.state == states.MEMORY:
        _check(model, task_id, value.payload is not None or value.stored, "in memory, but nowhere")
        return
    _check(model, task_id, not value.held, "held, but not in memory")
    if value.state == states.FLIGHT:
        _check(model, task_id, task_id in model.in_flight, "in flight, but in no flight")
    elif value.state == states.FETCH:
        _check(model, task_id, bool(value.holders), "to be fetched from nobody")
        queued = all(any(e[2] is value for e in model.queues.get(h, ())) for h in value.holders or ())
        _check(model, task_id, queued or task_id in model.in_flight, "to be fetched, but not queued")
    else:
        _check(model, task_id, value.state == states.MISSING and not value.holders, "missing, but with holders")


def _check_sums(model: WorkerModel) -> None:
    """Slots and resources, counted again from scratch."""
    handed = dict.fromkeys(model.pools, 0)
    work = dict.fromkeys(model.pools, 0.0)
    taken = dict.fromkeys(model.available, 0.0)
    for run in [*model.runs.values(), *model.freed.values()]:
        if run.state == states.EXECUTING:
            handed[run.pool.name] += 1
            work[run.pool.name] += run.expected
        if run.state in (states.EXECUTING, states.SECEDED):
            for name, amount in run.resources:
                taken[name] += amount
    for name, pool in model.pools.items():
        assert pool.handed == handed[name], f"pool {name!r} counts {pool.handed} handed over, {handed[name]} are"
        assert abs(pool.work - work[name]) < 1e-6, f"pool {name!r} counts {pool.work} s of work, {work[name]} are"
    for name, total in dict(model.settings.resources).items():
        left = model.available[name]
        assert left > -1e-6, f"resource {name} is overdrawn: {left}"
        assert abs(total - taken[name] - left) < 1e-6, f"resource {name}: {left} of {total} left, {taken[name]} taken"


def _check_flights(model: WorkerModel) -> None:
    rows = 0
    for holder, flight in model.flights.items():
        assert flight.holder == holder, f"a flight from {flight.holder} stands under {holder}"
        assert flight.rows, f"an empty flight from {holder}"
        for task_id in flight.rows:
            _check(model, task_id, model.in_flight.get(task_id) is flight, "flown by two flights")
        rows += len(flight.rows)
    assert rows == len(model.in_flight), "values in flight without a flight"
    assert len(model.flights) <= model.settings.fetch_concurrency, "too many fetches at once"
    assert sum(model.cancel_batches) == len(model.asked), "open cancellations don't add up"
