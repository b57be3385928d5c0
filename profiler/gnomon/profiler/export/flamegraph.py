"""Our own flame graph: one HTML file that needs no network and allows none.

The page is a template, a style sheet and two scripts that lie beside this file. The profile goes in as JSON, in a form
made here (``_data``); names from outside reach the page only as escaped text or as JSON without "<". The page's policy
names its own style and scripts by their hashes and forbids everything else.

Contents: to_html.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from gnomon.profiler.export.words import facts, place_text, plain, seconds_text, share_text
from gnomon.profiler.sessions.calltree import THREAD, CallTree, FunctionTime, by_function, call_tree
from gnomon.profiler.sessions.names import is_idle
from gnomon.profiler.sessions.processors import fold, is_library
from gnomon.profiler.sessions.session import MARKER, REGION, Function, Session

__all__ = ["to_html"]

#: Slices of time that the time order shows at most.
_SLICES = 300

#: Colours of the page, rows of the table of functions, lines told per call.
_COLOURS, _ROWS, _LINES = 8, 100, 4


def to_html(session: Session, *, title: str = "", share: float = 0.0002) -> str:
    """The page. Calls below a ``share`` of all time are put together per caller; the page says how many."""
    title = title or f"Profile of {session.meta.get('process') or 'a program'}"
    folded = call_tree(fold(session, share))
    page = files(__package__)
    style = (page / "flamegraph.css").read_text("utf-8")
    script = (page / "flamegraph_layout.js").read_text("utf-8") + (page / "flamegraph.js").read_text("utf-8")
    return Template((page / "flamegraph.html").read_text("utf-8")).substitute(
        title=escape(plain(title)),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        facts="\n".join(f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in facts(session)),
        badges=_badges(session, folded, share),
        table=_table(session),
        recording=_recording(session),
        data=_json(_data(session, folded)),
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(value: Any) -> str:
    """JSON that can stand inside a script element: no "<", and line ends that JavaScript takes for such escaped."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


# ------------------------------------------------------------------------------------------------------------ page data


def _data(session: Session, tree: CallTree) -> dict[str, Any]:
    """What the script reads. Sampled seconds lie in ``samples``: value seconds of a node in a slice of time."""
    slices, of_bucket = _slices(session)
    values: dict[tuple[int, int], float] = defaultdict(float)
    for bucket, call, seconds in tree.samples:
        values[of_bucket[bucket], call] += seconds
    slots, legend = _colours(tree)
    rows = [(*key, _rounded(seconds)) for key, seconds in sorted(values.items())]
    columns: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else ((), (), ())
    widest = max((stop - start for start, stop in slices), default=0.0)
    return {
        "functions": {
            "name": [_name(function) for function in tree.functions],
            "file": ["" if f.file in (THREAD, REGION, MARKER) else plain(f.file) for f in tree.functions],
            "line": [0 if f.file in (THREAD, REGION, MARKER) else f.first_line for f in tree.functions],
            "module": [plain(_kind(function)) for function in tree.functions],
            "idle": [int(is_idle(function)) for function in tree.functions],
            "slot": [slots.get(_group(function), -1) for function in tree.functions],
        },
        "nodes": {"parent": tree.parent, "function": tree.function},
        "samples": dict(zip(("slice", "node", "value"), columns, strict=True)),
        "slices": {"start": [_rounded(start) for start, _ in slices], "stop": [_rounded(stop) for _, stop in slices]},
        "lines": _lines(tree),
        "regions": _regions(session, tree),
        "modules": legend,
        "threads": [(n, _name(tree.functions[tree.function[n]])) for n, up in enumerate(tree.parent) if up < 0],
        "total": _rounded(tree.seconds),
        "resolution": _rounded(widest),
    }


def _rounded(seconds: float) -> float:
    """To a tenth of a microsecond, which is less than any clock here tells."""
    return round(seconds, 7)


def _name(function: Function) -> str:
    if function.file == THREAD and function.module:
        return plain(f"{function.name} of {function.module}")
    return plain(function.name)


def _kind(function: Function) -> str:
    return {THREAD: "thread", REGION: "region", MARKER: ""}.get(function.file, function.module)


