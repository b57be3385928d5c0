"""Workers: all of them, and one with its threads, memory, transfers, call stacks and events.

Contents: workers, one_worker, call_stacks, run_at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnomon.reports.dashboard.context import Context, DashboardUnavailable
from gnomon.reports.dashboard.model import Model
from gnomon.reports.dashboard.pages import panels
from gnomon.reports.dashboard.pages.overview import NO_WORKER
from gnomon.reports.dashboard.pages.panels import Panel
from gnomon.reports.dashboard.pages.view import View
from gnomon.reports.dashboard.underway import LIVE_PARTS
from gnomon.reports.page import tables
from gnomon.reports.recording import TICKS
from gnomon.reports.units import bytes_text, count_text, cut, time_text

__all__ = ["call_stacks", "one_worker", "run_at", "workers"]


async def workers(context: Context, view: View) -> list[Panel]:
    """The workers that are there, and those that left."""
    model = context.model
    return [_present(model, view), _departed(model, view)]


def _percent(value: float) -> Panel:
    return panels.cell(f"{value:.0f} %", value) if value == value else panels.cell("-", -1.0, "not measured")


def _memory_bar(memory: float, limit: float) -> Panel:
    if memory != memory or not limit:
        return panels.cell("-", -1.0, "no limit is set" if memory == memory else "not measured")
    share = min(100.0, 100 * memory / limit)
    words = f"{bytes_text(memory)} of {bytes_text(limit)}"
    return panels.cell("", share, words, bars=[("meter-memory", share, words)])


def _present(model: Model, view: View) -> Panel:
    """Every worker with its load now, and its time in the window."""
    now = model.counters
    ran = {} if now is None else now.worker_totals
    account = view.account(model)
    shares = {each.worker.worker_id: each for each in account.workers}
    rows = []
    for each in () if now is None else now.workers.values():
        told, underway = shares.get(each.id), account.underway_of.get(each.id, 0)
        bars = []
        if told is not None and told.capacity:
            amounts = [underway if part == "underway" else getattr(told.parts, part) for part in LIVE_PARTS]
            bars = [
                (f"part-{part}", 100 * ticks / told.capacity, f"{part} {100 * ticks / told.capacity:.1f} %")
                for part, ticks in zip(LIVE_PARTS, amounts, strict=True)
                if ticks
            ]
        totals = ran.get(each.id)
        rows.append(
            [
                panels.of_worker(each.name or each.address),
                panels.cell(cut(each.address, 40), None, each.address),
                panels.count(each.nthreads),
                panels.count(each.processing),
                panels.count(each.in_memory),
                panels.count(totals.tasks if totals is not None else 0),
                panels.count(totals.erred if totals is not None else 0),
                _percent(each.cpu),
                panels.size(each.memory),
                _memory_bar(each.memory, each.memory_limit or 0),
                panels.cell(
                    "", 100 * (told.parts.busy + underway) / told.capacity if told and told.capacity else 0.0, bars=bars
                ),
                panels.cell(time_text(max(0.0, model.now - each.last_seen) * TICKS), model.now - each.last_seen),
            ]
        )  # fmt: skip
    columns = (
        ("worker", False), ("address", False), ("threads", True), ("processing", True), ("results", True),
        ("tasks run", True), ("erred", True), ("CPU, of one core", True), ("memory", True), ("of its limit", False),
        (f"time, {view.words(model)}", False), ("last heard", True),
    )  # fmt: skip
    note = "CPU is of the worker's processes together, 100 % = one core. Times as in the account of the first page."
    return panels.table(view, "workers", columns, rows, caption="Workers that are there", note=note, empty=NO_WORKER)


def _departed(model: Model, view: View) -> Panel:
    rows = [
        [
            panels.cell(cut(panels.label_of(each.name or each.address), 36), None, each.name or each.address),
            panels.cell(cut(each.address, 40), None, each.address),
            panels.count(each.nthreads),
            panels.cell(f"{each.joined - model.begin:,.1f} s", each.joined),
            panels.cell(f"{each.left - model.begin:,.1f} s", each.left),
            panels.cell(cut(each.reason, 80), None, each.reason),
        ]
        for each in model.departed
    ]
    columns = (("worker", False), ("address", False), ("threads", True), ("joined at", True), ("left at", True),
               ("why", False))  # fmt: skip
    return panels.table(view, "departed", columns, rows, caption="Workers that left", empty="No worker has left.")


async def one_worker(context: Context, view: View, name: str) -> list[Panel]:
    """One worker, by name or address."""
    model = context.model
    now = model.counters
    found = next(
        (each for each in (now.workers.values() if now else ()) if name in (each.name, each.address)),
        None,
    )  # fmt: skip
    if found is None:
        gone = next((each for each in model.departed if name in (each.name, each.address)), None)
        why = f"It left at {gone.left - model.begin:,.1f} s: {gone.reason}." if gone else "No worker has this name."
        return [
            panels.text("worker", f"{panels.label_of(cut(name, 60))} is not there. {why} The table of workers has all.")
        ]
    recording = model.recording(*view.window(model))
    row = next((at for at, each in enumerate(recording.workers) if each.worker_id == found.id), -1)
    memory = bytes_text(found.memory) if found.memory == found.memory else "-"
    facts = panels.strip(
        "worker",
        [
            ("threads", count_text(found.nthreads), "thread" if found.nthreads == 1 else "threads"),
            ("processing", count_text(found.processing), "processing"),
            ("in-memory", count_text(found.in_memory), "results"),
            ("nbytes", bytes_text(found.nbytes), "size of results"),
            ("cpu", f"{found.cpu:.0f} %" if found.cpu == found.cpu else "-", "CPU, of one core"),
            ("memory", memory, "memory"),
            ("limit", bytes_text(found.memory_limit) if found.memory_limit else "none", "memory limit"),
            ("pid", str(found.pid or "-"), "process"),
            ("heard", time_text(max(0.0, model.now - found.last_seen) * TICKS), "since last heard"),
        ],
    )
    pairs = [pair for pair in recording.pairs if found.id in (pair.from_id, pair.to_id)]
    recording.pairs = pairs
    label = panels.label_of(found.name or found.address)
    events = [
        f"{each.time - model.begin:>10,.2f} s  {each.text}"
        for each in model.events
        if found.address in each.text or f"{label} " in each.text
    ]
    whole = "Fetches of the whole run."
    pairs_table = tables.pair_table(recording)._replace(
        caption="What it fetched, and what was fetched from it", note=whole
    )
    return [
        facts,
        _threads(model, view, recording, row),
        panels.told_table(view, pairs_table, empty="It fetched nothing, and nothing was fetched from it."),
        panels.text("stacks", "Call stacks are asked of the worker when you click.", "note"),
        panels.lines("worker-events", events[-100:], empty="Nothing but heartbeats was heard of it."),
    ]


def _threads(model: Model, view: View, recording: Any, row: int) -> Panel:
    """The worker's threads: what each ran in the window, and its newest task."""
    runs, window = recording.runs, max(1, recording.duration)
    threads: dict[int, list[int]] = {}
    for at, (worker, thread) in enumerate(zip(runs.workers, runs.threads, strict=True)):
        if worker == row:
            threads.setdefault(thread, []).append(at)
    rows = []
    for thread, ran in sorted(threads.items()):
        busy = sum(min(runs.decodes[at] + runs.computes[at] + runs.encodes[at], window) for at in ran)
        newest = max(ran, key=lambda at: runs.begins[at])
        share = min(100.0, 100 * busy / window)
        rows.append(
            [
                panels.count(thread),
                panels.count(len(ran)),
                panels.cell(f"{share:.1f} %", share),
                panels.cell("", share, bars=[("part-compute", share, f"busy {share:.1f} %")]),
                panels.cell(cut(runs.keys[newest], 70), None, runs.keys[newest]),
            ]
        )
    columns = (("thread", True), ("tasks", True), ("busy", True), ("", False), ("newest task", False))
    return panels.table(view, "threads", columns, rows, caption=f"Threads, {view.words(model)}",
                        empty="None of its threads ended a task in this window.")  # fmt: skip


