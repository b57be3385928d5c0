"""The comparison's page in a real browser, from a file, with nothing asked of a network."""

from __future__ import annotations

import pytest

from gnomon.reports.compare import build_comparison, compare, sample

pytestmark = pytest.mark.browser


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


def test_the_same_twice_shows_no_change(visit, busy):
    recording = busy(400, seed=3)
    page = visit(compare([sample(recording, "a")], [sample(recording, "b")]))
    assert page.inner_text(".headline") == "Nothing got slower beyond noise."
    for table in ("whole", "parts"):
        differences = page.evaluate(
            f"() => [...document.querySelectorAll('#compare-{table} tbody td:nth-child(4)')].map((c) => +c.dataset.v)"
        )
        assert differences
        assert set(differences) == {0}
    assert page.locator("#compare-verdicts .slower, #compare-verdicts .faster").count() == 0


def test_a_slowed_prefix_comes_first_and_a_missing_one_is_listed(visit, make_cluster):
    def recorded(slow, names):
        cluster = make_cluster()
        w = cluster.worker("w")
        mark, at = cluster.mark(), 0.0
        for i in range(60):
            for name, length in names.items():
                length *= 1 + 0.002 * (i % 5)
                length *= 1.3 if name == slow else 1.0
                cluster.run(f"{name}-{i}", w, at, at + length)
                at += length
        cluster.now = at
        return sample(cluster.record(mark), slow or "before")

    names = {"parse": 0.01, "join": 0.02, "sum": 0.015, "count": 0.008}
    page = visit(compare([recorded("", {**names, "gone": 0.001})], [recorded("join", names)]))
    first = page.locator("#compare-verdicts tbody tr").first.inner_text()
    assert first.startswith("join")
    assert "slower" in first
    assert "'join'" in page.inner_text(".headline")
    assert "only in A" in page.locator("#compare-verdicts tr", has_text="gone").inner_text()