def _slices(session: Session) -> tuple[list[tuple[float, float]], list[int]]:
    """Stretches of time since the start of the session, and which one each bucket belongs to."""
    order = sorted(range(len(session.buckets)), key=lambda n: session.buckets[n].start)
    step = max(1, -(-len(order) // _SLICES))
    start = float(session.meta["start"])
    slices: list[tuple[float, float]] = []
    of_bucket = [0] * len(order)
    for first in range(0, len(order), step):
        members = order[first : first + step]
        for bucket in members:
            of_bucket[bucket] = len(slices)
        buckets = [session.buckets[n] for n in members]
        slices.append((buckets[0].start - start, max(bucket.stop for bucket in buckets) - start))
    return slices, of_bucket


def _group(function: Function) -> str:
    """What shares a colour: a module of the program, a library as a whole, all regions."""
    if function.file in (THREAD, MARKER):
        return ""
    if function.file == REGION:
        return "regions"
    if is_library(function):
        return function.module.partition(".")[0] or "library"
    return function.module or function.file.replace("\\", "/").rpartition("/")[2]


def _colours(tree: CallTree) -> tuple[dict[str, int], list[tuple[str, int, float]]]:
    """The slot of the groups with most time, and the legend: name, slot, own seconds.

    A group prefers the slot that its name hashes to, so that it keeps its colour from one recording to the next.
    """
    groups = [_group(function) for function in tree.functions]
    total: dict[str, float] = defaultdict(float)
    own: dict[str, float] = defaultdict(float)
    for call, caller in enumerate(tree.parent):
        group = groups[tree.function[call]]
        own[group] += tree.own[call]
        if group and (caller < 0 or groups[tree.function[caller]] != group):
            total[group] += tree.total[call]
    ranked = sorted(total, key=lambda group: (-total[group], group))[:_COLOURS]
    slots: dict[str, int] = {}
    free = set(range(_COLOURS))
    for group in ranked:
        wish = zlib.crc32(group.encode("utf-8", "replace")) % _COLOURS
        slots[group] = next(s for step in range(_COLOURS) if (s := (wish + step) % _COLOURS) in free)
        free.discard(slots[group])
    shown = sorted(ranked, key=lambda group: -own[group])
    legend = [(plain(group), slots[group], _rounded(own[group])) for group in shown]
    rest = sum(seconds for group, seconds in own.items() if group not in slots)
    return slots, [*legend, ("other", -1, _rounded(rest))]


def _lines(tree: CallTree) -> dict[int, list[tuple[int, float]]]:
    """For each call, the lines with most time."""
    result = {}
    for call, lines in enumerate(tree.lines):
        if lines:
            ranked = sorted(lines.items(), key=lambda item: (-item[1], item[0]))[:_LINES]
            result[call] = [(line, _rounded(seconds)) for line, seconds in ranked]
    return result


def _regions(session: Session, tree: CallTree) -> dict[int, tuple[int, float]]:
    """How often each region was entered and for how long, by function: exact, over all threads."""
    count: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    for row in session.regions:
        count[row.name] += row.count
        seconds[row.name] += row.seconds
    return {
        number: (count[function.name], _rounded(seconds[function.name]))
        for number, function in enumerate(tree.functions)
        if function.file == REGION and function.name in count
    }


# ------------------------------------------------------------------------------------------------------------ page text


def _badges(session: Session, folded: CallTree, share: float) -> str:
    """What to doubt, and what was left out."""
    note, texts = "", []
    small = [n for n in range(len(folded.parent)) if _is_rest(folded.functions[folded.function[n]])]
    if small:
        spent = sum(folded.total[n] for n in small)
        note = (
            f'<p class="note">Calls below {100 * share:g} % of all time are put together as “(n smaller)”: '
            f"{seconds_text(spent)} ({share_text(spent, folded.seconds)}).</p>"
        )
    ticks, missed = int(session.meta.get("ticks", 0)), int(session.meta.get("missed", 0))
    if missed > 0.05 * (ticks + missed):
        texts.append(
            f"{missed:,} of {ticks + missed:,} ticks were missed ({share_text(missed, ticks + missed)}): the sampler "
            "did not get to run, so what kept it waiting (code that holds the GIL, a busy machine) is underrated."
        )
    samples = sum(session.samples.count)
    if samples < 30:
        texts.append(f"Only {samples:,} samples: too few for shares; take counts, not percents.")
    badges = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return (f'<ul class="badges">{badges}</ul>' if badges else "") + note


def _is_rest(function: Function) -> bool:
    return function.file == MARKER and function.name.endswith(" smaller)")


def _table(session: Session) -> str:
    """Functions by own time, as plain HTML that works without the script."""
    tree = call_tree(session)
    rows = by_function(tree)
    if not rows:
        return '<p class="empty">No samples: the program was too short, or none of its threads was watched.</p>'
    shown = rows[:_ROWS]
    body = "\n".join(_row(row, tree.seconds) for row in shown)
    rest = rows[_ROWS:]
    more = (
        f'<p class="note">{len(rest):,} more functions with {seconds_text(sum(row.own for row in rest))} own time.</p>'
        if rest
        else ""
    )
    head = "".join(f'<th class="n" scope="col">{name}</th>' for name in ("Own", "Share", "Total", "Share"))
    return (
        f'<div class="scroll"><table id="functions"><thead><tr>{head}<th scope="col">Function</th></tr></thead>'
        f"<tbody>\n{body}\n</tbody></table></div>{more}"
    )


def _row(row: FunctionTime, whole: float) -> str:
    own, total = seconds_text(row.own), seconds_text(row.total)
    numbers = (own, share_text(row.own, whole), total, share_text(row.total, whole))
    cells = "".join(f'<td class="n">{number}</td>' for number in numbers)
    name, place = escape(plain(row.function.name)), escape(plain(place_text(row.function)))
    return f'<tr>{cells}<td><button type="button">{name}</button> <span class="where">{place}</span></td></tr>'


def _recording(session: Session) -> str:
    """The session's own words about itself, as far as they are single values."""
    rows = []
    for name, value in session.meta.items():
        if name in ("start", "stop"):
            value = datetime.fromtimestamp(value).astimezone().isoformat(" ", "milliseconds")
        elif name in ("interval", "cpu"):
            value = seconds_text(value)
        if isinstance(value, str | int | float):
            rows.append((str(name), str(value)))
    return "\n".join(f"<tr><th>{escape(plain(name))}</th><td>{escape(plain(text))}</td></tr>" for name, text in rows)
