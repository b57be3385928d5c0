"""The one table of pages and plots: routes, menus, lists for notebooks and the pages' own scripts are made from it.

Contents: PageEntry, PlotEntry, PAGES, PLOTS, page_named.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PAGES", "PLOTS", "Block", "PageEntry", "PlotEntry", "page_named"]


class Block(NamedTuple):
    """A place on a page: a panel that the page's numbers fill, or a chart; ``reading`` says how to read a chart."""

    name: str
    title: str
    chart: bool = False
    reading: str = ""
    table: str = ""
    wide: bool = False


class PageEntry(NamedTuple):
    """A page: its name, path and label, the question that it answers, and how often it asks, in seconds (0: once)."""

    name: str
    path: str
    label: str
    question: str
    refresh: float
    blocks: tuple[Block, ...]
    span: str = "60"
    minimap: bool = False
    spans: bool = True


class PlotEntry(NamedTuple):
    """A plot that can be looked at alone: a block of a page."""

    name: str
    title: str
    page: str
    block: str
    description: str


def _panel(name: str, title: str = "", *, wide: bool = False) -> Block:
    return Block(name, title, wide=wide)


def _chart(name: str, title: str, reading: str, table: str) -> Block:
    return Block(name, title, chart=True, reading=reading, table=table, wide=True)


_STREAM = _chart(
    "task-stream",
    "Task stream",
    "Each lane is a thread of a worker, each bar a task in the colour of its prefix; gaps are waiting or idleness.",
    "tasks",
)
_LOAD = _chart(
    "workers-load",
    "Workers' processor and memory",
    "A bar for each worker, of one core and of the memory limit (of the largest, where there is no limit); above 50 "
    "workers, how many have which load.",
    "workers",
)
_MEASURED = _chart(
    "measured",
    "Processes",
    "What the cluster's processes measured of themselves, on one axis of time; a gap is where nothing was measured.",
    "scheduler",
)
_LAG = _chart(
    "loop-lag", "Loop lag and work", "How late the scheduler's loop came round, and the share of time it worked.",
    "scheduler",
)  # fmt: skip
_MEMORY_SERIES = _chart(
    "memory-series", "Memory over time", "Memory of all workers' processes and of the scheduler's.", "memory"
)
PAGES = (
    PageEntry(
        "summary", "/", "Summary", "How does it go, and where does the time go?", 1.0,
        (
            _panel("counters", wide=True), _panel("budget", "Where the threads' time goes", wide=True),
            _panel("progress", "Progress by prefix", wide=True), _LOAD, _MEASURED,
            _panel("latest-errors", "Latest errors", wide=True),
        ),
    ),
    PageEntry(
        "timeline", "/timeline", "Timeline", "When, and on which worker?", 1.0,
        (_STREAM, _MEASURED, _panel("stream-legend", "Prefixes in this window", wide=True)), minimap=True,
    ),
    PageEntry(
        "tasks", "/tasks", "Tasks", "Which function?", 2.0,
        (
            _panel("prefixes", wide=True), _panel("durations", "How long tasks computed"), _panel("slowest", wide=True),
            _panel("known-tasks", "Tasks that the scheduler knows now", wide=True),
        ), span="300", minimap=True,
    ),
    PageEntry(
        "scheduler", "/scheduler", "Scheduler", "Is the scheduler the limit?", 1.0,
        (
            _panel("scheduler", wide=True), _panel("loop", "Where the loop's time goes", wide=True),
            _panel("loop-parts"), _panel("traffic"), _LAG, _panel("process"), _panel("cost"),
            _panel("stalls", wide=True),
        ),
    ),
    PageEntry(
        "workers", "/workers", "Workers", "Is one worker odd?", 2.0,
        (_panel("workers", wide=True), _LOAD, _panel("departed", wide=True)),
    ),
    PageEntry(
        "communication", "/comm", "Communication", "What does moving data cost?", 2.0,
        (_panel("transports"), _panel("matrix", "From whom to whom", wide=True), _panel("pairs", wide=True)),
        span="300", minimap=True,
    ),
    PageEntry(
        "memory", "/memory", "Memory", "Who holds the memory?", 2.0,
        (_panel("memory", wide=True), _MEMORY_SERIES, _panel("results", wide=True)), span="300",
    ),
    PageEntry(
        "errors", "/errors", "Errors", "What failed?", 5.0, (_panel("errors", wide=True),), spans=False,
    ),
    PageEntry("logs", "/logs", "Logs", "What did the scheduler log?", 5.0, (_panel("logs", wide=True),), span="all"),
    PageEntry(
        "events", "/events", "Events", "What happened to the cluster?", 5.0, (_panel("events", wide=True),), span="all",
    ),
    PageEntry(
        "profile", "/profile", "Profile", "What is the code at?", 0.0,
        (_panel("flame", wide=True), _panel("functions", wide=True)), span="300", minimap=True,
    ),
    PageEntry(
        "graph", "/graph", "Graph", "What needs what?", 0.0,
        (_panel("group-graph", "Groups of tasks", wide=True), _panel("graph", wide=True)), spans=False,
    ),
    PageEntry(
        "report", "/report", "Report", "Can I keep this?", 0.0, (_panel("report", wide=True),),
        span="all", minimap=True,
    ),
)  # fmt: skip

#: Pages of one thing, reached through a link.
SINGLES = (
    PageEntry(
        "prefix", "/tasks/(.+)", "Tasks", "One kind of task", 2.0,
        (
            _panel("progress", wide=True), _panel("durations", "How long its tasks computed"),
            _panel("slowest", wide=True),
            _panel("known-tasks", "Its tasks that the scheduler knows now", wide=True),
        ), span="300", minimap=True,
    ),
    PageEntry(
        "worker", "/workers/(.+)", "Workers", "One worker", 2.0,
        (
            _panel("worker", wide=True), _panel("threads", wide=True), _panel("stacks", "Call stacks", wide=True),
            _panel("pairs", wide=True), _panel("worker-events", "What happened to it", wide=True),
        ), span="300", minimap=True,
    ),
)  # fmt: skip

#: Blocks that make no sense without the rest of their page.
_NOT_ALONE = frozenset({"stream-legend", "graph", "report", "cost", "departed"})


def _plots() -> tuple[PlotEntry, ...]:
    """Every block that can stand alone; one that is on several pages, as on the first of them."""
    found: dict[str, PlotEntry] = {}
    for page in PAGES:
        for block in page.blocks:
            if block.name not in _NOT_ALONE:
                title = block.title or f"{page.label}: {block.name.replace('-', ' ')}"
                found.setdefault(
                    block.name, PlotEntry(block.name, title, page.name, block.name, block.reading or page.question)
                )
    return tuple(found.values())


PLOTS = _plots()


def page_named(name: str) -> PageEntry | None:
    """The page, also one of one thing; None if there is none."""
    return next((page for page in (*PAGES, *SINGLES) if page.name == name), None)
