"""The tables of a page: plain cells with what they sort by, made from a recording and its account.

Contents: Cell, Table, and one function per table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

from gnomon.reports.account import PARTS, Account, Parts, apportion, percentages
from gnomon.reports.durations import durations, slowest
from gnomon.reports.recording import TICKS, Recording, Worker
from gnomon.reports.units import bytes_text, count_text, cut, time_text

__all__ = [
    "PART_WORDS",
    "Cell",
    "Table",
    "account_table",
    "clock_table",
    "filter_by",
    "pair_table",
    "part_words",
    "prefix_share_table",
    "prefix_table",
    "region_table",
    "slowest_table",
    "span_table",
    "worker_share_table",
    "worker_table",
]

#: What each part of a thread's time is called, and means.
PART_WORDS = {
    "compute": ("Computing", "your code in tasks, on the processor"),
    "offcpu": ("Waiting in tasks", "your code in tasks, off the processor: input and output, locks, sleep, the GIL"),
    "decode": ("Decoding", "unpickling functions and arguments, on the task's thread"),
    "encode": ("Encoding", "pickling results, on the task's thread"),
    "transfer": ("Waiting for data", "no task on the thread while its worker fetched dependencies"),
    "handover": ("Handing over", "no task on the thread while its worker had one ready to start"),
    "scheduler": ("Waiting for scheduler", "no task on the thread while tasks waited there, or were on their way"),
    "between": ("Between tasks", "other gaps between two tasks: nothing ready, or the next one on its way"),
    "idle": ("Idle", "nothing to do: no task that could run had been asked for"),
    "unaccounted": ("Unaccounted", "the records do not tell"),
}

#: What some parts mean where finer ones were not measured.
_COARSER = {
    "compute": ("offcpu", "your code, inside tasks, whether on the processor or waiting"),
    "idle": ("scheduler", "before a thread's first task and after its last"),
}


def part_words(name: str, account: Account) -> tuple[str, str]:
    """What a part is called, and what it means in this account."""
    finer, meaning = _COARSER.get(name, ("", ""))
    return (PART_WORDS[name][0], meaning) if finer in account.unmeasured else PART_WORDS[name]


#: Rows of the tables on the summary; the rest is one row.
_TOP = 10

_UNMEASURED = "not measured in this recording"

#: Rows of the long tables. What is left out is said below them.
_ROWS = 200


class Cell(NamedTuple):
    """A cell: its text, what it sorts by (None: the text), a full text on hover, a colour slot, bars in
    percent, and what a click on it filters by, as the page's hash has it.
    """

    text: str
    value: float | None = None
    title: str = ""
    slot: int = -1
    bars: tuple[tuple[str, float], ...] = ()
    go: str = ""


class Table(NamedTuple):
    """A table. ``columns`` are pairs of label and whether it holds numbers; ``last`` is a closing row."""

    name: str
    caption: str
    columns: tuple[tuple[str, bool], ...]
    rows: list[list[Cell]]
    last: list[Cell] | None = None
    note: str = ""


class Scale(NamedTuple):
    """One unit for a whole table, fine enough for its largest amount."""

    unit: str
    ticks: int
    decimals: int

    def text(self, quanta: int) -> str:
        """A number of ``ticks / 10**decimals`` as text."""
        return f"{quanta / 10**self.decimals:,.{self.decimals}f}"

    def quanta(self, amounts: Sequence[int]) -> list[int]:
        """The amounts in the last shown digit, so that what is shown adds up."""
        total = sum(amounts)
        return apportion(round(total * 10**self.decimals / self.ticks), amounts)


def scale(most: int) -> Scale:
    """The scale for amounts up to ``most`` ticks."""
    if most >= 1_000 * 3600 * TICKS:
        return Scale("h", 3600 * TICKS, 1)
    if most >= TICKS:
        return Scale("s", TICKS, 1 if most >= 10_000 * TICKS else 2 if most >= 100 * TICKS else 3)
    return Scale("ms", TICKS // 1000, 2)


def _share(percent: float) -> Cell:
    return Cell(f"{percent:.1f} %", percent)


def _text(text: str, length: int = 60, slot: int = -1, go: str = "") -> Cell:
    short = cut(text, length)
    return Cell(short, None, text[:2_000] if short != text else "", slot, (), go)


def _prefix(name: str, length: int, slot: int = -1) -> Cell:
    return _text(name, length, slot, filter_by("prefix", name))


def _worker(worker: Worker) -> Cell:
    return _text(worker.label, 32, -1, filter_by("worker", worker.name or worker.address))


def filter_by(what: str, name: str) -> str:
    """The page's hash that filters by a name."""
    return f"{what}={quote(name.encode('utf-8', 'replace'), safe='')}"


