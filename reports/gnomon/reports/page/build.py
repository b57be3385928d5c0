"""From a recording to a page.

Contents: build_page, own_css, own_js.
"""

from __future__ import annotations

import base64
import json
from functools import cache
from pathlib import Path
from typing import Any

from gnomon.profiler import Session
from gnomon.reports import palette
from gnomon.reports.account import PARTS, Account, account, percentages
from gnomon.reports.figures import Rectangles, flame, timeline
from gnomon.reports.findings import findings
from gnomon.reports.page import tables
from gnomon.reports.page.coarsening import coarsened
from gnomon.reports.page.sentences import (
    LOOP_WORDS,
    badges,
    closing,
    empty,
    header,
    instruments,
    ledgers,
    loop_line,
    reasons,
)
from gnomon.reports.page.squeeze import squeezed_script, squeezed_style
from gnomon.reports.recording import TICKS, Recording
from gnomon.reports.templates import load_template
from gnomon.reports.units import time_text

__all__ = ["build_page", "own_css", "own_js"]

_HERE = Path(__file__).parent

#: Rectangles drawn at once; above it, tasks are merged.
_RECTANGLES = 10_000

#: Names offered in the filter's lists; any other can be had by clicking it, or from the search.
_OFFERED = 200

#: Bytes that the recording may take in the page; above it, it is made coarser.
_RECORDING_BYTES = 8_500_000

#: The tabs in their order: the section's name and the tab's label.
_TABS = (
    ("summary", "Summary"), ("timeline", "Timeline"), ("tasks", "Tasks"), ("scheduler", "Scheduler"),
    ("workers", "Workers"), ("communication", "Communication"), ("memory", "Memory"), ("errors", "Errors and logs"),
    ("run", "Run"),
)  # fmt: skip

#: The scripts in the order in which they depend on each other.
_SCRIPTS = (
    "decode", "words", "state", "filter", "account", "tables", "minimap", "timeline", "flames", "panels",
    "scheduler", "communication", "downloads", "start",
)  # fmt: skip

_KEYS = (
    (("1", "…", "9"), "tabs"), (("w", "s"), "timeline: zoom in, out"), (("a", "d"), "timeline: back, on"),
    (("f",), "timeline: fit the range"), (("0",), "whole run"), (("/",), "search"),
    (("n", "p"), "next, previous task found; without a search, that raised"), (("t",), "theme"), (("?",), "this help"),
    (("Esc",), "clear all filters"),
)  # fmt: skip


def build_page(recording: Recording, title: str = "gnomon report") -> str:
    """The page as text. It holds the recording, and its scripts and styles; it needs no network.

    A recording too large for a page is made coarser first, and the page says how.
    """
    recording, packed = coarsened(recording, _RECORDING_BYTES)
    result = account(recording)
    colors = palette.slots([prefix.name for prefix in result.prefixes])
    nothing = empty(recording, result)
    profiles = [_flame(str(each["name"]), each["session"], recording.start) for each in recording.profiles]
    deep = [_flame(each.key, each.session, recording.start) for each in recording.task_profiles]
    legend = [prefix.name for prefix in result.prefixes if colors[prefix.name] != palette.OTHER]
    context = {
        "title": title,
        "tabs": _TABS,
        "keys": _KEYS,
        "css": own_css(),
        "js": own_js(),
        "palette_css": palette.css(),
        "header": header(recording, result),
        "badges": badges(recording, result),
        "empty": nothing,
        "findings": findings(recording, result),
        "bar": _bar(result),
        "closing": closing(result),
        "amber": result.capacity > 0 and result.parts.unaccounted > 0.05 * result.capacity,
        "account": tables.account_table(result),
        "by_prefix": tables.prefix_share_table(result, colors),
        "by_worker": tables.worker_share_table(result),
        "prefixes": tables.prefix_table(recording, result, colors),
        "slowest": tables.slowest_table(recording, colors),
        "spans": tables.span_table(recording),
        "regions": tables.region_table(recording, colors),
        "workers": tables.worker_table(recording, result),
        "pairs": tables.pair_table(recording),
        "clocks": tables.clock_table(recording),
        "prefix_names": [prefix.name for prefix in result.prefixes[:_OFFERED]],
        "worker_names": [(each.name or each.address, each.label) for each in recording.workers[:_OFFERED]],
        "errors": recording.errors,
        "erred": result.erred,
        "logs": recording.logs,
        "series": len(recording.series) > 0,
        "stalls": recording.stalls,
        "profiles": profiles,
        "deep": [(each.key, each.prefix) for each in recording.task_profiles],
        "why": reasons(recording),
        "loop_line": loop_line(recording),
        "ticks": TICKS,
        "info": recording.info,
        "instruments": instruments(recording),
        "ledgers": ledgers(recording),
        "legend": [(name, colors[name], tables.filter_by("prefix", name)) for name in legend],
        "others": sum(1 for slot in colors.values() if slot == palette.OTHER),
        "timeline": _timeline(recording),
        "settings": _script_json(
            {
                "duration": recording.duration,
                "limit": _RECTANGLES,
                "slots": {name: slot for name, slot in colors.items() if slot != palette.OTHER},
                "light": palette.LIGHT,
                "dark": palette.DARK,
                "unmeasured": result.unmeasured,
                "words": {
                    **{name: tables.part_words(name, result) for name in PARTS},
                    "others": ("Other tasks", "tasks that the filter leaves out"),
                },
                "loop_words": LOOP_WORDS,
                "profiles": profiles,
                "deep": [{**each, "prefix": of.prefix} for each, of in zip(deep, recording.task_profiles, strict=True)],
            }
        ),
        "recording": base64.b64encode(packed).decode("ascii"),
    }
    return load_template(_HERE / "report.html").render(context)


@cache
def own_css() -> str:
    """The page's own style sheet."""
    return squeezed_style((_HERE / "report.css").read_text("utf-8"))


@cache
def own_js() -> str:
    """The page's own script: the parts in one function."""
    parts = [(_HERE / "scripts" / f"{name}.js").read_text("utf-8") for name in _SCRIPTS]
    return squeezed_script("\n".join(['"use strict";', "const gnomon = (() => {", *parts, "})();"]))


def _bar(result: Account) -> list[tuple[str, str, float, str]]:
    """The segments of the account's bar: part, word, percent, time."""
    values = result.parts.values()
    return [
        (name, tables.part_words(name, result)[0], percent, time_text(ticks))
        for name, ticks, percent in zip(PARTS, values, percentages(values), strict=True)
        if ticks
    ]


def _timeline(recording: Recording) -> dict[str, str] | None:
    """The timeline's figure and what draws it; None if there is nothing to draw. The script fills in the rectangles."""
    if not len(recording.runs) or not recording.duration:
        return None
    from bokeh.embed import json_item
    from bokeh.resources import Resources

    return {
        "item": _script_json(json_item(timeline(recording, Rectangles()))),
        "bokeh": "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw),
    }


def _flame(title: str, session: dict[str, Any], start: float) -> dict[str, Any]:
    return flame(title, Session.from_plain(session), start)._asdict()


def _script_json(value: Any) -> str:
    """JSON that can't end the script element it stands in."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
