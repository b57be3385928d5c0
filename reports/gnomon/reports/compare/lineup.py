"""The tables of a comparison, as cells that both outputs show alike.

With several recordings of a side, amounts are means over them.

Contents: Cell, Table, KIND_WORDS, ratio_text, interval_text, and one function per table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from gnomon.reports.account import PARTS
from gnomon.reports.compare.comparison import Comparison, PrefixChange, Side
from gnomon.reports.compare.families import KINDS as FAMILIES
from gnomon.reports.compare.families import Amount, Family
from gnomon.reports.compare.noise import Estimate, ratio_of_means
from gnomon.reports.compare.profiles import Profile
from gnomon.reports.compare.sides import Moved, PrefixSample, Sample
from gnomon.reports.page.tables import PART_WORDS
from gnomon.reports.units import bytes_text, count_text, time_text

__all__ = [
    "KIND_WORDS", "Cell", "Table", "family_table", "fetch_table", "interval_text", "part_table", "prefix_table",
    "profile_table", "ratio_text", "setup_table", "stall_table", "transfer_table", "verdict_table", "whole_table",
    "worker_table",
]  # fmt: skip

#: What each level is called where people read.
KIND_WORDS = {
    "processor": "processor time",
    "twentieth": "lower twentieth",
    "quartile": "lower quartile",
    "mean": "mean",
}

_SIGNS = {
    "slower": "▲ slower", "faster": "▼ faster", "same": "within noise", "unjudged": "not judged", "more": "▲ more",
    "fewer": "▼ fewer",
}  # fmt: skip

#: What is shown of a prefix that a side doesn't have, and of an interval that one recording can't give.
_NONE = "-"

#: Rows of the tables of pairs and of workers.
_PAIRS = 200

#: Functions of a profile that are listed.
_FUNCTIONS = 20
_TIMES = "\N{MULTIPLICATION SIGN}"


class Cell(NamedTuple):
    """A cell: its text, what it sorts by (None: the text), what it is marked as (a verdict, part or prefix)."""

    text: str
    value: float | None = None
    mark: str = ""


class Table(NamedTuple):
    """A table. ``columns`` are pairs of label and whether it holds numbers."""

    name: str
    caption: str
    columns: tuple[tuple[str, bool], ...]
    rows: list[list[Cell]]
    note: str = ""


def ratio_text(ratio: float) -> str:
    """A ratio, with three decimals where it is near 1."""
    return (
        f"{_TIMES}{ratio:.3f}"
        if 0.5 < ratio < 2
        else f"{_TIMES}{ratio:,.2f}"
        if ratio < 1000
        else f"{_TIMES}{ratio:,.0f}"
    )


def interval_text(estimate: Estimate) -> str:
    """The interval of a ratio."""

    def end(value: float) -> str:
        return "0" if value < 1e-6 else "∞" if value > 1e6 else f"{value:,.2f}"

    return f"{end(estimate.low)} to {end(estimate.high)}"


def setup_table(comparison: Comparison) -> Table:
    """What differs in how the sides were made."""
    known = dict.fromkeys(name for side in (comparison.a, comparison.b) for each in side.samples for name in each.facts)
    named: list[tuple[str, Callable[[Sample], str]]] = [
        ("workers", lambda each: str(each.workers)),
        ("threads", lambda each: str(each.threads)),
        ("hosts", lambda each: str(each.hosts)),
        ("calling code", lambda each: f"{len(each.code.splitlines())} lines" if each.code else _NONE),
        ("raised", lambda each: each.raised[:80] or "no"),
        *((name, lambda each, name=name: each.facts.get(name, _NONE)) for name in known),
    ]
    rows = []
    for name, value in named:
        values = [sorted({value(each) for each in side.samples}) for side in (comparison.a, comparison.b)]
        codes = [{each.code for each in side.samples} for side in (comparison.a, comparison.b)]
        if values[0] != values[1] or len(values[0]) > 1 or (name == "calling code" and codes[0] != codes[1]):
            rows.append([Cell(name), *(Cell(", ".join(of_side)) for of_side in values)])
    columns = (("what", False), ("A", False), ("B", False))
    return Table("setup", "What differs in how they were made", columns, rows)


def whole_table(comparison: Comparison) -> Table:
    """The recordings as wholes."""
    lines: list[tuple[str, Callable[[Sample], float], Callable[[float], str]]] = [
        ("wall time", lambda each: each.duration, time_text),
        ("capacity", lambda each: each.capacity, time_text),
        ("in tasks", lambda each: each.busy, time_text),
        ("alongside", lambda each: each.alongside, time_text),
        ("tasks", lambda each: each.tasks, _number),
        ("erred", lambda each: each.erred, _number),
        ("tasks /s", lambda each: each.tasks * 1e7 / each.duration, _number),
        ("moved", lambda each: sum(moved.nbytes for moved in each.moved.values()), bytes_text),
    ]
    rows = [[Cell(name), *_amounts(comparison, amount, show)] for name, amount, show in lines]
    return Table("whole", "As wholes", _columns("what"), rows, _interval_note(comparison))


def part_table(comparison: Comparison) -> Table:
    """The account's parts beside each other."""
    rows = []
    for name in PARTS:
        cells = _amounts(comparison, lambda each, name=name: each.parts[name], time_text)  # type: ignore[misc]
        shares = [
            side.mean(lambda each, name=name: 100 * each.parts[name] / each.capacity if each.capacity else 0.0)  # type: ignore[misc]
            for side in (comparison.a, comparison.b)
        ]
        label = Cell(PART_WORDS.get(name, (name, ""))[0], None, f"part-{name}")
        rows.append([label, *cells, *(Cell(f"{share:.1f} %", share) for share in shares)])
    columns = (*_columns("thread time"), ("A, share", True), ("B, share", True))
    return Table("parts", "Where the threads' time went", columns, rows, "Shares are of each side's capacity.")


