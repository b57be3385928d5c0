"""Measures a page as its reader meets it: how long until text, numbers and charts are there, and until they follow.

A headless Chromium opens the file with the network off. Times are the browser's own, in milliseconds.

Contents: Measures, measured.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Measures", "measured"]

_SWITCHES = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync")  # fmt: skip

#: Runs before the page's own scripts: notes when the numbers were complete, and every block of the main thread.
_WATCH = """
window.blocks = [];
new PerformanceObserver((list) => { for (const each of list.getEntries()) blocks.push([each.startTime, each.duration]); })
  .observe({ type: "longtask", buffered: true });
new MutationObserver(() => { if (document.documentElement?.dataset.ready && !window.complete) window.complete = performance.now(); })
  .observe(document, { attributes: true, subtree: true, childList: true });
window.frame = () => new Promise((done) => requestAnimationFrame(() => { const { port1, port2 } = new MessageChannel(); port2.onmessage = done; port1.postMessage(0); }));
window.settled = async (timeline, before) => { for (const end = performance.now() + 60_000; timeline && gnomon.shown === before && performance.now() < end;) await frame(); for (let i = 0; i < 3; i++) await frame(); };
"""  # noqa: E501 - a script, one statement a line

#: Acts, then tells how long until everything is drawn, less the two frames that are waited for to be sure.
_TIMED = """async ([act, argument]) => {
    const acts = {
        tab: (name) => document.getElementById("tab-" + name).click(),
        brush: (shares) => gnomon.setRange(...shares.map((each) => each * gnomon.data.duration), { replace: true }),
        search: (text) => {
            const field = document.getElementById("filter").elements.namedItem("search");
            field.value = text;
            field.dispatchEvent(new Event("input", { bubbles: true }));
        },
    };
    await settled(false);
    const begin = performance.now(), shown = gnomon.shown;
    acts[act](argument);
    await settled(gnomon.state.tab === "timeline" && document.getElementById("timeline-item"), shown);
    const end = performance.now();
    await frame();
    await frame();
    return end - begin - (performance.now() - end);
}"""

_TABS = ("timeline", "tasks", "scheduler", "workers", "communication", "memory", "errors", "run", "summary")


@dataclass
class Measures:
    """Milliseconds, but for ``heap`` (MiB). ``tabs`` is the first show of each, ``brush`` and ``search`` are by tab."""

    text: float = 0.0
    complete: float = 0.0
    block: float = 0.0
    heap: float = 0.0
    tabs: dict[str, float] = field(default_factory=dict)
    brush: dict[str, list[float]] = field(default_factory=dict)
    search: dict[str, list[float]] = field(default_factory=dict)


def measured(path: Path, *, brushes: int = 20) -> Measures:
    """Open the page in the file, look at every tab, brush and search."""
    result = Measures()
    with _opened(path) as (page, _):
        result.text = page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN")
        result.complete = page.evaluate("() => complete")
        page.wait_for_timeout(1_500)  # what the page makes ready while nobody waits
        for name in _TABS:
            result.tabs[name] = page.evaluate(_TIMED, ["tab", name])
        for name in ("summary", "timeline", "tasks", "workers", "scheduler"):
            page.evaluate(_TIMED, ["tab", name])
            result.brush[name] = [
                page.evaluate(_TIMED, ["brush", [0.03 * i, 0.03 * i + 0.05 + 0.3 * (i % 5) / 5]])
                for i in range(brushes)
            ]
            page.keyboard.press("0")
            result.search[name] = [page.evaluate(_TIMED, ["search", text]) for text in ("m", "me", "merge-7", "")]
        result.block = max((length for _, length in page.evaluate("() => blocks")), default=0.0)
        session = page.context.new_cdp_session(page)
        session.send("HeapProfiler.collectGarbage")
        result.heap = page.evaluate("() => performance.memory.usedJSHeapSize") / 2**20
    return result


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, Any]]:
    """The page in a browser, complete; and the browser."""
    from playwright.sync_api import sync_playwright

    binary = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=binary, args=[*_SWITCHES, "--enable-precise-memory-info"])
        try:
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            context.set_offline(True)
            page = context.new_page()
            page.add_init_script(_WATCH)
            page.goto(f"file://{path}#tab=summary", timeout=120_000)
            page.wait_for_function("() => window.complete > 0", timeout=120_000)
            yield page, browser
        finally:
            browser.close()
