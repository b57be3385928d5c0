"""The page in a real browser, from a file, with the network blocked: tabs, names, themes, levels of detail."""

from __future__ import annotations

from itertools import pairwise

import pytest

from gnomon.reports.page import build_page
from tests.reports.conftest import DRAWN

pytestmark = pytest.mark.browser

TABS = ("summary", "timeline", "tasks", "scheduler", "workers", "communication", "memory", "errors", "run")
AXIS = "() => plot().below[0].major_label_text_color.value ?? plot().below[0].major_label_text_color"


def test_every_tab_shows_something(visit, busy):
    page = visit(busy(100))
    for name in TABS:
        page.click(f"#tab-{name}")
        assert page.is_visible(f"#{name}")
        assert page.locator("main > section:visible").count() == 1
        assert len(page.inner_text(f"#{name}")) > 20
        assert page.locator(".failed").count() == 0
        assert page.url.endswith(f"#tab={name}")
    page.go_back()
    assert page.is_visible("#errors")


def test_hostile_names_stay_text(visit, cluster):
    w = cluster.worker("$$w$$")
    mark = cluster.mark()
    names = ["<img src=x onerror=document.title='owned'>", "$$x$$", "😀", "x" * 10_000, ("a", 1), "\\(y\\)",
             "a,b&c=d#e+f g%20"]  # fmt: skip
    for i, name in enumerate(names):
        cluster.run(name, w, i, i + 0.5, prefix=str(name))
    cluster.now = 7.0
    page = visit(cluster.record(mark), "tab=timeline")
    assert page.title() == "gnomon report"
    for tab in TABS:
        page.click(f"#tab-{tab}")
        assert page.locator("img").count() == 0
    assert set(page.evaluate("() => keys()")) >= {names[0], "$$x$$", "😀", "('a', 1)"}
    page.click("#tab-tasks")
    for name in (names[0], names[6]):
        page.locator("#table-prefixes a.go", has_text=name).click()
        assert page.evaluate("() => gnomon.state.prefix") == name
        assert page.locator("#table-prefixes tbody tr").count() == 1
        page.reload()
        page.wait_for_function("() => document.documentElement.dataset.ready === 'yes'")
        assert page.evaluate("() => gnomon.state.prefix") == name
        page.click("#reset")


def test_many_tasks_are_merged_until_one_zooms(visit, busy):
    page = visit(busy(20_000, mean=0.001), "tab=timeline")
    assert page.evaluate("() => source().data.left.length") <= 10_000
    assert "of 20,000 tasks in view" in page.inner_text("#timeline-notice")
    page.evaluate("() => { plot().x_range.start = 1.0; plot().x_range.end = 1.1; }")
    page.wait_for_function("() => document.getElementById('timeline-notice').hidden")
    assert 0 < page.evaluate("() => source().data.left.length") < 10_000
    assert page.evaluate("() => keys().some((key) => /^parse-/.test(key))")
    inside = page.evaluate(
        "() => gnomon.data.runs.begins.filter((b, i) => b <= 1.1e7 && gnomon.data.runs.ends[i] >= 1e7).length"
    )
    assert page.evaluate("() => gnomon.detail(1.0, 1.1).alone") == inside


def test_the_script_draws_what_python_draws(visit, busy):
    from gnomon.reports.figures import rectangles

    recording = busy(12_000, mean=0.001)
    page = visit(recording, "tab=timeline")
    drawn = rectangles(recording, [0] * len(recording.runs.prefix_names))
    assert page.evaluate("() => source().data.left.length") == len(drawn.left)
    assert f"Drawing {drawn.alone:,} of 12,000" in page.inner_text("#timeline-notice")
    assert f"the {drawn.merged:,} shorter" in page.inner_text("#timeline-notice")


def test_more_threads_than_lanes_are_workers(visit, busy):
    page = visit(busy(600, workers=60, threads=4), "tab=timeline")
    assert "each lane is a worker" in page.inner_text("#timeline-notice")
    assert page.evaluate("() => plot().y_range.start") == 60
    assert page.evaluate("() => Math.max(...source().data.top)") <= 60


def test_tables_sort_by_value(visit, busy):
    page = visit(busy(500), "tab=tasks")
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
    assert not page.is_visible("#filter")
    assert "100.0 %" in page.inner_text("#table-account")


