"""The dashboard in a real browser that reaches nothing else: pages in every state, live ranges, pause, loss, themes."""

from __future__ import annotations

import json
import time
from urllib.parse import urlsplit

import pytest

from gnomon.reports.dashboard.pages.catalogue import PAGES
from tests.dashboard.pages_env import HOSTILE

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

READY = "() => document.documentElement.dataset.ready === 'yes'"
DRAWN = "() => +document.documentElement.dataset.drawn >= 1"
RANGE = """() => {
    const { x_range } = Bokeh.documents.at(-1).get_model_by_name('stream');
    return [x_range.start, x_range.end];
}"""
BLOCKED = """() => {
    window.WebSocket = class {
        constructor() {
            setTimeout(() => {
                this.onerror?.(new Event('error'));
                this.onclose?.({ code: 1006, reason: '' });
            });
        }
        close() {}
    };
}"""
HIDE = """() => {
    Object.defineProperty(document, 'hidden', { get: () => window.hiddenNow ?? false, configurable: true });
    window.hide = (hidden) => { window.hiddenNow = hidden; document.dispatchEvent(new Event('visibilitychange')); };
}"""


@pytest.fixture(autouse=True)
def no_leftovers():
    """The browser keeps processes of its own from test to test."""


@pytest.fixture
def visit(chromium):
    """Opens pages of a dashboard; nothing else may be asked for, and nothing complained of unless a test expects it."""
    contexts = []
    troubles = []

    def opened(url, *, expect=(), wait=READY, before=None, **options):
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        host = urlsplit(url).netloc
        page.route(
            "**/*", lambda route: route.continue_() if urlsplit(route.request.url).netloc == host else route.abort()
        )
        page.on(
            "request",
            lambda r: urlsplit(r.url).netloc == host or r.url.startswith(("data:", "blob:")) or troubles.append(r.url),
        )

        def complain(text):
            if not any(part in text for part in expect):
                troubles.append(text)

        page.on("console", lambda m: m.type in ("error", "warning") and complain(m.text))
        page.on("pageerror", lambda e: complain(str(e)))
        page.messages = 0

        def count(_):
            page.messages += 1

        page.on("websocket", lambda ws: ws.on("framereceived", count))
        if before is not None:
            page.add_init_script(f"({before})()")
        page.goto(url)
        page.wait_for_function(wait)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


def until(page, condition, what, timeout=60):
    """Wait for a condition of ours, while the browser's events go on."""
    deadline = time.monotonic() + timeout
    while not (result := condition()):
        assert time.monotonic() < deadline, f"{what} did not come about"
        page.wait_for_timeout(50)
    return result


def drawn(page):
    return page.evaluate("() => +document.documentElement.dataset.drawn || 0")


def has_chart(entry):
    return any(block.chart for block in entry.blocks)


@pytest.mark.parametrize("state", ["nobody", "idle", "erred", "hostile"])
def test_every_page_shows_something_without_complaint(serve, visit, state):
    served = serve(state)
    page = visit(served.url + "/")
    for entry in PAGES:
        page.goto(served.url + entry.path)
        page.wait_for_function(READY)
        if has_chart(entry):
            page.wait_for_function(DRAWN)
        for block in entry.blocks:
            if block.chart:
                why = page.locator(f"#chart-{block.name} > .why")
                canvas = page.locator(f"#chart-{block.name} .plot > *")
                assert why.is_visible() != canvas.first.is_visible(), block.name
            else:
                assert len(page.inner_text(f"#panel-{block.name} .body")) > 10, block.name
        assert page.locator("img").count() == 0
        assert "owned" not in page.title()


def test_hostile_names_are_whole_on_hover_and_lead_to_their_page(serve, visit):
    served = serve("hostile")
    page = visit(served.url + "/tasks")
    for name in (HOSTILE[0], HOSTILE[4]):
        page.goto(served.url + "/tasks")
        page.wait_for_function(READY)
        page.locator("#table-prefixes a.go", has_text=name[:20]).first.click()
        page.wait_for_url("**/tasks/*")
        page.wait_for_function(READY)
        assert page.locator("#table-slowest tbody tr").count() == 1
        assert name in page.inner_text("h1")
    assert page.locator("img").count() == 0


