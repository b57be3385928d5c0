"""``gnomon report``: recordings at the command line. Reads ``.gnomon`` files, and the recording inside a report's HTML.

Contents: report (the group), show.
"""

from __future__ import annotations

from pathlib import Path

import click

from gnomon.reports.account import PARTS, account, percentages
from gnomon.reports.findings import findings
from gnomon.reports.page import build_page
from gnomon.reports.page.tables import PART_WORDS
from gnomon.reports.recording import Recording, RecordingError, load
from gnomon.reports.units import count_text, cut, time_text

__all__ = ["report"]


@click.group()
def report() -> None:
    """Look at recordings: .gnomon files, or reports that hold one."""


@report.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write the page to this file instead.")
def show(file: Path, html: Path | None) -> None:
    """Print where the time went in FILE, or make its page again."""
    try:
        recording = load(file)
    except RecordingError as exc:
        raise click.ClickException(f"{file}: {exc}") from exc
    if html is not None:
        html.write_text(build_page(recording), "utf-8")
        click.echo(f"wrote {html}")
    else:
        click.echo(_text(recording))


def _text(recording: Recording) -> str:
    """The account, the greatest prefixes and the findings as text."""
    result = account(recording)
    lines = [
        f"{time_text(recording.duration)} wall time, {len(result.workers)} workers with {result.threads} threads: "
        f"{count_text(result.tasks)} tasks, {count_text(result.erred)} erred",
        "",
    ]
    values = result.parts.values()
    for name, ticks, percent in zip(PARTS, values, percentages(values), strict=True):
        lines.append(f"  {PART_WORDS[name][0]:<18}{time_text(ticks):>10}{percent:>8.1f} %")
    lines += [f"  {'Capacity':<18}{time_text(result.capacity):>10}", ""]
    for prefix in result.prefixes[:10]:
        busy = time_text(prefix.parts.busy)
        lines.append(f"  {cut(prefix.name, 40):<42}{count_text(prefix.tasks):>10} tasks{busy:>10}")
    lines += ["", *(f"- {finding.text}" for finding in findings(recording, result))]
    return "\n".join(lines).rstrip()
