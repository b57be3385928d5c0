"""The dashboard's pages without a browser: what a view asks for, what panels and charts hold, what is served."""

from __future__ import annotations

import asyncio
import html
import json
from types import SimpleNamespace

import numpy
import pytest

from gnomon.reports.account import PARTS
from gnomon.reports.dashboard.counters import Counters
from gnomon.reports.dashboard.model import Model
from gnomon.reports.dashboard.pages import panels
from gnomon.reports.dashboard.pages.catalogue import PAGES, PLOTS, SINGLES
from gnomon.reports.dashboard.pages.charts import CHARTS
from gnomon.reports.dashboard.pages.data import memory
from gnomon.reports.dashboard.pages.graph import levels
from gnomon.reports.dashboard.pages.handlers import script, style
from gnomon.reports.dashboard.pages.profile import layout
from gnomon.reports.dashboard.pages.session import document
from gnomon.reports.dashboard.pages.sources import Frame, Sources
from gnomon.reports.dashboard.pages.view import View
from gnomon.reports.dashboard.pages.workers import workers
from gnomon.reports.figures import Flame
from gnomon.reports.recording import load
from tests.dashboard.pages_env import HOSTILE, PATHS, fill


@pytest.fixture
def model_in(by_hand):
    """A model that heard everything of a scheduler in a state."""

    def made(state="busy", more=()):
        scheduler = by_hand()
        fill(scheduler, state)
        if more:
            scheduler.run(*more)
        model = Model()
        scheduler.feed(model)
        return model

    return made


def numbers(ask, served, name, query=""):
    answer = ask(served.url, f"/api/v1/pages/{name}.json{query}")
    assert answer.status == 200, answer.body
    return json.loads(answer.body, parse_constant=pytest.fail)


# What is asked for


def test_a_view_takes_what_makes_sense_and_leaves_the_rest(model_in):
    view = View.of(
        {
            "span": [b"7"],
            "t": [b"3-x"],
            "prefix": [b"a<b"],
            "sort": [b"t:2:-1", b"u:x:1", b"v:1:5"],
            "page": [b"t:3", b"u:-1"],
        },
        "300",
    )
    assert (view.span, view.range, view.prefix) == ("300", None, "a<b")
    assert dict(view.sorts) == {"t": (2, -1)}
    assert dict(view.leaves) == {"t": 3}
    model = model_in()
    low, high = View.of({"t": [b"2.5-4"]}).window(model)
    assert (low - model.begin, high - model.begin) == (2.5, 4.0)
    assert View.of({"span": [b"600"]}).window(model) == (model.begin, model.now)
    assert View.of({"t": [b"-5-99999"]}).window(model) == (model.begin, model.now)


def test_tables_sort_by_value_search_and_turn_leaves():
    rows = [[panels.cell(f"n{i}", None, f"name {i}"), panels.cell(f"{1000 - i:,}", 1000 - i)] for i in range(130)]
    columns = (("name", False), ("count", True))
    first = panels.table(View(), "t", columns, rows)
    assert (len(first["rows"]), first["pages"], first["total"]) == (panels.LEAF, 3, 130)
    last = panels.table(View(sorts={"t": (1, 1)}, leaves={"t": 99}), "t", columns, rows)
    assert last["page"] == 2
    assert last["rows"][-1][1]["t"] == "1,000"
    found = panels.table(View(search="NAME 12"), "t", columns, rows)
    assert {row[0]["t"] for row in found["rows"]} == {"n12", *(f"n{i}" for i in range(120, 130))}
    assert "nowhere" in panels.table(View(search="nowhere"), "t", columns, rows, empty="none")["text"]
    assert "v" not in first["rows"][0][1]


