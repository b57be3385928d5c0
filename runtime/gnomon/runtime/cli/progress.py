"""A progress bar over futures, on standard error; where that is no terminal, nothing is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gnomon.runtime.client import as_completed

if TYPE_CHECKING:
    from gnomon.runtime.client import Future

__all__ = ["progress"]


def progress(futures: Sequence[Future], label: str, console: Console | None = None) -> None:
    """Wait until all are done, well or not, and show how far they are.

    The bar is drawn a few times a second, whatever the number of futures.
    """
    console = console or Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        row = bar.add_task(label, total=len(futures))
        for batch in as_completed(futures).batches():
            bar.advance(row, len(batch))
