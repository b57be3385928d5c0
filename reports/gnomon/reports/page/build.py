"""From a recording to a page.

Contents: build_page.
"""

from __future__ import annotations

import base64
import json
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from gnomon.reports import palette
from gnomon.reports.account import PARTS, Account, account, percentages
from gnomon.reports.figures import rectangles, task_stream
from gnomon.reports.findings import findings
from gnomon.reports.page import tables
from gnomon.reports.recording import TICKS, Recording
from gnomon.reports.units import bytes_text, count_text, rate_text, time_text

__all__ = ["build_page"]

_HERE = Path(__file__).parent

#: Rectangles drawn at once; above it, tasks are merged.
_RECTANGLES = 10_000


def build_page(recording: Recording, title: str = "gnomon report") -> str:
    """The page as text. It holds the recording, and its scripts and styles; it needs no network."""
    result = account(recording)
    colors = palette.slots([prefix.name for prefix in result.prefixes])
    context = {
        "title": title,
        "css": (_HERE / "report.css").read_text("utf-8"),
        "js": (_HERE / "report.js").read_text("utf-8"),
        "palette_css": _palette_css(),
        "header": _header(recording, result),
        "badges": _badges(recording, result),
        "empty": _empty(recording, result),
        "findings": findings(recording, result),
        "bar": _bar(result),
        "closing": _closing(result),
        "account": tables.account_table(result),
        "by_prefix": tables.prefix_share_table(result, colors),
        "by_worker": tables.worker_share_table(result),
        "prefixes": tables.prefix_table(recording, result, colors),
        "slowest": tables.slowest_table(recording),
        "workers": tables.worker_table(recording, result),
        "pairs": tables.pair_table(recording),
        "errors": recording.errors,
        "erred": result.erred,
        "logs": recording.logs,
        "ticks": TICKS,
        "info": recording.info,
        "ledgers": recording.ledgers,
        "legend": [
            (prefix.name, colors[prefix.name]) for prefix in result.prefixes if colors[prefix.name] != palette.OTHER
        ],
        "others": sum(1 for slot in colors.values() if slot == palette.OTHER),
        "stream": _stream(recording, colors),
        "recording": base64.b64encode(recording.dumps()).decode("ascii"),
    }
    return _template().render(context)


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["count"] = count_text
    return environment.get_template("report.html")


def _header(recording: Recording, result: Account) -> list[tuple[str, str]]:
    """The numbers of the first line: pairs of value and what it is."""
    busy = 100 * result.parts.busy / result.capacity if result.capacity else 0.0
    moved = sum(pair.nbytes for pair in recording.pairs)
    return [
        (time_text(recording.duration), "wall time"),
        (count_text(len(result.workers)), "worker" if len(result.workers) == 1 else "workers"),
        (count_text(result.threads), "thread" if result.threads == 1 else "threads"),
        (f"{busy:.1f} %", "of capacity in tasks"),
        (count_text(result.tasks), "tasks run"),
        (count_text(result.erred), "erred"),
        (rate_text(result.tasks, recording.duration), "task rate"),
        (bytes_text(moved), "between workers"),
    ]


def _badges(recording: Recording, result: Account) -> list[str]:
    """What the recording lacks, in numbers, and that the block raised."""
    badges = []
    if "raised" in recording.info:
        badges.append(f"The block raised: {recording.info['raised'][:500]}")
    words = {
        "runs": "tasks: the others have no rectangles and no durations. Totals are complete.",
        "transfers": "transfers. Totals by pair are complete.",
        "errors": "errors are grouped; the others are only counted.",
        "logs": "log lines.",
        "workers": "workers: the others left long ago.",
    }
    for name, ledger in recording.ledgers.items():
        if ledger.missed > 0:
            badges.append(f"Details of {count_text(ledger.kept)} of {count_text(ledger.seen)} {words.get(name, name)}")
    if result.capacity and result.parts.unaccounted > 0.05 * result.capacity:
        share = result.parts.unaccounted / result.capacity
        badges.append(f"{share:.1%} of the capacity is unaccounted: the details of that time are gone.")
    if result.alongside > result.capacity // 200:
        badges.append(f"{time_text(result.alongside)} of work ran alongside, beyond the workers' threads.")
    return badges


def _empty(recording: Recording, result: Account) -> str:
    """Why there is nothing to see, if so."""
    if not result.workers:
        return "No worker was there during this block, so no thread had time to give an account of."
    if not result.tasks:
        return (
            f"No task ended in this block ({time_text(recording.duration)}). Is the computing inside the `with`? "
            "Results that were there before are not computed again, and futures must be waited for inside the block."
        )
    return ""


def _bar(result: Account) -> list[tuple[str, str, float, str]]:
    """The segments of the account's bar: part, word, percent, time."""
    values = result.parts.values()
    return [
        (name, tables.PART_WORDS[name][0], percent, time_text(ticks))
        for name, ticks, percent in zip(PARTS, values, percentages(values), strict=True)
        if ticks
    ]


def _closing(result: Account) -> str:
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


def _stream(recording: Recording, colors: dict[str, int]) -> dict[str, Any] | None:
    """The task stream's figure and what the script needs to refine it; None if there is nothing to draw."""
    if not len(recording.runs) or not recording.duration:
        return None
    from bokeh.embed import json_item
    from bokeh.resources import Resources

    slots = [colors[name] for name in recording.runs.prefix_names]
    drawn = rectangles(recording, slots, limit=_RECTANGLES)
    item = json_item(task_stream(recording, drawn))
    notice = ""
    if drawn.merged:
        notice = _notice(drawn.alone, drawn.merged, drawn.cell)
    return {
        "item": _script_json(item),
        "settings": _script_json({"slots": slots, "light": palette.LIGHT, "dark": palette.DARK, "limit": _RECTANGLES}),
        "notice": notice,
        "bokeh": "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw),
    }


def _notice(alone: int, merged: int, cell: float) -> str:
    """What the task stream merged."""
    return (
        f"Drawing {count_text(alone)} of {count_text(alone + merged)} tasks in view one by one; the "
        f"{count_text(merged)} shorter ones are merged into bars of {time_text(cell * TICKS)}, as high as the thread "
        "was busy. Zoom in to see single tasks. Totals use all tasks."
    )


def _script_json(value: Any) -> str:
    """JSON that can't end the script element it stands in."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _palette_css() -> str:
    """Custom properties for the colours by slot, for both themes."""
    light = "".join(f"--slot-{i}:{color};" for i, color in enumerate(palette.LIGHT))
    dark = "".join(f"--slot-{i}:{color};" for i, color in enumerate(palette.DARK))
    rules = "".join(f".slot-{i}{{--color:var(--slot-{i})}}" for i in range(len(palette.LIGHT)))
    return f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}{rules}"
