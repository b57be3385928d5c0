"""The scheduler's event loop and its connections in the window: panels of numbers that add up.

Words are those of the report's tab of the scheduler. A part has one colour here, whichever others there are.

Contents: loop_bar, loop_parts, traffic; NOT_MEASURED.
"""

from __future__ import annotations

from gnomon.reports.account import percentages
from gnomon.reports.dashboard.looptimes import TRAFFIC, LoopWindow
from gnomon.reports.dashboard.model import Model
from gnomon.reports.dashboard.pages import panels
from gnomon.reports.dashboard.pages.panels import Panel
from gnomon.reports.dashboard.pages.view import View
from gnomon.reports.page.sentences import LOOP_WORDS
from gnomon.reports.page.tables import scale
from gnomon.reports.records import LoopPart
from gnomon.reports.units import bytes_text, count_text, time_text

__all__ = ["NOT_MEASURED", "loop_bar", "loop_parts", "traffic"]

NOT_MEASURED = (
    "No process told of its processor, memory and event loop in this window: they do so with every heartbeat. "
    "Choose a longer window, or wait a second; if it stays empty, the cluster's instruments are switched off."
)

#: Colours of parts that have one of their own. The others take the slots, in their order; the last slot is "other".
_OWN = {"idle": "idle", "resting": "idle", "gc": "loop-gc", "other": "slot-9"}
_SLOTS = {
    name: f"slot-{at if at < 9 else at + 3}" for at, name in enumerate(name for name in LOOP_WORDS if name not in _OWN)
}

_UNCOUNTED = "Transitions are not measured: nobody counts changes of states, which would cost something for every task."
_SILENT = "Bytes are not measured: all connections are within one process, where messages are handed over as they are."


def _window(model: Model, view: View) -> LoopWindow | None:
    return model.loop_times.window(*view.window(model))


def _shown(window: LoopWindow) -> list[LoopPart]:
    return [part for part in window.parts if part.ticks]


def loop_bar(model: Model, view: View) -> Panel:
    """The bar of the loop's time; its closing line says of which time it is, which answers begin and end."""
    window = _window(model, view)
    if window is None or not window.ticks:
        return panels.text("loop", NOT_MEASURED)
    parts = _shown(window)
    shares = percentages([part.ticks for part in parts])
    return {
        "kind": "bar",
        "name": "loop",
        "parts": [
            (
                _OWN.get(part.name) or _SLOTS[part.name],
                LOOP_WORDS[part.name].split(":")[0],
                share,
                time_text(part.ticks),
            )
            for part, share in zip(parts, shares, strict=True)
        ],
        "closing": (
            f"Measured from {window.start - model.begin:,.1f} to {window.stop - model.begin:,.1f} s, "
            f"{time_text(window.ticks)} of the loop."
        ),
        "amber": False,
        "bare": True,  # the table beside it is the legend
    }


def loop_parts(model: Model, view: View) -> Panel:
    """The same as a table: each part's time, share and source."""
    window = _window(model, view)
    if window is None or not window.ticks:
        return panels.text("loop-parts", "There are no parts to list.")
    parts = _shown(window)
    amounts = [part.ticks for part in parts]
    unit = scale(window.ticks)
    quanta = unit.quanta(amounts)
    rows = []
    for part, amount, share in zip(parts, quanta, percentages(amounts), strict=True):
        own = _OWN.get(part.name) or _SLOTS[part.name]
        word = LOOP_WORDS[part.name]
        named = (
            panels.cell(word, None, slot=int(own.removeprefix("slot-")))
            if own.startswith("slot-")
            else panels.cell(word, None, bars=[(f"part-{own}", 100.0, "")])
        )
        rows.append(
            [named, panels.cell(unit.text(amount), part.ticks), panels.cell(f"{share:.1f} %", share),
             panels.cell(_source(part))]
        )  # fmt: skip
    last = [
        panels.cell("Loop time measured"), panels.cell(unit.text(sum(quanta)), window.ticks), panels.cell("100.0 %"),
        panels.cell(""),
    ]  # fmt: skip
    columns = (("The scheduler's loop", False), (unit.unit, True), ("share", True), ("source", False))
    return panels.table(View(), "loop-parts", columns, rows, last=last, caption="The loop's time by part",
                        sortable=False)  # fmt: skip


def _source(part: LoopPart) -> str:
    if part.source == "sampled":
        return f"sampled, {count_text(part.times)} looks"
    if part.source == "rest":
        return "the rest"
    return f"timed, {count_text(part.times)} times" if part.times else "timed"


def traffic(model: Model, view: View) -> Panel:
    """Messages and bytes per second over the scheduler's connections, and what nobody counts, with the reason."""
    window = _window(model, view)
    times = model.loop_times
    if window is None:
        return panels.text("traffic", "Rates can be told from the scheduler's second answer on.")
    seconds = window.stop - window.start
    rows = []
    for name, amount in zip(TRAFFIC, window.traffic, strict=True):
        of_bytes = name.startswith("bytes")
        if of_bytes and not amount and times.connections == times.silent:
            rows.append([panels.cell(name), *_uncounted(_SILENT)])
            continue
        words = bytes_text if of_bytes else _number
        rows.append(
            [panels.cell(name), panels.cell(f"{words(amount / seconds)}/s", amount),
             panels.cell(bytes_text(amount) if of_bytes else count_text(amount), amount)]
        )  # fmt: skip
    rows.append([panels.cell("transitions of tasks"), *_uncounted(_UNCOUNTED)])
    note = f"Over {count_text(times.connections)} connections, dashboards' own questions included. {_UNCOUNTED}"
    if times.connections == times.silent:
        note += f" {_SILENT}"
    elif times.silent:
        note += f" {count_text(times.silent)} of them are within the scheduler's process and make no bytes."
    return panels.table(View(), "traffic", (("connections", False), ("rate", True), ("in the window", True)), rows,
                        caption="Messages and bytes in the window", sortable=False, note=note)  # fmt: skip


def _uncounted(why: str) -> list[Panel]:
    return [panels.cell("-", None, why), panels.cell("not measured", None, why)]


def _number(rate: float) -> str:
    return f"{rate:,.0f} " if rate >= 100 else f"{rate:.3g} "
