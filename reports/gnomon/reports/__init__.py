"""What people look at: recordings of a cluster's work, and the pages made of them.

    with performance_report("report.html"):
        client.gather(client.map(work, range(1000)))

A ``Recording`` is everything between two marks; it is a file of its own and lies inside every page. The time account,
the figures and the page are functions of a recording and ask nobody. This package uses the runtime's public names only.

Contents:
    performance    ``performance_report``: asks the cluster, and writes the page
    task_stream    the task stream alone, for ``Client.get_task_stream``
    collect/       from a cluster's answers to a recording
    recording      ``Recording``: typed columns, saved and loaded
    records        what a recording consists of
    packing        how columns stand in its file
    redaction      a recording without private data
    account        where the time of every worker thread went, in parts that add up
    idle_reasons   what idle threads waited for
    durations      how long the tasks of a prefix took
    findings       the greatest losses, in words
    palette        colours; units: numbers as people read them
    figures/       charts
    page/          the HTML; templates: how its templates are loaded
    compare/       two sides beside each other
    check/         limits
    export/        other tools' formats
    dashboard/     the same in a browser, while the cluster runs
    cli            ``gnomon report``
"""

from __future__ import annotations

from gnomon.reports.performance import performance_report
from gnomon.reports.recording import Recording, RecordingError, load

__all__ = ["Recording", "RecordingError", "load", "performance_report"]
