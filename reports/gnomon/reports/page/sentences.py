"""What a page says in sentences and single numbers: the header, notices, the closing line, what was recorded.

Contents: header, badges, empty, closing, LOOP_WORDS, loop_times, loop_line, reasons, instruments, ledgers.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from math import nan
from operator import add

from gnomon.reports.account import Account, percentages
from gnomon.reports.page import tables
from gnomon.reports.recording import TICKS, Ledger, Recording
from gnomon.reports.units import bytes_text, count_text, rate_text, time_text

__all__ = [
    "LOOP_WORDS", "badges", "closing", "empty", "header", "instruments", "ledgers", "loop_line", "loop_times",
    "reasons",
]  # fmt: skip

#: What the parts of the loop's budget are called, in the budget's order; then the coarse parts that series tell of.
LOOP_WORDS = {
    "idle": "Waiting for messages", "resting": "Resting: nothing to do, and nobody timed it",
    "read": "Reading: bytes into frames", "decode": "Decoding messages", "brain": "Transitions and placement",
    "shell": "Handing messages on", "encode": "Encoding messages", "write": "Writing to connections",
    "telemetry": "Keeping records", "requests": "Answering clients", "extensions": "Extensions",
    "agents": "Workers on the same loop", "monitors": "Monitors", "gc": "Collecting garbage",
    "other": "Other: the loop itself, receiving",
    "work": "Working: messages, transitions, placement", "waiting": "Waiting for messages",
}  # fmt: skip


def header(recording: Recording, result: Account) -> list[tuple[str, str, str]]:
    """The numbers of the first line: a name, the value and what it is."""
    busy = 100 * result.parts.busy / result.capacity if result.capacity else 0.0
    moved = sum(pair.nbytes for pair in recording.pairs)
    return [
        ("wall", time_text(recording.duration), "wall time"),
        ("workers", count_text(len(result.workers)), "worker" if len(result.workers) == 1 else "workers"),
        ("threads", count_text(result.threads), "thread" if result.threads == 1 else "threads"),
        ("busy", f"{busy:.1f} %", "busy in tasks"),
        ("tasks", count_text(result.tasks), "tasks run"),
        ("erred", count_text(result.erred), "erred"),
        ("rate", rate_text(result.tasks, recording.duration), "task rate"),
        ("moved", bytes_text(moved), "moved"),
        *([("loop", f"{100 * loop[0] / sum(loop):.1f} %", "loop busy")] if (loop := loop_times(recording)) else []),
    ]


def badges(recording: Recording, result: Account) -> list[str]:
    """What the recording lacks, in numbers, and that the block raised."""
    said = []
    if "raised" in recording.info:
        said.append(f"The block raised: {recording.info['raised'][:500]}")
    if recording.info.get("redacted"):
        said.append(str(recording.info["redacted"]))
    words = {
        "runs": "tasks: the others have no rectangles and no durations. Totals are complete.",
        "transfers": "transfers. Totals by pair are complete.",
        "errors": "errors are grouped; the others are only counted.",
        "logs": "log lines.",
        "workers": "workers: the others left long ago.",
        "series": "rows of measurements: the series have gaps.",
        "stalls": "stalls of event loops.",
        "demand": "changes of demand: idle time can't be told apart.",
        "task profiles": "deep profiles of tasks: the latest ones.",
        "keys": "keys: the names of the others were left out, their times are here.",
    }
    for name, ledger in recording.ledgers.items():
        if ledger.missed > 0:
            said.append(f"Details of {count_text(ledger.kept)} of {count_text(ledger.seen)} {words.get(name, name)}")
    said += recording.info.get("coarsened", ())
    if result.capacity and result.parts.unaccounted > 0.05 * result.capacity:
        share = result.parts.unaccounted / result.capacity
        said.append(f"{share:.1%} of the capacity is unaccounted: the details of runs in that time are gone.")
    if result.alongside > result.capacity // 200:
        said.append(f"{time_text(result.alongside)} of work ran alongside, beyond the workers' threads.")
    return said


def empty(recording: Recording, result: Account) -> str:
    """Why there is nothing to see, if so."""
    if not result.workers:
        return "No worker was there during this block, so no thread had time to give an account of."
    if not result.tasks:
        return (
            f"No task ended in this block ({time_text(recording.duration)}). Is the computing inside the `with`? "
            "Results that were there before are not computed again, and futures must be waited for inside the block."
        )
    return ""


def closing(result: Account) -> str:
    """The line that says that the account adds up."""
    in_unit = tables.scale(result.capacity)
    rest = result.parts.unaccounted
    known, unknown = in_unit.quanta([result.capacity - rest, rest])
    unit = in_unit.unit
    beside = ""
    if result.alongside:
        beside = f" Not in it: {time_text(result.alongside)} of work alongside, for which no thread was free."
    return (
        f"Parts {in_unit.text(known)} {unit} + unaccounted {in_unit.text(unknown)} {unit} = "
        f"capacity {in_unit.text(known + unknown)} {unit}.{beside}"
    )


def loop_times(recording: Recording) -> tuple[float, float, float] | None:
    """Seconds in which the scheduler's event loop worked, collected garbage and waited; None if nobody timed it."""
    if recording.loop:
        ticks = {part.name: part.ticks for part in recording.loop}
        waited, collected = ticks.get("idle", 0) + ticks.get("resting", 0), ticks.get("gc", 0)
        times = (sum(ticks.values()) - waited - collected, collected, waited)
        return (times[0] / TICKS, times[1] / TICKS, times[2] / TICKS) if sum(times) else None
    return _measured_loop_times(recording)


