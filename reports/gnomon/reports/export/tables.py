"""Runs, transfers and prefixes as tables: CSV, and Parquet where pyarrow is installed. Times in seconds.

Contents: RUNS, TRANSFERS, PREFIXES, write_csv, write_parquet.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gnomon.reports.durations import durations
from gnomon.reports.export.errors import ExportError
from gnomon.reports.recording import TICKS, Recording

__all__ = ["PREFIXES", "RUNS", "TRANSFERS", "write_csv", "write_parquet"]


class Sheet(NamedTuple):
    """A table: its name, its columns with their types, and where its rows come from."""

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: Callable[[Recording], Iterator[tuple[Any, ...]]]


def _runs(recording: Recording) -> Iterator[tuple[Any, ...]]:
    runs = recording.runs
    for row in range(len(runs)):
        yield (
            runs.keys[row],
            runs.prefix_names[runs.prefixes[row]],
            _worker(recording, runs.workers[row]),
            runs.threads[row],
            runs.begins[row] / TICKS,
            runs.decodes[row] / TICKS,
            runs.computes[row] / TICKS,
            runs.encodes[row] / TICKS,
            runs.nbytes[row],
            bool(runs.ok[row]),
            runs.cpus[row] / TICKS if row < len(runs.cpus) and runs.cpus[row] >= 0 else None,
            " / ".join(runs.span_names[runs.spans[row]]) if row < len(runs.spans) else None,
        )


def _transfers(recording: Recording) -> Iterator[tuple[Any, ...]]:
    transfers = recording.transfers
    for row in range(len(transfers)):
        yield (
            _worker(recording, transfers.froms[row]),
            _worker(recording, transfers.tos[row]),
            transfers.transport_names[transfers.transports[row]],
            transfers.begins[row] / TICKS,
            transfers.lengths[row] / TICKS,
            transfers.nbytes[row],
            transfers.type_names[transfers.types[row]] if row < len(transfers.types) else None,
            *(
                column[row] / TICKS if row < len(column) and column[row] >= 0 else None
                for column in (transfers.waits, transfers.holds, transfers.serialises)
            ),
        )


def _prefixes(recording: Recording) -> Iterator[tuple[Any, ...]]:
    known = durations(recording)
    for totals in recording.prefixes:
        each = known.get(str(totals.name))
        quantiles = (each.median / TICKS, each.p99 / TICKS, each.most / TICKS) if each else (None, None, None)
        yield (
            str(totals.name),
            totals.tasks,
            totals.erred,
            totals.nbytes,
            totals.decode / TICKS,
            totals.compute / TICKS,
            totals.encode / TICKS,
            totals.compute / totals.tasks / TICKS if totals.tasks else None,
            *quantiles,
        )


RUNS = Sheet(
    "runs",
    (
        ("key", "string"), ("prefix", "string"), ("worker", "string"), ("thread", "int64"), ("begin", "double"),
        ("decode", "double"), ("compute", "double"), ("encode", "double"), ("nbytes", "int64"), ("ok", "bool"),
        ("cpu", "double"), ("span", "string"),
    ),
    _runs,
)  # fmt: skip
TRANSFERS = Sheet(
    "transfers",
    (
        ("from", "string"), ("to", "string"), ("transport", "string"), ("begin", "double"), ("length", "double"),
        ("nbytes", "int64"), ("type", "string"), ("wait", "double"), ("hold", "double"), ("serialise", "double"),
    ),
    _transfers,
)  # fmt: skip
PREFIXES = Sheet(
    "prefixes",
    (
        ("prefix", "string"), ("tasks", "int64"), ("erred", "int64"), ("nbytes", "int64"), ("decode", "double"),
        ("compute", "double"), ("encode", "double"), ("mean", "double"), ("median", "double"), ("p99", "double"),
        ("longest", "double"),
    ),
    _prefixes,
)  # fmt: skip


def write_csv(recording: Recording, folder: Path) -> list[Path]:
    """Write a CSV file for each table into ``folder``, which is made if needed. Raises OSError.

    Times have seven decimals, all that a recording holds; what isn't known is empty.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for sheet in (RUNS, TRANSFERS, PREFIXES):
        path = folder / f"{sheet.name}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([name for name, _ in sheet.columns])
            writer.writerows([_csv_value(value) for value in row] for row in sheet.rows(recording))
        written.append(path)
    return written


def write_parquet(recording: Recording, folder: Path) -> list[Path]:
    """Write a Parquet file for each table into ``folder``. Raises ExportError without pyarrow, and OSError."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as exc:
        raise ExportError("Parquet needs pyarrow: pip install pyarrow (csv has the same tables)") from exc
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for sheet in (RUNS, TRANSFERS, PREFIXES):
        schema = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in _arrow(sheet)])
        columns = list(zip(*sheet.rows(recording), strict=True)) or [()] * len(sheet.columns)
        arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        path = folder / f"{sheet.name}.parquet"
        pyarrow.parquet.write_table(pyarrow.Table.from_arrays(arrays, schema=schema), path)
        written.append(path)
    return written


def _arrow(sheet: Sheet) -> list[tuple[str, str]]:
    names = {"bool": "bool_", "double": "float64"}
    return [(name, names.get(kind, kind)) for name, kind in sheet.columns]


def _csv_value(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return int(value)
    return f"{value:.7f}" if isinstance(value, float) else value


def _worker(recording: Recording, row: int) -> str:
    return recording.workers[row].label if row >= 0 else ""
