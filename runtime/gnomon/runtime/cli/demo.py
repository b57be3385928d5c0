"""``gnomon demo``: a real workload on a cluster of this machine, with a progress bar, a result and a report."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.table import Table

from gnomon.runtime.cli.options import option
from gnomon.runtime.cli.progress import progress
from gnomon.runtime.cli.workloads import shuffle, stdlib
from gnomon.runtime.client import Client
from gnomon.runtime.clock import now
from gnomon.runtime.deploy import LocalCluster
from gnomon.runtime.errors import GnomonError

__all__ = ["demo"]

_TOP = 15  # kinds of nodes that the table shows


class _Outcome(NamedTuple):
    """What a workload brought.

    Fields:
        tasks: that ran. seconds: from the first submission to the last result.
        headline, table: the result, for people.
    """

    tasks: int
    seconds: float
    headline: str
    table: Table


@click.command()
@option("--workload", type=click.Choice(["stdlib", "shuffle"]), default="stdlib", help="What to compute.")
@option(
    "--report",
    type=click.Path(dir_okay=False),
    default="gnomon-report.html",
    help="File to write the performance report to.",
)
@option("--workers", type=click.IntRange(1), help="Workers to start.  [default: by processors]")
@option("--threads", type=click.IntRange(1), help="Threads of each worker.  [default: by processors]")
@option(
    "--partitions", type=click.IntRange(2), default=100, help="Size of the shuffle: hours of data, one partition each."
)
@click.pass_context
def demo(
    ctx: click.Context, workload: str, report: str, workers: int | None, threads: int | None, partitions: int
) -> None:
    """Run a real workload on this machine and write a performance report.

    \b
    stdlib   parses every module of this Python's own standard library, counts the kinds of syntax
             nodes and merges the counts in a tree of tasks; needs nothing else
    shuffle  shuffles a dask data frame; needs gnomon[dask]

    \b
    Examples:
      gnomon demo
      gnomon demo --workload shuffle --partitions 500 --report shuffle.html
    """
    console = Console()
    if workload == "shuffle" and not shuffle.is_available():
        raise click.ClickException("the workload shuffle needs dask's data frames: pip install 'gnomon[dask]'")
    try:
        with LocalCluster(workers, threads) as cluster, Client(cluster) as client:
            console.print(f"{len(cluster.workers)} workers at {cluster.scheduler_address}", highlight=False)
            if cluster.dashboard_link:
                console.print(f"Dashboard: {cluster.dashboard_link}", highlight=False, soft_wrap=True)
            with _report(report) as written:
                outcome = _stdlib(client) if workload == "stdlib" else _shuffle(client, partitions)
    except KeyboardInterrupt:
        click.echo("Interrupted; the cluster is closed.", err=True)
        ctx.exit(130)
    except (GnomonError, OSError) as exc:
        raise click.ClickException(str(exc)) from exc
    console.print(outcome.headline, highlight=False, soft_wrap=True)
    console.print(outcome.table)
    rate = outcome.tasks / outcome.seconds
    console.print(f"{outcome.tasks:,} tasks in {outcome.seconds:.2f} s: {rate:,.0f} tasks/s", highlight=False)
    if written:
        console.print(f"Report: {Path(report).resolve()}", highlight=False, soft_wrap=True)
    else:
        click.echo("No report: the package that writes reports is not installed.", err=True)


def _report(path: str) -> AbstractContextManager[Any]:
    """The performance report around the workload, or a context that gives None where no package offers it."""
    offered = entry_points(group="gnomon.reports", name="performance_report")
    if not offered:
        return contextlib.nullcontext(None)
    return _written(next(iter(offered)).load()(filename=path, stacklevel=3))


@contextlib.contextmanager
def _written(report: AbstractContextManager[Any]) -> Any:
    """Gives True, whatever the report itself gives."""
    with report:
        yield True


def _stdlib(client: Client) -> _Outcome:
    paths = stdlib.find_files()
    began = now()
    futures = stdlib.submit(client, paths)
    progress(futures, "Parsing the standard library")
    total: stdlib.Counts = futures[-1].result()
    seconds = now() - began
    nodes = sum(total.nodes.values())
    table = Table()
    table.add_column("Node")
    table.add_column("Count", justify="right")
    table.add_column("Share", justify="right")
    for kind, count in sorted(total.nodes.items(), key=lambda item: (-item[1], item[0]))[:_TOP]:
        table.add_row(kind, f"{count:,}", f"{count / nodes:.1%}")
    headline = f"{total.files:,} files, {total.lines:,} lines, {nodes:,} syntax nodes of {len(total.nodes)} kinds"
    if total.unparsed:
        headline += f"; {total.unparsed} files are no valid source"
    return _Outcome(len(futures), seconds, headline, table)


def _shuffle(client: Client, partitions: int) -> _Outcome:
    began = now()
    work = shuffle.submit(client, partitions)
    progress(work.futures, "Shuffling")
    lengths = [int(part.sum()) for part in client.gather(work.futures)]
    seconds = now() - began
    if sum(lengths) != work.rows:
        raise click.ClickException(f"the shuffle lost rows: {sum(lengths):,} of {work.rows:,} came back")
    table = Table()
    for name in ("Smallest", "Mean", "Largest"):
        table.add_column(name, justify="right")
    table.add_row(f"{min(lengths):,}", f"{work.rows / len(lengths):,.0f}", f"{max(lengths):,}")
    headline = f"{work.rows:,} rows shuffled into {len(lengths)} partitions"
    return _Outcome(work.tasks, seconds, headline, table)