def _count(number: int) -> Cell:
    return Cell(count_text(number), number)


def _bytes(number: int) -> Cell:
    return Cell(bytes_text(number), number)


def _time(ticks: int) -> Cell:
    return Cell(time_text(ticks), ticks)


def _seconds(seconds: float, sign: str = "") -> Cell:
    sign = sign or ("+" if seconds > 0 else "-" if seconds < 0 else "")
    return Cell(sign + time_text(abs(seconds) * TICKS), seconds * TICKS)


def _bars(parts: Parts, capacity: int) -> tuple[tuple[str, float], ...]:
    if not capacity:
        return ()
    return tuple((name, 100 * ticks / capacity) for name, ticks in zip(PARTS, parts.values(), strict=True) if ticks)


def account_table(account: Account) -> Table:
    """Capacity by activity."""
    values = account.parts.values()
    in_unit, shares = scale(account.capacity), percentages(values)
    rows = []
    for name, ticks, quanta, percent in zip(PARTS, values, in_unit.quanta(values), shares, strict=True):
        word, meaning = part_words(name, account)
        known = name not in account.unmeasured
        if known or name != "between":
            rows.append(
                [
                    Cell(word, None, bars=((name, 100.0),)),
                    Cell(in_unit.text(quanta), ticks) if known else Cell("-", 0, _UNMEASURED),
                    _share(percent) if known else Cell("-", 0, _UNMEASURED),
                    Cell(meaning if known else f"not measured; would be: {meaning}"),
                ]
            )
    total = in_unit.text(sum(in_unit.quanta(values)))
    last = [
        Cell("Capacity"),
        Cell(total, account.capacity),
        Cell("100.0 %" if account.capacity else "0.0 %"),
        Cell("all threads, for as long as they were there"),
    ]
    columns = (("Thread time", False), (in_unit.unit, True), ("share", True), ("what it is", False))
    return Table("account", "Where the threads' time went", columns, rows, last)


def prefix_share_table(account: Account, colors: dict[str, int]) -> Table:
    """Capacity by prefix: the greatest ones, all others, and the time without a task."""
    shown = account.prefixes[:_TOP]
    other = Parts()
    for prefix in account.prefixes[_TOP:]:
        other.add(prefix.parts)
    rest = account.capacity - account.parts.busy
    amounts = [*(prefix.parts.busy for prefix in shown), other.busy, rest]
    in_unit, shares = scale(account.capacity), percentages(amounts)
    quanta = in_unit.quanta(amounts)
    rows = []
    for prefix, amount, percent in zip(shown, quanta, shares, strict=False):
        bars = (("slot", percent),)
        name = _prefix(prefix.name, 48, colors[prefix.name])
        rows.append([name, _count(prefix.tasks), Cell(in_unit.text(amount), prefix.parts.busy), _share(percent),
                     Cell("", percent, slot=colors[prefix.name], bars=bars)])  # fmt: skip
    if len(account.prefixes) > _TOP:
        tasks = sum(prefix.tasks for prefix in account.prefixes[_TOP:])
        name = Cell(f"other ({len(account.prefixes) - _TOP})")
        rows.append([name, _count(tasks), Cell(in_unit.text(quanta[-2]), other.busy), _share(shares[-2]), Cell("")])
    rows.append([Cell("no task"), Cell("-", 0), Cell(in_unit.text(quanta[-1]), rest), _share(shares[-1]), Cell("")])
    columns = (("prefix", False), ("tasks", True), (in_unit.unit, True), ("share", True), ("", False))
    last = [Cell("Capacity"), _count(account.tasks), Cell(in_unit.text(sum(quanta))), Cell("100.0 %"), Cell("")]
    return Table("prefix-share", "By prefix", columns, rows, last if account.capacity else None)


