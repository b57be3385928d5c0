"""The flame graph in a real browser, from a file, with the network blocked."""

from __future__ import annotations

import pytest

from gnomon.profiler.export.flamegraph import to_html
from gnomon.profiler.sessions.session import REGION, Function, RegionTime
from tests.profiler.made_sessions import made

pytestmark = pytest.mark.browser

EVIL = "</script><script>document.title='owned'</script><!--<img src=x onerror=document.title='owned'>"
FUNCTIONS = {
    "evil": Function(EVIL, "/tmp/<b>&.py", 3, "<i>evil</i>"),
    "template": Function("$title ${data} `${1}` \u2028 \x1b[31m 😀", "/tmp/$x.py", 3, "m"),
    "named": Function(EVIL, REGION, 0, ""),
    "wait": Function("Condition.wait", "/usr/lib/python3.11/threading.py", 300, "threading"),
}


@pytest.fixture
def visit(chromium, tmp_path):
    """Opens a session's page; afterwards nothing may have been asked of a network or complained of."""
    troubles, contexts = [], []

    def opened(session, fragment="", **options):
        path = tmp_path / f"{len(contexts)}.html"
        path.write_text(to_html(session), "utf-8")
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda r: r.url.startswith(f"file://{path}") or troubles.append(r.url))
        page.on("console", lambda m: troubles.append(m.text))
        page.on("pageerror", lambda e: troubles.append(str(e)))
        page.on("dialog", lambda d: (troubles.append(d.message), d.dismiss()))
        page.goto(f"file://{path}{fragment}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


@pytest.fixture
def session():
    """main 10 s: parse 6 s (loads 4 s), hook 3 s, own 1 s in the one thread; a second thread mostly waits."""
    return made(
        ("main", 50), ("main parse:8", 100), ("main parse:8 loads decode", 300), ("main hook", 50),
        ("main", 50, 1), ("main parse:8", 100, 1), ("main parse:8 loads decode", 100, 1), ("main hook", 250, 1),
        ("main wait", 490, 0, 1), ("main engine", 10, 1, 1),
        ticks=100, buckets=2, functions=FUNCTIONS, regions=(RegionTime(1, 1, "engine.step", 1234, 0.1, 0.1),),
    )  # fmt: skip


def selected(page):
    return page.locator("#selection strong").inner_text()


def numbers(page):
    return page.locator("#selection .numbers").inner_text()


def caption(page):
    return page.inner_text("#caption")


def colours(page):
    """Every colour on the canvas, with its number of pixels."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page.evaluate(
        """() => {
            const canvas = document.getElementById("canvas"), copy = document.createElement("canvas"), found = {};
            copy.width = canvas.width;
            copy.height = canvas.height;
            const pen = copy.getContext("2d", { willReadFrequently: true });
            pen.drawImage(canvas, 0, 0);
            const { data } = pen.getImageData(0, 0, copy.width, copy.height);
            for (let i = 0; i < data.length; i += 4) {
                if (data[i + 3] < 255) continue;
                const key = [data[i], data[i + 1], data[i + 2]].join();
                found[key] = (found[key] || 0) + 1;
            }
            return found;
        }"""
    )


def test_something_is_drawn_and_said(visit, session):
    page = visit(session)
    assert len(colours(page)) > 5
    assert "Sampled time of 2 threads; width is time, heaviest left. Shown: whole run, 15.0 s." in caption(page)
    assert "own time" in page.inner_text("#legend").lower()
    assert page.locator("#functions tbody tr").count() == 7


def test_keys_walk_the_tree(visit, session):
    page = visit(session)
    page.focus("#view")
    walked = []
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
        walked.append(selected(page))
    assert walked == ["MainThread of made", "main", "parse", "hook", "parse", "loads", "parse", "main"]
    assert (
        numbers(page)
        == "10.0 s of 15.0 s (66.7 %) · own 1.00 s (6.7 %) · 100.0 % of its caller · lines in all: 11 (10.0 s)"
    )


def test_enter_zooms_and_escape_goes_back(visit, session):
    page = visit(session)
    page.focus("#view")
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert "Shown: 6.00 s of 15.0 s (40.0 %)." in caption(page)
    assert page.locator("#selection .path button").all_inner_texts() == ["Whole run", "MainThread of made", "main"]
    page.keyboard.press("Escape")
    assert selected(page) == "main"
    assert "Shown: 10.0 s of 15.0 s" in caption(page)
    page.keyboard.press("0")
    assert "Shown: whole run" in caption(page)
    assert page.is_disabled("#whole")
    page.keyboard.press("w")
    assert "Shown: 10.5 s of 15.0 s" in caption(page)
    page.click("#whole")
    assert "Shown: whole run" in caption(page)


def test_a_click_zooms_and_a_drag_pans(visit, session):
    page = visit(session, viewport={"width": 1200, "height": 900})
    box = page.locator("#canvas").bounding_box()
    row = box["y"] + 3 * 19 + 9
    page.mouse.move(box["x"] + 40, row)
    assert page.inner_text("#tip") == "parse · 6.00 s (40.0 %), own 2.00 s"
    page.mouse.click(box["x"] + 40, row)
    assert selected(page) == "parse"
    assert "Shown: 6.00 s" in caption(page)
    page.mouse.click(box["x"] + box["width"] * 0.9, box["y"] + 4 * 19 + 9)
    assert selected(page) == "parse"  # nothing lies there: own time of parse
    page.mouse.move(box["x"] + 800, row)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, row, steps=5)
    page.mouse.up()
    assert "Shown: 6.00 s" in caption(page)
    page.mouse.click(box["x"] + box["width"] * 0.9, row)
    assert selected(page) == "hook"
    page.locator("#selection .path button").first.click()
    assert "Shown: whole run" in caption(page)


def test_the_wheel_zooms_with_control(visit, session):
    page = visit(session)
    page.locator("#canvas").hover()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    page.wait_for_function("() => document.getElementById('caption').textContent.includes('12.0 s of')")


def test_search(visit, session):
    page = visit(session)
    before = colours(page)
    page.keyboard.press("/")
    page.keyboard.type("JSONLIB")
    assert "Found: 2 frames, 4.00 s (26.7 %)." in caption(page)
    assert colours(page) != before
    page.keyboard.press("Enter")
    assert selected(page) == "loads"
    page.keyboard.press("Enter")
    assert selected(page) == "JSONDecoder.decode"
    page.keyboard.press("Shift+Enter")
    assert selected(page) == "loads"
    page.keyboard.press("Escape")
    assert "Found" not in caption(page)
    page.keyboard.press("n")
    assert selected(page) == "loads"  # no search, no step
    page.locator("#functions button", has_text="hook").click()
    assert page.input_value("#search") == "hook"
    assert "Found: 1 frames, 3.00 s (20.0 %)." in caption(page)
    page.fill("#search", "nothing like it")
    assert "Found: 0 frames, 0 s (0.0 %)." in caption(page)
    assert page.is_disabled("#next")


def test_orders_threads_and_waiting(visit, session):
    page = visit(session)
    page.keyboard.press("2")
    assert page.get_attribute("#time", "aria-pressed") == "true"
    assert "in order of time, to 1.00 s" in caption(page)
    page.focus("#view")
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
    names = [selected(page)]
    for _ in range(4):
        page.keyboard.press("ArrowRight")
        names.append(selected(page))
    # What goes on from the first second to the second is one piece.
    assert names == ["hook", "parse", "hook", "Condition.wait", "engine.step"]
    page.select_option("#thread", label="pool-1 of made")
    assert "Shown: whole run, 5.00 s." in caption(page)
    page.check("#busy")
    assert "without waiting" in caption(page)
    assert "Shown: whole run, 100 ms." in caption(page)
    page.keyboard.press("/")
    page.keyboard.type("engine")
    page.keyboard.press("Enter")
    assert "counted in all: 1,234 times, 100 ms" in numbers(page)
    fragment = page.evaluate("location.hash")
    again = visit(session, fragment)
    assert again.input_value("#search") == "engine"
    assert again.is_checked("#busy")
    assert "Shown: whole run, 100 ms." in caption(again)


def test_both_orders_cover_the_same_time(visit, session):
    page = visit(session)
    widths = []
    for key in ("1", "2"):
        page.keyboard.press(key)
        page.fill("#search", "parse.py")
        widths.append(caption(page).rpartition("frames, ")[2])
        page.fill("#search", "")
        page.focus("#view")
    assert widths == ["6.00 s (40.0 %)."] * 2


def test_hostile_names_stay_text(visit):
    page = visit(
        made(
            ("main evil template", 50),
            ("evil named", 40, 1, 1),
            threads=(EVIL, "<b>t</b>"),
            functions=FUNCTIONS,
            process=EVIL,
        )
    )
    page.focus("#view")
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    assert selected(page) == "$title ${data} `${1}` \\u2028 \\x1b[31m 😀"
    assert EVIL in page.inner_text("#selection .path")
    page.fill("#search", "<i>evil</i>")
    assert "Found: 2 frames" in caption(page)
    assert page.locator("img, i:not(#legend i), b").count() == 0
    assert page.title() == f"Profile of {EVIL}"


@pytest.mark.parametrize("width", [360, 1024, 1600])
def test_nothing_is_wider_than_the_window(visit, session, width):
    page = visit(session, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    canvas = page.locator("#canvas").bounding_box()
    assert canvas["x"] + canvas["width"] <= width
    page.set_viewport_size({"width": 500, "height": 800})
    page.wait_for_function("() => document.getElementById('canvas').getBoundingClientRect().right <= 500")
    assert len(colours(page)) > 5


def test_theme_follows_the_system_and_the_button(visit, session):
    page = visit(session, color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(27, 27, 31)"
    dark = colours(page)
    page.emulate_media(color_scheme="light")
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    light = colours(page)
    assert max(light, key=light.get) != max(dark, key=dark.get)
    page.keyboard.press("t")
    assert page.inner_text("#theme") == "Theme: dark"
    assert page.evaluate(ground) == "rgb(27, 27, 31)"
    assert max(colours(page), key=colours(page).get) == max(dark, key=dark.get)
    page.keyboard.press("t")
    assert page.inner_text("#theme") == "Theme: light"
    page.keyboard.press("t")
    assert page.inner_text("#theme") == "Theme: system"


def luminance(colour):
    parts = [int(part) / 255 for part in colour.split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_can_be_read_on_every_colour(visit, scheme):
    functions = {f"f{n}": Function(f"f{n}", f"/app/m{n}.py", 1, f"m{n}") for n in range(9)}
    page = visit(made(*((f"f{n}", 100) for n in range(9)), functions=functions), color_scheme=scheme)
    fills = page.evaluate("[...document.querySelectorAll('#legend i')].map((i) => i.style.backgroundColor)")
    assert len(set(fills)) == 9
    text = luminance("27,27,31" if scheme == "light" else "236,236,241")
    for fill in fills:
        ground = luminance(fill.removeprefix("rgb(").removesuffix(")"))
        light, dark = max(text, ground), min(text, ground)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, fill


def test_help_opens_and_closes(visit, session):
    page = visit(session)
    page.keyboard.press("?")
    assert page.is_visible("#keys")
    page.keyboard.press("Escape")
    assert not page.is_visible("#keys")


def test_an_empty_recording_says_so(visit):
    page = visit(made())
    assert caption(page) == "No samples in this recording."
    assert "No samples: the program was too short" in page.inner_text("main")
    page.keyboard.press("2")
    page.focus("#view")
    for key in ("ArrowDown", "Enter", "Escape", "w", "0"):
        page.keyboard.press(key)
    assert "NaN" not in page.inner_text("body")


def test_without_scripts_the_table_is_there(visit, session):
    page = visit(session, java_script_enabled=False)
    assert page.locator("#functions tbody tr").count() == 7
    assert "drawn by a script" in page.inner_text("noscript")
    assert not page.is_visible("#tools")


def test_a_sandboxed_frame_can_show_it(visit, session, chromium, tmp_path):
    page = visit(session)
    page.evaluate("0")
    outer = tmp_path / "outer.html"
    outer.write_text('<iframe src="0.html" sandbox="allow-scripts" width="900" height="700"></iframe>', "utf-8")
    context = chromium.new_context()
    framed = context.new_page()
    framed.goto(f"file://{outer}")
    inside = framed.frame_locator("iframe")
    inside.locator("#caption", has_text="whole run").wait_for()
    inside.locator("#time").click()
    inside.locator("#caption", has_text="in order of time").wait_for()
    context.close()


def test_large_recordings_open_and_answer(visit):
    """400 levels deep and ten thousand leaves wide."""
    functions = {f"f{n}": Function(f"f{n}", f"/app/m{n % 40}.py", n, f"m{n % 40}") for n in range(10_000)}
    deep = " ".join(f"f{n}" for n in range(400))
    wide = [(f"main f{n}", 1 + n % 3, n % 2) for n in range(10_000)]
    page = visit(made((deep, 500), *wide, ticks=10_000, functions=functions))
    assert len(colours(page)) > 3
    page.keyboard.press("2")
    page.fill("#search", "f39")
    assert "Found" in caption(page)
    page.press("#search", "Enter")
    assert selected(page).startswith("f39")
