"""Converted graphs to what travels: bundles of consecutive tasks pickled together, and the columns of one message.

Contents: bundle, columns, Wants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gnomon.runtime.client.entries import Entries
from gnomon.runtime.client.future import FutureState
from gnomon.runtime.client.graph import MAX_ROWS, Conversion, GraphTask, wire_key
from gnomon.runtime.client.outgoing import Code, Part
from gnomon.runtime.messages import ByReference, Payload, TaskOptions
from gnomon.runtime.protocol import Bundle, dumps_bundle, dumps_index

__all__ = ["Wants", "bundle", "columns"]

#: Tasks pickled together: more share more (0.7 µs and 26 bytes a task at 64, 1.0 and 32 at 32), and each worker that
#: runs one of them decodes all.
TASKS = 64

#: A bundle above this many bytes is split: its tasks carry data, which should go only where it is needed.
MAX_BUNDLE = 256 << 10

#: A single task above this is refused: a frame of the control plane must hold it.
MAX_TASK = 48 << 20

_INDICES: list[Payload] = [dumps_index(i) for i in range(TASKS)]


def bundle(
    tasks: Mapping[Any, GraphTask], number: Callable[[], int], by_reference: bool
) -> tuple[list[Code], list[int], list[Payload]]:
    """The tasks as code: the blobs, and per task its code and payload.

    Raises BundleError (a TypeError) naming a task that can't be pickled, ValueError for one that is too large.
    """
    codes: list[Code] = []
    task_codes: list[int] = []
    payloads: list[Payload] = []
    keys = list(tasks)
    specs = [task.spec for task in tasks.values()]
    pending = [(start, min(start + TASKS, len(specs))) for start in range(0, len(specs), TASKS)][::-1]
    while pending:
        start, stop = pending.pop()
        entries = Entries(specs[start:stop])
        blob: Payload
        if by_reference:
            blob = ByReference(Bundle(entries))
        else:
            blob = dumps_bundle(entries, keys[start:stop])
            if len(blob) > MAX_BUNDLE and stop - start > 1:
                step = (stop - start + 3) // 4
                pending += [(at, min(at + step, stop)) for at in range(start, stop, step)][::-1]
                continue
            if len(blob) > MAX_TASK:
                raise ValueError(
                    f"the task {keys[start]!r} carries {len(blob) >> 20} MiB of data: "
                    "scatter it, or load it inside a task"
                )
        code = Code(number(), blob)
        codes.append(code)
        task_codes += [code.number] * (stop - start)
        payloads += _INDICES[: stop - start]
    return codes, task_codes, payloads


class Wants(NamedTuple):
    """How the tasks of a graph are wanted.

    Fields:
        outputs: futures of the tasks that are wanted by key.
        options: of the tasks that have their own.
        default: options of the others.
    """

    outputs: Mapping[Any, FutureState]
    options: Mapping[Any, TaskOptions]
    default: TaskOptions
    fifo_timeout: float
    parent_task: int


def columns(
    conversion: Conversion,
    task_codes: Sequence[int],
    payloads: Sequence[Payload],
    wants: Wants,
    future_id: Callable[[], int],
    max_rows: int = MAX_ROWS,
) -> tuple[list[Part], list[int]]:
    """The rows of a converted graph, in several parts if they are very many.

    Gives the parts, and the future ids (taken from ``future_id``) by which later parts name tasks of earlier ones: to
    be released behind the last part.
    """
    tasks, known = conversion
    keys = list(tasks)
    ids = {key: state.id for key, state in known.items()}
    bridges: dict[Any, int] = {}
    if len(keys) > max_rows:
        chunk_of = {key: row // max_rows for row, key in enumerate(keys)}
        for key, task in tasks.items():
            for need in task.needs:
                if need in chunk_of and chunk_of[need] != chunk_of[key] and need not in wants.outputs:
                    bridges[need] = bridges.get(need) or future_id()
    ids |= bridges
    ids |= {key: state.id for key, state in wants.outputs.items()}
    parts = []
    for start in range(0, len(keys), max_rows):
        stop = min(start + max_rows, len(keys))
        rows = keys[start:stop]
        parts.append(
            _part(
                rows,
                [tasks[key].needs for key in rows],
                ids,
                task_codes[start:stop],
                payloads[start:stop],
                wants,
                bridges,
            )
        )
    return parts, list(bridges.values())


def _part(
    rows: list[Any],
    needs: list[list[Any]],
    ids: Mapping[Any, int],
    task_codes: Sequence[int],
    payloads: Sequence[Payload],
    wants: Wants,
    bridges: Mapping[Any, int],
) -> Part:
    """One message's rows. ``ids`` name what lies outside of it."""
    row_of: dict[Any, int] = {key: row for row, key in enumerate(rows)}
    inside = len(row_of)
    externals: dict[int, int] = {}
    for key in {need for some in needs for need in some if need not in row_of}:
        row_of[key] = -1 - externals.setdefault(ids[key], len(externals))
    dependencies = [tuple([row_of[need] for need in some]) for some in needs]
    future_ids = [0] * inside
    for wanted in (wants.outputs, bridges):
        for key in wanted:
            row = row_of.get(key, -1)
            if row >= 0:
                future_ids[row] = ids[key]
    distinct: dict[TaskOptions, int] = {}
    option_rows: list[int] = []
    if wants.options:
        option_rows = [distinct.setdefault(wants.options.get(key, wants.default), len(distinct)) for key in rows]
    return Part(
        tuple([wire_key(key) for key in rows]),
        tuple(task_codes),
        tuple(payloads),
        tuple(dependencies) if any(dependencies) else (),
        tuple(externals),
        tuple(future_ids),
        tuple(distinct) or (wants.default,),
        tuple(option_rows) if len(distinct) > 1 else (),
        wants.fifo_timeout,
        wants.parent_task,
    )