def verdict_table(comparison: Comparison) -> Table:
    """What is said of each prefix, and why."""
    rows = []
    for change in comparison.prefixes:
        cells = [Cell(change.name, None, "prefix"), Cell(_verdict(change), None, change.verdict.replace(" ", "-"))]
        for estimate in (change.relative, change.absolute):
            if estimate is None:
                cells += [Cell(_NONE, -1.0), Cell(_NONE, -1.0)]
            else:
                cells += [Cell(ratio_text(estimate.ratio), estimate.ratio), Cell(interval_text(estimate), estimate.low)]
        rows.append([*cells, Cell(KIND_WORDS.get(change.kind, _NONE))])
    columns = (
        ("prefix", False), ("verdict", False), ("B/A, relative", True), ("interval", True), ("B/A, as it is", True),
        ("interval", True), ("level", False),
    )  # fmt: skip
    note = (
        "Ratios are of computing time per task. Relative: with the common factor of all prefixes taken out. Intervals "
        f"hold for all prefixes together with {comparison.confidence:.0%} confidence."
    )
    if not comparison.repeats:
        note += " n=1: they rest on the variation inside the recordings and on a usual difference between two runs."
    return Table("verdicts", "Which prefixes changed", columns, rows, note)


def prefix_table(comparison: Comparison) -> Table:
    """The prefixes' counts and durations beside each other."""
    lines: list[tuple[Callable[[PrefixSample], float | None], Callable[[float], str]]] = [
        (lambda each: each.tasks, _number),
        (lambda each: each.total, time_text),
        (lambda each: each.mean, time_text),
        (lambda each: each.median, time_text),
        (lambda each: each.p99, time_text),
    ]
    rows = []
    for change in comparison.prefixes:
        cells = [Cell(change.name, None, "prefix")]
        for amount, show in lines:
            for side in (change.a, change.b):
                values = [value for each in side if (value := amount(each)) is not None]
                cells.append(Cell(show(fmean(values)), fmean(values)) if values else Cell(_NONE, -1.0))
        rows.append(cells)
    columns = [("prefix", False)]
    for what in ("tasks", "total", "mean", "median", "99 %"):
        columns += [(f"A, {what}", True), (f"B, {what}", True)]
    note = "Total is computing, decoding and encoding; mean to 99 % are of computing."
    return Table("prefixes", "Prefixes in numbers", tuple(columns), rows, note)


def transfer_table(comparison: Comparison) -> Table:
    """What moved: by transport, then by pair of workers."""
    sides = [_moved(side) for side in (comparison.a, comparison.b)]
    keys = dict.fromkeys(key for moved in sides for key in moved)
    transports = dict.fromkeys(transport for *_, transport in keys)
    order = sorted(keys, key=lambda key: -sum(moved[key].nbytes for moved in sides if key in moved))
    rows = []
    for transport in transports:
        cells = [_total(row for key, row in moved.items() if key[2] == transport) for moved in sides]
        rows.append([Cell("all"), Cell("all"), Cell(transport), *_moved_cells(cells)])
    for key in order[:_PAIRS]:
        cells = [moved.get(key, Moved(0, 0, 0)) for moved in sides]
        rows.append([*(Cell(part) for part in key), *_moved_cells(cells)])
    columns = (
        ("from", False), ("to", False), ("by", False), ("A, fetches", True), ("B, fetches", True), ("A, moved", True),
        ("B, moved", True), ("A, time", True), ("B, time", True),
    )  # fmt: skip
    note = f"The first {_PAIRS} of {count_text(len(order))} pairs are listed." if len(order) > _PAIRS else ""
    return Table("transfers", "What workers fetched from each other", columns, rows, note)


