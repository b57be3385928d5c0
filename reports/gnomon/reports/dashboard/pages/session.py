"""A browser's session of charts: draws from the shared model and pushes what changed, no faster than it can be taken.

The browser's side is ``scripts/charts.js``. It tells what it wants by the tags of a model named ``viewer``; it is told
what was drawn by a source named ``note``, whose number it acknowledges. The next push waits for that, for the refresh
of the page, and until the bytes of the last one fit the budget.

Contents: document.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from math import isfinite
from time import monotonic
from typing import Any, NamedTuple

from gnomon.reports.dashboard.context import Context
from gnomon.reports.dashboard.pages.charts import CHARTS, Chart
from gnomon.reports.dashboard.pages.sources import Drawn, Frame
from gnomon.reports.dashboard.pages.view import View

__all__ = ["document"]

logger = logging.getLogger(__name__)

#: Bytes per second that a session may be sent, on the average.
_BYTES = 50_000

#: Seconds that the drawing may take, as a share of all time.
_WORK = 0.2


def document(context: Context, names: Sequence[str], refresh: float, span: str, doc: Any) -> None:
    """Make a session's document, with these charts as its roots."""
    session = _Session(context, names, refresh, span, doc)
    doc.on_session_destroyed(session.close)


class _Wish(NamedTuple):
    """What a browser wants: the last number shown, whether somebody sees it, what is asked for, and a range in view."""

    shown: int
    visible: bool
    paused: bool
    view: View
    in_view: tuple[float, float] | None

    @classmethod
    def read(cls, tags: Any, span: str) -> _Wish | None:
        """The wish that tags hold; None if they hold none."""
        try:
            told = json.loads(tags[0])
            query = {name: [str(value).encode()] for name, value in dict(told.get("query", {})).items()}
            low, high = map(float, told.get("view") or (0, 0))
            in_view = (low, high) if isfinite(high - low) and high > low else None
            view = View.of(query, span)
            return cls(int(told.get("shown", 0)), bool(told.get("visible")), bool(told.get("paused")), view, in_view)
        except (AttributeError, IndexError, TypeError, ValueError):
            return None


class _Session:
    def __init__(self, context: Context, names: Sequence[str], refresh: float, span: str, doc: Any) -> None:
        from bokeh.models import ColumnDataSource

        self._context = context
        self._doc = doc
        self._charts: dict[str, Chart] = {name: CHARTS[name]() for name in names}
        self._note = ColumnDataSource({"told": [""]}, name="note")
        self._viewer = ColumnDataSource({}, name="viewer")
        self._viewer.on_change("tags", self._on_viewer)
        self._view = View(span=span)
        self._in_view: tuple[float, float] | None = None
        self._free_at = 0.0
        self._asked = False
        # The page tells of a lost connection itself, and opens a new session.
        doc.config.notify_connection_status = doc.config.reconnect_session = False
        for name, chart in self._charts.items():
            chart.root.tags = [name]
            doc.add_root(chart.root)
        doc.add_root(self._note)
        doc.add_root(self._viewer)
        self._look = context.look(max(0.2, refresh))
        doc.on_event("connection_lost", self._on_lost)
        doc.add_periodic_callback(self._turn, 250)

    def close(self, session_context: Any) -> None:
        """The session is gone."""
        self._look.close()

    def _on_lost(self, event: Any) -> None:
        """The browser is gone, or its network; if it comes back, it says what it wants."""
        self._look.show(False)

    def _on_viewer(self, attribute: str, old: Any, new: Any) -> None:
        """The browser says what it wants: a view, whether it is visible, and the last number that it has shown."""
        wish = _Wish.read(new, self._view.span)
        if wish is None:
            return
        self._look.acknowledge(wish.shown)
        if wish.visible != self._look.visible:
            self._look.show(wish.visible)
        self._look.pause(wish.paused)
        if (wish.view, wish.in_view) != (self._view, self._in_view):
            self._view, self._in_view = wish.view, wish.in_view
            self._asked = True

    def _turn(self) -> None:
        """Push if there is something to push, somebody to see it and room for it."""
        now = monotonic()
        if now < self._free_at or not self._context.model.version:
            return
        if self._look.due(now) or (self._asked and self._look.visible and not self._look.paused):
            self._asked = False
            self._push()
            # What drawing costs is bounded, too: a model that is large is drawn less often.
            self._free_at = max(self._free_at, now + (monotonic() - now) / _WORK)

    def _frame(self) -> Frame:
        model, view = self._context.model, self._view
        if self._in_view is not None:
            low, high = (model.begin + each for each in self._in_view)
            start, stop = max(model.begin, low), max(model.begin, min(high, model.now))
            return Frame(model, start, stop, False, view.prefix, view.search)
        start, stop = view.window(model)
        return Frame(model, start, stop, view.range is None, view.prefix, view.search)

    def _push(self) -> None:
        frame = self._frame()
        told, size = {}, 200
        for name, chart in self._charts.items():
            try:
                drawn = chart.draw(frame)
            except Exception:  # one chart that can't be drawn must not take the others with it
                logger.exception("The chart %s could not be drawn", name)
                drawn = Drawn(empty="This chart could not be drawn; the dashboard's log says why. The others go on.")
            size += drawn.size
            told[name] = {"empty": drawn.empty, "notes": drawn.notes, **drawn.facts}
        model = self._context.model
        note = {
            "number": self._look.pushed(),
            "now": model.now - model.begin,
            "from": frame.start - model.begin,
            "to": frame.stop - model.begin,
            "skipped": self._look.skipped,
            "charts": told,
        }
        text = json.dumps(note)
        self._note.data = {"told": [text]}
        self._free_at = monotonic() + (size + len(text)) / _BYTES
