"""The cluster as Prometheus metrics: scheduler and each worker. Names, labels and meanings stand in docs/dashboard.md.

Contents: exposition, CONTENT_TYPE.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from gnomon.reports.dashboard.context import Context
from gnomon.reports.dashboard.counters import Counters
from gnomon.reports.dashboard.model import Model
from gnomon.reports.recording import TICKS

__all__ = ["CONTENT_TYPE", "exposition"]

CONTENT_TYPE = CONTENT_TYPE_LATEST

#: Columns of the scheduler's own measurements, and the metrics they become; the last known values are told.
_SCHEDULER_SERIES = (
    ("cpu", "gnomon_scheduler_cpu_percent", "Processor use of the scheduler, percent of one processor"),
    ("memory", "gnomon_scheduler_memory_bytes", "Resident memory of the scheduler"),
    ("busy", "gnomon_scheduler_loop_busy_percent", "Share of the time that the scheduler's event loop was not waiting"),
    ("lag_p99", "gnomon_scheduler_loop_lag_p99_seconds", "Lag of the scheduler's event loop, 99 of 100 are below"),
)


class _Collector:
    """Gives the metrics of one moment."""

    def __init__(self, context: Context, age: float) -> None:
        self._context = context
        self._age = age

    def collect(self) -> Iterator[Metric]:
        """The metrics."""
        model = self._context.model
        yield GaugeMetricFamily("gnomon_up", "Whether the scheduler answers", value=float(model.connected))
        if isfinite(self._age):
            yield GaugeMetricFamily("gnomon_data_age_seconds", "Age of all that follows", value=self._age)
        if model.counters is not None:
            yield from _scheduler(model, model.counters)
            yield from _prefixes(model.counters)
            yield from _workers(model.counters)
        yield from _dashboard(self._context)


def _scheduler(model: Model, counters: Counters) -> Iterator[Metric]:
    tasks = GaugeMetricFamily("gnomon_tasks", "Living tasks by state", labels=["state"])
    for state, count in counters.states.items():
        tasks.add_metric([state], count)
    yield tasks
    for name, text, value in (
        ("workers", "Workers that are there", len(counters.workers)),
        ("threads", "Threads of all workers", counters.total_threads),
        ("clients", "Clients that are connected, dashboards not counted", counters.clients),
        ("tasks_queued", "Tasks that wait for a worker with room", counters.queued),
        ("tasks_no_worker", "Tasks that no worker may run", counters.no_worker),
        ("start_time_seconds", "When the scheduler began, in seconds since the epoch", model.started),
    ):
        yield GaugeMetricFamily(f"gnomon_scheduler_{name}", text, value=float(value))
    errors = CounterMetricFamily("gnomon_scheduler_errors", "Runs that failed", value=float(model.errors_seen))
    yield errors
    series = model.scheduler_series()
    for column, name, text in _SCHEDULER_SERIES:
        measured = series.get(column)
        if measured is not None and measured == measured:
            yield GaugeMetricFamily(name, text, value=measured)
    bytes_ = CounterMetricFamily(
        "gnomon_transfer_bytes", "Bytes that workers fetched from each other", labels=["transport"]
    )
    fetches = CounterMetricFamily("gnomon_transfers", "Fetches of workers from each other", labels=["transport"])
    for transport in sorted({row[2] for row in model.pairs}):
        rows = [row for row in model.pairs if row[2] == transport]
        bytes_.add_metric([transport], sum(row[4] for row in rows))
        fetches.add_metric([transport], sum(row[3] for row in rows))
    yield bytes_
    yield fetches


def _prefixes(counters: Counters) -> Iterator[Metric]:
    label = ["prefix"]
    runs = CounterMetricFamily("gnomon_runs", "Runs of tasks that ended", labels=label)
    failed = CounterMetricFamily("gnomon_runs_failed", "Runs of tasks that raised", labels=label)
    result = CounterMetricFamily("gnomon_result_bytes", "Bytes of results", labels=label)
    seconds = CounterMetricFamily(
        "gnomon_run_seconds", "Seconds of threads in runs, by part", labels=["prefix", "part"]
    )
    for prefix, totals in counters.totals.items():
        runs.add_metric([prefix], totals.tasks)
        failed.add_metric([prefix], totals.erred)
        result.add_metric([prefix], totals.nbytes)
        for part in ("decode", "compute", "encode"):
            seconds.add_metric([prefix, part], getattr(totals, part) / TICKS)
    yield from (runs, failed, result, seconds)
    living = GaugeMetricFamily("gnomon_prefix_tasks", "Living tasks by prefix and state", labels=["prefix", "state"])
    for prefix, states in counters.prefixes.items():
        for state, count in states.items():
            if count:
                living.add_metric([prefix, state], count)
    yield living


def _workers(counters: Counters) -> Iterator[Metric]:
    label = ["worker", "host"]
    gauges: list[tuple[Metric, Any]] = [
        (GaugeMetricFamily(f"gnomon_worker_{name}", text, labels=label), read)
        for name, text, read in (
            ("threads", "Threads that run tasks", lambda w: w.nthreads),
            ("processing", "Tasks that the worker was given", lambda w: w.processing),
            ("results", "Results that the worker holds", lambda w: w.in_memory),
            ("result_bytes", "Bytes of results that the worker holds", lambda w: w.nbytes),
            ("occupancy_seconds", "Expected seconds of the work that the worker was given", lambda w: w.occupancy),
            ("memory_bytes", "Resident memory of the worker's processes", lambda w: w.memory),
            ("memory_limit_bytes", "Memory that the worker may use; 0: no limit", lambda w: w.memory_limit),
            ("cpu_percent", "Processor use of the tasks' process, percent of one processor", lambda w: w.cpu),
            ("last_seen_seconds", "When the worker was last heard, in seconds since the epoch", lambda w: w.last_seen),
        )
    ]
    runs = CounterMetricFamily("gnomon_worker_runs", "Runs of tasks that ended on the worker", labels=label)
    seconds = CounterMetricFamily("gnomon_worker_run_seconds", "Seconds of threads in runs", labels=label)
    totals = counters.worker_totals
    for worker in counters.workers.values():
        labels = [worker.name, worker.host]
        for family, read in gauges:
            value = float(read(worker))
            if value == value:
                family.add_metric(labels, value)  # type: ignore[attr-defined]
        total = totals.get(worker.id)
        runs.add_metric(labels, total.tasks if total else 0)
        seconds.add_metric(labels, (total.decode + total.compute + total.encode) / TICKS if total else 0.0)
    yield from (family for family, _ in gauges)
    yield runs
    yield seconds


def _dashboard(context: Context) -> Iterator[Metric]:
    numbers = context.statistics
    yield GaugeMetricFamily("gnomon_dashboard_views", "Views that are open in browsers", value=numbers["looks"])
    for name, text in (
        ("requests", "Questions of the dashboard to the scheduler"),
        ("connections", "Connections that the dashboard made to the scheduler"),
        ("skipped", "Updates that a slow or hidden view was not sent"),
    ):
        yield CounterMetricFamily(f"gnomon_dashboard_{name}", text, value=numbers[name])
    text = "Seconds of the scheduler's time that the dashboard's questions took"
    yield CounterMetricFamily("gnomon_dashboard_scheduler_seconds", text, value=numbers["scheduler_cost"])


def exposition(context: Context, age: float) -> bytes:
    """All metrics in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(context, age))
    return generate_latest(registry)