def fetch_table(comparison: Comparison) -> Table:
    """What the fetches' time was, on both sides."""

    def of(name: str) -> Callable[[Sample], float]:
        return lambda each: sum(getattr(moved, name) for moved in each.moved.values())

    def wire(each: Sample) -> float:
        return max(0.0, sum(moved.ticks - moved.hold - moved.serialise for moved in each.moved.values()))

    lines = (
        ("waiting to begin", of("wait")), ("holder busy", of("hold")), ("serialising", of("serialise")),
        ("on the wire", wire),
    )  # fmt: skip
    measured = all(any(of(name)(each) for each in side.samples for name in ("wait", "hold", "serialise"))
                   for side in (comparison.a, comparison.b))  # fmt: skip
    rows = [[Cell(name), *_amounts(comparison, amount, time_text)] for name, amount in lines] if measured else []
    return Table("fetching", "What the fetches' time was", _columns("time"), rows, _interval_note(comparison))


def family_table(family: Family, comparison: Comparison) -> Table:
    """Spans, regions or fetches: their amounts, ratios and verdicts."""
    what, per = FAMILIES[family.kind]
    rows = []
    for change in family.changes[:_PAIRS]:
        cells = [Cell(change.name), Cell(_SIGNS.get(change.verdict, change.verdict), None, change.verdict)]
        for amount, show in ((lambda each: each.times, _number), (_per(family.kind), time_text)):
            for side in (change.a, change.b):
                values = [value for each in side if (value := amount(each)) is not None]
                cells.append(Cell(show(fmean(values)), fmean(values)) if values else Cell(_NONE, -1.0))
        if change.judged is None:
            cells += [Cell(_NONE, -1.0), Cell(_NONE, -1.0)]
        else:
            ratio = change.judged
            cells += [Cell(ratio_text(ratio.ratio), ratio.ratio), Cell(interval_text(ratio), ratio.low)]
        rows.append(cells)
    columns = (
        (what, False), ("verdict", False), ("A, times", True), ("B, times", True), (f"A, {per}", True),
        (f"B, {per}", True), ("B/A", True), ("interval", True),
    )  # fmt: skip
    note = "" if comparison.repeats or family.kind == "spans" else "n=1: sums alone have no interval."
    if len(family.changes) > _PAIRS:
        note += f" The first {_PAIRS} of {count_text(len(family.changes))} are listed."
    captions = {
        "spans": "Spans", "regions": "Regions of your code", "transports": "Fetches by transport",
        "types": "Fetches by type of value",
    }  # fmt: skip
    return Table(family.kind, captions[family.kind], columns, rows, note.strip())


def stall_table(comparison: Comparison) -> Table:
    """Stalls of event loops by cause and function, per recording."""
    rows = []
    for each in (comparison.stalls or ())[:_PAIRS]:
        mark = {"more": "slower", "fewer": "faster"}.get(each.verdict, "")
        ratio = each.ratio
        rows.append([Cell(each.process), Cell(each.cause), Cell(each.function or _NONE),
                     Cell(_SIGNS.get(each.verdict, each.verdict), None, mark),
                     *(Cell(count_text(side.times), side.times) for side in (each.a, each.b)),
                     *(Cell(time_text(side.ticks), side.ticks) for side in (each.a, each.b)),
                     Cell(ratio_text(ratio.ratio), ratio.ratio) if ratio else Cell(_NONE, -1.0),
                     Cell(interval_text(ratio), ratio.low) if ratio else Cell(_NONE, -1.0)])  # fmt: skip
    columns = (
        ("process", False), ("cause", False), ("function", False), ("verdict", False), ("A, times", True),
        ("B, times", True), ("A, time", True), ("B, time", True), ("B/A, rate", True), ("interval", True),
    )  # fmt: skip
    note = "Per recording. Intervals are of counts: a rate's error is the square root of its count."
    return Table("stalls", "Stalls of event loops", columns, rows, note)


def _per(kind: str) -> Callable[[Amount], float | None]:
    if kind in ("transports", "types"):
        return lambda each: each.ticks / (each.nbytes / 2**20) if each.nbytes else None
    return lambda each: each.ticks / each.times if each.times else None