def test_a_range_that_was_touched_stays_and_live_returns(serve, visit):
    served = serve("busy")
    page = visit(served.url + "/timeline", wait=DRAWN)
    before = drawn(page)
    until(page, lambda: drawn(page) > before, "another push")
    moving = page.evaluate(RANGE)
    until(page, lambda: page.evaluate(RANGE) != moving, "a range that follows")
    page.keyboard.press("w")
    chosen = page.evaluate(RANGE)
    assert page.is_visible("#live")
    answered = served.line.answered
    until(page, lambda: served.line.answered >= answered + 5, "further answers")
    page.wait_for_timeout(300)  # whatever was under way arrives
    assert page.evaluate(RANGE) == chosen
    page.click("#live")
    until(page, lambda: page.evaluate(RANGE)[1] > chosen[1], "a range that follows again")
    assert not page.is_visible("#live")


def test_a_pause_freezes_the_page_while_the_model_goes_on(serve, visit, ask):
    served = serve("busy")
    page = visit(served.url + "/", wait=DRAWN)
    page.keyboard.press(" ")
    assert page.get_attribute("#pause", "aria-pressed") == "true"
    page.wait_for_timeout(500)  # what was under way arrives
    frozen, pushes = page.inner_text("main"), page.messages
    first = json.loads(ask(served.url, "/api/v1/summary.json").body)["now"]

    def later():
        return json.loads(ask(served.url, "/api/v1/summary.json").body)["now"] > first + 3

    until(page, later, "a model that goes on")
    assert page.inner_text("main") == frozen
    assert page.messages == pushes
    assert "behind" in page.inner_text("#behind")
    page.keyboard.press(" ")
    until(page, lambda: page.inner_text("main") != frozen or page.messages > pushes, "a page that goes on")


def test_a_hidden_page_is_sent_nothing(serve, visit):
    served = serve("busy")
    page = visit(served.url + "/timeline", wait=DRAWN, before=HIDE)
    page.evaluate("() => hide(true)")
    until(page, lambda: not any(look.visible for look in served.context.feed.looks), "a look that is hidden")
    page.wait_for_timeout(500)
    before = page.messages
    for _ in range(10):
        served.run(served.context.fresh(age=0.0))
    page.wait_for_timeout(500)
    assert page.messages == before
    pushes = drawn(page)
    page.evaluate("() => hide(false)")
    until(page, lambda: drawn(page) > pushes, "a push after it was seen again")


def test_a_lost_scheduler_is_told_with_its_age_and_comes_back(serve, visit):
    served = serve("busy")
    page = visit(served.url + "/", wait=DRAWN)
    assert not page.is_visible("#banner")
    served.line.down = True
    page.wait_for_selector("#banner", state="visible")
    assert "Disconnected" in page.inner_text("#banner")
    assert " old" in page.inner_text("#banner")
    assert page.locator("#panel-counters dd").count() > 5
    served.line.down = False
    page.wait_for_selector("#banner", state="hidden")


def test_a_dashboard_that_is_gone_is_told(serve, visit):
    served = serve("busy")
    page = visit(served.url + "/", wait=DRAWN, expect=("Failed to load resource", "WebSocket", "[bokeh"))
    page.context.set_offline(True)
    page.wait_for_function("() => /does not answer/.test(document.getElementById('banner').textContent)")
    page.context.set_offline(False)
    page.wait_for_selector("#banner", state="hidden")


def test_without_websockets_the_numbers_go_on(serve, visit):
    served = serve("busy")
    page = visit(served.url + "/", before=BLOCKED, expect=("[bokeh", "websocket"))
    page.wait_for_function("() => /needs a websocket/.test(document.querySelector('.why').textContent)")
    tasks = "() => document.querySelector('#panel-counters dd[data-head=tasks]').textContent"
    assert page.evaluate(tasks) == "40"

    def more():
        served.scheduler.run(*[("inc", 1, served.scheduler.now - 1, 0.1)] * 5)

    served.call(more)
    page.wait_for_function(f"() => ({tasks})() === '45'")


