"""``gnomon report``: recordings at the command line. Reads ``.gnomon`` files, and the recording inside a report's HTML.

Contents: report (the group), show, diff, check, export.
"""

from __future__ import annotations

from pathlib import Path

import click

from gnomon.reports.account import PARTS, account, percentages
from gnomon.reports.check import LimitsError, read_limits
from gnomon.reports.check import check as find_breaches
from gnomon.reports.compare import Sample, build_comparison, compare, read, text
from gnomon.reports.compare.comparison import CONFIDENCE, LEAST
from gnomon.reports.export import FORMATS, ExportError
from gnomon.reports.export import export as write_export
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


class _Unusable(click.ClickException):
    """Input that can't be used; 1 is what a command finds, 2 that it could not look."""

    exit_code = 2


class _TwoSides(click.Command):
    """A command that sees the ``--`` between two lists of files, which the parser would take for its own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [_BETWEEN if arg == "--" else arg for arg in args])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[OPTIONS] A B", "|", "[OPTIONS] A... -- B..."]


#: Stands for ``--``; no file can be called so.
_BETWEEN = "\0"


@report.command(cls=_TwoSides)
@click.argument("files", nargs=-1, type=str)
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write the comparison as a page, too.")
@click.option(
    "--least",
    type=click.FloatRange(0, 1),
    default=LEAST,
    show_default=True,
    help="Slow-downs smaller than this share are no finding.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 0.9999),
    default=CONFIDENCE,
    show_default=True,
    help="Of all intervals together.",
)
@click.option("--absolute", is_flag=True, help="Do not take out what slowed all prefixes alike; for quiet machines.")
def diff(files: tuple[str, ...], html: Path | None, least: float, confidence: float, absolute: bool) -> None:
    """Compare two recordings, or several of each side with -- between them.

    Exits with 1 if something got slower beyond noise, with 2 if the input can't be used.
    """
    a, b = _sides(files)
    outcome = compare(
        [_sample(file) for file in a], [_sample(file) for file in b], least=least, confidence=confidence,
        absolute=absolute,
    )  # fmt: skip
    click.echo(text(outcome))
    if html is not None:
        _write(html, build_comparison(outcome))
    if outcome.regressed:
        raise click.exceptions.Exit(1)


def _sides(files: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files of both sides. Raises UsageError, which exits with 2."""
    if _BETWEEN not in files and len(files) == 2:
        return files[:1], files[1:]
    if files.count(_BETWEEN) == 1:
        at = files.index(_BETWEEN)
        if 0 < at < len(files) - 1:
            return files[:at], files[at + 1 :]
    raise click.UsageError("give two files, or several of each side as: A... -- B...")


def _sample(file: str) -> Sample:
    try:
        return read(file)
    except (RecordingError, OSError) as exc:
        raise _Unusable(f"{file}: {exc}") from exc


@report.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--limits", required=True, type=click.Path(path_type=Path), help="TOML file of limits.")
def check(file: Path, limits: Path) -> None:
    """Check that the recording in FILE keeps its limits.

    Prints one line per breach, and exits with 1 if there is one, with 2 if the input can't be used.
    """
    try:
        wanted = read_limits(limits)
    except (LimitsError, OSError) as exc:
        raise _Unusable(f"{limits}: {exc}") from exc
    breaches = find_breaches(_load(file), wanted)
    for breach in breaches:
        click.echo(str(breach))
    if breaches:
        raise click.exceptions.Exit(1)
    click.echo(f"{count_text(len(wanted))} limits hold")


@report.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--format", "name", required=True, type=click.Choice(list(FORMATS)), help="What to write.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="File or folder to write to. [default: beside FILE]"
)
def export(file: Path, name: str, output: Path | None) -> None:
    """Write the recording in FILE in a format that other tools read.

    chrome, perfetto: trace events. speedscope: task lanes. json: the account. csv, parquet: a folder of tables.
    """
    target = output or file.with_name(file.stem + FORMATS[name].ending)
    try:
        written = write_export(_load(file), name, target)
    except (ExportError, OSError) as exc:
        raise _Unusable(str(exc)) from exc
    for path in written:
        click.echo(f"wrote {path}")


def _load(file: Path) -> Recording:
    try:
        return load(file)
    except (RecordingError, OSError) as exc:
        raise _Unusable(f"{file}: {exc}") from exc


def _write(path: Path, page: str) -> None:
    try:
        path.write_text(page, "utf-8")
    except OSError as exc:
        raise _Unusable(str(exc)) from exc
    click.echo(f"wrote {path}")


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
