"""Shuffle a dask data frame of hourly partitions and consume it, so that the optimizer can't leave the shuffle out.

Task fusion is off and the shuffle is made of tasks, which is what makes it a load for the scheduler.
"""

from __future__ import annotations

import datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from gnomon.runtime.client import futures_of

if TYPE_CHECKING:
    from gnomon.runtime.client import Client, Future

__all__ = ["Shuffle", "is_available", "submit"]

_ROWS = 3600  # of one partition: one a second


class Shuffle(NamedTuple):
    """A submitted shuffle.

    Fields:
        futures: one per partition, a series of its number of rows.
        tasks: of the whole graph. rows: that went in.
        collection: keeps the results alive.
    """

    futures: list[Future]
    tasks: int
    rows: int
    collection: Any


def is_available() -> bool:
    """Whether dask's data frames are installed."""
    return all(find_spec(name) is not None for name in ("dask", "pandas", "pyarrow"))


def submit(client: Client, partitions: int) -> Shuffle:
    """Build the graph and submit all of it. Raises ImportError without dask's data frames."""
    import dask
    from dask.datasets import timeseries

    start = datetime.datetime(2000, 1, 1)
    with dask.config.set({"dataframe.shuffle.method": "tasks", "optimization.fuse.active": False}):
        end = start + datetime.timedelta(hours=partitions)
        frame = timeseries(start=start, end=end, freq="1s", partition_freq="1h", seed=1)
        lengths = frame.shuffle("x").map_partitions(len)
        tasks = len(lengths.optimize().__dask_graph__())
        collection = client.persist(lengths)
    return Shuffle(futures_of(collection), tasks, partitions * _ROWS, collection)