async def call_stacks(context: Context, worker: str) -> Panel:
    """What the tasks of a worker are at, asked now."""
    now = context.model.counters
    found = next((each for each in (now.workers.values() if now else ()) if worker in (each.name, each.address)), None)
    if found is None:
        return panels.text("stacks", "This worker is not there.", "notice")
    try:
        answer = await context.request("call_stack", keys=None)
    except DashboardUnavailable as exc:
        return panels.text("stacks", f"The worker could not be asked: {exc}", "notice")
    said: list[str] = []
    for key, stack in answer.get(found.address, ()):
        said += [f"{key}", *(f"    {line}" for line in _stack_lines(stack)), ""]
    return panels.lines("stacks", said, empty="No task was running on this worker when it was asked.")


def _stack_lines(stack: Any) -> list[str]:
    if isinstance(stack, str):
        return stack.rstrip().splitlines()
    return [
        line
        for frame in stack
        for line in (frame if isinstance(frame, str) else " ".join(map(str, frame))).rstrip().splitlines()
    ]


def run_at(context: Context, view: View, query: Mapping[str, list[bytes]]) -> Panel:
    """The run that a thread of a worker was at, at a time of the run; for who points at the task stream."""
    model = context.model
    try:
        at, worker, thread = (float(query[name][-1]) for name in ("at", "worker", "thread"))
    except (KeyError, ValueError):
        return panels.text("run", "")
    recording = model.recording(model.begin + at - 1e-4, model.begin + at + 1e-4)
    runs = recording.runs
    for row, (of, on) in enumerate(zip(runs.workers, runs.threads, strict=True)):
        if on == thread and of >= 0 and recording.workers[of].worker_id == worker:
            took = runs.decodes[row] + runs.computes[row] + runs.encodes[row]
            words = f"{cut(runs.keys[row], 120)}: took {time_text(took)} on {recording.workers[of].label}"
            return panels.text("run", words + ("" if runs.ok[row] else ", raised"))
    return panels.text("run", "")