def test_a_flame_graph_keeps_every_second_and_filters_by_label():
    tree = Flame("all", ["all", "f", "g", "h"], [0, 1, 2, 3], [-1, 0, 1, 0], ["", "inc"], [(0, 1)], [0, 0, 0],
                 [1, 0, 1], [2, 3, 1], [2.0, 1.0, 1.0], 0)  # fmt: skip
    drawn = layout(tree)
    widths = {tree.names[name]: width for name, _, _, width in drawn.frames}
    assert drawn.seconds == 4.0
    assert widths == {"all": 1.0, "f": 0.75, "g": 0.5, "h": 0.25}
    assert drawn.own == {"all": 0.0, "f": 1.0, "g": 2.0, "h": 1.0}
    assert layout(tree, "inc").seconds == 3.0
    assert layout(tree, "other").frames == []


def test_boxes_of_a_graph_stand_behind_what_they_need():
    assert levels(5, [(0, 1), (1, 2), (0, 2), (3, 2)]) == [0, 1, 2, 0, 0]
    assert levels(3, [(0, 1), (1, 2), (2, 1), (0, 0)])[0] == 0  # circles end


# What is served


@pytest.mark.parametrize("state", ["nobody", "idle", "busy", "erred", "hostile"])
def test_every_page_answers_in_every_state(serve, ask, state):
    served = serve(state)
    for entry in PAGES:
        page = ask(served.url, entry.path)
        assert page.status == 200
        assert "<img" not in page.body
        told = numbers(ask, served, entry.name)
        assert told["heard"]
        shown = {panel["name"]: panel for panel in told["panels"]}
        missing = {block.name for block in entry.blocks if not block.chart} - set(shown)
        assert not missing
        for panel in told["panels"]:
            assert panel["kind"] != "text" or panel["text"]
            assert panel["kind"] != "table" or panel["rows"]  # never an empty table: a sentence instead


def test_names_stay_text_in_addresses_and_pages(serve, ask):
    served = serve("hostile")
    told = numbers(ask, served, "tasks")
    links = {cell["a"] for panel in told["panels"] if panel["kind"] == "table" for row in panel["rows"]
             for cell in row if "a" in cell}  # fmt: skip
    assert len([link for link in links if link.startswith("tasks/")]) == len(HOSTILE)
    for link in links:
        page = ask(served.url, "/" + link)
        assert page.status == 200
        assert "<img" not in page.body
    assert numbers(ask, served, "prefix", "?what=%24%24x%24%24")["panels"]
    groups = next(panel for panel in numbers(ask, served, "errors")["panels"] if panel["kind"] == "groups")
    assert any(
        HOSTILE[0] in group["text"] for group in groups["groups"]
    )  # whole, and text: the page's script parses none
    page = ask(served.url, "/tasks/%3Cscript%3Ealert(1)%3C%2Fscript%3E").body
    assert html.escape("<script>alert(1)</script>") in page
    assert "<script>alert" not in page


def test_the_budget_adds_up_and_is_the_accounts(serve, ask):
    served = serve("busy")
    bar = next(p for p in numbers(ask, served, "summary")["panels"] if p["name"] == "budget")
    assert {name for name, *_ in bar["parts"]} <= set(PARTS)
    assert sum(percent for _, _, percent, _ in bar["parts"]) == pytest.approx(100.0)
    assert "= capacity" in bar["closing"]


def test_a_range_limits_tables_to_itself(serve, ask):
    served = serve("busy")
    whole = numbers(ask, served, "timeline", "?span=all")["panels"][0]
    part = numbers(ask, served, "timeline", "?t=1-1.55")["panels"][0]
    tasks = [sum(int(row[1]["t"]) for row in panel["rows"]) for panel in (whole, part)]
    assert tasks[0] == 40
    assert 0 < tasks[1] < 10


def test_every_plot_stands_alone_and_is_listed_once(serve, ask):
    served = serve("busy")
    listed = json.loads(ask(served.url, "/api/v1/plots.json").body)
    assert len({plot["name"] for plot in listed}) == len(listed) == len(PLOTS)
    for plot in listed:
        page = ask(served.url, plot["path"])
        assert page.status == 200
        assert "<nav" not in page.body


def test_without_bokeh_pages_say_so_and_offer_no_charts(serve, ask):
    served = serve("busy", bokeh=False)
    page = ask(served.url, "/timeline").body
    assert "Bokeh is not installed" in page
    assert "bokeh.min.js" not in page
    assert not any(plot["name"] in CHARTS for plot in json.loads(ask(served.url, "/api/v1/plots.json").body))
    assert ask(served.url, "/api/v1/pages/token.json").status == 404