def worker_share_table(account: Account) -> Table:
    """Capacity by worker, each with its parts as a bar."""
    shown = account.workers if len(account.workers) <= _TOP else account.workers[:_TOP]
    others = account.workers[len(shown) :]
    amounts = [each.capacity for each in shown] + ([sum(each.capacity for each in others)] if others else [])
    in_unit = scale(account.capacity)
    quanta = in_unit.quanta(amounts)
    rows = []
    for each, amount in zip(shown, quanta, strict=False):
        busy = 100 * each.parts.busy / each.capacity if each.capacity else 0.0
        rows.append([_worker(each.worker), _count(each.worker.nthreads), _count(each.tasks),
                     Cell(in_unit.text(amount), each.capacity), _share(busy),
                     Cell("", busy, bars=_bars(each.parts, each.capacity))])  # fmt: skip
    if others:
        parts = Parts()
        for each in others:
            parts.add(each.parts)
        capacity = sum(each.capacity for each in others)
        busy = 100 * parts.busy / capacity if capacity else 0.0
        rows.append([Cell(f"other ({len(others)})"), _count(sum(each.worker.nthreads for each in others)),
                     _count(sum(each.tasks for each in others)), Cell(in_unit.text(quanta[-1]), capacity),
                     _share(busy), Cell("", busy, bars=_bars(parts, capacity))])  # fmt: skip
    columns = (
        ("worker", False),
        ("threads", True),
        ("tasks", True),
        (in_unit.unit, True),
        ("in tasks", True),
        ("", False),
    )
    busy = 100 * account.parts.busy / account.capacity if account.capacity else 0.0
    last = [Cell("Capacity"), _count(account.threads), _count(account.tasks), Cell(in_unit.text(sum(quanta))),
            _share(busy), Cell("")]  # fmt: skip
    return Table("worker-share", "By worker", columns, rows, last if account.capacity else None)


def prefix_table(recording: Recording, account: Account, colors: dict[str, int]) -> Table:
    """Every prefix with its counts and durations."""
    known = durations(recording)
    rows = []
    for prefix in account.prefixes[:_ROWS]:
        each = known.get(prefix.name)
        none = Cell("-", -1, "no run of this prefix has details in the recording")
        times = [_time(each.mean), _time(each.median), _time(each.p99), _time(each.most)] if each else [none] * 4
        share = 100 * prefix.parts.busy / account.capacity if account.capacity else 0.0
        rows.append([_prefix(prefix.name, 60, colors[prefix.name]), _count(prefix.tasks), _time(prefix.parts.busy),
                     _share(share), *times, _time(prefix.parts.decode + prefix.parts.encode), _bytes(prefix.nbytes),
                     _count(prefix.erred)])  # fmt: skip
    columns = (
        ("prefix", False), ("tasks", True), ("total", True), ("share", True), ("mean", True), ("median", True),
        ("99 %", True), ("longest", True), ("coding", True), ("results", True), ("erred", True),
    )  # fmt: skip
    note = "Mean to longest are of computing alone. Coding is decoding and encoding. Share is of the capacity."
    return Table(
        "prefixes", "Tasks by prefix", columns, rows, None, note + _left_out(len(account.prefixes), "prefixes")
    )


def slowest_table(recording: Recording, colors: dict[str, int], count: int = _ROWS) -> Table:
    """The runs that computed longest."""
    runs = recording.runs
    rows = [
        [
            _text(runs.keys[row], 70),
            _prefix(runs.prefix_names[runs.prefixes[row]], 40, colors[runs.prefix_names[runs.prefixes[row]]]),
            _time(runs.computes[row]),
            Cell(f"{runs.begins[row] / TICKS:,.3f}", runs.begins[row]),
            _bytes(runs.nbytes[row]),
            _worker(recording.workers[runs.workers[row]]) if runs.workers[row] >= 0 else Cell("unknown"),
            Cell("" if runs.ok[row] else "erred"),
        ]
        for row in slowest(recording, count)
    ]
    columns = (
        ("key", False), ("prefix", False), ("computing", True), ("began at, s", True), ("result", True),
        ("worker", False), ("outcome", False),
    )  # fmt: skip
    note = f"The {len(rows)} longest of {count_text(len(runs))} runs with details." if len(runs) > len(rows) else ""
    return Table("slowest", "The slowest runs", columns, rows, None, note)


def worker_table(recording: Recording, account: Account) -> Table:
    """Every worker with its time, parts and fate."""
    rows = []
    for each in account.workers[:_ROWS]:
        worker, parts = each.worker, each.parts
        gone = worker.left is not None
        was = f"left at {max(0, worker.left or 0) / TICKS:,.3f} s: {worker.reason}" if gone else "there at the end"
        come = f"joined at {worker.joined / TICKS:,.3f} s, " if worker.joined > 0 else ""
        rows.append([_worker(worker), _text(worker.address, 40), _count(worker.nthreads), _count(each.tasks),
                     _count(each.erred), _time(parts.busy), _time(parts.transfer),
                     _time(parts.handover + parts.scheduler + parts.between), _time(parts.idle), _bytes(each.nbytes),
                     Cell("", parts.busy, bars=_bars(parts, each.capacity)),
                     _text(come + was, 60)])  # fmt: skip
    columns = (
        ("worker", False), ("address", False), ("threads", True), ("tasks", True), ("erred", True), ("in tasks", True),
        ("waiting for data", True), ("other waiting", True), ("idle", True), ("results", True), ("time", False),
        ("presence", False),
    )  # fmt: skip
    return Table(
        "workers", "Every worker that was there", columns, rows, None, _left_out(len(account.workers), "workers")
    )