def worker_table(comparison: Comparison) -> Table:
    """The workers, lined up by name."""
    sides = (comparison.a, comparison.b)
    names = list(dict.fromkeys(name for side in sides for each in side.samples for name in each.worker_busy))
    rows = []
    for name in names[:_PAIRS]:
        cells = [Cell(name)]
        known = [[each.worker_busy[name] for each in side.samples if name in each.worker_busy] for side in sides]
        for of_side in known:
            threads = sorted({threads for threads, _, _ in of_side})
            cells.append(Cell(", ".join(map(str, threads)), threads[0]) if threads else Cell(_NONE, -1.0))
        for of_side in known:
            shares = [100 * busy / capacity for _, capacity, busy in of_side if capacity]
            cells.append(Cell(f"{fmean(shares):.1f} %", fmean(shares)) if shares else Cell(_NONE, -1.0))
        rows.append(cells)
    columns = (
        ("worker", False),
        ("A, threads", True),
        ("B, threads", True),
        ("A, in tasks", True),
        ("B, in tasks", True),
    )
    note = f"The first {_PAIRS} of {count_text(len(names))} workers are listed." if len(names) > _PAIRS else ""
    return Table("workers", "Workers", columns, rows, note)


def profile_table(profile: Profile) -> Table:
    """The functions whose share of a profile changed most."""
    rows = []
    for each in profile.functions[:_FUNCTIONS]:
        change = 100 * (each.b - each.a)
        verdict = ("slower" if change > 0 else "faster") if each.sure else ""
        rows.append([Cell(each.name), Cell(f"{100 * each.a:.1f} %", each.a), Cell(f"{100 * each.b:.1f} %", each.b),
                     Cell(f"{change:+.1f}", change, verdict), Cell(each.place)])  # fmt: skip
    columns = (
        ("function", False), ("A, share", True), ("B, share", True), ("B - A, points", True), ("place", False),
    )  # fmt: skip
    counts = " and ".join(count_text(count) for count in profile.samples)
    note = f"Shares of {counts} samples that ended in the function. Coloured: beyond chance."
    return Table(f"profile-{profile.kind}", f"Profile of {profile.kind}: shares that changed most", columns, rows, note)


def _verdict(change: PrefixChange) -> str:
    return "too few runs" if change.verdict == "unjudged" else _SIGNS.get(change.verdict, change.verdict)


def _number(count: float) -> str:
    return count_text(round(count)) if count == round(count) or count >= 100 else f"{count:.1f}"


def _columns(first: str) -> tuple[tuple[str, bool], ...]:
    return ((first, False), ("A", True), ("B", True), ("B - A", True), ("B/A", True), ("interval", True))


def _interval_note(comparison: Comparison) -> str:
    if comparison.repeats:
        counts = f"{len(comparison.a.samples)} and {len(comparison.b.samples)}"
        return f"Means of {counts} recordings; intervals of the ratio between them, 95 % each."
    return "n=1: one recording of a side has no interval."


def _amounts(comparison: Comparison, amount: Callable[[Sample], float], show: Callable[[float], str]) -> list[Cell]:
    """An amount on both sides, the difference, the ratio and its interval."""
    a, b = comparison.a.amounts(amount), comparison.b.amounts(amount)
    before, after = fmean(a), fmean(b)
    interval = ratio_of_means(a, b) if comparison.repeats else None
    ratio = interval.ratio if interval else after / before if before else None
    sign = "+" if after > before else "-" if after < before else ""
    return [
        Cell(show(before), before),
        Cell(show(after), after),
        Cell(f"{sign}{show(abs(after - before))}", after - before),
        Cell(_NONE, -1.0) if ratio is None else Cell(ratio_text(ratio), ratio),
        Cell(interval_text(interval), interval.low) if interval else Cell(_NONE if comparison.repeats else "n=1", -1.0),
    ]


def _moved(side: Side) -> dict[tuple[str, str, str], Moved]:
    """What moved on a side by pair, summed over its recordings and divided by their number."""
    keys = dict.fromkeys(key for sample in side.samples for key in sample.moved)
    count = len(side.samples)
    result = {}
    for key in keys:
        total = _total(sample.moved[key] for sample in side.samples if key in sample.moved)
        result[key] = Moved(*(amount / count for amount in total))
    return result


def _total(rows: Iterable[Moved]) -> Moved:
    columns = list(zip(*rows, strict=True))
    return Moved(*map(sum, columns)) if columns else Moved(0, 0, 0)


def _moved_cells(sides: Sequence[Moved]) -> list[Cell]:
    cells = []
    for field, show in enumerate((_number, bytes_text, time_text)):  # the parts of the time have a table of their own
        cells += [Cell(show(moved[field]), moved[field]) for moved in sides]
    return cells