def test_in_a_sandboxed_frame(visit, busy):
    inner = build_page(busy(50)).replace("&", "&amp;").replace('"', "&quot;")
    frame = (
        f'<html data-ready="yes"><iframe sandbox="allow-scripts" width="1200" height="900" srcdoc="{inner}"></iframe>'
    )
    page = visit(frame)
    report = page.frames[1]
    report.wait_for_function("() => document.documentElement.dataset.ready === 'yes'")
    report.click("#tab-tasks")
    report.click("#theme")
    assert report.is_visible("#table-prefixes")
    report.click("#tab-timeline")
    report.wait_for_function("() => Bokeh.documents.length > 0")
    assert report.locator(".failed").count() == 0


def test_where_scripts_from_blobs_are_forbidden(visit, busy):
    text = build_page(busy(50))
    assert text.count("'unsafe-inline' blob:") == 1
    page = visit(text.replace("'unsafe-inline' blob:", "'unsafe-inline'"), "tab=timeline", wanted="script 'blob:")
    assert page.evaluate("() => source().data.left.length") > 0
    assert page.locator(".failed").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_themes(visit, busy, scheme):
    page = visit(busy(50), "tab=timeline", color_scheme=scheme)
    colors = "() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    ground, text = page.evaluate(colors)
    axis = page.evaluate(AXIS)
    assert contrast(rgb(ground), rgb(text)) > 4.5
    assert contrast(rgb(ground), rgb(axis)) > 4.5
    other = "dark" if scheme == "light" else "light"
    page.emulate_media(color_scheme=other)
    page.wait_for_function(f"() => getComputedStyle(document.body).backgroundColor !== {ground!r}")
    page.wait_for_function(f"() => ({AXIS})() !== {axis!r}")
    assert contrast(rgb(page.evaluate(colors)[0]), rgb(page.evaluate(AXIS))) > 4.5
    page.click("#theme")
    if scheme == "dark":
        page.click("#theme")
    page.wait_for_function(f"() => document.documentElement.dataset.theme === {scheme!r}")
    assert page.evaluate(colors)[0] == ground
    page.wait_for_function(f"() => ({AXIS})() === {axis!r}")


def test_print_is_light_and_whole(visit, busy):
    page = visit(busy(50), color_scheme="dark")
    page.emulate_media(media="print")
    assert min(rgb(page.evaluate("() => getComputedStyle(document.body).backgroundColor"))) > 240
    assert page.is_visible("#tasks")
    assert page.is_visible("#run")
    assert not page.is_visible("#filter")