def pair_table(recording: Recording) -> Table:
    """What moved from whom to whom, and what the fetches' time was."""
    by_id = {worker.worker_id: worker for worker in recording.workers}
    rows = []
    for pair in sorted(recording.pairs, key=lambda pair: -pair.nbytes)[:_ROWS]:
        unknown = "all further pairs" if pair.from_id == -2 else "unknown"
        rate = pair.nbytes * TICKS / pair.ticks if pair.ticks else 0.0
        names = [_worker(by_id[i]) if i in by_id else Cell(unknown) for i in (pair.from_id, pair.to_id)]
        parts = (pair.wait, pair.hold, pair.serialise, pair.ticks - max(0, pair.hold) - max(0, pair.serialise))
        known = pair.hold >= 0
        rows.append([*names, Cell(pair.transport), _count(pair.fetches), _bytes(pair.nbytes), _time(pair.ticks),
                     Cell(f"{bytes_text(rate)}/s" if pair.ticks else "-", rate),
                     *(_time(max(0, part)) if known else Cell("-", -1, _UNMEASURED) for part in parts)])  # fmt: skip
    columns = (
        ("from", False), ("to", False), ("by", False), ("fetches", True), ("moved", True), ("time", True),
        ("rate", True), ("waited", True), ("holder busy", True), ("serialising", True), ("wire", True),
    )  # fmt: skip
    return Table(
        "pairs", "What was fetched, by pair of workers", columns, rows, None, _left_out(len(recording.pairs), "pairs")
    )


def span_table(recording: Recording) -> Table:
    """What the runs of each of the user's spans came to."""
    rows = [
        [_text(" / ".join(span.name), 60), _count(span.tasks), _count(span.erred), _bytes(span.nbytes),
         _time(span.compute), _time(span.cpu) if span.measured else Cell("-", -1, _UNMEASURED),
         _time(span.decode + span.encode)]
        for span in sorted(recording.spans, key=lambda span: -span.compute)[:_ROWS]
    ]  # fmt: skip
    columns = (
        ("span", False), ("tasks", True), ("erred", True), ("results", True), ("computing", True),
        ("on processor", True), ("coding", True),
    )  # fmt: skip
    return Table("spans", "By span (whole run)", columns, rows, None, _left_out(len(recording.spans), "spans"))


def clock_table(recording: Recording) -> Table:
    """How far each worker's clock was off."""
    rows = []
    for clock in recording.clocks[:_ROWS]:
        measured = clock.uncertainty == clock.uncertainty
        here = "the scheduler's own clock" if measured and not clock.samples else ""
        rows.append([_worker(recording.workers[clock.worker]),
                     _seconds(clock.offset) if measured else Cell("-", -1, "no round trip was measured"),
                     _seconds(clock.uncertainty, "±") if measured else Cell("-", -1), _count(clock.samples),
                     Cell(here or ("" if measured else "not measured"))])  # fmt: skip
    columns = (("worker", False), ("added", True), ("give or take", True), ("round trips", True), ("", False))
    note = "Seconds added to a worker's times to have the scheduler's, in which this report speaks."
    return Table(
        "clocks", "Clocks of the workers", columns, rows, None, note + _left_out(len(recording.clocks), "workers")
    )


def region_table(recording: Recording, colors: dict[str, int]) -> Table:
    """What tasks spent in the user's regions."""
    rows = [
        [_text(each.name, 60), _prefix(each.prefix, 40, colors.get(each.prefix, -1)), _count(each.times),
         _time(each.ticks), _time(each.own)]
        for each in sorted(recording.regions, key=lambda each: -each.own)[:_ROWS]
    ]  # fmt: skip
    columns = (("region", False), ("prefix", False), ("entered", True), ("inside", True), ("own", True))
    return Table("regions", "By region (whole run)", columns, rows, None, _left_out(len(recording.regions), "regions"))


def _left_out(count: int, what: str) -> str:
    return f" The first {count_text(_ROWS)} of {count_text(count)} {what} are listed." if count > _ROWS else ""