def test_sessions_are_let_go_of(serve, visit):
    served = serve("busy")
    for _ in range(4):
        page = visit(served.url + "/", wait=DRAWN)
        page.context.close()
    deadline = time.monotonic() + 60
    while served.sessions or len(served.context.feed.looks):
        assert time.monotonic() < deadline, f"{served.sessions} sessions are still there"
        time.sleep(0.2)


@pytest.mark.slow
def test_fifty_loads_leave_no_memory_behind(serve, visit):
    import gc

    import psutil

    served = serve("busy")

    def load_page():
        page = visit(served.url + "/", wait=DRAWN)
        page.context.close()

    def at_rest():
        until_gone = time.monotonic() + 60
        while served.sessions:
            assert time.monotonic() < until_gone
            time.sleep(0.5)
        gc.collect()
        return psutil.Process().memory_info().rss

    for _ in range(10):
        load_page()
    before = at_rest()
    for _ in range(50):
        load_page()
    assert at_rest() - before < 10 << 20


def test_colours_are_those_of_the_report(serve, visit, ask, tmp_path):
    served = serve("busy")
    page = visit(served.url + "/timeline", wait=DRAWN)
    page.wait_for_selector("#table-stream-legend")
    swatch = """() => Object.fromEntries([...document.querySelectorAll('TABLE tbody tr')].map((row) =>
        [row.cells[0].textContent, getComputedStyle(row.querySelector('.swatch')).backgroundColor]))"""
    here = page.evaluate(swatch.replace("TABLE", "#table-stream-legend"))
    painted = page.evaluate("""() => {
        const model = (name) => Bokeh.documents.at(-1).get_model_by_name(name), { data } = model('stream-source');
        return Object.fromEntries([...data.slot].map((slot, i) => [data.key[i], model('stream-colors').palette[slot]]));
    }""")
    report = tmp_path / "report.html"
    report.write_text(ask(served.url, "/report/gnomon-report.html").body, "utf-8")
    other = page.context.new_page()
    other.goto(f"file://{report}#tab=tasks")
    other.wait_for_function(READY)
    there = other.evaluate(swatch.replace("TABLE", "#table-prefixes"))
    assert len(there) == 3
    assert here == there

    def rgb(color):
        return "rgb({}, {}, {})".format(*(int(color[i : i + 2], 16) for i in (1, 3, 5)))

    assert {name: rgb(color) for name, color in painted.items()} == there


def test_the_theme_turns_page_and_plots(serve, visit):
    served = serve("busy")
    page = visit(served.url + "/timeline", wait=DRAWN, color_scheme="dark")
    axis = "() => Bokeh.documents.at(-1).get_model_by_name('stream').below[0].major_label_text_color"
    colors = "() => Bokeh.documents.at(-1).get_model_by_name('stream-colors').palette[0]"
    dark = (
        page.evaluate(axis),
        page.evaluate(colors),
        page.evaluate("() => getComputedStyle(document.body).backgroundColor"),
    )
    page.emulate_media(color_scheme="light")
    until(page, lambda: page.evaluate(axis) != dark[0], "another colour of the axis")
    assert page.evaluate(colors) != dark[1]
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") != dark[2]


def test_tables_sort_on_the_server_and_by_keyboard(serve, visit):
    served = serve("busy")
    page = visit(served.url + "/tasks")
    page.wait_for_selector("#table-prefixes")
    page.focus("#table-prefixes th:nth-child(1) button")
    with page.expect_request(lambda request: "sort=prefixes%3A0%3A1" in request.url):
        page.keyboard.press("Enter")
    page.wait_for_selector("#table-prefixes th[aria-sort=ascending]")
    names = page.locator("#table-prefixes tbody td:first-child").all_inner_texts()
    assert names == sorted(names)
    page.keyboard.press("/")
    page.keyboard.type("sum")
    page.wait_for_function("() => document.querySelectorAll('#table-prefixes tbody tr').length === 1")
    assert "search=sum" in page.url
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.querySelectorAll('#table-prefixes tbody tr').length === 3")


def test_a_plot_alone_goes_on_by_itself(serve, visit):
    served = serve("busy")
    page = visit(served.url + "/individual-task-stream", wait=DRAWN)
    before = drawn(page)
    until(page, lambda: drawn(page) > before + 1, "further pushes")
    assert page.locator("nav").count() == 0
    assert page.locator("figure").count() == 1