@pytest.mark.parametrize(("width", "zoom"), [(420, 1), (1024, 1), (1600, 1), (1280, 2)])
def test_no_page_is_wider_than_its_window(visit, busy, width, zoom):
    page = visit(busy(50), viewport={"width": width // zoom, "height": 800 // zoom}, device_scale_factor=zoom)
    for name in TABS:
        page.click(f"#tab-{name}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width // zoom


def test_keyboard_alone(visit, busy):
    page = visit(busy(200))
    page.keyboard.press("3")
    assert page.is_visible("#tasks")
    page.focus("#tab-tasks")
    page.keyboard.press("ArrowRight")
    assert page.is_visible("#scheduler")
    assert page.evaluate("document.activeElement.id") == "tab-scheduler"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Home")
    assert page.is_visible("#summary")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "search"
    page.keyboard.type("parse")
    page.keyboard.press("Escape")
    assert page.evaluate("gnomon.state.search") == "parse"
    page.keyboard.press("3")
    rows = page.locator("#table-prefixes tbody tr")
    assert rows.count() == 1
    page.keyboard.press("Escape")
    assert rows.count() > 1
    page.focus("#table-prefixes th:nth-child(2) button")
    page.keyboard.press("Enter")
    assert page.get_attribute("#table-prefixes th:nth-child(2)", "aria-sort") == "descending"
    page.keyboard.press("?")
    assert page.is_visible("#help")
    page.keyboard.press("Escape")
    assert not page.is_visible("#help")
    page.keyboard.press("t")
    assert page.get_attribute("html", "data-theme") == "light"


def test_names_and_roles(visit, busy):
    page = visit(busy(60))
    assert page.get_attribute("nav", "role") == "tablist"
    for tab in TABS:
        assert page.get_attribute(f"#tab-{tab}", "aria-controls") == tab
        assert page.get_attribute(f"#{tab}", "aria-labelledby") == f"tab-{tab}"
    nameless = page.evaluate(
        "() => [...document.querySelectorAll('button, a, select, input')].filter((e) => !(e.textContent.trim()"
        " || e.getAttribute('aria-label') || (e.labels && e.labels.length))).map((e) => e.outerHTML)"
    )
    assert nameless == []
    assert page.evaluate("() => [...document.querySelectorAll('table:not(.facts)')].every((t) => t.caption)")
    ids = page.evaluate("() => [...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))
    levels = page.evaluate("() => [...document.querySelectorAll('h1, h2, h3')].map((h) => +h.tagName[1])")
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))


def test_empty_blocks_say_why(visit, cluster):
    cluster.worker("w")
    mark = cluster.mark()
    cluster.now = 0.2
    page = visit(cluster.record(mark))
    for tab in TABS:
        page.click(f"#tab-{tab}")
        text = page.inner_text(f"#{tab}")
        assert len(text) > 20
        for bad in ("NaN", "Infinity", "undefined", "null", "None "):
            assert bad not in text.replace("None in the calling process", "")
    assert "Is the computing inside the `with`?" in page.inner_text("#summary, #timeline") or page.url


def test_only_errors_and_a_worker_that_left(visit, cluster):
    a, b = cluster.worker("a"), cluster.worker("b")
    mark = cluster.mark()
    for i in range(10):
        cluster.run(f"bad-{i}", a, i, i + 0.5, ok=False)
    cluster.leave(b, 3.0, "killed")
    cluster.now = 12.0
    page = visit(cluster.record(mark), "tab=timeline")
    page.keyboard.press("n")
    assert "bad-0" in page.inner_text("#found")
    page.keyboard.press("n")
    assert "bad-1" in page.inner_text("#found")
    page.keyboard.press("p")
    assert "bad-0" in page.inner_text("#found")
    for tab in TABS:
        page.click(f"#tab-{tab}")
        text = page.inner_text(f"#{tab}")
        assert "NaN" not in text
        assert "Infinity" not in text
    assert "left at 3.000 s: killed" in page.inner_text("#workers") or page.evaluate(
        "() => document.getElementById('workers').textContent.includes('left at 3.000 s: killed')"
    )


def test_drawn_again_after_the_tab_was_left(visit, busy):
    page = visit(busy(300), "tab=summary")
    page.click("#tab-timeline")
    page.wait_for_function(DRAWN)
    page.click("#tab-tasks")
    page.locator("#table-prefixes a.go").first.click()
    page.click("#tab-timeline")
    page.wait_for_function("() => source().data.slot.includes(21)")


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


def test_the_timeline_is_ready_before_it_is_asked_for(visit, busy):
    page = visit(busy(300))
    page.wait_for_function("() => typeof Bokeh !== 'undefined' && Bokeh.documents.length && source().data.slot?.length")
    assert page.locator("main > section:visible").count() == 1
    assert page.evaluate("() => document.getElementById('timeline').getBoundingClientRect().height") == 0
    page.evaluate("() => gnomon.setRange(0.25 * gnomon.data.duration, 0.5 * gnomon.data.duration)")
    page.wait_for_function("() => document.getElementById('scope').textContent.includes('(25%)')")
    assert page.evaluate("() => [gnomon.shown, plot().x_range.start]") == [0, 0]
    page.click("#tab-timeline")
    page.wait_for_function("() => gnomon.shown > 0")
    start, duration = page.evaluate("() => [plot().x_range.start, gnomon.data.duration / 1e7]")
    assert start == pytest.approx(duration / 4)
    assert page.is_visible("#timeline-plot")


def test_hovering_tells_what_a_rectangle_is(visit, cluster):
    w = cluster.worker("w")
    mark = cluster.mark()
    cluster.run("<b>x</b>-1", w, 0.0, 8.0, prefix="x")
    cluster.now = 8.0
    page = visit(cluster.record(mark), "tab=timeline")
    box = page.locator("#timeline-plot canvas").first.bounding_box()
    tip = page.locator(".tip")
    for share in (0.5, 0.52, 0.54):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + 0.45 * box["height"])
    tip.first.wait_for()
    assert tip.first.inner_text().split("\n") == ["task <b>x</b>-1", "took 8.00 s", "on w, thread 0"]


def test_searching_finds_the_keys_that_hold_a_text(visit, busy):
    recording = busy(2_000)
    page = visit(recording)
    for text in ("merge-", "7", "e-0", "nowhere", recording.runs.keys[-1], recording.runs.keys[0][:-1].upper()):
        page.fill("#filter [name=search]", text)
        found = page.evaluate("() => { gnomon.drawAll(); return gnomon.data.matches.count; }")
        assert found == sum(text.lower() in key.lower() for key in recording.runs.keys)