def _measured_loop_times(recording: Recording) -> tuple[float, float, float] | None:
    """The same from the rows of measurements, which are coarser."""
    series = recording.series
    none = array("d", [nan]) * len(series)
    work = collecting = waited = 0.0
    for worker, seconds, busy, collected in zip(
        series.workers, *(series.values.get(name, none) for name in ("seconds", "busy", "gc_seconds")), strict=True
    ):
        if worker == -1 and seconds == seconds and busy == busy:
            busy_seconds = busy * seconds / 100
            gc = min(collected, busy_seconds) if collected == collected else 0.0
            work += busy_seconds - gc
            collecting += gc
            waited += max(0.0, seconds - busy_seconds)
    return (work, collecting, waited) if work + collecting + waited > 0 else None


def loop_line(recording: Recording) -> str:
    """The budget of the scheduler's event loop in a sentence."""
    times = loop_times(recording)
    if times is None:
        return ""
    work, collecting, waited = percentages([round(seconds * TICKS) for seconds in times])
    return (
        f"The scheduler's event loop worked {work:.1f} % of its time, collected garbage {collecting:.1f} % and waited "
        f"for messages {waited:.1f} % (whole run)."
    )


def reasons(recording: Recording) -> dict[str, str]:
    """Why a part of the page has nothing to show, by kind of record."""
    short = f" The block took {time_text(recording.duration)}."
    watched = "series" in recording.ledgers
    return {
        "series": (
            "No process told of its processor, memory and event loop in this block: they do so with every heartbeat."
            + short
            if watched
            else "This recording holds no measurements of processes; the cluster did not make them."
        ),
        "stalls": (
            "Every event loop came round in time during this block."
            if watched
            else "This recording holds nothing of stalls; the cluster did not watch for them."
        ),
        "profiles": "This recording holds no profile.",
    }


def instruments(recording: Recording) -> list[tuple[str, str]]:
    """What the profilers did and cost: pairs of a name and a text."""
    series = recording.series
    own = [value for value in series.values.get("own_cpu", ()) if value == value]
    samples = [value for value in series.values.get("samples", ()) if value == value]
    missed = [value for value in series.values.get("samples_missed", ()) if value == value]
    if not len(series):
        return [("measurements", "none in this recording")]
    result = [("rows of measurements", count_text(len(series)))]
    if samples:
        result.append(
            ("samples of stacks", f"{count_text(round(sum(samples)))}, {count_text(round(sum(missed)))} missed")
        )
    for profile in recording.profiles:
        meta = profile["session"]["meta"]
        text = f"a sample every {time_text(float(meta['interval']) * TICKS)}, {count_text(int(meta['samples']))} taken"
        result.append((str(profile["name"]), f"{text}, {count_text(int(meta['missed']))} ticks missed"))
    if not recording.clocks:
        result.append(("clocks", "all times are the scheduler's; by how much workers' were corrected is not kept here"))
    if own:
        result.append(("processor time of all instruments", _share_of_a_core(sum(own), recording)))
    for name, words in _INSTRUMENTS.items():
        costs = [value for value in series.values.get(f"own_{name}", ()) if value == value]
        if costs:
            result.append((f"of that {words}", _share_of_a_core(sum(costs), recording)))
    return result


#: By the columns that tell their cost.
_INSTRUMENTS = {
    "sampler": "samplers",
    "loop": "monitors of event loops",
    "gc": "monitors of garbage collection",
    "gil": "monitors of the interpreter's lock",
    "system": "monitors of the system",
}


def _share_of_a_core(seconds: float, recording: Recording) -> str:
    share = seconds * TICKS / max(1, recording.duration)
    return f"{time_text(seconds * TICKS)} ({share:.2%} of one core)"


def ledgers(recording: Recording) -> list[tuple[str, Ledger, str]]:
    """By kind of record, what there was and what is here, and the span of time that the details cover."""
    runs, transfers = recording.runs, recording.transfers
    spans = {
        "runs": _span(runs.begins, runs.ends()),
        "transfers": _span(transfers.begins, list(map(add, transfers.begins, transfers.lengths))),
        "series": _span(recording.series.times, recording.series.times),
        "stalls": _span(
            [stall.begin for stall in recording.stalls], [stall.begin + stall.length for stall in recording.stalls]
        ),
        "demand": _span(recording.demand.times, recording.demand.times),
        "logs": _span([line.time for line in recording.logs], [line.time for line in recording.logs]),
    }
    return [(name, ledger, spans.get(name, "")) for name, ledger in recording.ledgers.items()]


def _span(begins: Sequence[int], ends: Sequence[int]) -> str:
    if not begins:
        return ""
    return f"{min(begins) / TICKS:,.2f} to {max(ends) / TICKS:,.2f} s"
