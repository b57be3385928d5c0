"""The documents hold together: links lead somewhere, and what is drawn from the code is current."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("number", range(3))
def test_examples_of_the_profiler_run(number, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "profiler.md").read_text(), re.DOTALL)
    assert len(blocks) == 3
    command = [sys.executable, "-W", "error", "-c", blocks[number]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_what_is_drawn_from_the_code_is_current():
    command = [sys.executable, ROOT / "docs" / "generate.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
