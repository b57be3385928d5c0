"""The browser that tests drive: Debian's Chromium, headless.

Contents: CHROMIUM, chromium_started.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

#: Where it is; None where it isn't installed.
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

_SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync"]  # fmt: skip


@contextmanager
def chromium_started() -> Iterator[Any]:
    """A running browser; skips where there is none. While it lives, its loop runs in this thread."""
    driver = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with driver.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=_SWITCHES)
        yield browser
        browser.close()
