"""The comparison's page in a real browser, from a file, with nothing asked of a network."""

from __future__ import annotations

import shutil

import pytest

from gnomon.reports.compare import build_comparison, compare, sample

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, tmp_path):
    """Opens a comparison; afterwards nothing may have been asked of a network or complained of."""
    troubles, contexts = [], []

    def opened(outcome, **options):
        path = tmp_path / f"{len(contexts)}.html"
        path.write_text(build_comparison(outcome), "utf-8")
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda r: r.url.startswith(("file:", "data:")) or troubles.append(r.url))
        page.on("console", lambda m: m.type in ("error", "warning") and troubles.append(m.text))
        page.on("pageerror", lambda e: troubles.append(str(e)))
        page.goto(f"file://{path}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


@pytest.fixture
def outcome(busy):
    return compare([sample(busy(400, seed=1), "one.gnomon")], [sample(busy(500, seed=2, workers=2), "two.gnomon")])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [420, 1024, 1600])
def test_fits_its_window(visit, outcome, width, scheme):
    page = visit(outcome, viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for name in ("summary", "tasks", "time", "transfers", "workers", "run"):
        assert len(page.inner_text(f"#{name}")) > 20
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)" if scheme == "light" else "rgb(27, 27, 31)"
    )


def test_both_bars_have_one_scale(visit, outcome):
    page = visit(outcome, viewport={"width": 1600, "height": 800})
    lengths = page.evaluate(
        "[...document.querySelectorAll('.side-bar .bar')].map(bar => [...bar.children].reduce((sum, each) =>"
        " sum + parseFloat(each.style.width), 0))"
    )
    capacities = [side.samples[0].capacity for side in (outcome.a, outcome.b)]
    assert lengths == pytest.approx([100 * capacity / max(capacities) for capacity in capacities], abs=0.01)


def test_tables_sort_by_value_and_work_without_scripts(visit, outcome):
    page = visit(outcome)
    numbers = "() => [...document.querySelectorAll('#compare-prefixes tbody td:nth-child(5)')].map((c) => +c.dataset.v)"
    page.click("#compare-prefixes th:nth-child(5) button")
    assert page.evaluate(numbers) == sorted(page.evaluate(numbers), reverse=True)
    plain = visit(outcome, java_script_enabled=False)
    assert "Capacity differs" in plain.inner_text("header")
    assert plain.is_visible("#compare-verdicts")
