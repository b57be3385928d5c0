"""The pages over HTTP: shells, their numbers as JSON, their files.

Contents: routes, applications, plots.
"""

from __future__ import annotations

import hashlib
from functools import cache, partial
from pathlib import Path
from typing import Any

from tornado import web

from gnomon.reports import palette
from gnomon.reports.dashboard.context import Context
from gnomon.reports.dashboard.guard import PageHandler
from gnomon.reports.dashboard.pages import contents
from gnomon.reports.dashboard.pages.catalogue import PAGES, PLOTS, SINGLES, Block, PageEntry, PlotEntry, page_named
from gnomon.reports.dashboard.pages.panels import label_of
from gnomon.reports.dashboard.pages.view import SPANS, View
from gnomon.reports.page.build import own_css
from gnomon.reports.page.squeeze import squeezed_script
from gnomon.reports.templates import load_template

__all__ = ["applications", "plots", "routes"]

_HERE = Path(__file__).parent
_REPORT = _HERE.parents[1] / "page" / "scripts"

#: The scripts in the order in which they depend on each other; units are the report's.
_SCRIPTS = (
    _REPORT / "words.js",
    *(_HERE / "scripts" / f"{name}.js" for name in ("state", "panels", "feed", "minimap", "flames", "asked", "charts")),
)

_KEYS = (
    (("1", "…", "9"), "pages"), (("Space",), "pause, go on"), (("l",), "live: follow again"), (("0",), "whole run"),
    (("w", "s"), "timeline: zoom in, out"), (("a", "d"), "timeline: back, on"), (("/",), "search"), (("t",), "theme"),
    (("?",), "this help"), (("Esc",), "clear all filters"),
)  # fmt: skip


@cache
def script() -> str:
    """The pages' own script: the parts in one function, without indentation and comments."""
    parts = [path.read_text("utf-8") for path in _SCRIPTS]
    return squeezed_script("\n".join(['"use strict";', "(() => {", *parts, "})();"]))


@cache
def style() -> str:
    """The report's style sheet and palette, and what only these pages need."""
    return "\n".join((palette.css(), own_css(), (_HERE / "dashboard.css").read_text("utf-8")))


@cache
def _assets() -> dict[str, tuple[str, str]]:
    """Our files by name: content and type."""
    return {"dashboard.js": (script(), "text/javascript"), "dashboard.css": (style(), "text/css")}


@cache
def _version() -> str:
    """Changes when our files do."""
    return hashlib.sha256("".join(text for text, _ in _assets().values()).encode()).hexdigest()[:12]


def _shell(context: Context, entry: PageEntry, *, what: str = "", alone: Block | None = None) -> str:
    """The page without its numbers."""
    blocks = entry.blocks if alone is None else (alone,)
    charts = [block.name for block in blocks if block.chart]
    bokeh = context.bokeh and bool(charts)
    shown = label_of(what) if entry.name == "worker" else what
    title = shown or entry.label if alone is None else alone.title or entry.label
    settings = {
        "page": entry.name,
        "root": context.link("/"),
        "refresh": entry.refresh,
        "span": entry.span,
        "what": what,
        "alone": "" if alone is None else alone.name,
        "charts": f"charts/{entry.name if alone is None else alone.name}" if bokeh else "",
        "names": charts,
        "light": palette.LIGHT,
        "dark": palette.DARK,
    }
    return load_template(_HERE / "page.html").render(
        context=context, entry=entry, pages=PAGES, blocks=blocks, alone=alone is not None, title=title, what=what,
        settings=settings, version=_version(), spans=SPANS, keys=_KEYS, bokeh=bokeh,
        name=context.name or context.model.address or "cluster",
    )  # fmt: skip


class _Page(PageHandler):
    """A page's shell."""

    def get(self, what: str = "") -> None:
        self.send_page(_shell(self.context, self.given["entry"], what=what))


