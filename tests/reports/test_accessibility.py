"""The page for those who don't see, point or tell colours as most do: roles, names, labels, order, contrast.

Where axe is installed its rules are run too; what is checked here holds without it.
"""

from __future__ import annotations

import pytest

from gnomon.reports.recording import TICKS, ErrorGroup, LogLine, LoopPart
from tests.reports.conftest import DRAWN
from tests.reports.test_communication import moved
from tests.reports.test_deep_profiles import profiled
from tests.reports.test_observed import observed

pytestmark = pytest.mark.browser

TABS = ("summary", "timeline", "tasks", "scheduler", "workers", "communication", "memory", "errors", "run")

#: Everything that is wrong with what can be seen now, as sentences.
CHECK = """() => {
    const wrong = [], seen = (e) => e.checkVisibility({ visibilityProperty: true });
    const said = (e) => (e.getAttribute("aria-label") || [...(e.getAttribute("aria-labelledby") || "").split(" ")]
        .map((id) => id && document.getElementById(id)?.textContent).join("") || e.textContent || e.title || "").trim();
    const what = (e) => e.outerHTML.slice(0, 160);
    for (const e of document.querySelectorAll("a[href], button, summary, [role=img], [role=region], [role=tab]"))
        if (seen(e) && !said(e)) wrong.push("no name: " + what(e));
    for (const e of document.querySelectorAll("select, input, textarea"))
        if (seen(e) && !said(e) && !(e.labels && e.labels.length)) wrong.push("no label: " + what(e));
    for (const e of document.querySelectorAll("[aria-labelledby], [aria-controls], label[for]"))
        for (const id of (e.getAttribute("aria-labelledby") || e.getAttribute("aria-controls") || e.htmlFor).split(" "))
            if (!document.getElementById(id)) wrong.push("points to nothing: " + what(e));
    for (const e of document.querySelectorAll("table")) {
        if (!seen(e)) continue;
        if (!e.caption && !e.closest("section").querySelector("h3")) wrong.push("no caption: " + what(e));
        for (const th of e.querySelectorAll("th")) if (!th.scope) wrong.push("no scope: " + what(th));
    }
    for (const e of document.querySelectorAll("*")) {
        const scrolls = /auto|scroll/.test(getComputedStyle(e).overflowX + getComputedStyle(e).overflowY);
        if (seen(e) && scrolls && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)
            && e.tabIndex < 0 && !e.querySelector("a, button")) wrong.push("keys can't scroll: " + what(e));
        if (e.tabIndex > 0) wrong.push("out of order: " + what(e));
    }
    const rgba = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return text.startsWith("color(srgb")
        ? [255 * n[0], 255 * n[1], 255 * n[2], n[3] ?? 1] : [n[0], n[1], n[2], n[3] ?? 1]; };
    const light = (c) => c.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92
        : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const over = (b, c) => b.map((v, i) => i < 3 ? v + (c[i] - v) * c[3] : 1);
    const ground = (e) => {
        const under = [];
        for (; e; e = e.parentElement) under.push(rgba(getComputedStyle(e).backgroundColor));
        return under.reverse().reduce(over, [255, 255, 255, 1]);
    };
    for (const e of document.querySelectorAll("main *, header *, .controls *")) {
        const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
        if (!own || !seen(e) || e.disabled || e.closest(".sr, svg")) continue;
        const text = rgba(getComputedStyle(e).color), back = ground(e);
        if (getComputedStyle(e).backgroundImage !== "none") continue;
        const [low, high] = [light(text), light(back)].sort((a, b) => a - b), ratio = (high + 0.05) / (low + 0.05);
        if (ratio < 4.5) wrong.push(`contrast ${ratio.toFixed(2)}: ${what(e)}`);
    }
    return [...new Set(wrong)];
}"""


@pytest.fixture
def full(cluster, make_cluster):
    """A recording in which every part of the page has something to show."""
    recording, more, deep = observed(cluster), moved(make_cluster()), profiled(make_cluster())
    for name in ("workers", "worker_totals", "pairs", "types", "clocks", "transfers"):
        setattr(recording, name, getattr(more, name))
    recording.task_profiles = deep.task_profiles
    recording.loop = [LoopPart(name, "timed", TICKS, 10) for name in ("idle", "resting", "brain", "gc", "other")]
    recording.errors = [ErrorGroup("load", "ValueError", "ValueError: no", 3, "load-1", 1, "Traceback\nValueError: no")]
    recording.logs = [LogLine(TICKS, "WARNING", "a line")]
    recording.info["calling_code"] = {"where": "x.py, line 2", "text": "a\nb\n", "first": 1, "line": 2, "note": ""}
    recording.info["raised"] = "ValueError: no"
    return recording


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_has_a_name_a_place_and_contrast(visit, full, scheme):
    page = visit(full, color_scheme=scheme)
    for tab in TABS:
        page.click(f"#tab-{tab}")
        if tab == "timeline":
            page.wait_for_function(DRAWN)
        assert page.evaluate(CHECK) == [], tab


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(visit, full, scheme):
    axe = pytest.importorskip("axe_core_python.sync_playwright").Axe()
    page = visit(full, color_scheme=scheme)
    for tab in TABS:
        page.click(f"#tab-{tab}")
        if tab == "timeline":
            page.wait_for_function(DRAWN)
        found = axe.run(page)["violations"]
        serious = [
            (each["id"], each["nodes"][0]["html"][:200]) for each in found if each["impact"] in ("serious", "critical")
        ]
        assert serious == [], tab


def test_those_who_want_no_motion_get_none(visit, busy):
    page = visit(busy(30), reduced_motion="reduce")
    assert page.evaluate("() => getComputedStyle(document.documentElement).scrollBehavior") == "auto"
