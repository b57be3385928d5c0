"""The page in a real browser, from a file, with the network blocked."""

from __future__ import annotations

import shutil

import pytest

from gnomon.reports.page import build_page

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]

SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync"]  # fmt: skip
DRAWN = "() => typeof Bokeh !== 'undefined' && Bokeh.documents.length && source().data.key !== undefined"
SOURCE = """() => {
    window.source = () => Bokeh.documents.at(-1).get_model_by_name("stream-source");
    window.plot = () => Bokeh.documents.at(-1).get_model_by_name("stream");
}"""


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, tmp_path):
    """Opens a recording's page; afterwards nothing may have been asked of a network or complained of."""
    troubles, contexts = [], []

    def opened(recording, tab="summary", **options):
        path = tmp_path / f"{len(contexts)}.html"
        path.write_text(build_page(recording), "utf-8")
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda r: r.url.startswith(("file:", "data:", "blob:")) or troubles.append(r.url))
        page.on("console", lambda m: m.type in ("error", "warning") and troubles.append(m.text))
        page.on("pageerror", lambda e: troubles.append(str(e)))
        page.goto(f"file://{path}#tab={tab}")
        if options.get("java_script_enabled", True):
            page.evaluate(SOURCE)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


def test_every_tab_shows_something(visit, busy):
    page = visit(busy(100))
    for name in ("summary", "stream", "tasks", "workers", "transfers", "errors", "run"):
        page.click(f"#tab-{name}")
        assert page.is_visible(f"#{name}")
        assert page.locator("main > section:visible").count() == 1
        assert len(page.inner_text(f"#{name}")) > 20
        assert page.url.endswith(f"#tab={name}")
    page.go_back()
    assert page.is_visible("#errors")


def test_hostile_keys_stay_text(visit, cluster):
    w = cluster.worker("$$w$$")
    mark = cluster.mark()
    names = ["<img src=x onerror=document.title='owned'>", "$$x$$", "😀", "x" * 10_000, ("a", 1), "\\(y\\)"]
    for i, name in enumerate(names):
        cluster.run(name, w, i, i + 0.5, prefix=str(name))
    cluster.now = 7.0
    page = visit(cluster.record(mark), "stream")
    page.wait_for_function(DRAWN)
    assert page.title() == "gnomon report"
    assert page.locator("img").count() == 0
    keys = page.evaluate("() => source().data.key")
    assert set(keys) >= {names[0], "$$x$$", "😀", "('a', 1)"}


def test_many_tasks_are_merged_until_one_zooms(visit, busy):
    page = visit(busy(20_000, mean=0.001), "stream")
    page.wait_for_function(DRAWN)
    assert page.evaluate("() => source().data.left.length") <= 10_000
    assert "of 20,000 tasks in view" in page.inner_text("#stream-notice")
    page.evaluate("() => { plot().x_range.start = 1.0; plot().x_range.end = 1.1; }")
    page.wait_for_function("() => document.getElementById('stream-notice').hidden")
    rows = page.evaluate("() => source().data.left.length")
    assert 0 < rows < 10_000
    assert page.evaluate("() => source().data.key.some((key) => /^parse-/.test(key))")


def test_the_script_draws_what_the_first_view_drew(visit, busy):
    from gnomon.reports.figures import rectangles

    recording = busy(12_000, mean=0.001)
    page = visit(recording, "stream")
    page.wait_for_function(DRAWN)
    drawn = rectangles(recording, [0] * len(recording.runs.prefix_names))
    assert page.evaluate("() => source().data.left.length") == len(drawn.left)
    assert f"Drawing {drawn.alone:,} of 12,000" in page.inner_text("#stream-notice")
    assert f"the {drawn.merged:,} shorter" in page.inner_text("#stream-notice")


def test_tables_sort_by_value(visit, busy):
    page = visit(busy(500), "tasks")
    numbers = "() => [...document.querySelectorAll('#table-prefixes tbody td:nth-child(5)')].map((c) => +c.dataset.v)"
    page.click("#table-prefixes th:nth-child(5) button")
    assert page.evaluate(numbers) == sorted(page.evaluate(numbers), reverse=True)
    page.click("#table-prefixes th:nth-child(5) button")
    assert page.evaluate(numbers) == sorted(page.evaluate(numbers))
    assert page.get_attribute("#table-prefixes th:nth-child(5)", "aria-sort") == "ascending"


def test_without_scripts_the_numbers_are_there(visit, busy):
    page = visit(busy(50), java_script_enabled=False)
    for name in ("summary", "tasks", "workers", "run"):
        assert page.is_visible(f"#{name}")
    assert "100.0 %" in page.inner_text("#table-account")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_themes(visit, busy, scheme):
    page = visit(busy(50), "stream", color_scheme=scheme)
    page.wait_for_function(DRAWN)
    ground, text, axis = page.evaluate(
        "() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,"
        " plot().below[0].major_label_text_color.value ?? plot().below[0].major_label_text_color]"
    )
    assert contrast(rgb(ground), rgb(text)) > 4.5
    assert contrast(rgb(ground), rgb(axis)) > 4.5
    page.emulate_media(color_scheme="dark" if scheme == "light" else "light")
    page.wait_for_function(f"() => getComputedStyle(document.body).backgroundColor !== {ground!r}")
    page.wait_for_function(
        f"() => (plot().below[0].major_label_text_color.value ?? plot().below[0].major_label_text_color) !== {axis!r}"
    )


@pytest.mark.parametrize("width", [420, 1024, 1600])
def test_no_page_is_wider_than_its_window(visit, busy, width):
    page = visit(busy(50), viewport={"width": width, "height": 800})
    for name in ("summary", "tasks", "workers", "transfers", "errors", "run"):
        page.click(f"#tab-{name}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def rgb(color):
    if color.startswith("#"):
        return [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    return [int(part) for part in color[color.index("(") + 1 : -1].split(",")[:3]]


def contrast(one, other):
    def luminance(channels):
        linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