def test_paths_stay_below_the_prefix(serve, ask):
    served = serve("busy", prefix="/a/b")
    page = ask(served.url, "/a/b/").body
    assert 'href="/a/b/timeline"' in page
    assert '"root": "/a/b/"' in page
    assert ask(served.url, "/a/b/assets/dashboard.js").status == 200
    assert ask(served.url, "/timeline").status == 404


def test_a_report_of_what_is_kept_can_be_saved(serve, ask, tmp_path):
    served = serve("busy")
    page = ask(served.url, "/report/gnomon-report.html?t=0-5")
    assert page.status == 200
    assert page.headers["content-disposition"].startswith("attachment")
    (tmp_path / "report.html").write_text(page.body, "utf-8")
    recording = load(tmp_path / "report.html")
    assert sum(totals.tasks for totals in recording.prefixes) == 40


def test_a_scheduler_that_is_gone_is_said_to_be(serve, ask):
    served = serve("busy")
    assert numbers(ask, served, "summary")["connected"]
    served.line.down = True
    told = {}
    while told.get("connected", True):
        told = numbers(ask, served, "summary")
    assert told["age"] > 0
    assert told["panels"]  # what was known stays
    assert "could not be asked" in json.dumps(numbers(ask, served, "graph"))
    served.line.down = False
    while not told["connected"]:
        told = numbers(ask, served, "summary")


def test_our_own_files_are_small_and_name_no_other_place():
    assert len(script()) + len(style()) < 100_000
    assert "//" not in style().replace("/*", "")
    assert "http" not in script().replace("http://www.w3.org/2000/svg", "").replace("https:", "")


def test_names_of_pages_and_blocks_are_unique():
    pages = [entry.name for entry in (*PAGES, *SINGLES)]
    assert len(set(pages)) == len(pages)
    assert set(PATHS) == {entry.name for entry in PAGES}
    for entry in PAGES:
        assert all(block.name in CHARTS for block in entry.blocks if block.chart)


# Charts


def test_columns_that_stay_the_same_are_not_sent_again():
    class Source:
        data = None

    source, sources = Source(), Sources()
    assert sources.put(source, {"x": numpy.arange(3.0)}) == 24
    source.data = None
    assert sources.put(source, {"x": numpy.arange(3.0)}) == 0
    assert source.data is None
    assert sources.put(source, {"x": numpy.arange(4.0)}) == 32


@pytest.mark.parametrize("name", sorted(CHARTS))
@pytest.mark.parametrize("state", ["nobody", "idle", "busy", "hostile"])
def test_charts_draw_or_say_why_not(model_in, name, state):
    model = model_in(state)
    drawn = CHARTS[name]().draw(Frame(model, model.begin, model.now))
    assert bool(drawn.empty) != bool(drawn.size)


