"""Writes the parts of the documentation that are drawn from the code: settings and state diagrams.

python docs/generate.py           write docs/settings.md and docs/states.md
python docs/generate.py --check   exit with 1 if they are not what would be written
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from gnomon.runtime import config
from gnomon.runtime.core.states import FOLLOWERS, STATE_NAMES
from gnomon.runtime.worker.state.states import RUN_ARROWS, VALUE_ARROWS

DOCS = Path(__file__).parent


def settings_page() -> str:
    """Every setting with its default, unit and meaning."""
    lines = [
        "# Settings",
        "",
        "Later sources win: the defaults below; a TOML file (`$GNOMON_CONFIG`, else",
        "`~/.config/gnomon/gnomon.toml`) with one table per section; the environment",
        "(`GNOMON_SECTION__NAME`, such as `GNOMON_COMM__BACKEND=tornado`);",
        '`gnomon.runtime.config.set({"comm.backend": "tornado"})`, also as a context manager. An unknown name or',
        "a bad value is a `ConfigError` that names where it came from. Text may carry a unit (`300 ms`, `64 MiB`).",
        "",
        "Settings are read when a scheduler, worker or client starts. Children of a `LocalCluster` get those in force.",
        "",
        "| setting | default | unit | meaning |",
        "|---|---|---|---|",
    ]
    for name, default, unit, meaning in config.describe():
        shown = "none" if default is None else '""' if default == "" else default
        lines.append(f"| `{name}` | `{shown}` | {unit} | {meaning} |")
    return "\n".join(lines) + "\n"


def diagram(arrows: Mapping[str, Sequence[str]]) -> list[str]:
    """A state diagram in mermaid's notation."""
    lines = ["```mermaid", "stateDiagram-v2"]
    for before, followers in arrows.items():
        lines += [f"    {_word(before)} --> {_word(after)}" for after in followers]
    return [*lines, "```", ""]


def _word(state: str) -> str:
    return state.replace("-", "_")


def states_page() -> str:
    """The state diagrams of both brains."""
    tasks = {STATE_NAMES[state]: [STATE_NAMES[after] for after in followers] for state, followers in FOLLOWERS.items()}
    return "\n".join(
        [
            "# States",
            "",
            "Drawn from the tables by which the code itself is checked.",
            "",
            "## A task, for the scheduler",
            "",
            *diagram(tasks),
            "## A run, on a worker",
            "",
            *diagram(RUN_ARROWS),
            "## A value, on a worker",
            "",
            *diagram(VALUE_ARROWS),
        ]
    )


def main() -> int:
    """Write or check the pages; the exit code."""
    stale = []
    for name, text in (("settings.md", settings_page()), ("states.md", states_page())):
        path = DOCS / name
        if "--check" in sys.argv[1:]:
            if not path.exists() or path.read_text() != text:
                stale.append(name)
        else:
            path.write_text(text)
    if stale:
        sys.stderr.write(f"run docs/generate.py: {', '.join(stale)} are not current\n")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