class _Alone(PageHandler):
    """A plot alone, for notebooks and panes."""

    def get(self) -> None:
        plot: PlotEntry = self.given["plot"]
        entry = page_named(plot.page)
        assert entry is not None
        block = next(block for block in entry.blocks if block.name == plot.block)
        self.send_page(_shell(self.context, entry, alone=block))


class _Numbers(PageHandler):
    """What a page shows, as JSON."""

    async def get(self, name: str) -> None:
        entry = page_named(name)
        if entry is None:
            raise web.HTTPError(404)
        arguments = self.request.query_arguments
        self.send_json(await contents.told(self.context, entry, arguments, View.of(arguments, entry.span)))


class _Token(PageHandler):
    """Leave to open a session of charts."""

    def get(self) -> None:
        from bokeh.util.token import generate_jwt_token, generate_session_id

        server: Any = self.application
        session = generate_session_id(secret_key=server.secret_key, signed=server.sign_sessions)
        token = generate_jwt_token(
            session,
            secret_key=server.secret_key,
            signed=server.sign_sessions,
            expiration=server.session_token_expiration,
        )
        self.send_json({"token": token})


class _Asset(PageHandler):
    """Our own files; their names carry a version, so they may be kept."""

    def get(self, name: str) -> None:
        found = _assets().get(name)
        if found is None:
            raise web.HTTPError(404)
        self.set_header("Content-Type", f"{found[1]}; charset=utf-8")
        self.set_header("Cache-Control", "private, max-age=86400")
        self.finish(found[0])


class _Report(PageHandler):
    """A report built from what is kept, to be saved."""

    async def get(self, kind: str) -> None:
        view = View.of(self.request.query_arguments, "all")
        data, name = await contents.report(self.context, view, kind)
        self.set_header("Content-Type", "text/html; charset=utf-8" if kind == "html" else "application/octet-stream")
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')
        self.finish(data)


def routes(context: Context) -> list[tuple[str, type[PageHandler], dict[str, Any]]]:
    """The rules of all pages; paths without the dashboard's prefix."""
    here = {"context": context}
    rules: list[tuple[str, type[PageHandler], dict[str, Any]]] = [
        (entry.path, _Page, {**here, "entry": entry}) for entry in (*PAGES, *SINGLES)
    ]
    rules += [(f"/individual-{plot.name}", _Alone, {**here, "plot": plot}) for plot in PLOTS]
    if context.bokeh:
        rules.append((r"/api/v1/pages/token\.json", _Token, here))
    rules += [
        (r"/api/v1/pages/([a-z-]+)\.json", _Numbers, here),
        (r"/assets/([a-z.]+)", _Asset, here),
        (r"/report/gnomon-report\.(html|gnomon)", _Report, here),
    ]
    return rules


def applications(context: Context) -> dict[str, Any]:
    """Bokeh's applications by path: the charts of each page, and each chart alone."""
    from bokeh.application import Application
    from bokeh.application.handlers import FunctionHandler

    from gnomon.reports.dashboard.pages.session import document

    made = {}
    for entry in PAGES:
        names = [block.name for block in entry.blocks if block.chart]
        groups = {entry.name: names, **{name: [name] for name in names}} if names else {}
        for path, charts in groups.items():
            act = partial(document, context, charts, entry.refresh, entry.span)
            made[f"/charts/{path}"] = Application(FunctionHandler(lambda doc, act=act: act(doc)))  # type: ignore[misc]
    return made


def plots(context: Context) -> list[dict[str, str]]:
    """What can be looked at alone."""
    return [
        {"name": plot.name, "title": plot.title, "path": f"/individual-{plot.name}", "description": plot.description}
        for plot in PLOTS
        if context.bokeh or not _is_chart(plot)
    ]


def _is_chart(plot: PlotEntry) -> bool:
    entry = page_named(plot.page)
    return entry is not None and any(block.chart for block in entry.blocks if block.name == plot.block)