def test_a_stream_that_flows_fits_into_a_push_and_says_what_it_merged(model_in):
    rows = [("tiny", 1 + i % 2, 1001.0 + 0.001 * (i // 2), 0.0009) for i in range(12_000)]
    model = model_in("idle", rows)
    chart = CHARTS["task-stream"]()
    frame = Frame(model, model.begin, model.now)
    for _ in range(5):
        drawn = chart.draw(frame)
    source = next(each for each in chart.root.references() if each.name == "stream-source")
    assert len(source.data["left"]) <= 3_000
    assert "of 12,000 tasks in view" in drawn.notes[0]
    assert drawn.facts["rows"]
    standing = CHARTS["task-stream"]()
    standing.draw(Frame(model, model.begin + 1, model.begin + 1.5, flowing=False))
    source = next(each for each in standing.root.references() if each.name == "stream-source")
    assert 950 <= len(source.data["left"]) <= 1_010  # single ones
    assert float(source.data["left"].min()) >= 0.99


def test_what_the_filter_leaves_out_is_grey(model_in):
    model = model_in("busy")
    chart = CHARTS["task-stream"]()
    chart.draw(Frame(model, model.begin, model.now, prefix="sum"))
    source = next(each for each in chart.root.references() if each.name == "stream-source")
    assert sorted(set(source.data["slot"].tolist()))[-1] == 21
    assert (source.data["slot"] != 21).sum() == 10


def test_many_workers_are_counted_by_load(by_hand):
    scheduler = by_hand()
    for worker in range(1, 61):
        scheduler.join(worker)
    scheduler.now += 1.0
    model = Model()
    scheduler.feed(model)
    chart = CHARTS["workers-load"]()
    drawn = chart.draw(Frame(model, model.begin, model.now))
    assert "60 workers" in drawn.notes[0]


# A session


class Clock:
    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr("gnomon.reports.dashboard.pages.session.monotonic", lambda: self.now)


@pytest.fixture
def session(serve, monkeypatch):
    """A session's document, its turn, and how the browser's words reach it."""
    from bokeh.document import Document

    served = serve("busy")
    served.run(served.context.fresh())
    clock = Clock(monkeypatch)
    doc = Document()
    document(served.context, ["task-stream", "workers-load"], 1.0, "60", doc)
    turn = doc.session_callbacks[0].callback
    viewer, note = (doc.get_model_by_name(name) for name in ("viewer", "note"))

    def say(**words):
        viewer.tags = [json.dumps({"visible": True, "query": {"span": "60"}, **words})]

    def told():
        return json.loads(note.data["told"][0]) if note.data["told"][0] else None

    return served, clock, turn, say, told


def test_a_session_pushes_again_when_the_last_was_shown(session):
    served, clock, turn, say, told = session
    served.call(turn)
    assert told()["number"] == 1
    clock.now += 10
    served.run(served.context.fresh(age=0.0))
    served.call(turn)
    assert told()["number"] == 1  # not shown yet
    served.call(lambda: say(shown=1))
    clock.now += 10
    served.run(served.context.fresh(age=0.0))
    served.call(turn)
    assert told()["number"] == 2
    assert told()["skipped"] >= 1


def test_a_session_sends_nothing_to_the_hidden_and_the_paused(session):
    served, clock, turn, say, told = session
    for words in ({"visible": False}, {"paused": True}):
        served.call(lambda words=words: say(**words))
        for _ in range(3):
            clock.now += 10
            served.run(served.context.fresh(age=0.0))
            served.call(turn)
        assert told() is None
    served.call(lambda: say(paused=False))
    clock.now += 10
    served.call(turn)
    assert told()["number"] == 1


def test_a_session_draws_what_the_reader_looks_at(session):
    served, clock, turn, say, told = session
    served.call(lambda: say(view=[1.0, 2.0]))
    served.call(turn)
    assert (told()["from"], told()["to"]) == (1.0, 2.0)
    served.call(lambda: say(shown=1, view=None))
    clock.now += 10
    served.call(turn)
    assert told()["to"] == pytest.approx(served.context.model.now - served.context.model.begin)


def test_what_is_no_message_changes_nothing(session):
    served, _, turn, say, told = session
    served.call(lambda: say(query="x", view="y", shown="z"))
    served.call(turn)
    assert told()["number"] == 1


def test_a_thousand_workers_take_no_time_of_each_other(by_hand, monkeypatch):
    """What is looked up for each worker is made once for all: a table of a thousand stays usable."""
    scheduler = by_hand()
    for worker in range(1, 1_001):
        scheduler.join(worker)
    scheduler.now += 1.0
    model = Model()
    scheduler.feed(model)
    made = []
    totals = Counters.worker_totals.fget
    monkeypatch.setattr(Counters, "worker_totals", property(lambda self: made.append(1) or totals(self)))
    context = SimpleNamespace(model=model)
    present = asyncio.run(workers(context, View()))[0]
    held = asyncio.run(memory(context, View()))[0]
    assert present["total"] == held["total"] == 1_000
    assert len(present["rows"]) == panels.LEAF
    assert len(made) == 1
